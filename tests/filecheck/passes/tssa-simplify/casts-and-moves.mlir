// RUN: jit-opt %s -p tssa-simplify,tssa-dce --verify-each | filecheck %s

// CHECK-LABEL: func.func @same_type
// CHECK-NEXT:    func.return %x
func.func @same_type(%x : tensor<4xf32>) -> tensor<4xf32> {
  %a = tssa.cast %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = tssa.reshape %a : (tensor<4xf32>) -> tensor<4xf32>
  %c = tssa.broadcast %b : (tensor<4xf32>) -> tensor<4xf32>
  func.return %c : tensor<4xf32>
}

// CHECK-LABEL: func.func @cast_of_exact_cast
// CHECK-NEXT:    %[[A:.*]] = tssa.cast %b : (tensor<i1>) -> tensor<f32>
// CHECK-NEXT:    func.return %[[A]], %x
func.func @cast_of_exact_cast(%b : tensor<i1>, %x : tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %a = tssa.cast %b : (tensor<i1>) -> tensor<i64>
  %c = tssa.cast %a : (tensor<i64>) -> tensor<f32>
  %d = tssa.cast %x : (tensor<f32>) -> tensor<f64>
  %e = tssa.cast %d : (tensor<f64>) -> tensor<f32>
  func.return %c, %e : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @compare_in_int32
// CHECK-NEXT:    %[[C:.*]] = tssa.constant {value = dense<5> : tensor<i32>}
// CHECK-NEXT:    %[[B:.*]] = tssa.broadcast %[[C]] : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT:    tssa.less %x, %[[B]] : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
func.func @compare_in_int32(%x : tensor<4xi32>) -> tensor<4xi1> {
  %w = tssa.cast %x : (tensor<4xi32>) -> tensor<4xi64>
  %c = tssa.constant {value = dense<5> : tensor<i64>} : () -> tensor<i64>
  %b = tssa.broadcast %c : (tensor<i64>) -> tensor<4xi64>
  %r = tssa.less %w, %b : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
  func.return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @do_not_compare_with_what_does_not_fit
// CHECK:         tssa.less {{.*}} : (tensor<i64>, tensor<i64>) -> tensor<i1>
func.func @do_not_compare_with_what_does_not_fit(%x : tensor<i32>) -> tensor<i1> {
  %w = tssa.cast %x : (tensor<i32>) -> tensor<i64>
  %c = tssa.constant {value = dense<2147483648> : tensor<i64>} : () -> tensor<i64>
  %r = tssa.less %w, %c : (tensor<i64>, tensor<i64>) -> tensor<i1>
  func.return %r : tensor<i1>
}

// CHECK-LABEL: func.func @do_not_compare_with_what_is_not_known
// CHECK:         tssa.less {{.*}} : (tensor<i64>, tensor<i64>) -> tensor<i1>
func.func @do_not_compare_with_what_is_not_known(%x : tensor<i32>, %y : tensor<i64>) -> tensor<i1> {
  %w = tssa.cast %x : (tensor<i32>) -> tensor<i64>
  %r = tssa.less %w, %y : (tensor<i64>, tensor<i64>) -> tensor<i1>
  func.return %r : tensor<i1>
}

// CHECK-LABEL: func.func @do_not_compare_floats_as_integers
// CHECK:         tssa.less {{.*}} : (tensor<f64>, tensor<f64>) -> tensor<i1>
func.func @do_not_compare_floats_as_integers(%x : tensor<i32>) -> tensor<i1> {
  %w = tssa.cast %x : (tensor<i32>) -> tensor<f64>
  %c = tssa.constant {value = dense<0.5> : tensor<f64>} : () -> tensor<f64>
  %r = tssa.less %w, %c : (tensor<f64>, tensor<f64>) -> tensor<i1>
  func.return %r : tensor<i1>
}

// CHECK-LABEL: func.func @integers_are_exact_in_wider_types
// CHECK-NEXT:    %[[A:.*]] = tssa.cast %x : (tensor<i32>) -> tensor<i64>
// CHECK-NEXT:    func.return %x, %[[A]]
func.func @integers_are_exact_in_wider_types(%x : tensor<i32>) -> (tensor<i32>, tensor<i64>) {
  %a = tssa.cast %x : (tensor<i32>) -> tensor<f64>
  %b = tssa.cast %a : (tensor<f64>) -> tensor<i32>
  %c = tssa.cast %a : (tensor<f64>) -> tensor<i64>
  func.return %b, %c : tensor<i32>, tensor<i64>
}

// CHECK-LABEL: func.func @do_not_skip_a_rounding_of_integers_to_f32
// CHECK-NEXT:    tssa.cast
// CHECK-NEXT:    tssa.cast
func.func @do_not_skip_a_rounding_of_integers_to_f32(%x : tensor<i32>) -> tensor<i32> {
  %a = tssa.cast %x : (tensor<i32>) -> tensor<f32>
  %b = tssa.cast %a : (tensor<f32>) -> tensor<i32>
  func.return %b : tensor<i32>
}

// CHECK-LABEL: func.func @do_not_skip_a_wrap
// CHECK-NEXT:    tssa.cast
// CHECK-NEXT:    tssa.cast
func.func @do_not_skip_a_wrap(%x : tensor<i64>) -> tensor<i64> {
  %a = tssa.cast %x : (tensor<i64>) -> tensor<i32>
  %b = tssa.cast %a : (tensor<i32>) -> tensor<i64>
  func.return %b : tensor<i64>
}

// CHECK-LABEL: func.func @do_not_skip_a_rounding_of_integers
// CHECK-NEXT:    tssa.cast
// CHECK-NEXT:    tssa.cast
func.func @do_not_skip_a_rounding_of_integers(%x : tensor<i64>) -> tensor<i64> {
  %a = tssa.cast %x : (tensor<i64>) -> tensor<f32>
  %b = tssa.cast %a : (tensor<f32>) -> tensor<i64>
  func.return %b : tensor<i64>
}

// CHECK-LABEL: func.func @do_not_skip_a_rounding_of_floats
// CHECK-NEXT:    tssa.cast
// CHECK-NEXT:    tssa.cast
func.func @do_not_skip_a_rounding_of_floats(%x : tensor<f64>) -> tensor<f64> {
  %a = tssa.cast %x : (tensor<f64>) -> tensor<f32>
  %b = tssa.cast %a : (tensor<f32>) -> tensor<f64>
  func.return %b : tensor<f64>
}

// One cast rounds to f32 once, by way of f64 twice.
// CHECK-LABEL: func.func @do_not_round_once_instead_of_twice
// CHECK-NEXT:    tssa.cast
// CHECK-NEXT:    tssa.cast
func.func @do_not_round_once_instead_of_twice(%x : tensor<i64>) -> tensor<f32> {
  %a = tssa.cast %x : (tensor<i64>) -> tensor<f64>
  %b = tssa.cast %a : (tensor<f64>) -> tensor<f32>
  func.return %b : tensor<f32>
}

// CHECK-LABEL: func.func @do_not_skip_a_test_for_zero
// CHECK-NEXT:    tssa.cast
// CHECK-NEXT:    tssa.cast
func.func @do_not_skip_a_test_for_zero(%x : tensor<i64>) -> tensor<i64> {
  %a = tssa.cast %x : (tensor<i64>) -> tensor<i1>
  %b = tssa.cast %a : (tensor<i1>) -> tensor<i64>
  func.return %b : tensor<i64>
}

// CHECK-LABEL: func.func @of_same_operation
// CHECK-NEXT:    %[[A:.*]] = tssa.reshape %x : (tensor<4xf32>) -> tensor<4x1xf32>
// CHECK-NEXT:    %[[B:.*]] = tssa.broadcast %x : (tensor<4xf32>) -> tensor<3x2x4xf32>
// CHECK-NEXT:    func.return %[[A]], %[[B]]
func.func @of_same_operation(%x : tensor<4xf32>) -> (tensor<4x1xf32>, tensor<3x2x4xf32>) {
  %a = tssa.reshape %x : (tensor<4xf32>) -> tensor<2x2xf32>
  %b = tssa.reshape %a : (tensor<2x2xf32>) -> tensor<4x1xf32>
  %c = tssa.broadcast %x : (tensor<4xf32>) -> tensor<2x4xf32>
  %d = tssa.broadcast %c : (tensor<2x4xf32>) -> tensor<3x2x4xf32>
  func.return %b, %d : tensor<4x1xf32>, tensor<3x2x4xf32>
}

// CHECK-LABEL: func.func @do_not_join_a_reshape_and_a_broadcast
// CHECK-NEXT:    tssa.reshape
// CHECK-NEXT:    tssa.broadcast
func.func @do_not_join_a_reshape_and_a_broadcast(%x : tensor<4xf32>) -> tensor<4x2xf32> {
  %a = tssa.reshape %x : (tensor<4xf32>) -> tensor<4x1xf32>
  %b = tssa.broadcast %a : (tensor<4x1xf32>) -> tensor<4x2xf32>
  func.return %b : tensor<4x2xf32>
}

// CHECK-LABEL: func.func @transpose_in_order
// CHECK-NEXT:    func.return %x, %x
func.func @transpose_in_order(%x : tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %a = tssa.transpose %x {permutation = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = tssa.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %c = tssa.transpose %b {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  func.return %a, %c : tensor<2x3xf32>, tensor<2x3xf32>
}

// CHECK-LABEL: func.func @transpose_of_transpose
// CHECK-NEXT:    %[[A:.*]] = tssa.transpose %x {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
// CHECK-NEXT:    func.return %[[A]]
func.func @transpose_of_transpose(%x : tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %a = tssa.transpose %x {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %b = tssa.transpose %a {permutation = array<i64: 1, 2, 0>} : (tensor<3x4x2xf32>) -> tensor<4x2x3xf32>
  func.return %b : tensor<4x2x3xf32>
}

// A square keeps its type, not its elements.
// CHECK-LABEL: func.func @do_not_drop_a_transpose_of_a_square
// CHECK-NEXT:    tssa.transpose
func.func @do_not_drop_a_transpose_of_a_square(%x : tensor<2x2xf32>) -> tensor<2x2xf32> {
  %a = tssa.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %a : tensor<2x2xf32>
}

// CHECK-LABEL: func.func @extract_everything
// CHECK-NEXT:    func.return %x, %y
func.func @extract_everything(%x : tensor<4xf32>, %y : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = tssa.extract %x {offsets = #tssa.dims<[0]>, steps = array<i64: 1>} : (tensor<4xf32>) -> tensor<4xf32>
  %b = tssa.insert %x, %y {offsets = #tssa.dims<[0]>, steps = array<i64: 1>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @do_not_drop_a_part
// CHECK-NEXT:    tssa.extract
// CHECK-NEXT:    tssa.insert
func.func @do_not_drop_a_part(%x : tensor<4xf32>, %y : tensor<2xf32>) -> (tensor<2xf32>, tensor<4xf32>) {
  %a = tssa.extract %x {offsets = #tssa.dims<[0]>, steps = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  %b = tssa.insert %x, %y {offsets = #tssa.dims<[0]>, steps = array<i64: 1>} : (tensor<4xf32>, tensor<2xf32>) -> tensor<4xf32>
  func.return %a, %b : tensor<2xf32>, tensor<4xf32>
}
