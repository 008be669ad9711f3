// RUN: jit-opt %s -p tssa-fuse,tssa-bufferize,convert-tssa-to-loop | filecheck %s

// Rows outside; inside the maximum, the exponentials, stored while they are summed, and the quotients. Short rows of
// exponentials are kept by themselves.
// CHECK-LABEL: func.func @softmax
// CHECK:         loop.nest (%[[I:.*]]) = ({{.*}}) to ({{.*}}) step (1) kinds [parallel] {
// CHECK-NEXT:      %[[E:.*]] = memref.alloca() : memref<64xf32>
// CHECK:           arith.maxsi
// CHECK:           math.exp
// CHECK-NEXT:      memref.store %{{.*}}, %[[E]][%{{.*}}] : memref<64xf32>
// CHECK-NEXT:      arith.addf
// CHECK:             memref.load %[[E]][%[[J:.*]]] : memref<64xf32>
// CHECK-NEXT:        arith.divf
// CHECK-NEXT:        memref.store %{{.*}}, %out0[%[[I]], %[[J]]]
// CHECK-NOT:     math.exp
// CHECK:         func.return
func.func @softmax(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %0 = tssa.max %x {axes = array<i64: 1>} : (tensor<4x64xf32>) -> tensor<4xf32>
  %1 = tssa.reshape %0 : (tensor<4xf32>) -> tensor<4x1xf32>
  %2 = tssa.broadcast %1 : (tensor<4x1xf32>) -> tensor<4x64xf32>
  %3 = tssa.subtract %x, %2 : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  %4 = tssa.exp %3 : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %5 = tssa.sum %4 {axes = array<i64: 1>} : (tensor<4x64xf32>) -> tensor<4xf32>
  %6 = tssa.reshape %5 : (tensor<4xf32>) -> tensor<4x1xf32>
  %7 = tssa.broadcast %6 : (tensor<4x1xf32>) -> tensor<4x64xf32>
  %8 = tssa.divide %4, %7 : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  func.return %8 : tensor<4x64xf32>
}

// Longer ones have no place in a first-level cache of their own.
// CHECK-LABEL: func.func @long_rows_are_kept_in_the_result
// CHECK:           math.exp
// CHECK-NEXT:      memref.store %{{.*}}, %out0[%[[I:.*]], %{{.*}}]
// CHECK-NEXT:      arith.addf
// CHECK:             memref.load %out0[%[[I]], %[[J:.*]]] :
// CHECK-NEXT:        arith.divf
// CHECK-NEXT:        memref.store %{{.*}}, %out0[%[[I]], %[[J]]]
func.func @long_rows_are_kept_in_the_result(%x: tensor<4x4096xf32>) -> tensor<4x4096xf32> {
  %0 = tssa.max %x {axes = array<i64: 1>} : (tensor<4x4096xf32>) -> tensor<4xf32>
  %1 = tssa.reshape %0 : (tensor<4xf32>) -> tensor<4x1xf32>
  %2 = tssa.broadcast %1 : (tensor<4x1xf32>) -> tensor<4x4096xf32>
  %3 = tssa.subtract %x, %2 : (tensor<4x4096xf32>, tensor<4x4096xf32>) -> tensor<4x4096xf32>
  %4 = tssa.exp %3 : (tensor<4x4096xf32>) -> tensor<4x4096xf32>
  %5 = tssa.sum %4 {axes = array<i64: 1>} : (tensor<4x4096xf32>) -> tensor<4xf32>
  %6 = tssa.reshape %5 : (tensor<4xf32>) -> tensor<4x1xf32>
  %7 = tssa.broadcast %6 : (tensor<4x1xf32>) -> tensor<4x4096xf32>
  %8 = tssa.divide %4, %7 : (tensor<4x4096xf32>, tensor<4x4096xf32>) -> tensor<4x4096xf32>
  func.return %8 : tensor<4x4096xf32>
}

// A cheap element is computed again in each sweep; what there is once per row, once per row.
// CHECK-LABEL: func.func @standard_deviation
// CHECK:         loop.nest (%[[I:.*]]) =
// CHECK:           arith.divf
// CHECK:           memref.load %x[%[[I]],
// CHECK-NEXT:      arith.subf
// CHECK-NEXT:      arith.mulf
// CHECK:           arith.divf
// CHECK-NEXT:      math.sqrt
// CHECK-NEXT:      memref.store %{{.*}}, %out0[%[[I]]]
// CHECK-NEXT:    }
func.func @standard_deviation(%x: tensor<4x64xf32>, %n: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tssa.sum %x {axes = array<i64: 1>} : (tensor<4x64xf32>) -> tensor<4xf32>
  %1 = tssa.divide %0, %n : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = tssa.reshape %1 : (tensor<4xf32>) -> tensor<4x1xf32>
  %3 = tssa.broadcast %2 : (tensor<4x1xf32>) -> tensor<4x64xf32>
  %4 = tssa.subtract %x, %3 : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  %5 = tssa.multiply %4, %4 : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  %6 = tssa.sum %5 {axes = array<i64: 1>} : (tensor<4x64xf32>) -> tensor<4xf32>
  %7 = tssa.divide %6, %n : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %8 = tssa.sqrt %7 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %8 : tensor<4xf32>
}

// All axes are one in C order; the product is computed where it is added.
// CHECK-LABEL: func.func @sum_of_products
// CHECK:         memref.reinterpret_cast %x to offset: [0], sizes: [256], strides: [1]
// CHECK:         memref.reinterpret_cast %y to offset: [0], sizes: [256], strides: [1]
// CHECK:         arith.mulf
// CHECK-NEXT:    arith.addf
func.func @sum_of_products(%x: tensor<4x64xf32>, %y: tensor<4x64xf32>) -> tensor<f32> {
  %0 = tssa.multiply %x, %y : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  %1 = tssa.sum %0 {axes = array<i64: 0, 1>} : (tensor<4x64xf32>) -> tensor<f32>
  func.return %1 : tensor<f32>
}

// bool is a byte for the reduction and a bit for what follows it.
// CHECK-LABEL: func.func @none_is_negative
// CHECK:         arith.cmpf
// CHECK-NEXT:    arith.extui
// CHECK-NEXT:    arith.maxui
// CHECK:         arith.cmpi ne
// CHECK-NEXT:    arith.xori
func.func @none_is_negative(%x: tensor<4x64xf32>, %z: tensor<f32>) -> tensor<4xi1> {
  %0 = tssa.broadcast %z : (tensor<f32>) -> tensor<4x64xf32>
  %1 = tssa.less %x, %0 : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xi1>
  %2 = tssa.max %1 {axes = array<i64: 1>} : (tensor<4x64xi1>) -> tensor<4xi1>
  %3 = tssa.logical_not %2 : (tensor<4xi1>) -> tensor<4xi1>
  func.return %3 : tensor<4xi1>
}

// Both results are computed before either is stored: one may be in the place of an operand.
// CHECK-LABEL: func.func @stores_come_last
// CHECK:         math.exp
// CHECK-NEXT:    memref.load
// CHECK-NEXT:    arith.addf
// CHECK-NEXT:    memref.store %{{.*}}, %out0
// CHECK-NEXT:    memref.store %{{.*}}, %out1
func.func @stores_come_last(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = tssa.add %a, %y : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %a, %b : tensor<8xf32>, tensor<8xf32>
}
