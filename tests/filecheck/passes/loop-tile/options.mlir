// RUN: jit-opt %s -p 'loop-tile{sizes=4}' | filecheck %s
// RUN: not jit-opt %s -p 'loop-tile{sizes=-4}' 2>&1 | filecheck %s --check-prefix=NEGATIVE

// NEGATIVE: loop-tile: a size is negative; give a positive size, or 0 for an axis not to tile

// CHECK-LABEL: func.func @sizes_from_the_option
// CHECK:         loop.nest (%i) = (%{{.*}}) to (%{{.*}}) step (4) kinds [parallel] {
func.func @sizes_from_the_option(%a: index, %n: index) {
  loop.nest (%i) = (%a) to (%n) step (1) kinds [parallel] {
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_tile_nests_of_another_rank
// CHECK:         loop.nest (%i, %j) = (%a, %a) to (%n, %n) step (1, 1)
func.func @do_not_tile_nests_of_another_rank(%a: index, %n: index) {
  loop.nest (%i, %j) = (%a, %a) to (%n, %n) step (1, 1) kinds [parallel, parallel] {
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_overrule_a_schedule
// CHECK:         loop.nest (%i) = (%a) to (%n) step (1) kinds [parallel] schedule <vector = 8> {
func.func @do_not_overrule_a_schedule(%a: index, %n: index) {
  loop.nest (%i) = (%a) to (%n) step (1) kinds [parallel] schedule <vector = 8> {
  }
  func.return
}
