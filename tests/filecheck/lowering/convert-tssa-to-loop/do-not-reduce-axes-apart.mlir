// RUN: not jit-opt %s -p tssa-fuse,tssa-bufferize,convert-tssa-to-loop 2>&1 | filecheck %s

// CHECK: the reduced axes (0, 2) are not neighbours; run tssa-simplify, which transposes
func.func @do_not_reduce_axes_apart(%x: tensor<2x3x4xf32>) -> tensor<3xf32> {
  %0 = tssa.sum %x {axes = array<i64: 0, 2>} : (tensor<2x3x4xf32>) -> tensor<3xf32>
  func.return %0 : tensor<3xf32>
}
