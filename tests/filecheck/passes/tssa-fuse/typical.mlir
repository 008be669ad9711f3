// RUN: jit-opt %s -p tssa-fuse | filecheck %s --check-prefixes=CHECK,ANY
// RUN: jit-opt %s -p 'tssa-fuse{typical="m=4, n=16"}' | filecheck %s --check-prefixes=CHECK,SMALL
// RUN: jit-opt %s -p 'tssa-fuse{typical="m=65536, n=256"}' | filecheck %s --check-prefixes=CHECK,LARGE
// RUN: jit-opt %s -p 'tssa-fuse{typical="k=65536, s0=256"}' | filecheck %s --check-prefixes=CHECK,ANY

// Two sweeps need the quotients. In a cache it takes less to write and read them than to divide again, in memory more.
// CHECK-LABEL:   func.func @quotients_for_two_sweeps
// ANY-COUNT-2:   tssa.group
// SMALL-COUNT-2: tssa.group
// LARGE-COUNT-1: tssa.group
// CHECK-NOT:     tssa.group
// CHECK:         func.return
!x = tensor<?x?xf32, #tssa.dims<[m, n]>>
!r = tensor<?xf32, #tssa.dims<[m]>>
func.func @quotients_for_two_sweeps(%x: !x, %y: !x) -> (!r, !r) {
  %t = tssa.divide %x, %y : (!x, !x) -> !x
  %a = tssa.min %t {axes = array<i64: 1>} : (!x) -> !r
  %b = tssa.max %t {axes = array<i64: 1>} : (!x) -> !r
  func.return %a, %b : !r, !r
}

// A sum takes less than memory, and more than the first level of the cache.
// CHECK-LABEL: func.func @sums_around_a_product
// ANY-COUNT-2:   tssa.add
// SMALL-COUNT-1: tssa.add
// LARGE-COUNT-2: tssa.add
// CHECK-NOT:     tssa.add
// CHECK:         func.return
!w = tensor<?x?xf32, #tssa.dims<[n, n]>>
func.func @sums_around_a_product(%x: !x, %b: tensor<1x1xf32>, %w: !w) -> !x {
  %d = tssa.broadcast %b : (tensor<1x1xf32>) -> !x
  %y = tssa.add %x, %d : (!x, !x) -> !x
  %m = tssa.abs %y : (!x) -> !x
  %p = tssa.matmul %m, %w : (!x, !w) -> !x
  %z = tssa.multiply %p, %y : (!x, !x) -> !x
  func.return %z : !x
}

// What is known is not guessed.
// CHECK-LABEL: func.func @do_not_take_known_sizes_for_others
// CHECK-COUNT-2: tssa.group
// CHECK-NOT:     tssa.group
// CHECK:         func.return
func.func @do_not_take_known_sizes_for_others(
    %x: tensor<4x16xf32>, %y: tensor<4x16xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %t = tssa.divide %x, %y : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %a = tssa.min %t {axes = array<i64: 1>} : (tensor<4x16xf32>) -> tensor<4xf32>
  %b = tssa.max %t {axes = array<i64: 1>} : (tensor<4x16xf32>) -> tensor<4xf32>
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}
