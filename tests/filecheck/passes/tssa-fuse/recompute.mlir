// RUN: jit-opt %s -p tssa-fuse | filecheck %s

// Two sums of 1 MB over different axes: to read %x twice is less than to write the squares and read them.
// CHECK-LABEL: func.func @sums_over_different_axes_square_for_themselves
// CHECK:         tssa.group ins(%x : tensor<64x64x64xf32>) {
// CHECK:           tssa.multiply
// CHECK-NEXT:      tssa.sum
// CHECK-NEXT:      tssa.yield %{{.*}} : tensor<64x64xf32>
// CHECK:         tssa.group ins(%x : tensor<64x64x64xf32>) {
// CHECK:           tssa.multiply
// CHECK-NEXT:      tssa.sum
// CHECK-NEXT:      tssa.yield %{{.*}} : tensor<64xf32>
func.func @sums_over_different_axes_square_for_themselves(
    %x: tensor<64x64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>) {
  %y = tssa.multiply %x, %x : (tensor<64x64x64xf32>, tensor<64x64x64xf32>) -> tensor<64x64x64xf32>
  %s = tssa.sum %y {axes = array<i64: 2>} : (tensor<64x64x64xf32>) -> tensor<64x64xf32>
  %t = tssa.sum %y {axes = array<i64: 1, 2>} : (tensor<64x64x64xf32>) -> tensor<64xf32>
  func.return %s, %t : tensor<64x64xf32>, tensor<64xf32>
}

// The product must come between the two readers of %y; the sum with the bias is done on both sides of it.
// CHECK-LABEL: func.func @a_path_leads_around_a_product
// CHECK:         tssa.add
// CHECK-NEXT:    tssa.abs
// CHECK-NEXT:    tssa.yield %{{.*}} : tensor<64x64xf32>
// CHECK:         tssa.add
// CHECK-NEXT:    tssa.matmul
// CHECK-NEXT:    tssa.multiply
// CHECK-NEXT:    tssa.yield
func.func @a_path_leads_around_a_product(
    %x: tensor<64x64xf32>, %b: tensor<64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %bb = tssa.broadcast %b : (tensor<64xf32>) -> tensor<64x64xf32>
  %y = tssa.add %x, %bb : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = tssa.abs %y : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = tssa.matmul %m, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = tssa.multiply %p, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %z : tensor<64x64xf32>
}

// The greatest of a row is not computed again, but written: one number for 64.
// CHECK-LABEL: func.func @numbers_per_row_are_written_instead
// CHECK:         tssa.max
// CHECK:         tssa.subtract
// CHECK-NEXT:    tssa.abs
// CHECK-NEXT:    tssa.yield %{{.*}}, %{{.*}} : tensor<64xf32>, tensor<64x64xf32>
// CHECK-NOT:     tssa.max
// CHECK:         tssa.subtract
// CHECK-NEXT:    tssa.matmul
// CHECK-NEXT:    tssa.multiply
func.func @numbers_per_row_are_written_instead(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %r = tssa.max %x {axes = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64xf32>
  %s = tssa.reshape %r : (tensor<64xf32>) -> tensor<64x1xf32>
  %t = tssa.broadcast %s : (tensor<64x1xf32>) -> tensor<64x64xf32>
  %y = tssa.subtract %x, %t : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = tssa.abs %y : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = tssa.matmul %m, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = tssa.multiply %p, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %z : tensor<64x64xf32>
}

// A value that is read and a value that it is computed from: the second is no longer there for the first.
// CHECK-LABEL: func.func @what_is_computed_again_is_no_input_of_another
// CHECK:         tssa.group
// CHECK:           tssa.yield %{{.*}} : tensor<64x64xf32>
// CHECK:         tssa.group
// CHECK:           tssa.abs
// CHECK:           tssa.negative
// CHECK:           tssa.matmul
// CHECK:           tssa.yield
func.func @what_is_computed_again_is_no_input_of_another(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %u = tssa.abs %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = tssa.negative %u : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = tssa.multiply %u, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = tssa.matmul %m, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %q = tssa.multiply %p, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = tssa.add %q, %u : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %z : tensor<64x64xf32>
}

// CHECK-LABEL: func.func @do_not_compute_a_result_of_the_function_again
// CHECK:         tssa.add
// CHECK:         tssa.matmul
// CHECK-NOT:     tssa.add
// CHECK:         func.return
func.func @do_not_compute_a_result_of_the_function_again(
    %x: tensor<64x64xf32>, %b: tensor<64xf32>, %w: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %bb = tssa.broadcast %b : (tensor<64xf32>) -> tensor<64x64xf32>
  %y = tssa.add %x, %bb : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = tssa.abs %y : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = tssa.matmul %m, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = tssa.multiply %p, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %z, %y : tensor<64x64xf32>, tensor<64x64xf32>
}

// CHECK-LABEL: func.func @do_not_compute_again_what_a_view_is_taken_of
// CHECK:         tssa.negative
// CHECK:         tssa.matmul
// CHECK-NOT:     tssa.negative
// CHECK:         func.return
func.func @do_not_compute_again_what_a_view_is_taken_of(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = tssa.negative %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %t = tssa.transpose %y {permutation = array<i64: 1, 0>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = tssa.matmul %t, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = tssa.multiply %p, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %z : tensor<64x64xf32>
}

// CHECK-LABEL: func.func @do_not_compute_again_what_another_block_reads
// CHECK:         tssa.negative
// CHECK:         tssa.matmul
// CHECK-NOT:     tssa.negative
// CHECK:         func.return
func.func @do_not_compute_again_what_another_block_reads(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = tssa.negative %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = tssa.abs %y : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = tssa.matmul %m, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %q = tssa.multiply %p, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  cf.br ^bb1
^bb1:
  %z = tssa.multiply %q, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %z : tensor<64x64xf32>
}

// A product reads whole rows, many times over.
// CHECK-LABEL: func.func @do_not_compute_operands_of_products_again
// CHECK:         tssa.negative
// CHECK:         tssa.matmul
// CHECK-NOT:     tssa.negative
// CHECK:         func.return
func.func @do_not_compute_operands_of_products_again(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = tssa.negative %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = tssa.matmul %y, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = tssa.multiply %p, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %z : tensor<64x64xf32>
}

// CHECK-LABEL: func.func @do_not_compute_a_long_chain_again
// CHECK-COUNT-17: tssa.add
// CHECK-NOT:     tssa.add
// CHECK:         func.return
func.func @do_not_compute_a_long_chain_again(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y0 = tssa.add %x, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y1 = tssa.add %y0, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y2 = tssa.add %y1, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y3 = tssa.add %y2, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y4 = tssa.add %y3, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y5 = tssa.add %y4, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y6 = tssa.add %y5, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y7 = tssa.add %y6, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y8 = tssa.add %y7, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y9 = tssa.add %y8, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y10 = tssa.add %y9, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y11 = tssa.add %y10, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y12 = tssa.add %y11, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y13 = tssa.add %y12, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y14 = tssa.add %y13, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y15 = tssa.add %y14, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = tssa.add %y15, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = tssa.abs %y : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = tssa.matmul %m, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = tssa.multiply %p, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %z : tensor<64x64xf32>
}

// 36 vector operations for each vector that is not written and not read.
// CHECK-LABEL: func.func @do_not_compute_functions_again
// CHECK:         tssa.tanh
// CHECK-NOT:     tssa.tanh
// CHECK:         func.return
func.func @do_not_compute_functions_again(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = tssa.tanh %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = tssa.abs %y : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = tssa.matmul %m, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = tssa.multiply %p, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %z : tensor<64x64xf32>
}

// Two values would be read in the place of one that is written and read.
// CHECK-LABEL: func.func @do_not_read_as_much_as_was_written_and_read
// CHECK:         tssa.add
// CHECK-NOT:     tssa.add
// CHECK:         func.return
func.func @do_not_read_as_much_as_was_written_and_read(%x: tensor<64x64xf32>, %b: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = tssa.add %x, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = tssa.abs %y : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = tssa.matmul %m, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = tssa.multiply %p, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %z : tensor<64x64xf32>
}

// Each row of the result would need its own sum with another number.
// CHECK-LABEL: func.func @do_not_compute_again_what_is_read_through_a_broadcast
// CHECK:         tssa.negative
// CHECK-NOT:     tssa.negative
// CHECK:         func.return
func.func @do_not_compute_again_what_is_read_through_a_broadcast(
    %x: tensor<64xf32>, %v: tensor<64x64xf32>) -> (tensor<64xf32>, tensor<64x64xf32>) {
  %y = tssa.negative %x : (tensor<64xf32>) -> tensor<64xf32>
  %e = tssa.exp %y : (tensor<64xf32>) -> tensor<64xf32>
  %b = tssa.broadcast %y : (tensor<64xf32>) -> tensor<64x64xf32>
  %z = tssa.add %b, %v : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %e, %z : tensor<64xf32>, tensor<64x64xf32>
}

// With the bias, the group of the product would go through 13 buffers.
// CHECK-LABEL: func.func @do_not_compute_again_where_registers_run_out
// CHECK:         tssa.abs
// CHECK:         tssa.matmul
// CHECK-NOT:     tssa.broadcast
// CHECK:         func.return
func.func @do_not_compute_again_where_registers_run_out(
    %x: tensor<64x64xf32>, %b: tensor<64xf32>, %w: tensor<64x64xf32>,
    %a1: tensor<64x64xf32>, %a2: tensor<64x64xf32>, %a3: tensor<64x64xf32>, %a4: tensor<64x64xf32>, %a5: tensor<64x64xf32>, %a6: tensor<64x64xf32>, %a7: tensor<64x64xf32>, %a8: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %bb = tssa.broadcast %b : (tensor<64xf32>) -> tensor<64x64xf32>
  %y = tssa.add %x, %bb : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = tssa.abs %y : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = tssa.matmul %m, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %q0 = tssa.multiply %p, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %q1 = tssa.add %q0, %a1 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %q2 = tssa.add %q1, %a2 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %q3 = tssa.add %q2, %a3 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %q4 = tssa.add %q3, %a4 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %q5 = tssa.add %q4, %a5 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %q6 = tssa.add %q5, %a6 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %q7 = tssa.add %q6, %a7 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %q8 = tssa.add %q7, %a8 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %q8 : tensor<64x64xf32>
}
