// RUN: jit-opt %s -p 'tssa-fuse{merge=false},tssa-bufferize{check=true}' | filecheck %s

// %b is dead after %d, which takes its place.
// CHECK-LABEL: func.func @in_place_where_the_operand_dies
// CHECK:         %[[T:.*]] = memref.view %arena{{.*}} to memref<8xf32>
// CHECK-NOT:     memref.view %arena{{.*}} to memref<8xf32>
// CHECK:         tssa.group ins(%x : memref<8xf32>) outs(%[[T]] :
// CHECK:           tssa.exp
// CHECK:         tssa.group ins(%[[T]] : {{.*}}) outs(%out1 : memref<f32>)
// CHECK:         tssa.group ins(%[[T]] : memref<8xf32>) outs(%[[T]] : memref<8xf32>)
// CHECK:           tssa.abs
func.func @in_place_where_the_operand_dies(%x: tensor<8xf32>) -> (tensor<f32>, tensor<f32>) {
  %b = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %c = tssa.sum %b {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  %d = tssa.abs %b : (tensor<8xf32>) -> tensor<8xf32>
  %e = tssa.sum %d {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  func.return %e, %c : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @do_not_write_an_argument
// CHECK:         tssa.group ins(%x : memref<8xf32>) outs(%out0 : memref<8xf32>)
func.func @do_not_write_an_argument(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = tssa.abs %x : (tensor<8xf32>) -> tensor<8xf32>
  func.return %a : tensor<8xf32>
}

// The sum of %b comes after %d: %b must survive it.
// CHECK-LABEL: func.func @do_not_overwrite_a_live_operand
// CHECK:         %[[B:.*]] = memref.view %arena{{.*}} to memref<8xf32>
// CHECK:         %[[D:.*]] = memref.view %arena{{.*}} to memref<8xf32>
// CHECK:         tssa.group ins(%[[B]] : memref<8xf32>) outs(%[[D]] : memref<8xf32>)
// CHECK:           tssa.abs
func.func @do_not_overwrite_a_live_operand(%x: tensor<8xf32>) -> (tensor<f32>, tensor<f32>) {
  %b = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %d = tssa.abs %b : (tensor<8xf32>) -> tensor<8xf32>
  %e = tssa.sum %d {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  %c = tssa.sum %b {axes = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  func.return %e, %c : tensor<f32>, tensor<f32>
}

// Row i of the result needs what column i of the operand holds.
// CHECK-LABEL: func.func @do_not_overwrite_what_is_read_elsewhere
// CHECK:         %[[B:.*]] = memref.view %arena{{.*}} to memref<4x4xf32>
// CHECK:         tssa.group ins(%x : {{.*}}) outs(%[[B]] :
// CHECK:         tssa.group ins(%{{.*}}, %[[B]] : memref<4x4xf32, strided<[1, 4]>>, memref<4x4xf32>) outs(%out0 :
func.func @do_not_overwrite_what_is_read_elsewhere(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %b = tssa.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %t = tssa.transpose %b {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %d = tssa.add %t, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %d : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @do_not_multiply_in_place
// CHECK:         %[[B:.*]] = memref.view %arena{{.*}} to memref<4x4xf32>
// CHECK:         %[[C:.*]] = memref.view %arena{{.*}} to memref<4x4xf32>
// CHECK:         tssa.group ins(%[[B]], %x : {{.*}}) outs(%[[C]] :
func.func @do_not_multiply_in_place(%x: tensor<4x4xf32>) -> tensor<f32> {
  %b = tssa.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %d = tssa.matmul %b, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = tssa.sum %d {axes = array<i64: 0, 1>} : (tensor<4x4xf32>) -> tensor<f32>
  func.return %e : tensor<f32>
}

// An insertion into a dead value writes the part only.
// CHECK-LABEL: func.func @an_insertion_stays_in_place
// CHECK:         tssa.group ins(%x : memref<8xf32>) outs(%out0 :
// CHECK:         tssa.group ins(%out0, %y : {{.*}}) outs(%out0 :
func.func @an_insertion_stays_in_place(%x: tensor<8xf32>, %y: tensor<2xf32>) -> tensor<8xf32> {
  %a = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = tssa.insert %a, %y {offsets = #tssa.dims<[1]>, steps = array<i64: 1>}
    : (tensor<8xf32>, tensor<2xf32>) -> tensor<8xf32>
  func.return %b : tensor<8xf32>
}

// a[1:] = a[:-1] reads what it writes.
// CHECK-LABEL: func.func @do_not_insert_a_value_into_itself
// CHECK:         %[[A:.*]] = memref.view %arena{{.*}} to memref<8xf32>
// CHECK:         tssa.group ins(%[[A]], %{{.*}} : {{.*}}) outs(%out0 :
func.func @do_not_insert_a_value_into_itself(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %p = tssa.extract %a {offsets = #tssa.dims<[0]>, steps = array<i64: 1>}
    : (tensor<8xf32>) -> tensor<7xf32>
  %b = tssa.insert %a, %p {offsets = #tssa.dims<[1]>, steps = array<i64: 1>}
    : (tensor<8xf32>, tensor<7xf32>) -> tensor<8xf32>
  func.return %b : tensor<8xf32>
}

// Three temporaries that are never alive together need the room of the largest.
// CHECK-LABEL: func.func @dead_temporaries_give_their_room
// CHECK-SAME:    tssa.arena = #tssa.dims<[64 * floordiv(40 * n + 63, 64) + 64]>
func.func @dead_temporaries_give_their_room(
    %x: tensor<?x10xf32, #tssa.dims<[n, 10]>>) -> tensor<f32> {
  %a = tssa.exp %x : (tensor<?x10xf32, #tssa.dims<[n, 10]>>) -> tensor<?x10xf32, #tssa.dims<[n, 10]>>
  %b = tssa.sum %a {axes = array<i64: 0, 1>} : (tensor<?x10xf32, #tssa.dims<[n, 10]>>) -> tensor<f32>
  %c = tssa.broadcast %b : (tensor<f32>) -> tensor<?xf32, #tssa.dims<[n]>>
  %d = tssa.exp %c : (tensor<?xf32, #tssa.dims<[n]>>) -> tensor<?xf32, #tssa.dims<[n]>>
  %e = tssa.sum %d {axes = array<i64: 0>} : (tensor<?xf32, #tssa.dims<[n]>>) -> tensor<f32>
  func.return %e : tensor<f32>
}

// The value of an argument may be anything, so nothing is known to be smaller than it.
// CHECK-LABEL: func.func @do_not_share_what_may_be_larger
// CHECK-SAME:    tssa.arena = #tssa.dims<[64 * floordiv(4 * s1 + 63, 64) + 128]>
func.func @do_not_share_what_may_be_larger(
    %x: tensor<1xf32>, %k: tensor<i64> {tssa.weak}) -> tensor<f32> {
  %r = tssa.reshape %x : (tensor<1xf32>) -> tensor<f32>
  %c = tssa.broadcast %r : (tensor<f32>) -> tensor<?xf32, #tssa.dims<[s1]>>
  %d = tssa.exp %c : (tensor<?xf32, #tssa.dims<[s1]>>) -> tensor<?xf32, #tssa.dims<[s1]>>
  %e = tssa.sum %d {axes = array<i64: 0>} : (tensor<?xf32, #tssa.dims<[s1]>>) -> tensor<f32>
  %f = tssa.broadcast %e : (tensor<f32>) -> tensor<4xf32>
  %g = tssa.exp %f : (tensor<4xf32>) -> tensor<4xf32>
  %h = tssa.sum %g {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  func.return %h : tensor<f32>
}

// %b is returned, so it lives on although %d, which nobody reads, is dead at once.
// CHECK-LABEL: func.func @do_not_overwrite_a_live_operand_with_a_dead_result
// CHECK:         tssa.group ins(%x : memref<8xf32>) outs(%out0 : memref<8xf32>)
// CHECK:         tssa.group ins(%out0 : memref<8xf32>) outs(%{{[0-9]+}} : memref<8xf32>)
func.func @do_not_overwrite_a_live_operand_with_a_dead_result(%x: tensor<8xf32>) -> tensor<8xf32> {
  %b = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %d = tssa.abs %b : (tensor<8xf32>) -> tensor<8xf32>
  func.return %b : tensor<8xf32>
}
