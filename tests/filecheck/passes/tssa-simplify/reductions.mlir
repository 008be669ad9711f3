// RUN: jit-opt %s -p tssa-simplify | filecheck %s

// Reduced axes become neighbours; kept axes behind the last of them stay behind.
// CHECK-LABEL: func.func @reduced_axes_come_together
// CHECK-NEXT:    %[[T:.*]] = tssa.transpose %x {permutation = array<i64: 1, 0, 2, 3>} : (tensor<2x3x4x5xf32>) -> tensor<3x2x4x5xf32>
// CHECK-NEXT:    tssa.sum %[[T]] {axes = array<i64: 1, 2>} : (tensor<3x2x4x5xf32>) -> tensor<3x5xf32>
func.func @reduced_axes_come_together(%x: tensor<2x3x4x5xf32>) -> tensor<3x5xf32> {
  %0 = tssa.sum %x {axes = array<i64: 0, 2>} : (tensor<2x3x4x5xf32>) -> tensor<3x5xf32>
  func.return %0 : tensor<3x5xf32>
}

// CHECK-LABEL: func.func @do_not_move_neighbours
// CHECK-NOT:     tssa.transpose
// CHECK:         func.return
func.func @do_not_move_neighbours(%x: tensor<2x3x4xf32>) -> (tensor<4xf32>, tensor<2x3x4xf32>) {
  %0 = tssa.max %x {axes = array<i64: 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4xf32>
  %1 = tssa.prod %x {axes = array<i64>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<2x3x4xf32>
}
