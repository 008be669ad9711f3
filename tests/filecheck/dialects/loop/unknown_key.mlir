// RUN: not jit-opt %s 2>&1 | filecheck %s

func.func @do_not_guess_keys(%a: index, %n: index) {
  loop.nest (%i) = (%a) to (%n) step (1) kinds [parallel] schedule <speed = 4> {
  }
  func.return
}
// CHECK: speed is no key of a schedule
