// RUN: jit-opt %s -p 'tssa-fuse{merge=false},tssa-bufferize{check=true}' | filecheck %s

// The carried value has one home, here the caller's buffer, and is computed in place: no copies.
// CHECK-LABEL: func.func @a_loop_runs_in_the_home_of_its_value
// CHECK:         tssa.group ins(%x : memref<8xf32>) outs(%out0 : memref<8xf32>)
// CHECK:         cf.br ^[[L:.*]]
// CHECK-NEXT:  ^[[L]]:
// CHECK-NEXT:    tssa.group ins(%out0 : memref<8xf32>) outs(%out0 : memref<8xf32>)
// CHECK:         %[[V:.*]] = memref.load %{{.*}}[] : memref<i8>
// CHECK-NEXT:    %[[C:.*]] = arith.cmpi ne, %[[V]], %{{.*}} : i8
// CHECK-NEXT:    cf.cond_br %[[C]], ^[[L]], ^[[E:.*]]
// CHECK-NEXT:  ^[[E]]:
// CHECK-NEXT:    func.return
func.func @a_loop_runs_in_the_home_of_its_value(%x: tensor<8xf32>, %t: tensor<f32>) -> tensor<8xf32> {
  %a = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  cf.br ^loop(%a : tensor<8xf32>)
^loop(%v: tensor<8xf32>):
  %w = tssa.abs %v : (tensor<8xf32>) -> tensor<8xf32>
  %m = tssa.max %w {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  %g = tssa.greater %m, %t : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %c = tensor.extract %g[] : tensor<i1>
  cf.cond_br %c, ^loop(%w : tensor<8xf32>), ^done
^done:
  func.return %w : tensor<8xf32>
}

// (a, b) <- (b, a) needs a third buffer; the copies run on the edge back only.
// CHECK-LABEL: func.func @a_swap_goes_through_a_temporary
// CHECK:         cf.cond_br %{{.*}}, ^[[B:.*]], ^[[E:.*]]
// CHECK-NEXT:  ^[[B]]:
// CHECK-NEXT:    tssa.group ins(%[[Y:.*]] : memref<8xf32>) outs(%[[T:.*]] : memref<8xf32>)
// CHECK:         tssa.group ins(%[[X:.*]] : memref<8xf32>) outs(%[[Y]] : memref<8xf32>)
// CHECK:         tssa.group ins(%[[T]] : memref<8xf32>) outs(%[[X]] : memref<8xf32>)
// CHECK:         cf.br
// CHECK-NEXT:  ^[[E]]:
// CHECK-NEXT:    func.return
func.func @a_swap_goes_through_a_temporary(
    %x: tensor<8xf32>, %y: tensor<8xf32>, %g: tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>) {
  cf.br ^loop(%x, %y : tensor<8xf32>, tensor<8xf32>)
^loop(%a: tensor<8xf32>, %b: tensor<8xf32>):
  %c = tensor.extract %g[] : tensor<i1>
  cf.cond_br %c, ^loop(%b, %a : tensor<8xf32>, tensor<8xf32>), ^done
^done:
  func.return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// The old value leaves the loop, so the new one must not take its place.
// CHECK-LABEL: func.func @do_not_overwrite_what_leaves_the_loop
// CHECK:         tssa.group ins(%x : memref<8xf32>) outs(%[[V:.*]] : memref<8xf32>)
// CHECK:         tssa.group ins(%[[V]] : memref<8xf32>) outs(%[[W:.*]] : memref<8xf32>)
// CHECK:         cf.cond_br %{{.*}}, ^[[B:.*]], ^[[E:.*]]
// CHECK-NEXT:  ^[[B]]:
// CHECK-NEXT:    tssa.group ins(%[[W]] : memref<8xf32>) outs(%[[V]] : memref<8xf32>)
func.func @do_not_overwrite_what_leaves_the_loop(%x: tensor<8xf32>, %t: tensor<f32>) -> tensor<8xf32> {
  cf.br ^loop(%x : tensor<8xf32>)
^loop(%v: tensor<8xf32>):
  %w = tssa.exp %v : (tensor<8xf32>) -> tensor<8xf32>
  %m = tssa.max %w {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  %g = tssa.greater %m, %t : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %c = tensor.extract %g[] : tensor<i1>
  cf.cond_br %c, ^loop(%w : tensor<8xf32>), ^done
^done:
  func.return %v : tensor<8xf32>
}

// Buffers of both branches are made at the top: memory used in one dominates its uses in the other.
// CHECK-LABEL: func.func @buffers_of_branches_are_made_at_the_top
// CHECK:         memref.view
// CHECK:         cf.cond_br
// CHECK-NOT:     memref.view
// CHECK:         func.return
func.func @buffers_of_branches_are_made_at_the_top(%x: tensor<8xf32>, %g: tensor<i1>) -> tensor<f32> {
  %c = tensor.extract %g[] : tensor<i1>
  cf.cond_br %c, ^left, ^right
^left:
  %l0 = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %l1 = tssa.reshape %l0 : (tensor<8xf32>) -> tensor<2x4xf32>
  %l2 = tssa.sum %l1 {axes = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<f32>
  cf.br ^join(%l2 : tensor<f32>)
^right:
  %r0 = tssa.tanh %x : (tensor<8xf32>) -> tensor<8xf32>
  %r1 = tssa.reshape %r0 : (tensor<8xf32>) -> tensor<4x2xf32>
  %r2 = tssa.sum %r1 {axes = array<i64: 0, 1>} : (tensor<4x2xf32>) -> tensor<f32>
  cf.br ^join(%r2 : tensor<f32>)
^join(%s: tensor<f32>):
  func.return %s : tensor<f32>
}
