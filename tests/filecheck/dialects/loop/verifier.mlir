// RUN: jit-opt %s --split-input-file --verify-diagnostics | filecheck %s

func.func @do_not_step_back(%a: index, %n: index) {
  loop.nest (%i) = (%a) to (%n) step (0) kinds [parallel] {
  }
  func.return
}
// CHECK: a step of loop.nest is not positive; loops run upwards

// -----

func.func @do_not_invent_kinds(%a: index, %n: index) {
  loop.nest (%i) = (%a) to (%n) step (1) kinds [vertical] {
  }
  func.return
}
// CHECK: vertical is no kind of axis: parallel or reduction

// -----

func.func @do_not_miscount_bounds(%a: index, %n: index) {
  loop.nest (%i) = (%a) to (%n, %n) step (1) kinds [parallel] {
  }
  func.return
}
// CHECK: loop.nest has 1 lower bounds but 2 upper bounds

// -----

func.func @do_not_miscount_axes(%a: index, %n: index) {
  loop.nest (%i) = (%a) to (%n) step (1) kinds [parallel] schedule <tile = [4, 4]> {
  }
  func.return
}
// CHECK: tile of the schedule has 2 entries for 1 axes

// -----

func.func @do_not_repeat_an_axis(%a: index, %n: index) {
  loop.nest (%i, %j) = (%a, %a) to (%n, %n) step (1, 1) kinds [parallel, parallel] schedule <order = [1, 1]> {
  }
  func.return
}
// CHECK: order [1, 1] is no permutation of the axes

// -----

func.func @do_not_forget_all_axes() {
  loop.nest () = () to () step () kinds [] {
  }
  func.return
}
// CHECK: loop.nest has no axis

// -----

func.func @do_not_lose_the_range(%a: index) {
  "loop.parallel"(%a, %a, %a) ({
    "loop.yield"() : () -> ()
  }) : (index, index, index) -> ()
  func.return
}
// CHECK: the body of loop.parallel takes the begin and the end of a range

// -----

func.func @do_not_mix_types(%a: index, %b: i64) {
  "loop.parallel"(%a, %a, %b) ({
  ^bb0(%c: index, %d: index):
    "loop.yield"() : () -> ()
  }) : (index, index, i64) -> ()
  func.return
}
// CHECK: bounds, chunk and range of loop.parallel are of one type

// -----

func.func @do_not_invent_functions(%x: f32) -> f32 {
  %y = loop.elementary "gamma" %x : f32
  func.return %y : f32
}
// CHECK: gamma is no elementary function; there are exp, rsqrt, tanh
