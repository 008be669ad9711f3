// RUN: jit-opt %s -p tssa-if-convert | filecheck %s
// RUN: jit-opt %s -p tssa-if-convert --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// Two sides become one; what the join does is in reach of fusion.
// CHECK-LABEL: func.func @diamond
// CHECK-NOT:     cf.
// CHECK:         %[[U:.*]] = tssa.add %x, %x
// CHECK-NEXT:    %[[V:.*]] = tssa.negative %x
// CHECK-NEXT:    %[[M:.*]] = tssa.broadcast %p : (tensor<i1>) -> tensor<8xi1>
// CHECK-NEXT:    %[[W:.*]] = tssa.where %[[M]], %[[U]], %[[V]]
// CHECK-NEXT:    tssa.multiply %[[W]], %x
func.func @diamond(%p: tensor<i1>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %c = tensor.extract %p[] : tensor<i1>
  cf.cond_br %c, ^a, ^b
^a:
  %u = tssa.add %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  cf.br ^j(%u : tensor<8xf32>)
^b:
  %v = tssa.negative %x : (tensor<8xf32>) -> tensor<8xf32>
  cf.br ^j(%v : tensor<8xf32>)
^j(%w: tensor<8xf32>):
  %z = tssa.multiply %w, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %z : tensor<8xf32>
}

// A way without a block of its own, and one number: nothing to broadcast.
// CHECK-LABEL: func.func @triangle
// CHECK-NOT:     cf.
// CHECK:         %[[U:.*]] = tssa.add %x, %y
// CHECK-NEXT:    %[[W:.*]] = tssa.where %p, %x, %[[U]]
// CHECK-NEXT:    func.return %[[W]]
func.func @triangle(%p: tensor<i1>, %x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %c = tensor.extract %p[] : tensor<i1>
  cf.cond_br %c, ^j(%x : tensor<f32>), ^b
^b:
  %u = tssa.add %x, %y : (tensor<f32>, tensor<f32>) -> tensor<f32>
  cf.br ^j(%u : tensor<f32>)
^j(%w: tensor<f32>):
  func.return %w : tensor<f32>
}

// The inner choice first; then the one around it is short, too.
// CHECK-LABEL: func.func @one_in_another
// CHECK-NOT:     cf.
// CHECK-COUNT-2: tssa.where
// CHECK-NOT:     cf.
// CHECK:         func.return
func.func @one_in_another(%p: tensor<i1>, %q: tensor<i1>, %x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %c = tensor.extract %p[] : tensor<i1>
  %d = tensor.extract %q[] : tensor<i1>
  cf.cond_br %c, ^a, ^j(%y : tensor<f32>)
^a:
  cf.cond_br %d, ^b, ^i(%x : tensor<f32>)
^b:
  %u = tssa.add %x, %y : (tensor<f32>, tensor<f32>) -> tensor<f32>
  cf.br ^i(%u : tensor<f32>)
^i(%v: tensor<f32>):
  cf.br ^j(%v : tensor<f32>)
^j(%w: tensor<f32>):
  func.return %w : tensor<f32>
}

// There is nothing that a selection could read.
// REMARK: @do_not_convert_a_condition_that_is_no_tensor: {{.*}}its condition is no element of a tensor
// CHECK-LABEL: func.func @do_not_convert_a_condition_that_is_no_tensor
// CHECK:         cf.cond_br
func.func @do_not_convert_a_condition_that_is_no_tensor(%c: i1, %x: tensor<8xf32>) -> tensor<8xf32> {
  cf.cond_br %c, ^a, ^b
^a:
  %u = tssa.add %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  cf.br ^j(%u : tensor<8xf32>)
^b:
  %v = tssa.negative %x : (tensor<8xf32>) -> tensor<8xf32>
  cf.br ^j(%v : tensor<8xf32>)
^j(%w: tensor<8xf32>):
  %z = tssa.multiply %w, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %z : tensor<8xf32>
}

// ^b is reached from the branch of ^a, too.
// REMARK: @do_not_convert_a_side_that_others_lead_to: {{.*}}another branch leads to one of its sides
// CHECK-LABEL: func.func @do_not_convert_a_side_that_others_lead_to
// CHECK-COUNT-2: cf.cond_br
func.func @do_not_convert_a_side_that_others_lead_to(%p: tensor<i1>, %q: tensor<i1>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %c = tensor.extract %p[] : tensor<i1>
  %d = tensor.extract %q[] : tensor<i1>
  cf.cond_br %c, ^a, ^b
^a:
  cf.cond_br %d, ^b, ^e
^b:
  %v = tssa.negative %x : (tensor<8xf32>) -> tensor<8xf32>
  cf.br ^j(%v : tensor<8xf32>)
^e:
  %e = tssa.sum %x {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  %f = tssa.broadcast %e : (tensor<f32>) -> tensor<8xf32>
  cf.br ^j(%f : tensor<8xf32>)
^j(%w: tensor<8xf32>):
  func.return %w : tensor<8xf32>
}

// The check ends the call where the branch would not have come to it.
// REMARK: @do_not_convert_a_side_with_a_check: {{.*}}may fail, when the other is taken
// CHECK-LABEL: func.func @do_not_convert_a_side_with_a_check
// CHECK:         cf.cond_br
// CHECK:         tssa.check_bounds
func.func @do_not_convert_a_side_with_a_check(%p: tensor<i1>, %i: tensor<i64>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %c = tensor.extract %p[] : tensor<i1>
  cf.cond_br %c, ^a, ^b
^a:
  tssa.check_bounds %i {lower = #tssa.dims<[0]>, upper = #tssa.dims<[7]>} : tensor<i64>
  cf.br ^j(%x : tensor<8xf32>)
^b:
  %v = tssa.negative %x : (tensor<8xf32>) -> tensor<8xf32>
  cf.br ^j(%v : tensor<8xf32>)
^j(%w: tensor<8xf32>):
  %z = tssa.multiply %w, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %z : tensor<8xf32>
}

// The part lies within %x only if the branch is taken.
// REMARK: @do_not_convert_a_part_at_a_runtime_offset: {{.*}}may fail, when the other is taken
// CHECK-LABEL: func.func @do_not_convert_a_part_at_a_runtime_offset
// CHECK:         cf.cond_br
// CHECK:         tssa.extract
func.func @do_not_convert_a_part_at_a_runtime_offset(%p: tensor<i1>, %i: tensor<i64>, %x: tensor<8xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %c = tensor.extract %p[] : tensor<i1>
  cf.cond_br %c, ^a, ^b
^a:
  %u = tssa.extract %x, %i {offsets = #tssa.dims<[_0]>, steps = array<i64: 1>} : (tensor<8xf32>, tensor<i64>) -> tensor<2xf32>
  cf.br ^j(%u : tensor<2xf32>)
^b:
  cf.br ^j(%y : tensor<2xf32>)
^j(%w: tensor<2xf32>):
  func.return %w : tensor<2xf32>
}

// A function may do anything.
// REMARK: @do_not_convert_a_call: {{.*}}may fail, when the other is taken
// CHECK-LABEL: func.func @do_not_convert_a_call
// CHECK:         cf.cond_br
// CHECK:         func.call
func.func @do_not_convert_a_call(%p: tensor<i1>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %c = tensor.extract %p[] : tensor<i1>
  cf.cond_br %c, ^a, ^b
^a:
  %u = func.call @other(%x) : (tensor<8xf32>) -> tensor<8xf32>
  cf.br ^j(%u : tensor<8xf32>)
^b:
  %v = tssa.negative %x : (tensor<8xf32>) -> tensor<8xf32>
  cf.br ^j(%v : tensor<8xf32>)
^j(%w: tensor<8xf32>):
  %z = tssa.multiply %w, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %z : tensor<8xf32>
}

func.func private @other(tensor<8xf32>) -> tensor<8xf32>

// Numbers that are no tensors have no tssa.where.
// REMARK: @do_not_convert_what_is_no_tensor: {{.*}}its sides end in values of different types
// CHECK-LABEL: func.func @do_not_convert_what_is_no_tensor
// CHECK:         cf.cond_br
func.func @do_not_convert_what_is_no_tensor(%p: tensor<i1>, %x: index, %y: index) -> index {
  %c = tensor.extract %p[] : tensor<i1>
  cf.cond_br %c, ^a, ^b
^a:
  cf.br ^j(%x : index)
^b:
  cf.br ^j(%y : index)
^j(%w: index):
  func.return %w : index
}

// Two ways that do not meet: a loop.
// CHECK-LABEL: func.func @do_not_convert_a_loop
// CHECK:         cf.cond_br
func.func @do_not_convert_a_loop(%p: tensor<i1>, %x: tensor<8xf32>) -> tensor<8xf32> {
  cf.br ^h(%x : tensor<8xf32>)
^h(%v: tensor<8xf32>):
  %c = tensor.extract %p[] : tensor<i1>
  cf.cond_br %c, ^a, ^e
^a:
  %u = tssa.add %v, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  cf.br ^h(%u : tensor<8xf32>)
^e:
  func.return %v : tensor<8xf32>
}

// Dear work is what the branch saves.
// REMARK: @do_not_convert_where_both_sides_are_dearer: {{.*}}both sides would cost 29 cycles, and the branch 10
// CHECK-LABEL: func.func @do_not_convert_where_both_sides_are_dearer
// CHECK:         cf.cond_br
func.func @do_not_convert_where_both_sides_are_dearer(%p: tensor<i1>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %c = tensor.extract %p[] : tensor<i1>
  cf.cond_br %c, ^a, ^b
^a:
  %u = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  cf.br ^j(%u : tensor<8xf32>)
^b:
  %v = tssa.tanh %x : (tensor<8xf32>) -> tensor<8xf32>
  cf.br ^j(%v : tensor<8xf32>)
^j(%w: tensor<8xf32>):
  %z = tssa.multiply %w, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %z : tensor<8xf32>
}

// A large tensor: half of the work would be for nothing.
// REMARK: @do_not_convert_large_sides: {{.*}}its values may be large
// CHECK-LABEL: func.func @do_not_convert_large_sides
// CHECK:         cf.cond_br
func.func @do_not_convert_large_sides(%p: tensor<i1>, %x: tensor<8192xf32>) -> tensor<8192xf32> {
  %c = tensor.extract %p[] : tensor<i1>
  cf.cond_br %c, ^a, ^b
^a:
  %u = tssa.add %x, %x : (tensor<8192xf32>, tensor<8192xf32>) -> tensor<8192xf32>
  cf.br ^j(%u : tensor<8192xf32>)
^b:
  %v = tssa.negative %x : (tensor<8192xf32>) -> tensor<8192xf32>
  cf.br ^j(%v : tensor<8192xf32>)
^j(%w: tensor<8192xf32>):
  %z = tssa.multiply %w, %x : (tensor<8192xf32>, tensor<8192xf32>) -> tensor<8192xf32>
  func.return %z : tensor<8192xf32>
}

// A tensor that may be large.
// REMARK: @do_not_convert_sides_of_unknown_size: {{.*}}its values may be large
// CHECK-LABEL: func.func @do_not_convert_sides_of_unknown_size
// CHECK:         cf.cond_br
func.func @do_not_convert_sides_of_unknown_size(%p: tensor<i1>, %x: tensor<?xf32, #tssa.dims<[n]>>) -> tensor<?xf32, #tssa.dims<[n]>> {
  %c = tensor.extract %p[] : tensor<i1>
  cf.cond_br %c, ^a, ^b
^a:
  %u = tssa.add %x, %x : (tensor<?xf32, #tssa.dims<[n]>>, tensor<?xf32, #tssa.dims<[n]>>) -> tensor<?xf32, #tssa.dims<[n]>>
  cf.br ^j(%u : tensor<?xf32, #tssa.dims<[n]>>)
^b:
  %v = tssa.negative %x : (tensor<?xf32, #tssa.dims<[n]>>) -> tensor<?xf32, #tssa.dims<[n]>>
  cf.br ^j(%v : tensor<?xf32, #tssa.dims<[n]>>)
^j(%w: tensor<?xf32, #tssa.dims<[n]>>):
  %z = tssa.multiply %w, %x : (tensor<?xf32, #tssa.dims<[n]>>, tensor<?xf32, #tssa.dims<[n]>>) -> tensor<?xf32, #tssa.dims<[n]>>
  func.return %z : tensor<?xf32, #tssa.dims<[n]>>
}

// A reduction is a loop of its own.
// REMARK: @do_not_convert_reductions: {{.*}}a side does more than elementwise operations
// CHECK-LABEL: func.func @do_not_convert_reductions
// CHECK:         cf.cond_br
// CHECK:         tssa.sum
func.func @do_not_convert_reductions(%p: tensor<i1>, %x: tensor<8xf32>) -> tensor<f32> {
  %c = tensor.extract %p[] : tensor<i1>
  cf.cond_br %c, ^a, ^b
^a:
  %u = tssa.sum %x {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  cf.br ^j(%u : tensor<f32>)
^b:
  %v = tssa.max %x {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  cf.br ^j(%v : tensor<f32>)
^j(%w: tensor<f32>):
  func.return %w : tensor<f32>
}
