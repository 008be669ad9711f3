// RUN: jit-opt %s -p tssa-fuse | filecheck %s

// What is summed down columns, and what follows, joins the sum: nothing of two axes is written.
// CHECK-LABEL: func.func @distance_of_columns
// CHECK-NEXT:    tssa.group ins(%x, %y :
// CHECK:           tssa.subtract
// CHECK-NEXT:      tssa.multiply
// CHECK-NEXT:      tssa.sum
// CHECK-NEXT:      tssa.sqrt
// CHECK-NEXT:      tssa.yield
// CHECK-NOT:     tssa.group
// CHECK:         func.return
!t = tensor<64x256xf32>
!k = tensor<256xf32>
func.func @distance_of_columns(%x: !t, %y: !t) -> !k {
  %0 = tssa.subtract %x, %y : (!t, !t) -> !t
  %1 = tssa.multiply %0, %0 : (!t, !t) -> !t
  %2 = tssa.sum %1 {axes = array<i64: 0>} : (!t) -> !k
  %3 = tssa.sqrt %2 : (!k) -> !k
  func.return %3 : !k
}

// Numbers per column, computed there, and numbers per row.
// CHECK-LABEL: func.func @numbers_per_column_and_per_row
// CHECK-NEXT:    tssa.group ins(%a, %x, %w :
// CHECK:           tssa.divide
// CHECK:           tssa.subtract
// CHECK:           tssa.multiply
// CHECK-NEXT:      tssa.max
// CHECK-NEXT:      tssa.yield
// CHECK-NOT:     tssa.group
// CHECK:         func.return
func.func @numbers_per_column_and_per_row(%x: !t, %a: !k, %w: tensor<64x1xf32>) -> !k {
  %0 = tssa.divide %a, %a : (!k, !k) -> !k
  %1 = tssa.broadcast %0 : (!k) -> !t
  %2 = tssa.subtract %x, %1 : (!t, !t) -> !t
  %3 = tssa.broadcast %w : (tensor<64x1xf32>) -> !t
  %4 = tssa.multiply %2, %3 : (!t, !t) -> !t
  %5 = tssa.max %4 {axes = array<i64: 0>} : (!t) -> !k
  func.return %5 : !k
}

// A sum and a maximum read %x once.
// CHECK-LABEL: func.func @reductions_side_by_side
// CHECK-NEXT:    tssa.group ins(%x :
// CHECK:           tssa.abs
// CHECK-NEXT:      tssa.sum
// CHECK-NEXT:      tssa.max
// CHECK-NEXT:      tssa.yield
// CHECK-NOT:     tssa.group
// CHECK:         func.return
func.func @reductions_side_by_side(%x: !t) -> (!k, !k) {
  %0 = tssa.abs %x : (!t) -> !t
  %1 = tssa.sum %0 {axes = array<i64: 0>} : (!t) -> !k
  %2 = tssa.max %x {axes = array<i64: 0>} : (!t) -> !k
  func.return %1, %2 : !k, !k
}

// The axis in the middle, and several axes in front.
// CHECK-LABEL: func.func @axes_elsewhere
// CHECK:         tssa.multiply
// CHECK-NEXT:    tssa.sum
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.abs
// CHECK-NEXT:    tssa.max
// CHECK-NEXT:    tssa.yield
// CHECK-NOT:     tssa.group
// CHECK:         func.return
!u = tensor<8x16x64xf32>
func.func @axes_elsewhere(%x: !u, %y: !u, %z: !u) -> (tensor<8x64xf32>, tensor<64xf32>) {
  %0 = tssa.multiply %x, %y : (!u, !u) -> !u
  %1 = tssa.sum %0 {axes = array<i64: 1>} : (!u) -> tensor<8x64xf32>
  %2 = tssa.abs %z : (!u) -> !u
  %3 = tssa.max %2 {axes = array<i64: 0, 1>} : (!u) -> tensor<64xf32>
  func.return %1, %3 : tensor<8x64xf32>, tensor<64xf32>
}

// Mean, variance, quotient: a group for each time that %x is gone over, and nothing of its shape between them.
// CHECK-LABEL: func.func @do_not_go_over_columns_again
// CHECK:         tssa.group ins(%x :
// CHECK:           tssa.sum
// CHECK-NEXT:      tssa.yield %{{.*}} : tensor<256xf32>
// CHECK:         tssa.group
// CHECK:           tssa.subtract
// CHECK-NEXT:      tssa.multiply
// CHECK-NEXT:      tssa.sum
// CHECK-NEXT:      tssa.sqrt
// CHECK-NEXT:      tssa.yield %{{.*}} : tensor<256xf32>
// CHECK:         tssa.group
// CHECK:           tssa.subtract
// CHECK:           tssa.divide
// CHECK:         func.return
func.func @do_not_go_over_columns_again(%x: !t) -> !t {
  %0 = tssa.sum %x {axes = array<i64: 0>} : (!t) -> !k
  %1 = tssa.broadcast %0 : (!k) -> !t
  %2 = tssa.subtract %x, %1 : (!t, !t) -> !t
  %3 = tssa.multiply %2, %2 : (!t, !t) -> !t
  %4 = tssa.sum %3 {axes = array<i64: 0>} : (!t) -> !k
  %5 = tssa.sqrt %4 : (!k) -> !k
  %6 = tssa.broadcast %5 : (!k) -> !t
  %7 = tssa.divide %2, %6 : (!t, !t) -> !t
  func.return %7 : !t
}

// What is summed is wanted as well: to write four rows at a time that lie far from each other takes longer than to
// write it in order and to read it again.
// CHECK-LABEL: func.func @do_not_write_columns
// CHECK:         tssa.abs
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.sum
// CHECK-NEXT:    tssa.yield
func.func @do_not_write_columns(%x: !t) -> (!t, !k) {
  %0 = tssa.abs %x : (!t) -> !t
  %1 = tssa.sum %0 {axes = array<i64: 0>} : (!t) -> !k
  func.return %0, %1 : !t, !k
}

// A maximum and a minimum have no room in one sweep, and two would read %x twice in any case.
// CHECK-LABEL: func.func @do_not_sweep_columns_twice
// CHECK-COUNT-2: tssa.group
func.func @do_not_sweep_columns_twice(%x: !t) -> (!k, !k) {
  %0 = tssa.max %x {axes = array<i64: 0>} : (!t) -> !k
  %1 = tssa.min %x {axes = array<i64: 0>} : (!t) -> !k
  func.return %0, %1 : !k, !k
}

// The transpose of %y is not next to itself along the columns: the sum would not be in vectors any more.
// CHECK-LABEL: func.func @do_not_read_down_columns
// CHECK-COUNT-2: tssa.group
func.func @do_not_read_down_columns(%x: !t, %y: tensor<256x64xf32>) -> !k {
  %0 = tssa.transpose %y {permutation = array<i64: 1, 0>} : (tensor<256x64xf32>) -> !t
  %1 = tssa.multiply %x, %0 : (!t, !t) -> !t
  %2 = tssa.sum %1 {axes = array<i64: 0>} : (!t) -> !k
  func.return %2 : !k
}

// Nor are every second element, and what the caller lays out.
// CHECK-LABEL: func.func @do_not_read_every_second_column
// CHECK-COUNT-2: tssa.group
func.func @do_not_read_every_second_column(%x: !t, %y: tensor<64x512xf32>) -> !k {
  %0 = tssa.extract %y {offsets = #tssa.dims<[0, 0]>, steps = array<i64: 1, 2>} : (tensor<64x512xf32>) -> !t
  %1 = tssa.multiply %x, %0 : (!t, !t) -> !t
  %2 = tssa.sum %1 {axes = array<i64: 0>} : (!t) -> !k
  func.return %2 : !k
}

// CHECK-LABEL: func.func @do_not_read_columns_of_unknown_strides
// CHECK-COUNT-2: tssa.group
func.func @do_not_read_columns_of_unknown_strides(%x: !t, %y: !t {tssa.strided}) -> !k {
  %0 = tssa.multiply %x, %y : (!t, !t) -> !t
  %1 = tssa.sum %0 {axes = array<i64: 0>} : (!t) -> !k
  func.return %1 : !k
}

// Where the sum reads them by itself there is nothing to lose; every second row is no matter.
// CHECK-LABEL: func.func @strides_that_do_no_harm
// CHECK-COUNT-2: tssa.group
// CHECK-NOT:     tssa.group
// CHECK:         func.return
func.func @strides_that_do_no_harm(%x: !t {tssa.strided}, %y: tensor<128x256xf32>) -> (!k, !k) {
  %0 = tssa.sum %x {axes = array<i64: 0>} : (!t) -> !k
  %1 = tssa.sqrt %0 : (!k) -> !k
  %2 = tssa.extract %y {offsets = #tssa.dims<[0, 0]>, steps = array<i64: 2, 1>} : (tensor<128x256xf32>) -> !t
  %3 = tssa.multiply %2, %2 : (!t, !t) -> !t
  %4 = tssa.max %3 {axes = array<i64: 0>} : (!t) -> !k
  func.return %1, %4 : !k, !k
}

// Before tssa-simplify has brought them together.
// CHECK-LABEL: func.func @do_not_fuse_axes_apart
// CHECK-COUNT-2: tssa.group
func.func @do_not_fuse_axes_apart(%x: !u) -> tensor<16xf32> {
  %0 = tssa.abs %x : (!u) -> !u
  %1 = tssa.max %0 {axes = array<i64: 0, 2>} : (!u) -> tensor<16xf32>
  func.return %1 : tensor<16xf32>
}

// Three columns are a part of a vector, and exp takes as long for that as for all of it.
// CHECK-LABEL: func.func @do_not_compute_functions_in_part_of_a_vector
// CHECK:         tssa.exp
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.sum
// CHECK-NEXT:    tssa.yield
!n = tensor<1000x3xf32>
func.func @do_not_compute_functions_in_part_of_a_vector(%x: !n) -> tensor<3xf32> {
  %0 = tssa.exp %x : (!n) -> !n
  %1 = tssa.sum %0 {axes = array<i64: 0>} : (!n) -> tensor<3xf32>
  func.return %1 : tensor<3xf32>
}

// Both axes in front are summed as one, and %y is repeated along one of them.
// CHECK-LABEL: func.func @do_not_fuse_what_is_repeated_along_some_of_the_summed_axes
// CHECK:         tssa.broadcast
// CHECK-NEXT:    tssa.multiply
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.sum
func.func @do_not_fuse_what_is_repeated_along_some_of_the_summed_axes(
    %x: !u, %y: tensor<16x64xf32>) -> tensor<64xf32> {
  %0 = tssa.broadcast %y : (tensor<16x64xf32>) -> !u
  %1 = tssa.multiply %x, %0 : (!u, !u) -> !u
  %2 = tssa.sum %1 {axes = array<i64: 0, 1>} : (!u) -> tensor<64xf32>
  func.return %2 : tensor<64xf32>
}

// The sum over axis 0 is not read where it is written: [j, k] by [i, j, k] with the axis in the middle summed.
// CHECK-LABEL: func.func @do_not_fuse_a_sum_that_is_read_elsewhere
// CHECK:         tssa.multiply
// CHECK-NEXT:    tssa.sum
// CHECK-NEXT:    tssa.yield
// CHECK:         tssa.broadcast
// CHECK-NEXT:    tssa.add
!v = tensor<8x8x64xf32>
func.func @do_not_fuse_a_sum_that_is_read_elsewhere(%x: !v) -> !v {
  %0 = tssa.multiply %x, %x : (!v, !v) -> !v
  %1 = tssa.sum %0 {axes = array<i64: 1>} : (!v) -> tensor<8x64xf32>
  %2 = tssa.broadcast %1 : (tensor<8x64xf32>) -> !v
  %3 = tssa.add %x, %2 : (!v, !v) -> !v
  func.return %3 : !v
}
