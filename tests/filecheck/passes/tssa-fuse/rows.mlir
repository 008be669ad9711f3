// RUN: jit-opt %s -p tssa-fuse | filecheck %s

// CHECK-LABEL: func.func @what_is_summed_joins_the_sum
// CHECK-NEXT:    tssa.group ins(%x, %y :
// CHECK:           tssa.multiply
// CHECK-NEXT:      tssa.sum
// CHECK-NEXT:      tssa.yield
// CHECK-NOT:     tssa.group
// CHECK:         func.return
func.func @what_is_summed_joins_the_sum(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<f32> {
  %a = tssa.multiply %x, %y : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %b = tssa.sum %a {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  func.return %b : tensor<f32>
}

// CHECK-LABEL: func.func @what_follows_a_sum_joins_it
// CHECK-NEXT:    tssa.group ins(%x :
// CHECK:           tssa.sum
// CHECK-NEXT:      tssa.sqrt
// CHECK-NEXT:      tssa.yield
// CHECK-NOT:     tssa.group
// CHECK:         func.return
func.func @what_follows_a_sum_joins_it(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %a = tssa.sum %x {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %b = tssa.sqrt %a : (tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// A reshape that only keeps the summed axis is inside, next to what it reshapes.
// CHECK-LABEL: func.func @softmax_is_one_group
// CHECK-NEXT:    tssa.group ins(%x :
// CHECK:           tssa.max
// CHECK-NEXT:      tssa.reshape
// CHECK-NEXT:      tssa.broadcast
// CHECK-NEXT:      tssa.subtract
// CHECK-NEXT:      tssa.exp
// CHECK-NEXT:      tssa.sum
// CHECK-NEXT:      tssa.reshape
// CHECK-NEXT:      tssa.broadcast
// CHECK-NEXT:      tssa.divide
// CHECK-NEXT:      tssa.yield
// CHECK-NOT:     tssa.group
// CHECK:         func.return
!t = tensor<?x?xf32, #tssa.dims<[m, n]>>
!k = tensor<?x1xf32, #tssa.dims<[m, 1]>>
!r = tensor<?xf32, #tssa.dims<[m]>>
func.func @softmax_is_one_group(%x: !t) -> !t {
  %0 = tssa.max %x {axes = array<i64: 1>} : (!t) -> !r
  %1 = tssa.reshape %0 : (!r) -> !k
  %2 = tssa.broadcast %1 : (!k) -> !t
  %3 = tssa.subtract %x, %2 : (!t, !t) -> !t
  %4 = tssa.exp %3 : (!t) -> !t
  %5 = tssa.sum %4 {axes = array<i64: 1>} : (!t) -> !r
  %6 = tssa.reshape %5 : (!r) -> !k
  %7 = tssa.broadcast %6 : (!k) -> !t
  %8 = tssa.divide %4, %7 : (!t, !t) -> !t
  func.return %8 : !t
}

// What is summed is wanted too: stored while it is summed.
// CHECK-LABEL: func.func @the_summed_elements_are_yielded
// CHECK-NEXT:    tssa.group ins(%x :
// CHECK:           %[[A:.*]] = tssa.exp
// CHECK-NEXT:      %[[B:.*]] = tssa.sum
// CHECK-NEXT:      tssa.yield %[[A]], %[[B]]
func.func @the_summed_elements_are_yielded(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %a = tssa.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %b = tssa.sum %a {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  func.return %a, %b : tensor<4x8xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @do_not_fuse_reductions_over_different_axes
// CHECK:         tssa.sum
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.max
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_reductions_over_different_axes(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<f32>) {
  %a = tssa.sum %x {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %b = tssa.max %x {axes = array<i64: 0, 1>} : (tensor<4x8xf32>) -> tensor<f32>
  func.return %a, %b : tensor<4xf32>, tensor<f32>
}

// The sums of the rows are summed: that is not the sum of all.
// CHECK-LABEL: func.func @do_not_fuse_a_sum_of_sums
// CHECK:         tssa.sum
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.sum
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_a_sum_of_sums(%x: tensor<4x8xf32>) -> tensor<f32> {
  %a = tssa.sum %x {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %b = tssa.sum %a {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  func.return %b : tensor<f32>
}

// Element (i, j) reads the sum of row j: those come after row i.
// CHECK-LABEL: func.func @do_not_fuse_a_sum_that_is_read_by_other_rows
// CHECK:         tssa.sum
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.divide
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_a_sum_that_is_read_by_other_rows(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = tssa.sum %x {axes = array<i64: 1>} : (tensor<8x8xf32>) -> tensor<8xf32>
  %b = tssa.broadcast %a : (tensor<8xf32>) -> tensor<8x8xf32>
  %c = tssa.divide %x, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  func.return %c : tensor<8x8xf32>
}

// exp of eight numbers would be computed again for each of four rows.
// CHECK-LABEL: func.func @do_not_fuse_a_producer_of_another_shape_into_a_sum
// CHECK:         tssa.exp
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.sum
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_a_producer_of_another_shape_into_a_sum(
    %x: tensor<4x8xf32>, %y: tensor<8xf32>) -> tensor<4xf32> {
  %a = tssa.exp %y : (tensor<8xf32>) -> tensor<8xf32>
  %b = tssa.broadcast %a : (tensor<8xf32>) -> tensor<4x8xf32>
  %c = tssa.multiply %x, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %d = tssa.sum %c {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  func.return %d : tensor<4xf32>
}

// Both axes are summed as one, and nothing but the broadcast is summed.
// CHECK-LABEL: func.func @do_not_sum_in_place_what_is_repeated_along_some_of_the_axes
// CHECK:         tssa.broadcast
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.sum
// CHECK-NEXT:    tssa.yield
func.func @do_not_sum_in_place_what_is_repeated_along_some_of_the_axes(%x: tensor<8xf32>) -> tensor<f32> {
  %a = tssa.broadcast %x : (tensor<8xf32>) -> tensor<4x8xf32>
  %b = tssa.sum %a {axes = array<i64: 0, 1>} : (tensor<4x8xf32>) -> tensor<f32>
  func.return %b : tensor<f32>
}

// CHECK-LABEL: func.func @sums_in_place_what_is_repeated_along_all_axes
// CHECK:         tssa.broadcast
// CHECK-NEXT:    tssa.sum
func.func @sums_in_place_what_is_repeated_along_all_axes(%x: tensor<3x1x1xf32>) -> tensor<3xf32> {
  %a = tssa.broadcast %x : (tensor<3x1x1xf32>) -> tensor<3x4x8xf32>
  %b = tssa.sum %a {axes = array<i64: 1, 2>} : (tensor<3x4x8xf32>) -> tensor<3xf32>
  func.return %b : tensor<3xf32>
}

// Both axes are summed as one, and %y is repeated along one of them.
// CHECK-LABEL: func.func @do_not_fuse_what_is_repeated_along_some_of_the_summed_axes
// CHECK:         tssa.broadcast
// CHECK-NEXT:    tssa.multiply
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.sum
// CHECK-NEXT:    tssa.yield
func.func @do_not_fuse_what_is_repeated_along_some_of_the_summed_axes(
    %x: tensor<4x8xf32>, %y: tensor<8xf32>) -> tensor<f32> {
  %b = tssa.broadcast %y : (tensor<8xf32>) -> tensor<4x8xf32>
  %c = tssa.multiply %x, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %d = tssa.sum %c {axes = array<i64: 0, 1>} : (tensor<4x8xf32>) -> tensor<f32>
  func.return %d : tensor<f32>
}
