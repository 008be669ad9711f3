// RUN: jit-opt %s -p tssa-dce --verify-each | filecheck %s

// CHECK-LABEL: func.func @removes_what_nothing_needs
// CHECK-NEXT:    %[[Y:.*]] = tssa.exp %x
// CHECK-NEXT:    func.return %[[Y]]
func.func @removes_what_nothing_needs(%x : tensor<4xf32>) -> tensor<4xf32> {
  %a = tssa.negative %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = tssa.abs %a : (tensor<4xf32>) -> tensor<4xf32>
  %y = tssa.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @removes_a_value_that_only_feeds_itself
// CHECK-NEXT:    cf.br ^head(%x : tensor<f32>)
// CHECK-NEXT:  ^head(%[[A:.*]]: tensor<f32>):
// CHECK-NEXT:    %[[B:.*]] = tssa.abs %[[A]]
// CHECK-NEXT:    cf.cond_br %c, ^head(%[[B]] : tensor<f32>), ^exit
// CHECK-NEXT:  ^exit:
// CHECK-NEXT:    func.return %[[A]]
func.func @removes_a_value_that_only_feeds_itself(%x : tensor<f32>, %c : i1) -> tensor<f32> {
  cf.br ^head(%x, %x : tensor<f32>, tensor<f32>)
^head(%a : tensor<f32>, %unused : tensor<f32>):
  %next = tssa.negative %unused : (tensor<f32>) -> tensor<f32>
  %b = tssa.abs %a : (tensor<f32>) -> tensor<f32>
  cf.cond_br %c, ^head(%b, %next : tensor<f32>, tensor<f32>), ^exit(%next : tensor<f32>)
^exit(%ignored : tensor<f32>):
  func.return %a : tensor<f32>
}

// CHECK-LABEL: func.func @do_not_remove_side_effects
// CHECK-NEXT:    func.call @somebody(%x)
func.func @do_not_remove_side_effects(%x : tensor<4xf32>) {
  %y = func.call @somebody(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
func.func private @somebody(tensor<4xf32>) -> tensor<4xf32>

// CHECK-LABEL: func.func @do_not_remove_arguments_of_the_entry(%x: tensor<f32>)
// CHECK-NEXT:    func.return
func.func @do_not_remove_arguments_of_the_entry(%x : tensor<f32>) {
  func.return
}

// A switch may pass anything; what it passes is needed.
// CHECK-LABEL: func.func @do_not_remove_arguments_that_a_switch_passes
// CHECK:         tssa.abs
// CHECK:       ^{{.*}}(%{{.*}}: tensor<f32>):
func.func @do_not_remove_arguments_that_a_switch_passes(%x : tensor<f32>, %i : i32) {
  %y = tssa.abs %x : (tensor<f32>) -> tensor<f32>
  cf.switch %i : i32, [
    default: ^a(%y : tensor<f32>)
  ]
^a(%unused : tensor<f32>):
  func.return
}

// CHECK-LABEL: func.func @do_not_remove_a_loop
// CHECK-NEXT:    cf.br ^loop
// CHECK-NEXT:  ^loop:
// CHECK-NEXT:    cf.br ^loop
func.func @do_not_remove_a_loop() {
  cf.br ^loop
^loop:
  cf.br ^loop
}
