// RUN: jit-opt %s -p tssa-fuse | filecheck %s

// CHECK-LABEL: func.func @do_not_fuse_across_blocks
// CHECK:         tssa.exp
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.abs
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_across_blocks(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  cf.br ^bb1
^bb1:
  %b = tssa.abs %a : (tensor<8xf32>) -> tensor<8xf32>
  func.return %b : tensor<8xf32>
}

// What is written at an offset is read at another place (inducer/loopy#600).
// CHECK-LABEL: func.func @do_not_fuse_an_insertion_into_its_consumer
// CHECK:         tssa.insert
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.negative
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_an_insertion_into_its_consumer(
    %x: tensor<8xf32>, %y: tensor<2xf32>) -> tensor<8xf32> {
  %a = tssa.insert %x, %y {offsets = #tssa.dims<[1]>, steps = array<i64: 1>}
    : (tensor<8xf32>, tensor<2xf32>) -> tensor<8xf32>
  %b = tssa.negative %a : (tensor<8xf32>) -> tensor<8xf32>
  func.return %b : tensor<8xf32>
}

// exp would be computed eight times for each row.
// CHECK-LABEL: func.func @do_not_fuse_a_producer_of_another_shape
// CHECK:         tssa.exp
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.broadcast
// CHECK-NEXT:    tssa.add
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_a_producer_of_another_shape(
    %x: tensor<4x1xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = tssa.exp %x : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %b = tssa.broadcast %a : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %c = tssa.add %b, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %c : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @do_not_fuse_different_symbols
// CHECK:         tssa.exp
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.broadcast
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_different_symbols(
    %x: tensor<1x?xf32, #tssa.dims<[1, n]>>, %m: tensor<?xf32, #tssa.dims<[m]>>)
    -> tensor<?x?xf32, #tssa.dims<[m, n]>> {
  %a = tssa.exp %x : (tensor<1x?xf32, #tssa.dims<[1, n]>>) -> tensor<1x?xf32, #tssa.dims<[1, n]>>
  %b = tssa.broadcast %a
    : (tensor<1x?xf32, #tssa.dims<[1, n]>>) -> tensor<?x?xf32, #tssa.dims<[m, n]>>
  func.return %b : tensor<?x?xf32, #tssa.dims<[m, n]>>
}

// CHECK-LABEL: func.func @do_not_fuse_into_a_product
// CHECK:         tssa.abs
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.matmul
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_into_a_product(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %a = tssa.abs %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = tssa.matmul %a, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %b : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @do_not_fuse_into_a_maximum
// CHECK:         tssa.abs
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.max
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_into_a_maximum(%x: tensor<f32>) -> tensor<f32> {
  %a = tssa.abs %x : (tensor<f32>) -> tensor<f32>
  %b = tssa.max %a {axes = array<i64>} : (tensor<f32>) -> tensor<f32>
  func.return %b : tensor<f32>
}

// CHECK-LABEL: func.func @do_not_fuse_two_products
// CHECK:         tssa.matmul
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.matmul
// CHECK-NEXT:    tssa.add
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_two_products(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %a = tssa.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = tssa.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = tssa.add %b, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %c : tensor<4x4xf32>
}

// A product of vectors would run once for each of the eight elements.
// CHECK-LABEL: func.func @do_not_fuse_a_product_under_a_broadcast
// CHECK:         tssa.matmul
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.broadcast
// CHECK-NEXT:    tssa.add
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_a_product_under_a_broadcast(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = tssa.matmul %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  %b = tssa.broadcast %a : (tensor<f32>) -> tensor<8xf32>
  %c = tssa.add %b, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %c : tensor<8xf32>
}

// %a reaches %c through the insertion as well as directly: one group of both would have to run before and
// after it.
// CHECK-LABEL: func.func @do_not_fuse_around_another_operation
// CHECK:         tssa.exp
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.insert
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.add
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_around_another_operation(
    %x: tensor<8xf32>, %y: tensor<2xf32>) -> tensor<8xf32> {
  %a = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = tssa.insert %a, %y {offsets = #tssa.dims<[1]>, steps = array<i64: 1>}
    : (tensor<8xf32>, tensor<2xf32>) -> tensor<8xf32>
  %c = tssa.add %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %c : tensor<8xf32>
}

// The path may lead through a view, too.
// CHECK-LABEL: func.func @do_not_fuse_around_a_view
// CHECK:         tssa.exp
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.transpose
// CHECK:         tssa.add
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_around_a_view(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %a = tssa.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = tssa.transpose %a {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = tssa.add %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %c : tensor<4x4xf32>
}

// The tiles of a product do not hold the rows that a maximum needs.
// CHECK-LABEL: func.func @do_not_fuse_a_reduction_with_a_product
// CHECK:         tssa.matmul
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.max
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_a_reduction_with_a_product(%x: tensor<4x4xf32>) -> tensor<4xf32> {
  %a = tssa.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = tssa.max %a {axes = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// A broadcast is copied, but not into a product, which reads its buffers many times over.
// CHECK-LABEL: func.func @do_not_fuse_a_broadcast_into_a_product
// CHECK:         tssa.broadcast
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.matmul
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_a_broadcast_into_a_product(
    %x: tensor<4x4xf32>, %y: tensor<4xf32>) -> tensor<4x4xf32> {
  %a = tssa.broadcast %y : (tensor<4xf32>) -> tensor<4x4xf32>
  %b = tssa.matmul %x, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %b : tensor<4x4xf32>
}

// Both read %x, but neither feeds the other, and the tiles of the product have no use for the exponentials.
// CHECK-LABEL: func.func @do_not_put_a_stranger_beside_a_product
// CHECK:         tssa.exp
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.matmul
// CHECK-NEXT:    tssa.yield
func.func @do_not_put_a_stranger_beside_a_product(
    %x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %a = tssa.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = tssa.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %a, %b : tensor<4x4xf32>, tensor<4x4xf32>
}
