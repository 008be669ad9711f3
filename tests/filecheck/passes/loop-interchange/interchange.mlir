// RUN: jit-opt %s -p loop-interchange | filecheck %s
// RUN: jit-opt %s -p 'loop-interchange{order=1,0}' | filecheck %s --check-prefix=OPTION
// RUN: not jit-opt %s -p 'loop-interchange{order=1,1}' 2>&1 | filecheck %s --check-prefix=WRONG

// WRONG: loop-interchange: order [1, 1] is no permutation; name each axis once, from 0

// CHECK-LABEL: func.func @two_parallel_axes
// CHECK:         loop.nest (%j, %i) = (%b, %a) to (%n, %m) step (16, 1) kinds [parallel, parallel] schedule <jam = [1, 6]> attributes {mine} {
// CHECK-NEXT:      memref.store %x, %out[%i, %j] : memref<?x?xf32>
func.func @two_parallel_axes(%out: memref<?x?xf32>, %x: f32, %a: index, %b: index, %m: index, %n: index) {
  loop.nest (%i, %j) = (%a, %b) to (%m, %n) step (1, 16) kinds [parallel, parallel] schedule <order = [1, 0], jam = [6, 1]> attributes {mine} {
    memref.store %x, %out[%i, %j] : memref<?x?xf32>
  }
  func.return
}

// One reduction may move: each point of the parallel axis still sees it in order.
// CHECK-LABEL: func.func @a_reduction_moves_out
// CHECK:         loop.nest (%k, %i) = (%a, %a) to (%n, %n) step (1, 1) kinds [reduction, parallel] {
func.func @a_reduction_moves_out(%a: index, %n: index) {
  loop.nest (%i, %k) = (%a, %a) to (%n, %n) step (1, 1) kinds [parallel, reduction] schedule <order = [1, 0]> {
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_swap_reductions
// CHECK:         loop.nest (%k, %l) = {{.*}} kinds [reduction, reduction] schedule <order = [1, 0]> attributes {loop.remark = "loop-interchange: two reduction axes would change places"} {
func.func @do_not_swap_reductions(%a: index, %n: index) {
  loop.nest (%k, %l) = (%a, %a) to (%n, %n) step (1, 1) kinds [reduction, reduction] schedule <order = [1, 0]> {
  }
  func.return
}

// CHECK-LABEL: func.func @only_by_option
// CHECK:         loop.nest (%i, %j) = (%a, %a)
// OPTION-LABEL: func.func @only_by_option
// OPTION:         loop.nest (%j, %i) = (%a, %a)
func.func @only_by_option(%a: index, %n: index) {
  loop.nest (%i, %j) = (%a, %a) to (%n, %n) step (1, 1) kinds [parallel, parallel] {
  }
  func.return
}
