// RUN: jit-opt %s -p tssa-hoist | filecheck %s

// The head of a loop runs whenever the loop is entered: its size does not matter. What the dear operation is
// computed from comes along.
// CHECK-LABEL: func.func @out_of_the_head
// CHECK-NEXT:    %[[N:.*]] = tssa.negative %w
// CHECK-NEXT:    tssa.exp %[[N]]
// CHECK-NEXT:    cf.br ^[[L:.*]](%x
// CHECK:       ^[[L]]
// CHECK-NEXT:    tssa.add
func.func @out_of_the_head(%x: tensor<?xf32, #tssa.dims<[n]>>, %w: tensor<?xf32, #tssa.dims<[n]>>, %c: i1) -> tensor<?xf32, #tssa.dims<[n]>> {
  cf.br ^loop(%x : tensor<?xf32, #tssa.dims<[n]>>)
^loop(%v: tensor<?xf32, #tssa.dims<[n]>>):
  %m = tssa.negative %w : (tensor<?xf32, #tssa.dims<[n]>>) -> tensor<?xf32, #tssa.dims<[n]>>
  %e = tssa.exp %m : (tensor<?xf32, #tssa.dims<[n]>>) -> tensor<?xf32, #tssa.dims<[n]>>
  %a = tssa.add %v, %e : (tensor<?xf32, #tssa.dims<[n]>>, tensor<?xf32, #tssa.dims<[n]>>) -> tensor<?xf32, #tssa.dims<[n]>>
  cf.cond_br %c, ^loop(%a : tensor<?xf32, #tssa.dims<[n]>>), ^exit
^exit:
  func.return %a : tensor<?xf32, #tssa.dims<[n]>>
}

// The body of a loop that may take no step: what is small moves, also out of two loops.
// CHECK-LABEL: func.func @small_out_of_two_bodies
// CHECK-NEXT:    tssa.sum %w
// CHECK-NEXT:    cf.br
func.func @small_out_of_two_bodies(%x: tensor<f32>, %w: tensor<64xf32>, %c: i1) -> tensor<f32> {
  cf.br ^outer(%x : tensor<f32>)
^outer(%v: tensor<f32>):
  cf.cond_br %c, ^enter, ^exit
^enter:
  cf.br ^inner(%v : tensor<f32>)
^inner(%u: tensor<f32>):
  %s = tssa.sum %w {axes = array<i64: 0>} : (tensor<64xf32>) -> tensor<f32>
  %a = tssa.add %u, %s : (tensor<f32>, tensor<f32>) -> tensor<f32>
  cf.cond_br %c, ^inner(%a : tensor<f32>), ^outer(%a : tensor<f32>)
^exit:
  func.return %v : tensor<f32>
}

// CHECK-LABEL: func.func @do_not_hoist_what_is_large_and_may_not_run
// CHECK:         cf.cond_br
// CHECK:         tssa.exp
func.func @do_not_hoist_what_is_large_and_may_not_run(%x: tensor<8192xf32>, %w: tensor<8192xf32>, %c: i1) -> tensor<8192xf32> {
  cf.br ^head(%x : tensor<8192xf32>)
^head(%v: tensor<8192xf32>):
  cf.cond_br %c, ^body, ^exit
^body:
  %e = tssa.exp %w : (tensor<8192xf32>) -> tensor<8192xf32>
  %a = tssa.add %v, %e : (tensor<8192xf32>, tensor<8192xf32>) -> tensor<8192xf32>
  cf.br ^head(%a : tensor<8192xf32>)
^exit:
  func.return %v : tensor<8192xf32>
}

// CHECK-LABEL: func.func @do_not_hoist_what_depends_on_the_loop
// CHECK-NEXT:    cf.br
// CHECK:         tssa.exp
func.func @do_not_hoist_what_depends_on_the_loop(%x: tensor<f32>, %c: i1) -> tensor<f32> {
  cf.br ^loop(%x : tensor<f32>)
^loop(%v: tensor<f32>):
  %e = tssa.exp %v : (tensor<f32>) -> tensor<f32>
  cf.cond_br %c, ^loop(%e : tensor<f32>), ^exit
^exit:
  func.return %e : tensor<f32>
}

// CHECK-LABEL: func.func @do_not_hoist_what_is_cheap
// CHECK-NEXT:    cf.br
// CHECK:         tssa.negative
func.func @do_not_hoist_what_is_cheap(%x: tensor<f32>, %w: tensor<f32>, %c: i1) -> tensor<f32> {
  cf.br ^loop(%x : tensor<f32>)
^loop(%v: tensor<f32>):
  %m = tssa.negative %w : (tensor<f32>) -> tensor<f32>
  %a = tssa.add %v, %m : (tensor<f32>, tensor<f32>) -> tensor<f32>
  cf.cond_br %c, ^loop(%a : tensor<f32>), ^exit
^exit:
  func.return %a : tensor<f32>
}

// A check may end the call: neither it nor what it is in front of goes before earlier steps.
// CHECK-LABEL: func.func @do_not_hoist_what_has_an_effect
// CHECK-NEXT:    cf.br
// CHECK:         tssa.check_bounds
func.func @do_not_hoist_what_has_an_effect(%x: tensor<f32>, %i: tensor<i64>, %c: i1) -> tensor<f32> {
  cf.br ^loop
^loop:
  tssa.check_bounds %i {lower = #tssa.dims<[0]>, upper = #tssa.dims<[3]>} : tensor<i64>
  cf.cond_br %c, ^loop, ^exit
^exit:
  func.return %x : tensor<f32>
}

// CHECK-LABEL: func.func @do_not_hoist_where_two_branches_enter
// CHECK-NEXT:    cf.cond_br
// CHECK:         tssa.exp
func.func @do_not_hoist_where_two_branches_enter(%x: tensor<f32>, %w: tensor<f32>, %c: i1) -> tensor<f32> {
  cf.cond_br %c, ^loop(%x : tensor<f32>), ^loop(%w : tensor<f32>)
^loop(%v: tensor<f32>):
  %e = tssa.exp %w : (tensor<f32>) -> tensor<f32>
  %a = tssa.add %v, %e : (tensor<f32>, tensor<f32>) -> tensor<f32>
  cf.cond_br %c, ^loop(%a : tensor<f32>), ^exit
^exit:
  func.return %a : tensor<f32>
}

// CHECK-LABEL: func.func @do_not_hoist_a_row_before_its_check
// CHECK-NEXT:    cf.br
// CHECK:         tssa.check_bounds
// CHECK-NEXT:    tssa.extract
// CHECK-NEXT:    tssa.sum
func.func @do_not_hoist_a_row_before_its_check(%x: tensor<4xf32>, %i: tensor<i64>, %c: i1) -> tensor<f32> {
  cf.br ^loop
^loop:
  tssa.check_bounds %i {lower = #tssa.dims<[0]>, upper = #tssa.dims<[3]>} : tensor<i64>
  %r = tssa.extract %x, %i {offsets = #tssa.dims<[_0]>, steps = array<i64: 1>} : (tensor<4xf32>, tensor<i64>) -> tensor<1xf32>
  %s = tssa.sum %r {axes = array<i64: 0>} : (tensor<1xf32>) -> tensor<f32>
  cf.cond_br %c, ^loop, ^exit
^exit:
  func.return %s : tensor<f32>
}
