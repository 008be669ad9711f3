// RUN: jit-opt %s -p tssa-fuse | filecheck %s

// A minimum and a maximum have no room in one sweep: nothing is saved by reading 40 MB twice in one group instead of
// in two.
// CHECK-LABEL: func.func @do_not_fuse_reductions_of_a_row_that_no_cache_holds
// CHECK-COUNT-2: tssa.group
// CHECK:         func.return
func.func @do_not_fuse_reductions_of_a_row_that_no_cache_holds(
    %x: tensor<10000000xf32>) -> (tensor<f32>, tensor<f32>) {
  %a = tssa.min %x {axes = array<i64: 0>} : (tensor<10000000xf32>) -> tensor<f32>
  %b = tssa.max %x {axes = array<i64: 0>} : (tensor<10000000xf32>) -> tensor<f32>
  func.return %a, %b : tensor<f32>, tensor<f32>
}

// A sum and a maximum read %x in one sweep.
// CHECK-LABEL: func.func @a_sum_and_a_maximum_share_a_row_that_no_cache_holds
// CHECK-COUNT-1: tssa.group
// CHECK-NOT:     tssa.group
// CHECK:         func.return
func.func @a_sum_and_a_maximum_share_a_row_that_no_cache_holds(
    %x: tensor<10000000xf32>) -> (tensor<f32>, tensor<f32>) {
  %a = tssa.sum %x {axes = array<i64: 0>} : (tensor<10000000xf32>) -> tensor<f32>
  %b = tssa.max %x {axes = array<i64: 0>} : (tensor<10000000xf32>) -> tensor<f32>
  func.return %a, %b : tensor<f32>, tensor<f32>
}

// The same with short rows: the second reduction finds the row in the cache.
// CHECK-LABEL: func.func @reductions_of_short_rows_share_them
// CHECK-COUNT-1: tssa.group
// CHECK-NOT:     tssa.group
// CHECK:         func.return
func.func @reductions_of_short_rows_share_them(
    %x: tensor<4x100xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = tssa.sum %x {axes = array<i64: 1>} : (tensor<4x100xf32>) -> tensor<4xf32>
  %b = tssa.max %x {axes = array<i64: 1>} : (tensor<4x100xf32>) -> tensor<4xf32>
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// Two sweeps need tanh, and there is no result in whose place it could be kept: it would be computed twice.
// CHECK-LABEL: func.func @do_not_compute_dear_elements_again_for_a_second_sweep
// CHECK:         tssa.tanh
// CHECK:         tssa.yield
// CHECK-NOT:     tssa.tanh
// CHECK:         func.return
func.func @do_not_compute_dear_elements_again_for_a_second_sweep(
    %x: tensor<4x100xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %t = tssa.tanh %x : (tensor<4x100xf32>) -> tensor<4x100xf32>
  %a = tssa.min %t {axes = array<i64: 1>} : (tensor<4x100xf32>) -> tensor<4xf32>
  %b = tssa.max %t {axes = array<i64: 1>} : (tensor<4x100xf32>) -> tensor<4xf32>
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// One sweep has both, and computes tanh once.
// CHECK-LABEL: func.func @dear_elements_are_computed_once_in_one_sweep
// CHECK-COUNT-1: tssa.group
// CHECK-NOT:     tssa.group
// CHECK:         func.return
func.func @dear_elements_are_computed_once_in_one_sweep(
    %x: tensor<4x100xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %t = tssa.tanh %x : (tensor<4x100xf32>) -> tensor<4x100xf32>
  %a = tssa.sum %t {axes = array<i64: 1>} : (tensor<4x100xf32>) -> tensor<4xf32>
  %b = tssa.max %t {axes = array<i64: 1>} : (tensor<4x100xf32>) -> tensor<4xf32>
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @do_not_put_groups_together_that_share_nothing
// CHECK-COUNT-2: tssa.group
// CHECK:         func.return
func.func @do_not_put_groups_together_that_share_nothing(
    %x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = tssa.exp %y : (tensor<8xf32>) -> tensor<8xf32>
  func.return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// A product with a vector makes one number at a time; tanh is cheaper in vectors, with what comes before it.
// CHECK-LABEL: func.func @do_not_compute_functions_row_by_row
// CHECK:         tssa.matmul
// CHECK:         tssa.yield
// CHECK:         tssa.add
// CHECK:         tssa.tanh
// CHECK:         tssa.yield
// CHECK:         func.return
func.func @do_not_compute_functions_row_by_row(
    %w: tensor<256x256xf32>, %h: tensor<256xf32>, %x: tensor<256xf32>) -> tensor<256xf32> {
  %a = tssa.matmul %w, %h : (tensor<256x256xf32>, tensor<256xf32>) -> tensor<256xf32>
  %b = tssa.add %a, %x : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  %t = tssa.tanh %b : (tensor<256xf32>) -> tensor<256xf32>
  func.return %t : tensor<256xf32>
}

// An addition hides beside the loads of the next row.
// CHECK-LABEL: func.func @cheap_operations_follow_a_product_with_a_vector
// CHECK:         tssa.matmul
// CHECK-NOT:     tssa.yield
// CHECK:         tssa.add
// CHECK:         func.return
func.func @cheap_operations_follow_a_product_with_a_vector(
    %w: tensor<256x256xf32>, %h: tensor<256xf32>, %x: tensor<256xf32>) -> tensor<256xf32> {
  %a = tssa.matmul %w, %h : (tensor<256x256xf32>, tensor<256xf32>) -> tensor<256xf32>
  %b = tssa.add %a, %x : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  func.return %b : tensor<256xf32>
}

// One number fills no vector.
// CHECK-LABEL: func.func @a_function_of_one_number_follows_its_product
// CHECK:         tssa.matmul
// CHECK-NOT:     tssa.yield
// CHECK:         tssa.tanh
// CHECK:         func.return
func.func @a_function_of_one_number_follows_its_product(
    %w: tensor<256xf32>, %h: tensor<256xf32>) -> tensor<f32> {
  %a = tssa.matmul %w, %h : (tensor<256xf32>, tensor<256xf32>) -> tensor<f32>
  %t = tssa.tanh %a : (tensor<f32>) -> tensor<f32>
  func.return %t : tensor<f32>
}

// The columns of a product with a matrix are vectors.
// CHECK-LABEL: func.func @functions_follow_a_product_with_a_matrix
// CHECK:         tssa.matmul
// CHECK-NOT:     tssa.yield
// CHECK:         tssa.tanh
// CHECK:         func.return
func.func @functions_follow_a_product_with_a_matrix(
    %w: tensor<8x256xf32>, %h: tensor<256x64xf32>) -> tensor<8x64xf32> {
  %a = tssa.matmul %w, %h : (tensor<8x256xf32>, tensor<256x64xf32>) -> tensor<8x64xf32>
  %t = tssa.tanh %a : (tensor<8x64xf32>) -> tensor<8x64xf32>
  func.return %t : tensor<8x64xf32>
}
