// RUN: jit-opt %s -p 'tssa-fuse{max-ops=4 max-inputs=3}' | filecheck %s

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

// CHECK-LABEL: func.func @do_not_fuse_a_sum_into_its_consumer
// CHECK:         tssa.sum
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.negative
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_a_sum_into_its_consumer(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %a = tssa.sum %x {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %b = tssa.negative %a : (tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
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

// CHECK-LABEL: func.func @do_not_fuse_what_is_returned_too
// CHECK:         tssa.exp
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.abs
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_what_is_returned_too(
    %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = tssa.abs %a : (tensor<8xf32>) -> tensor<8xf32>
  func.return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// %a reaches %d through the sum as well as directly: one group of %a and %d would have to run before and
// after the sum.
// CHECK-LABEL: func.func @do_not_fuse_around_another_operation
// CHECK:         tssa.exp
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.sum
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.broadcast
// CHECK-NEXT:    tssa.divide
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_around_another_operation(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = tssa.sum %a {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  %c = tssa.broadcast %b : (tensor<f32>) -> tensor<8xf32>
  %d = tssa.divide %a, %c : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %d : tensor<8xf32>
}

// CHECK-LABEL: func.func @do_not_fuse_more_operations_than_max_ops
// CHECK:         tssa.abs
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.exp
// CHECK-NEXT:    tssa.abs
// CHECK-NEXT:    tssa.exp
// CHECK-NEXT:    tssa.abs
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_more_operations_than_max_ops(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = tssa.abs %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = tssa.exp %a : (tensor<8xf32>) -> tensor<8xf32>
  %c = tssa.abs %b : (tensor<8xf32>) -> tensor<8xf32>
  %d = tssa.exp %c : (tensor<8xf32>) -> tensor<8xf32>
  %e = tssa.abs %d : (tensor<8xf32>) -> tensor<8xf32>
  func.return %e : tensor<8xf32>
}

// CHECK-LABEL: func.func @do_not_fuse_more_inputs_than_max_inputs
// CHECK:         tssa.group ins(%x, %y :
// CHECK:         tssa.group ins(%{{.*}}, %z, %w :
func.func @do_not_fuse_more_inputs_than_max_inputs(%x: tensor<8xf32>, %y: tensor<8xf32>,
    %z: tensor<8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
  %a = tssa.add %x, %y : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %b = tssa.add %a, %z : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %c = tssa.add %b, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %c : tensor<8xf32>
}

// The negation is cheap and copied into both groups; what it reads is dear and stays one group.
// CHECK-LABEL: func.func @do_not_fuse_into_an_operation_that_other_groups_copy
// CHECK:         %[[E:.*]] = tssa.group ins(%x : tensor<f32>)
// CHECK-NEXT:    ^{{.*}}:
// CHECK-NEXT:      tssa.exp
// CHECK-NEXT:      tssa.yield
// CHECK:         tssa.group ins(%[[E]] : tensor<f32>)
// CHECK-NEXT:    ^{{.*}}:
// CHECK-NEXT:      tssa.negative
// CHECK:         tssa.group ins(%[[E]], %y : tensor<f32>, tensor<8xf32>)
// CHECK-NEXT:    ^{{.*}}:
// CHECK-NEXT:      tssa.negative
// CHECK-NOT:       tssa.exp
func.func @do_not_fuse_into_an_operation_that_other_groups_copy(%x: tensor<f32>, %y: tensor<8xf32>) -> (tensor<f32>, tensor<8xf32>) {
  %e = tssa.exp %x : (tensor<f32>) -> tensor<f32>
  %n = tssa.negative %e : (tensor<f32>) -> tensor<f32>
  %a = tssa.abs %n : (tensor<f32>) -> tensor<f32>
  %b = tssa.broadcast %n : (tensor<f32>) -> tensor<8xf32>
  %c = tssa.add %b, %y : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %a, %c : tensor<f32>, tensor<8xf32>
}
