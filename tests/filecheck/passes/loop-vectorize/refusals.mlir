// RUN: jit-opt %s --allow-unregistered-dialect -p 'loop-vectorize{width=8}' | filecheck %s

// One case for each reason to refuse; the loop stays and says why.

// CHECK-LABEL: func.func @do_not_reorder_a_reduction
// CHECK:         loop.remark = "loop-vectorize: it carries values from iteration to iteration, and their order is meaning"
func.func @do_not_reorder_a_reduction(%X: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant -0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %z) -> (f32) {
    %x = memref.load %X[%i] : memref<?xf32>
    %t = arith.addf %s, %x : f32
    scf.yield %t : f32
  } 
  func.return
}

// CHECK-LABEL: func.func @do_not_step_over_lanes
// CHECK:         loop.remark = "loop-vectorize: its step is not 1"
func.func @do_not_step_over_lanes(%X: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %n {
    %x = memref.load %X[%i] : memref<?xf32>
    memref.store %x, %X[%i] : memref<?xf32>
  } {loop.kind = "parallel"}
  func.return
}

// CHECK-LABEL: func.func @do_not_widen_unknown_operations
// CHECK:         loop.remark = "loop-vectorize: test.op has no form on vectors"
func.func @do_not_widen_unknown_operations(%X: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    "test.op"(%i) : (index) -> ()
  } {loop.kind = "parallel"}
  func.return
}

// CHECK-LABEL: func.func @do_not_widen_private_memory
// CHECK:         loop.remark = "loop-vectorize: memref.alloca has no form on vectors"
func.func @do_not_widen_private_memory(%X: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %p = memref.alloca() : memref<f32>
    %x = memref.load %X[%i] : memref<?xf32>
    memref.store %x, %p[] : memref<f32>
  } {loop.kind = "parallel"}
  func.return
}

// CHECK-LABEL: func.func @do_not_widen_vectors
// CHECK:         loop.remark = "loop-vectorize: its body works on vectors already"
func.func @do_not_widen_vectors(%X: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = vector.load %X[%i] : memref<?xf32>, vector<4xf32>
    vector.store %x, %X[%i] : memref<?xf32>, vector<4xf32>
  } {loop.kind = "parallel"}
  func.return
}

// CHECK-LABEL: func.func @do_not_widen_triangles
// CHECK:         loop.remark = "loop-vectorize: the bounds of an inner loop depend on its index"
func.func @do_not_widen_triangles(%X: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %k = %i to %n step %c1 {
    } {loop.schedule = #loop.schedule<jam = [2]>}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<vector = 8>}
  func.return
}

// CHECK-LABEL: func.func @do_not_gather_rows
// CHECK:         loop.remark = "loop-vectorize: an access is not at unit stride"
func.func @do_not_gather_rows(%X: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %X[%i, %c0] : memref<?x?xf32>
    memref.store %x, %X[%i, %c0] : memref<?x?xf32>
  } {loop.kind = "parallel"}
  func.return
}

// CHECK-LABEL: func.func @do_not_gather_every_second
// CHECK:         loop.remark = "loop-vectorize: an access is not at unit stride"
func.func @do_not_gather_every_second(%X: memref<?xf32>, %Y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %n step %c1 {
    %j = arith.muli %i, %c2 : index
    %x = memref.load %X[%j] : memref<?xf32>
    memref.store %x, %Y[%i] : memref<?xf32>
  } {loop.kind = "parallel"}
  func.return
}

// CHECK-LABEL: func.func @do_not_trust_a_strided_layout
// CHECK:         loop.remark = "loop-vectorize: an access is not at unit stride"
func.func @do_not_trust_a_strided_layout(%X: memref<?xf32, strided<[?], offset: ?>>, %Y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %X[%i] : memref<?xf32, strided<[?], offset: ?>>
    memref.store %x, %Y[%i] : memref<?xf32>
  } {loop.kind = "parallel"}
  func.return
}

// CHECK-LABEL: func.func @do_not_store_all_lanes_to_one_place
// CHECK:         loop.remark = "loop-vectorize: an access is not at unit stride"
func.func @do_not_store_all_lanes_to_one_place(%X: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %X[%i] : memref<?xf32>
    memref.store %x, %X[%c0] : memref<?xf32>
  } {loop.kind = "parallel"}
  func.return
}

// CHECK-LABEL: func.func @do_not_use_the_index_as_a_value
// CHECK:         loop.remark = "loop-vectorize: its index is used as a value"
func.func @do_not_use_the_index_as_a_value(%X: memref<?xi64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %j = arith.index_cast %i : index to i64
    memref.store %j, %X[%i] : memref<?xi64>
  } {loop.kind = "parallel"}
  func.return
}

// CHECK-LABEL: func.func @do_not_load_bits
// CHECK:         loop.remark = "loop-vectorize: a value that differs between lanes has no vector type"
func.func @do_not_load_bits(%X: memref<?xi1>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %X[%i] : memref<?xi1>
    memref.store %x, %X[%i] : memref<?xi1>
  } {loop.kind = "parallel"}
  func.return
}

// Without a kind, independence must be proved: write a[i + 1], read a[i] (inducer/loopy#600).
// CHECK-LABEL: func.func @do_not_ignore_an_offset
// CHECK:         loop.remark = "loop-vectorize: %X is written and used again over 1 iterations"
func.func @do_not_ignore_an_offset(%X: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %X[%i] : memref<?xf32>
    %j = arith.addi %i, %c1 : index
    memref.store %x, %X[%j] : memref<?xf32>
  } 
  func.return
}

// CHECK-LABEL: func.func @do_not_ignore_an_unknown_offset
// CHECK:         loop.remark = "loop-vectorize: %X is written and used again at an unknown distance"
func.func @do_not_ignore_an_unknown_offset(%X: memref<?xf32>, %n: index, %d: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %X[%i] : memref<?xf32>
    %j = arith.addi %i, %d : index
    memref.store %x, %X[%j] : memref<?xf32>
  } 
  func.return
}

// CHECK-LABEL: func.func @do_not_assume_that_arguments_differ
// CHECK:         loop.remark = "loop-vectorize: %X and %Y may overlap"
func.func @do_not_assume_that_arguments_differ(%X: memref<?xf32>, %Y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %X[%i] : memref<?xf32>
    memref.store %x, %Y[%i] : memref<?xf32>
  } 
  func.return
}
