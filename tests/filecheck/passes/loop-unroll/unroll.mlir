// RUN: jit-opt %s --allow-unregistered-dialect -p 'loop-unroll{factor=4}' | filecheck %s

// CHECK-LABEL: func.func @dynamic_count_with_carried_value
// CHECK:         %[[REST:.*]] = arith.remui %{{.*}}, %{{.*}} : index
// CHECK-NEXT:    %[[WHOLE:.*]] = arith.subi %{{.*}}, %[[REST]] : index
// CHECK-NEXT:    %[[SPAN:.*]] = arith.muli %[[WHOLE]], %step : index
// CHECK-NEXT:    %[[MIDDLE:.*]] = arith.addi %lower, %[[SPAN]] : index
// CHECK:         %[[STEP:.*]] = arith.muli %step, %{{.*}} : index
// CHECK-NEXT:    %[[MAIN:.*]] = scf.for %i = %lower to %[[MIDDLE]] step %[[STEP]] iter_args(%s = %init) -> (f32) {
// CHECK:           %[[T0:.*]] = arith.addf %s, %{{.*}} : f32
// CHECK:           %[[I1:.*]] = arith.addi %i, %step : index
// CHECK-NEXT:      %[[V1:.*]] = memref.load %x[%[[I1]]] : memref<?xf32>
// CHECK-NEXT:      %[[T1:.*]] = arith.addf %[[T0]], %[[V1]] : f32
// CHECK:           %[[T2:.*]] = arith.addf %[[T1]], %{{.*}} : f32
// CHECK:           %[[T3:.*]] = arith.addf %[[T2]], %{{.*}} : f32
// CHECK-NEXT:      scf.yield %[[T3]] : f32
// CHECK:         %[[R:.*]] = scf.for %{{.*}} = %[[MIDDLE]] to %upper step %step iter_args(%{{.*}} = %[[MAIN]]) -> (f32) {
// CHECK:         func.return %[[R]] : f32
func.func @dynamic_count_with_carried_value(%x: memref<?xf32>, %lower: index, %upper: index, %step: index, %init: f32) -> f32 {
  %r = scf.for %i = %lower to %upper step %step iter_args(%s = %init) -> (f32) {
    %v = memref.load %x[%i] : memref<?xf32>
    %t = arith.addf %s, %v : f32
    scf.yield %t : f32
  }
  func.return %r : f32
}

// A count that the factor divides leaves no second loop.
// CHECK-LABEL: func.func @count_that_divides
// CHECK:         scf.for
// CHECK-COUNT-4:   memref.store
// CHECK-NOT:     scf.for
// CHECK:         func.return
func.func @count_that_divides(%x: memref<?xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %v, %x[%i] : memref<?xf32>
  }
  func.return
}

// The factor may be larger than the count: the loop dissolves into that many copies (Xilinx/mlir-aie#1556).
// CHECK-LABEL: func.func @count_below_the_factor
// CHECK-NOT:     scf.for
// CHECK-COUNT-3: memref.store
// CHECK-NOT:     memref.store
// CHECK:         func.return
func.func @count_below_the_factor(%x: memref<?xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  scf.for %i = %c0 to %c5 step %c2 {
    memref.store %v, %x[%i] : memref<?xf32>
  }
  func.return
}

// llvm/llvm-project#223232
// CHECK-LABEL: func.func @zero_iterations
// CHECK-NOT:     memref.store
// CHECK:         func.return
func.func @zero_iterations(%x: memref<?xf32>, %v: f32) {
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  scf.for %i = %c5 to %c1 step %c1 {
    memref.store %v, %x[%i] : memref<?xf32>
  }
  func.return
}

// Seven iterations from -3: the bound of the first loop is below zero, and compared as a signed number
// (llvm/llvm-project#223233).
// CHECK-LABEL: func.func @from_below_zero
// CHECK:         %[[ONE:[0-9]+]] = arith.constant 1 : index
// CHECK:         scf.for %i = %{{.*}} to %[[ONE]] step %{{.*}} {
// CHECK:         scf.for %{{.*}} = %[[ONE]] to %c4 step %c1 {
func.func @from_below_zero(%x: memref<?xf32>, %v: f32, %shift: index) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %lower = arith.constant -3 : index
  scf.for %i = %lower to %c4 step %c1 {
    %j = arith.addi %i, %shift : index
    memref.store %v, %x[%j] : memref<?xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @counts_in_i32
// CHECK:         scf.for %i = %lower to %{{.*}} step %{{.*}} : i32 {
// CHECK:         scf.for %{{.*}} = %{{.*}} to %upper step %step : i32 {
func.func @counts_in_i32(%lower: i32, %upper: i32, %step: i32) {
  scf.for %i = %lower to %upper step %step : i32 {
    "test.op"(%i) : (i32) -> ()
  }
  func.return
}

// llvm/llvm-project#75758
// CHECK-LABEL: func.func @do_not_divide_by_a_zero_step
// CHECK:         scf.for %i = %lower to %upper step %zero {
// CHECK-NEXT:    } {loop.remark = "loop-unroll: its step is not positive"}
func.func @do_not_divide_by_a_zero_step(%lower: index, %upper: index) {
  %zero = arith.constant 0 : index
  scf.for %i = %lower to %upper step %zero {
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_step_down
// CHECK:         } {loop.remark = "loop-unroll: its step is not positive"}
func.func @do_not_step_down(%lower: index, %upper: index) {
  %down = arith.constant -2 : index
  scf.for %i = %lower to %upper step %down {
  }
  func.return
}

// Only innermost loops, unless a schedule asks for more.
// CHECK-LABEL: func.func @do_not_unroll_outer_loops
// CHECK:         scf.for %i = %lower to %upper step %step {
// CHECK-NEXT:      %{{.*}} = scf.for
func.func @do_not_unroll_outer_loops(%lower: index, %upper: index, %step: index) {
  scf.for %i = %lower to %upper step %step {
    %k = scf.for %j = %lower to %upper step %step iter_args(%s = %i) -> (index) {
      scf.yield %j : index
    } {loop.schedule = #loop.schedule<vector = 4>}
  }
  func.return
}

// CHECK-LABEL: func.func @factor_from_the_schedule
// CHECK:         scf.for
// CHECK-COUNT-2:   "test.op"
// CHECK:         } {loop.kind = "parallel"}
// CHECK:         scf.for
// CHECK:         } {loop.kind = "parallel"}
func.func @factor_from_the_schedule(%lower: index, %upper: index, %step: index) {
  scf.for %i = %lower to %upper step %step {
    "test.op"(%i) : (index) -> ()
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<unroll = 2>}
  func.return
}
