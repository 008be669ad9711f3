// RUN: jit-opt %s -p 'tssa-fuse{merge=false}' | filecheck %s

// CHECK-LABEL: func.func @every_operation_is_a_group
// CHECK:         tssa.group
// CHECK:           tssa.exp
// CHECK-NEXT:      tssa.yield
// CHECK:         tssa.group
// CHECK:           tssa.abs
// CHECK-NEXT:      tssa.yield
func.func @every_operation_is_a_group(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = tssa.abs %a : (tensor<8xf32>) -> tensor<8xf32>
  func.return %b : tensor<8xf32>
}

// CHECK-LABEL: func.func @views_stay_outside
// CHECK-NEXT:    tssa.reshape
// CHECK-NEXT:    tssa.transpose
// CHECK-NEXT:    tssa.extract
// CHECK-NEXT:    func.return
func.func @views_stay_outside(%x: tensor<8xf32>) -> tensor<1x4xf32> {
  %a = tssa.reshape %x : (tensor<8xf32>) -> tensor<4x2xf32>
  %b = tssa.transpose %a {permutation = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %c = tssa.extract %b {offsets = #tssa.dims<[1, 0]>, steps = array<i64: 1, 1>}
    : (tensor<2x4xf32>) -> tensor<1x4xf32>
  func.return %c : tensor<1x4xf32>
}
