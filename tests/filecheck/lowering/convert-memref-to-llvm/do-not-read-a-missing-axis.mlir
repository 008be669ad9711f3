// RUN: not jit-opt %s -p convert-to-llvm 2>&1 | filecheck %s

// CHECK: needs a constant axis of memref<?xf32> in memref.dim
func.func @do_not_read_a_missing_axis(%m: memref<?xf32>) -> index {
  %1 = arith.constant 1 : index
  %n = memref.dim %m, %1 : memref<?xf32>
  func.return %n : index
}
