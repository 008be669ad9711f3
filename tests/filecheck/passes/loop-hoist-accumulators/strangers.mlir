// RUN: jit-opt %s --allow-unregistered-dialect -p loop-hoist-accumulators | filecheck %s

// An operation of a dialect that is not loaded may read and write any memory.

// CHECK-LABEL: @do_not_hoist_past_an_operation_of_an_unknown_dialect
// CHECK:         scf.for
// CHECK:           memref.load
// CHECK:           "strange.op"
// CHECK:           memref.store
func.func @do_not_hoist_past_an_operation_of_an_unknown_dialect(%x: memref<8xf32>, %acc: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %a = memref.load %acc[%c0] : memref<1xf32>
    %v = "strange.op"(%acc) : (memref<1xf32>) -> f32
    %s = arith.addf %a, %v : f32
    memref.store %s, %acc[%c0] : memref<1xf32>
  }
  func.return
}
