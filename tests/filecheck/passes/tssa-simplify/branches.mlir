// RUN: jit-opt %s -p tssa-simplify,tssa-dce --verify-each | filecheck %s

// CHECK-LABEL: func.func @decides_a_branch_on_a_constant
// CHECK-NEXT:    %[[A:.*]] = tssa.negative %x
// CHECK-NEXT:    func.return %[[A]]
// CHECK-NEXT:  }
func.func @decides_a_branch_on_a_constant(%x : tensor<f32>) -> tensor<f32> {
  %t = tssa.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %c = tensor.extract %t[] : tensor<i1>
  cf.cond_br %c, ^yes(%x : tensor<f32>), ^no
^yes(%y : tensor<f32>):
  %a = tssa.negative %y : (tensor<f32>) -> tensor<f32>
  cf.br ^exit(%a : tensor<f32>)
^no:
  %b = tssa.abs %x : (tensor<f32>) -> tensor<f32>
  cf.br ^exit(%b : tensor<f32>)
^exit(%r : tensor<f32>):
  func.return %r : tensor<f32>
}

// CHECK-LABEL: func.func @joins_equal_ways
// CHECK-NEXT:    func.return %x
func.func @joins_equal_ways(%x : tensor<f32>, %c : i1) -> tensor<f32> {
  cf.cond_br %c, ^exit(%x : tensor<f32>), ^exit(%x : tensor<f32>)
^exit(%r : tensor<f32>):
  func.return %r : tensor<f32>
}

// llvm/llvm-project#159743; xDSL's own canonicalisation does not end on this one either.
// CHECK-LABEL: func.func @ends_on_blocks_that_lead_to_each_other
// CHECK-NEXT:    cf.br ^[[B:[a-z0-9]+]]
// CHECK-NEXT:  ^[[B]]:
// CHECK-NEXT:    cf.br ^[[B]]
// CHECK-NEXT:  }
func.func @ends_on_blocks_that_lead_to_each_other() {
  %f = tssa.constant {value = dense<false> : tensor<i1>} : () -> tensor<i1>
  %c = tensor.extract %f[] : tensor<i1>
  cf.cond_br %c, ^a, ^b
^a:
  cf.br ^b
^b:
  cf.br ^a
}

// The same with a value that goes round, which nobody reads.
// CHECK-LABEL: func.func @ends_on_a_circle_of_blocks
// CHECK-NEXT:    cf.br ^[[B:[a-z0-9]+]]
// CHECK-NEXT:  ^[[B]]:
// CHECK-NEXT:    cf.br ^[[B]]
// CHECK-NEXT:  }
func.func @ends_on_a_circle_of_blocks(%x : tensor<f32>) {
  %f = tssa.constant {value = dense<false> : tensor<i1>} : () -> tensor<i1>
  %c = tensor.extract %f[] : tensor<i1>
  cf.cond_br %c, ^a(%x : tensor<f32>), ^b(%x : tensor<f32>)
^a(%p : tensor<f32>):
  cf.br ^b(%p : tensor<f32>)
^b(%q : tensor<f32>):
  cf.br ^d(%q : tensor<f32>)
^d(%r : tensor<f32>):
  %s = tssa.negative %r : (tensor<f32>) -> tensor<f32>
  cf.br ^a(%s : tensor<f32>)
}

// CHECK-LABEL: func.func @drops_blocks_that_lead_to_each_other_only
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @drops_blocks_that_lead_to_each_other_only() {
  func.return
^a:
  cf.br ^b
^b:
  cf.br ^a
}

// CHECK-LABEL: func.func @removes_an_argument_that_is_always_the_same
// CHECK-NEXT:    cf.br ^head
// CHECK-NEXT:  ^head:
// CHECK-NEXT:    cf.cond_br %c, ^head, ^exit
// CHECK-NEXT:  ^exit:
// CHECK-NEXT:    func.return %x
func.func @removes_an_argument_that_is_always_the_same(%x : tensor<f32>, %c : i1) -> tensor<f32> {
  cf.br ^head(%x : tensor<f32>)
^head(%y : tensor<f32>):
  cf.cond_br %c, ^head(%y : tensor<f32>), ^exit
^exit:
  func.return %y : tensor<f32>
}

// CHECK-LABEL: func.func @do_not_decide_an_unknown_branch
// CHECK-NEXT:    cf.cond_br %c
func.func @do_not_decide_an_unknown_branch(%x : tensor<f32>, %c : i1) -> tensor<f32> {
  cf.cond_br %c, ^a, ^b
^a:
  %y = tssa.negative %x : (tensor<f32>) -> tensor<f32>
  func.return %y : tensor<f32>
^b:
  func.return %x : tensor<f32>
}

// CHECK-LABEL: func.func @do_not_join_ways_with_different_values
// CHECK-NEXT:    cf.cond_br %c, ^exit(%x : tensor<f32>), ^exit(%y : tensor<f32>)
func.func @do_not_join_ways_with_different_values(%x : tensor<f32>, %y : tensor<f32>, %c : i1) -> tensor<f32> {
  cf.cond_br %c, ^exit(%x : tensor<f32>), ^exit(%y : tensor<f32>)
^exit(%r : tensor<f32>):
  func.return %r : tensor<f32>
}

// CHECK-LABEL: func.func @do_not_merge_a_block_with_two_ways_in
// CHECK:         cf.br ^exit
// CHECK:       ^exit
func.func @do_not_merge_a_block_with_two_ways_in(%x : tensor<f32>, %c : i1) -> tensor<f32> {
  cf.cond_br %c, ^a, ^exit(%x : tensor<f32>)
^a:
  %y = tssa.negative %x : (tensor<f32>) -> tensor<f32>
  cf.br ^exit(%y : tensor<f32>)
^exit(%r : tensor<f32>):
  func.return %r : tensor<f32>
}

// CHECK-LABEL: func.func @do_not_touch_arguments_that_a_switch_passes
// CHECK:         cf.switch
// CHECK:       ^a(%{{.*}}: tensor<f32>):
func.func @do_not_touch_arguments_that_a_switch_passes(%x : tensor<f32>, %i : i32) -> tensor<f32> {
  cf.switch %i : i32, [
    default: ^a(%x : tensor<f32>)
  ]
^a(%y : tensor<f32>):
  func.return %y : tensor<f32>
}
