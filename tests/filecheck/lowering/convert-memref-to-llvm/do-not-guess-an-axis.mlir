// RUN: not jit-opt %s -p convert-memref-to-llvm 2>&1 | filecheck %s

// CHECK: needs a constant axis of memref<?x?xf32> in memref.dim
func.func @do_not_guess_an_axis(%m: memref<?x?xf32>, %axis: index) -> index {
  %n = memref.dim %m, %axis : memref<?x?xf32>
  func.return %n : index
}
