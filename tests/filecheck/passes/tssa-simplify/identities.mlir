// RUN: jit-opt %s -p tssa-simplify,tssa-dce --verify-each | filecheck %s

// Each function names its rule; a do_not_ function changes one thing that the rule needs.

// CHECK-LABEL: func.func @multiply_by_one
// CHECK-NEXT:    func.return %x, %x
func.func @multiply_by_one(%x : tensor<?xf32, #tssa.dims<[n]>>) -> (tensor<?xf32, #tssa.dims<[n]>>, tensor<?xf32, #tssa.dims<[n]>>) {
  %s = tssa.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %one = tssa.broadcast %s : (tensor<f32>) -> tensor<?xf32, #tssa.dims<[n]>>
  %a = tssa.multiply %x, %one : (tensor<?xf32, #tssa.dims<[n]>>, tensor<?xf32, #tssa.dims<[n]>>) -> tensor<?xf32, #tssa.dims<[n]>>
  %b = tssa.multiply %one, %x : (tensor<?xf32, #tssa.dims<[n]>>, tensor<?xf32, #tssa.dims<[n]>>) -> tensor<?xf32, #tssa.dims<[n]>>
  func.return %a, %b : tensor<?xf32, #tssa.dims<[n]>>, tensor<?xf32, #tssa.dims<[n]>>
}

// CHECK-LABEL: func.func @do_not_multiply_by_a_table_that_is_not_all_one
// CHECK:         tssa.multiply
func.func @do_not_multiply_by_a_table_that_is_not_all_one(%x : tensor<2xf32>) -> tensor<2xf32> {
  %c = tssa.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %a = tssa.multiply %x, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %a : tensor<2xf32>
}

// CHECK-LABEL: func.func @multiply_by_zero
// CHECK-NEXT:    %[[Z:.*]] = tssa.constant {value = dense<0> : tensor<i64>}
// CHECK-NEXT:    func.return %[[Z]]
func.func @multiply_by_zero(%x : tensor<i64>) -> tensor<i64> {
  %zero = tssa.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %a = tssa.multiply %x, %zero : (tensor<i64>, tensor<i64>) -> tensor<i64>
  func.return %a : tensor<i64>
}

// NaN * 0 is NaN, inf * 0 is NaN, -1 * 0 is -0.
// CHECK-LABEL: func.func @do_not_multiply_floats_by_zero
// CHECK:         tssa.multiply
func.func @do_not_multiply_floats_by_zero(%x : tensor<f32>) -> tensor<f32> {
  %zero = tssa.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %a = tssa.multiply %x, %zero : (tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %a : tensor<f32>
}

// CHECK-LABEL: func.func @divide_by_one
// CHECK-NEXT:    func.return %x
func.func @divide_by_one(%x : tensor<f32>) -> tensor<f32> {
  %one = tssa.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %a = tssa.divide %x, %one : (tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %a : tensor<f32>
}

// CHECK-LABEL: func.func @do_not_drop_one_divided_by
// CHECK:         tssa.divide
func.func @do_not_drop_one_divided_by(%x : tensor<f32>) -> tensor<f32> {
  %one = tssa.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %a = tssa.divide %one, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %a : tensor<f32>
}

// CHECK-LABEL: func.func @add_neutral
// CHECK-NEXT:    func.return %x, %i, %b
func.func @add_neutral(%x : tensor<f32>, %i : tensor<i64>, %b : tensor<i1>) -> (tensor<f32>, tensor<i64>, tensor<i1>) {
  %f0 = tssa.constant {value = dense<-0.0> : tensor<f32>} : () -> tensor<f32>
  %i0 = tssa.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %b0 = tssa.constant {value = dense<false> : tensor<i1>} : () -> tensor<i1>
  %f = tssa.add %f0, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %j = tssa.add %i, %i0 : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %c = tssa.add %b, %b0 : (tensor<i1>, tensor<i1>) -> tensor<i1>
  func.return %f, %j, %c : tensor<f32>, tensor<i64>, tensor<i1>
}

// -0.0 + 0.0 is 0.0.
// CHECK-LABEL: func.func @do_not_add_positive_zero
// CHECK:         tssa.add
func.func @do_not_add_positive_zero(%x : tensor<f32>) -> tensor<f32> {
  %zero = tssa.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %a = tssa.add %x, %zero : (tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %a : tensor<f32>
}

// CHECK-LABEL: func.func @subtract_zero
// CHECK-NEXT:    func.return %x, %i
func.func @subtract_zero(%x : tensor<f32>, %i : tensor<i64>) -> (tensor<f32>, tensor<i64>) {
  %f0 = tssa.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %i0 = tssa.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %f = tssa.subtract %x, %f0 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %j = tssa.subtract %i, %i0 : (tensor<i64>, tensor<i64>) -> tensor<i64>
  func.return %f, %j : tensor<f32>, tensor<i64>
}

// -0.0 - (-0.0) is 0.0.
// CHECK-LABEL: func.func @do_not_subtract_negative_zero
// CHECK:         tssa.subtract
func.func @do_not_subtract_negative_zero(%x : tensor<f32>) -> tensor<f32> {
  %zero = tssa.constant {value = dense<-0.0> : tensor<f32>} : () -> tensor<f32>
  %a = tssa.subtract %x, %zero : (tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %a : tensor<f32>
}

// CHECK-LABEL: func.func @do_not_drop_zero_minus
// CHECK:         tssa.subtract
func.func @do_not_drop_zero_minus(%i : tensor<i64>) -> tensor<i64> {
  %zero = tssa.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %a = tssa.subtract %zero, %i : (tensor<i64>, tensor<i64>) -> tensor<i64>
  func.return %a : tensor<i64>
}

// CHECK-LABEL: func.func @subtract_itself
// CHECK-NEXT:    %[[Z:.*]] = tssa.constant {value = dense<0> : tensor<i64>}
// CHECK-NEXT:    %[[B:.*]] = tssa.broadcast %[[Z]] : (tensor<i64>) -> tensor<?xi64, #tssa.dims<[n]>>
// CHECK-NEXT:    func.return %[[B]]
func.func @subtract_itself(%x : tensor<?xi64, #tssa.dims<[n]>>) -> tensor<?xi64, #tssa.dims<[n]>> {
  %a = tssa.subtract %x, %x : (tensor<?xi64, #tssa.dims<[n]>>, tensor<?xi64, #tssa.dims<[n]>>) -> tensor<?xi64, #tssa.dims<[n]>>
  func.return %a : tensor<?xi64, #tssa.dims<[n]>>
}

// inf - inf is NaN.
// CHECK-LABEL: func.func @do_not_subtract_a_float_from_itself
// CHECK:         tssa.subtract
func.func @do_not_subtract_a_float_from_itself(%x : tensor<f32>) -> tensor<f32> {
  %a = tssa.subtract %x, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %a : tensor<f32>
}

// CHECK-LABEL: func.func @do_not_subtract_another_value
// CHECK:         tssa.subtract
func.func @do_not_subtract_another_value(%x : tensor<i64>, %y : tensor<i64>) -> tensor<i64> {
  %a = tssa.subtract %x, %y : (tensor<i64>, tensor<i64>) -> tensor<i64>
  func.return %a : tensor<i64>
}

// CHECK-LABEL: func.func @shift_by_zero
// CHECK-NEXT:    func.return %x
func.func @shift_by_zero(%x : tensor<i64>) -> tensor<i64> {
  %zero = tssa.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %a = tssa.left_shift %x, %zero : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %b = tssa.right_shift %a, %zero : (tensor<i64>, tensor<i64>) -> tensor<i64>
  func.return %b : tensor<i64>
}

// CHECK-LABEL: func.func @do_not_drop_zero_shifted
// CHECK:         tssa.left_shift
func.func @do_not_drop_zero_shifted(%x : tensor<i64>) -> tensor<i64> {
  %zero = tssa.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %a = tssa.left_shift %zero, %x : (tensor<i64>, tensor<i64>) -> tensor<i64>
  func.return %a : tensor<i64>
}

// CHECK-LABEL: func.func @undo_itself
// CHECK-NEXT:    func.return %x, %b
func.func @undo_itself(%x : tensor<f32>, %b : tensor<i1>) -> (tensor<f32>, tensor<i1>) {
  %a = tssa.negative %x : (tensor<f32>) -> tensor<f32>
  %c = tssa.negative %a : (tensor<f32>) -> tensor<f32>
  %d = tssa.logical_not %b : (tensor<i1>) -> tensor<i1>
  %e = tssa.logical_not %d : (tensor<i1>) -> tensor<i1>
  func.return %c, %e : tensor<f32>, tensor<i1>
}

// CHECK-LABEL: func.func @do_not_undo_another_operation
// CHECK:         tssa.abs
// CHECK-NEXT:    tssa.negative
func.func @do_not_undo_another_operation(%x : tensor<f32>) -> tensor<f32> {
  %a = tssa.abs %x : (tensor<f32>) -> tensor<f32>
  %b = tssa.negative %a : (tensor<f32>) -> tensor<f32>
  func.return %b : tensor<f32>
}

// CHECK-LABEL: func.func @abs_of_sign_change
// CHECK-NEXT:    %[[A:.*]] = tssa.abs %x
// CHECK-NEXT:    func.return %[[A]]
func.func @abs_of_sign_change(%x : tensor<f32>) -> tensor<f32> {
  %a = tssa.negative %x : (tensor<f32>) -> tensor<f32>
  %b = tssa.abs %a : (tensor<f32>) -> tensor<f32>
  %c = tssa.abs %b : (tensor<f32>) -> tensor<f32>
  func.return %c : tensor<f32>
}

// CHECK-LABEL: func.func @do_not_take_abs_of_another_operation_away
// CHECK:         tssa.sqrt
// CHECK-NEXT:    tssa.abs
func.func @do_not_take_abs_of_another_operation_away(%x : tensor<f32>) -> tensor<f32> {
  %a = tssa.sqrt %x : (tensor<f32>) -> tensor<f32>
  %b = tssa.abs %a : (tensor<f32>) -> tensor<f32>
  func.return %b : tensor<f32>
}

// CHECK-LABEL: func.func @both_operands_equal
// CHECK-NEXT:    func.return %x, %b
func.func @both_operands_equal(%x : tensor<f32>, %b : tensor<i1>) -> (tensor<f32>, tensor<i1>) {
  %a = tssa.minimum %x, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %c = tssa.maximum %a, %a : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %d = tssa.logical_and %b, %b : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %e = tssa.logical_or %d, %d : (tensor<i1>, tensor<i1>) -> tensor<i1>
  func.return %c, %e : tensor<f32>, tensor<i1>
}

// CHECK-LABEL: func.func @do_not_take_one_of_two_operands
// CHECK:         tssa.minimum
func.func @do_not_take_one_of_two_operands(%x : tensor<f32>, %y : tensor<f32>) -> tensor<f32> {
  %a = tssa.minimum %x, %y : (tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %a : tensor<f32>
}

// CHECK-LABEL: func.func @and_with_constant
// CHECK-NEXT:    %[[F:.*]] = tssa.constant {value = dense<false>
// CHECK-NEXT:    func.return %b, %[[F]]
func.func @and_with_constant(%b : tensor<i1>) -> (tensor<i1>, tensor<i1>) {
  %true = tssa.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %false = tssa.constant {value = dense<false> : tensor<i1>} : () -> tensor<i1>
  %c = tssa.logical_and %b, %true : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %d = tssa.logical_and %false, %b : (tensor<i1>, tensor<i1>) -> tensor<i1>
  func.return %c, %d : tensor<i1>, tensor<i1>
}

// CHECK-LABEL: func.func @or_with_constant
// CHECK-NEXT:    %[[T:.*]] = tssa.constant {value = dense<true>
// CHECK-NEXT:    func.return %[[T]], %b
func.func @or_with_constant(%b : tensor<i1>) -> (tensor<i1>, tensor<i1>) {
  %true = tssa.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %false = tssa.constant {value = dense<false> : tensor<i1>} : () -> tensor<i1>
  %c = tssa.logical_or %b, %true : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %d = tssa.logical_or %false, %b : (tensor<i1>, tensor<i1>) -> tensor<i1>
  func.return %c, %d : tensor<i1>, tensor<i1>
}

// CHECK-LABEL: func.func @do_not_decide_logic_on_mixed_tables
// CHECK:         tssa.logical_and
// CHECK:         tssa.logical_or
func.func @do_not_decide_logic_on_mixed_tables(%b : tensor<2xi1>) -> (tensor<2xi1>, tensor<2xi1>) {
  %m = tssa.constant {value = dense<[true, false]> : tensor<2xi1>} : () -> tensor<2xi1>
  %c = tssa.logical_and %b, %m : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
  %d = tssa.logical_or %b, %m : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
  func.return %c, %d : tensor<2xi1>, tensor<2xi1>
}

// CHECK-LABEL: func.func @where_same
// CHECK-NEXT:    func.return %x
func.func @where_same(%c : tensor<i1>, %x : tensor<f32>) -> tensor<f32> {
  %a = tssa.where %c, %x, %x : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %a : tensor<f32>
}

// CHECK-LABEL: func.func @where_decided
// CHECK-NEXT:    func.return %x, %y
func.func @where_decided(%x : tensor<f32>, %y : tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %true = tssa.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %false = tssa.constant {value = dense<false> : tensor<i1>} : () -> tensor<i1>
  %a = tssa.where %true, %x, %y : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %b = tssa.where %false, %x, %y : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %a, %b : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @do_not_decide_where
// CHECK:         tssa.where
func.func @do_not_decide_where(%c : tensor<i1>, %x : tensor<f32>, %y : tensor<f32>) -> tensor<f32> {
  %a = tssa.where %c, %x, %y : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %a : tensor<f32>
}

// The constant has no other user, so dead code elimination can take it.
// CHECK-LABEL: func.func @subtract_rank_0_itself
// CHECK-NEXT:    %[[Z:.*]] = tssa.constant {value = dense<0> : tensor<i64>}
// CHECK-NEXT:    func.return %[[Z]]
func.func @subtract_rank_0_itself(%x : tensor<i64>) -> tensor<i64> {
  %a = tssa.subtract %x, %x : (tensor<i64>, tensor<i64>) -> tensor<i64>
  func.return %a : tensor<i64>
}
