// RUN: jit-opt %s -p tssa-cse --verify-each | filecheck %s

// CHECK-LABEL: func.func @merges_in_any_order_of_commuting_operands
// CHECK-NEXT:    %[[A:.*]] = tssa.add %x, %y
// CHECK-NEXT:    func.return %[[A]], %[[A]]
func.func @merges_in_any_order_of_commuting_operands(%x : tensor<4xf32>, %y : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = tssa.add %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = tssa.add %y, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @merges_with_a_dominating_block
// CHECK:         tssa.exp
// CHECK-NOT:     tssa.exp
// CHECK-LABEL: func.func @do_not_merge_with_a_sibling
func.func @merges_with_a_dominating_block(%x : tensor<4xf32>, %c : i1) -> tensor<4xf32> {
  %a = tssa.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  cf.cond_br %c, ^left, ^right
^left:
  %b = tssa.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
^right:
  func.return %a : tensor<4xf32>
}

// CHECK:         tssa.exp
// CHECK:         tssa.exp
func.func @do_not_merge_with_a_sibling(%x : tensor<4xf32>, %c : i1) -> tensor<4xf32> {
  cf.cond_br %c, ^left, ^right
^left:
  %a = tssa.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
^right:
  %b = tssa.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// CHECK-LABEL: func.func @do_not_merge_both_orders_of_a_subtraction
// CHECK:         tssa.subtract %x, %y
// CHECK:         tssa.subtract %y, %x
func.func @do_not_merge_both_orders_of_a_subtraction(%x : tensor<4xf32>, %y : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = tssa.subtract %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = tssa.subtract %y, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @do_not_merge_both_zeros
// CHECK:         dense<0.000000e+00>
// CHECK:         dense<-0.000000e+00>
func.func @do_not_merge_both_zeros() -> (tensor<f32>, tensor<f32>) {
  %a = tssa.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %b = tssa.constant {value = dense<-0.0> : tensor<f32>} : () -> tensor<f32>
  func.return %a, %b : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @do_not_merge_different_results_of_one_operand
// CHECK:         tssa.reshape %x : (tensor<4xf32>) -> tensor<2x2xf32>
// CHECK:         tssa.reshape %x : (tensor<4xf32>) -> tensor<4x1xf32>
func.func @do_not_merge_different_results_of_one_operand(%x : tensor<4xf32>) -> (tensor<2x2xf32>, tensor<4x1xf32>) {
  %a = tssa.reshape %x : (tensor<4xf32>) -> tensor<2x2xf32>
  %b = tssa.reshape %x : (tensor<4xf32>) -> tensor<4x1xf32>
  func.return %a, %b : tensor<2x2xf32>, tensor<4x1xf32>
}

// CHECK-LABEL: func.func @do_not_merge_different_attributes
// CHECK:         offsets = #tssa.dims<[0]>
// CHECK:         offsets = #tssa.dims<[1]>
func.func @do_not_merge_different_attributes(%x : tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %a = tssa.extract %x {offsets = #tssa.dims<[0]>, steps = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  %b = tssa.extract %x {offsets = #tssa.dims<[1]>, steps = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  func.return %a, %b : tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @do_not_merge_side_effects
// CHECK:         func.call @somebody
// CHECK:         func.call @somebody
func.func @do_not_merge_side_effects() -> (tensor<f32>, tensor<f32>) {
  %a = func.call @somebody() : () -> tensor<f32>
  %b = func.call @somebody() : () -> tensor<f32>
  func.return %a, %b : tensor<f32>, tensor<f32>
}
func.func private @somebody() -> tensor<f32>

// Groups are worlds of their own, and two of them are not compared.
// CHECK-LABEL: func.func @do_not_merge_groups
// CHECK:         tssa.group
// CHECK:         tssa.abs
// CHECK-NOT:     tssa.abs
// CHECK:         tssa.group
// CHECK:         tssa.abs
func.func @do_not_merge_groups(%x : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = tssa.group ins(%x : tensor<4xf32>) {
  ^bb0(%y : tensor<4xf32>):
    %b = tssa.abs %y : (tensor<4xf32>) -> tensor<4xf32>
    %c = tssa.abs %y : (tensor<4xf32>) -> tensor<4xf32>
    %d = tssa.multiply %b, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    tssa.yield %d : tensor<4xf32>
  } -> tensor<4xf32>
  %e = tssa.group ins(%x : tensor<4xf32>) {
  ^bb0(%y : tensor<4xf32>):
    %f = tssa.abs %y : (tensor<4xf32>) -> tensor<4xf32>
    tssa.yield %f : tensor<4xf32>
  } -> tensor<4xf32>
  func.return %a, %e : tensor<4xf32>, tensor<4xf32>
}
