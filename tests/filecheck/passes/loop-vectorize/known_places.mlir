// RUN: jit-opt %s -p loop-vectorize | filecheck %s

// A sum of indices that are known after the loop is gone is a number: another pass sees which lanes are read.
// CHECK-LABEL: func.func @known_places
// CHECK-NOT:     scf.for
// CHECK:         %[[HALF:.*]] = arith.constant 8 : index
// CHECK-NOT:     arith.addi
// CHECK:         vector.load %m[%[[HALF]]] : memref<16xf32>, vector<8xf32>
func.func @known_places(%m: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %j = arith.addi %i, %c8 : index
    %b = memref.load %m[%j] : memref<16xf32>
    memref.store %b, %m[%i] : memref<16xf32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<vector = 8>}
  func.return
}

// CHECK-LABEL: func.func @nothing_added
// CHECK:         vector.load %x[%g]
func.func @nothing_added(%x: memref<?xf32>, %y: memref<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %g = %c0 to %n step %c4 {
      %j = arith.addi %g, %i : index
      %b = memref.load %x[%j] : memref<?xf32>
      memref.store %b, %y[%i] : memref<4xf32>
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<vector = 4>}
  func.return
}

// CHECK-LABEL: func.func @do_not_fold_other_integers
// CHECK:         arith.addi %{{.*}} : i32
func.func @do_not_fold_other_integers(%y: memref<4xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1 : i32
  scf.for %i = %c0 to %c4 step %c1 {
    %two = arith.addi %one, %one : i32
    memref.store %two, %y[%i] : memref<4xi32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<vector = 4>}
  func.return
}
