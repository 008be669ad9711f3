// RUN: jit-opt %s -p tssa-fuse,tssa-bufferize,convert-tssa-to-loop | filecheck %s

// Rows are long: all of a lane goes first, so that threads may share out lanes.
// CHECK-LABEL: func.func @long_rows
// CHECK:         memref.store %{{.*}}, %[[A:.*]][%{{.*}}] : memref<32xf32>
// CHECK:         loop.nest (%[[L:.*]]) = ({{.*}}) step (1) kinds [parallel] {
// CHECK-NEXT:      loop.nest (%{{.*}}) = ({{.*}}) step (128) kinds [reduction] {
// CHECK:             loop.nest ({{.*}}) step (32) kinds [reduction] {
func.func @long_rows(%x: tensor<1024x1024xf32>) -> tensor<1024xf32> {
  %0 = tssa.sum %x {axes = array<i64: 0>} : (tensor<1024x1024xf32>) -> tensor<1024xf32>
  func.return %0 : tensor<1024xf32>
}

// CHECK-LABEL: func.func @do_not_jump_between_short_rows
// CHECK:         loop.nest (%{{.*}}) = ({{.*}}) step (128) kinds [reduction] {
// CHECK-NEXT:      loop.nest (%[[L:.*]]) = ({{.*}}) step (1) kinds [parallel] {
// CHECK:             loop.nest ({{.*}}) step (32) kinds [reduction] {
func.func @do_not_jump_between_short_rows(%x: tensor<1024x64xf32>) -> tensor<64xf32> {
  %0 = tssa.sum %x {axes = array<i64: 0>} : (tensor<1024x64xf32>) -> tensor<64xf32>
  func.return %0 : tensor<64xf32>
}

// In any order: eight runs of neighbours, then what is left, 12 rows of 1100.
// CHECK-LABEL: func.func @runs
// CHECK:         memref.alloca() : memref<8xi32>
// CHECK:         memref.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<8xi32>
// CHECK:         loop.nest (%[[R:.*]]) = ({{.*}}) step (1) kinds [parallel] {
// CHECK-NEXT:      %[[B:.*]] = arith.muli %[[R]], %{{.*}} : index
// CHECK:           loop.nest (%[[G:.*]]) = (%[[B]]) to ({{.*}}) step (8) kinds [reduction] {
// CHECK:             loop.nest (%[[I:.*]]) = (%[[G]]) to ({{.*}}) step (1) kinds [reduction] {
// CHECK:               memref.load %x[%[[I]],
// CHECK:         loop.nest (%{{.*}}) = ({{.*}}) step (8) kinds [reduction] {
// CHECK:         loop.nest (%{{.*}}) = ({{.*}}) step (1) kinds [reduction] {
func.func @runs(%x: tensor<1100x64xi32>) -> tensor<64xi32> {
  %0 = tssa.max %x {axes = array<i64: 0>} : (tensor<1100x64xi32>) -> tensor<64xi32>
  func.return %0 : tensor<64xi32>
}

// CHECK-LABEL: func.func @do_not_make_runs_of_few_rows
// CHECK:         memref.alloca() : memref<i32>
// CHECK:         loop.nest (%{{.*}}) = ({{.*}}) step (8) kinds [reduction] {
func.func @do_not_make_runs_of_few_rows(%x: tensor<1000x64xi32>) -> tensor<64xi32> {
  %0 = tssa.max %x {axes = array<i64: 0>} : (tensor<1000x64xi32>) -> tensor<64xi32>
  func.return %0 : tensor<64xi32>
}
