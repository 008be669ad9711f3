// RUN: jit-opt %s -p tssa-fuse | filecheck %s

// A member that is read outside is a result of its group.
// CHECK-LABEL: func.func @what_is_returned_too_is_yielded
// CHECK-NEXT:    %[[R:.*]], %[[S:.*]] = tssa.group ins(%x : tensor<8xf32>) {
// CHECK:           %[[A:.*]] = tssa.exp
// CHECK-NEXT:      %[[B:.*]] = tssa.abs %[[A]]
// CHECK-NEXT:      tssa.yield %[[A]], %[[B]] : tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT:    } -> tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT:    func.return %[[R]], %[[S]]
func.func @what_is_returned_too_is_yielded(
    %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = tssa.abs %a : (tensor<8xf32>) -> tensor<8xf32>
  func.return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// Neither feeds the other, but %x is read once instead of twice.
// CHECK-LABEL: func.func @siblings_share_what_they_read
// CHECK-NEXT:    tssa.group ins(%x, %y :
// CHECK:           tssa.exp
// CHECK-NEXT:      tssa.add
// CHECK-NEXT:      tssa.yield
// CHECK-NOT:     tssa.group
// CHECK:         func.return
func.func @siblings_share_what_they_read(
    %x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = tssa.add %x, %y : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// The insertion reads the first result, so its place is behind the whole group, and the view's too.
// CHECK-LABEL: func.func @readers_stand_behind_the_group
// CHECK-NEXT:    %[[A:.*]], %[[B:.*]] = tssa.group
// CHECK:           tssa.exp
// CHECK-NEXT:      tssa.abs
// CHECK-NEXT:      tssa.yield
// CHECK:         tssa.reshape %[[A]]
// CHECK:         tssa.insert
// CHECK:         func.return
func.func @readers_stand_behind_the_group(%x: tensor<8xf32>, %y: tensor<2xf32>)
    -> (tensor<8xf32>, tensor<2x4xf32>, tensor<8xf32>) {
  %a = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %v = tssa.reshape %a : (tensor<8xf32>) -> tensor<2x4xf32>
  %c = tssa.insert %a, %y {offsets = #tssa.dims<[1]>, steps = array<i64: 1>}
    : (tensor<8xf32>, tensor<2xf32>) -> tensor<8xf32>
  %b = tssa.abs %a : (tensor<8xf32>) -> tensor<8xf32>
  func.return %b, %v, %c : tensor<8xf32>, tensor<2x4xf32>, tensor<8xf32>
}

// The whole sum before the activation is wanted too, and the residual is read element by element.
// CHECK-LABEL: func.func @a_product_with_its_epilogue_has_several_results
// CHECK-NEXT:    tssa.group ins(%x, %w, %b, %r :
// CHECK:           tssa.matmul
// CHECK-NEXT:      tssa.broadcast
// CHECK-NEXT:      %[[S:.*]] = tssa.add
// CHECK-NEXT:      %[[T:.*]] = tssa.tanh
// CHECK-NEXT:      %[[U:.*]] = tssa.add
// CHECK-NEXT:      tssa.yield %[[S]], %[[U]]
// CHECK-NOT:     tssa.group
// CHECK:         func.return
func.func @a_product_with_its_epilogue_has_several_results(
    %x: tensor<4x8xf32>, %w: tensor<8x4xf32>, %b: tensor<4xf32>, %r: tensor<4x4xf32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = tssa.matmul %x, %w : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = tssa.broadcast %b : (tensor<4xf32>) -> tensor<4x4xf32>
  %2 = tssa.add %0, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = tssa.tanh %2 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = tssa.add %3, %r : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %2, %4 : tensor<4x4xf32>, tensor<4x4xf32>
}

// The product's own operand as the residual.
// CHECK-LABEL: func.func @an_operand_of_the_product_is_read_by_the_epilogue
// CHECK-NEXT:    tssa.group ins(%x :
// CHECK:           tssa.matmul
// CHECK-NEXT:      tssa.add
// CHECK-NEXT:      tssa.yield
// CHECK-NOT:     tssa.group
// CHECK:         func.return
func.func @an_operand_of_the_product_is_read_by_the_epilogue(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = tssa.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = tssa.add %0, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %1 : tensor<4x4xf32>
}

// One number that a cheap operation makes of a dear one: the dear one is computed once and yielded.
// CHECK-LABEL: func.func @what_copies_read_is_computed_once
// CHECK-COUNT-1: tssa.exp
// CHECK-NOT:     tssa.exp
// CHECK:         func.return
func.func @what_copies_read_is_computed_once(
    %x: tensor<f32>, %y: tensor<8xf32>) -> (tensor<f32>, tensor<8xf32>) {
  %e = tssa.exp %x : (tensor<f32>) -> tensor<f32>
  %n = tssa.negative %e : (tensor<f32>) -> tensor<f32>
  %a = tssa.abs %n : (tensor<f32>) -> tensor<f32>
  %b = tssa.broadcast %n : (tensor<f32>) -> tensor<8xf32>
  %c = tssa.add %b, %y : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %a, %c : tensor<f32>, tensor<8xf32>
}

// Nobody reads the first result of the group; it is a result all the same, for tssa-dce to remove.
// CHECK-LABEL: func.func @unread_members_are_yielded
// CHECK:         tssa.yield %{{.*}}, %{{.*}} :
func.func @unread_members_are_yielded(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = tssa.abs %x : (tensor<8xf32>) -> tensor<8xf32>
  func.return %b : tensor<8xf32>
}
