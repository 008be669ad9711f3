// RUN: jit-opt %s --allow-unregistered-dialect -p 'loop-vectorize{width=8}' | filecheck %s

// An unmasked part and a masked rest. Uniform values are broadcast once, constants become constants.
// CHECK-LABEL: func.func @main_and_rest
// CHECK:         %[[TRIPS:.*]] = arith.maxsi %n, %{{.*}} : index
// CHECK:         %[[REST:.*]] = arith.remui %[[TRIPS]], %{{.*}} : index
// CHECK-NEXT:    %[[MAIN:.*]] = arith.subi %[[TRIPS]], %[[REST]] : index
// CHECK-NEXT:    %[[S:.*]] = vector.broadcast %s : f32 to vector<8xf32>
// CHECK-NEXT:    %[[Z:.*]] = arith.constant dense<0.000000e+00> : vector<8xf32>
// CHECK-NEXT:    scf.for %i = %{{.*}} to %[[MAIN]] step %{{.*}} {
// CHECK-NEXT:      %x = vector.load %X[%i] : memref<?xf32>, vector<8xf32>
// CHECK-NEXT:      %y = arith.mulf %x, %[[S]] : vector<8xf32>
// CHECK-NEXT:      %c = arith.cmpf olt, %y, %[[Z]] : vector<8xf32>
// CHECK-NEXT:      %w = arith.select %c, %x, %y : vector<8xi1>, vector<8xf32>
// CHECK-NEXT:      vector.store %w, %Y[%i] : memref<?xf32>, vector<8xf32>
// CHECK-NEXT:    } {loop.kind = "parallel"}
// CHECK:         scf.for %[[I:.*]] = %[[MAIN]] to %n step %{{.*}} {
// CHECK-NEXT:      %[[LEFT:.*]] = arith.subi %n, %[[I]] : index
// CHECK-NEXT:      %[[MASK:.*]] = vector.create_mask %[[LEFT]] : vector<8xi1>
// CHECK-NEXT:      vector.maskedload %X[%[[I]]], %[[MASK]], %{{.*}} : memref<?xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
// CHECK:           vector.maskedstore %Y[%[[I]]], %[[MASK]], %{{.*}} : memref<?xf32>, vector<8xi1>, vector<8xf32>
func.func @main_and_rest(%X: memref<?xf32>, %Y: memref<?xf32>, %s: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %X[%i] : memref<?xf32>
    %y = arith.mulf %x, %s : f32
    %c = arith.cmpf olt, %y, %z : f32
    %w = arith.select %c, %x, %y : f32
    memref.store %w, %Y[%i] : memref<?xf32>
  } {loop.kind = "parallel"}
  func.return
}

// One number of lanes for elements of every width.
// CHECK-LABEL: func.func @mixed_widths
// CHECK:           %[[I:.*]] = vector.load %I[%i] : memref<?xi32>, vector<8xi32>
// CHECK-NEXT:      %[[X:.*]] = vector.load %X[%i] : memref<?xf32>, vector<8xf32>
// CHECK-NEXT:      %[[A:.*]] = arith.sitofp %[[I]] : vector<8xi32> to vector<8xf64>
// CHECK-NEXT:      %[[B:.*]] = arith.extf %[[X]] : vector<8xf32> to vector<8xf64>
// CHECK-NEXT:      %[[C:.*]] = arith.cmpf olt, %[[A]], %[[B]] : vector<8xf64>
// CHECK-NEXT:      %[[W:.*]] = arith.extsi %[[I]] : vector<8xi32> to vector<8xi64>
// CHECK-NEXT:      %[[S:.*]] = arith.select %[[C]], %[[W]], %{{.*}} : vector<8xi1>, vector<8xi64>
// CHECK-NEXT:      vector.store %[[S]], %Y[%i] : memref<?xi64>, vector<8xi64>
func.func @mixed_widths(%I: memref<?xi32>, %X: memref<?xf32>, %Y: memref<?xi64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0 : i64
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %I[%i] : memref<?xi32>
    %x = memref.load %X[%i] : memref<?xf32>
    %a = arith.sitofp %v : i32 to f64
    %b = arith.extf %x : f32 to f64
    %c = arith.cmpf olt, %a, %b : f64
    %w = arith.extsi %v : i32 to i64
    %s = arith.select %c, %w, %z : i64
    memref.store %s, %Y[%i] : memref<?xi64>
  } {loop.kind = "parallel"}
  func.return
}

// As many iterations as lanes: no loop.
// CHECK-LABEL: func.func @one_vector
// CHECK-NOT:     scf.for
// CHECK:         vector.store %{{.*}}, %X[%c0] : memref<?xf32>, vector<8xf32>
// CHECK-NEXT:    func.return
func.func @one_vector(%X: memref<?xf32>, %s: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %s, %X[%i] : memref<?xf32>
  }
  func.return
}

// Fewer: one masked vector, with a constant mask.
// CHECK-LABEL: func.func @part_of_one_vector
// CHECK-NOT:     scf.for
// CHECK:         %[[FIVE:[0-9]+]] = arith.constant 5 : index
// CHECK:         vector.create_mask %[[FIVE]] : vector<8xi1>
// CHECK-NOT:     scf.for
// CHECK:         func.return
func.func @part_of_one_vector(%X: memref<?xf32>, %s: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  scf.for %i = %c0 to %c5 step %c1 {
    memref.store %s, %X[%i] : memref<?xf32>
  }
  func.return
}

// At most as many, known from the bound: the masked part only.
// CHECK-LABEL: func.func @at_most_one_vector
// CHECK-NOT:     vector.store
// CHECK:         scf.for
// CHECK:           vector.maskedstore
// CHECK-NOT:     scf.for
// CHECK:         func.return
func.func @at_most_one_vector(%X: memref<?xf32>, %s: f32, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %n = arith.andi %m, %c7 : index
  scf.for %i = %c0 to %n step %c1 {
    memref.store %s, %X[%i] : memref<?xf32>
  } {loop.kind = "parallel"}
  func.return
}

// Widths differ, lanes do not.
// CHECK-LABEL: func.func @casts
// CHECK:         %x = vector.load %X[%i] : memref<?xi8>, vector<8xi8>
// CHECK:         %b = arith.cmpi ne, %x, %{{.*}} : vector<8xi8>
// CHECK-NEXT:    %w = arith.extui %b : vector<8xi1> to vector<8xi64>
// CHECK-NEXT:    %f = arith.sitofp %w : vector<8xi64> to vector<8xf32>
func.func @casts(%X: memref<?xi8>, %Y: memref<?xf32>, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0 : i8
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %X[%i] : memref<?xi8>
    %b = arith.cmpi ne, %x, %z : i8
    %w = arith.extui %b : i1 to i64
    %f = arith.sitofp %w : i64 to f32
    memref.store %f, %Y[%i] : memref<?xf32>
  }
  func.return
}

// A masked lane would divide by zero: what is left over is done one by one.
// CHECK-LABEL: func.func @do_not_mask_divisions
// CHECK:         arith.divsi %{{.*}} : vector<8xi64>
// CHECK-NOT:     vector.create_mask
// CHECK:         arith.divsi %{{.*}} : i64
func.func @do_not_mask_divisions(%X: memref<?xi64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %X[%i] : memref<?xi64>
    %y = arith.divsi %x, %x : i64
    memref.store %y, %X[%i] : memref<?xi64>
  }
  func.return
}
