// RUN: not jit-opt %s -p 'loop-unroll{factor=-4}' 2>&1 | filecheck %s

// CHECK: in pass 'loop-unroll': loop-unroll: factor -4 is negative; give a number of
func.func @do_not_accept_a_negative_factor() {
  func.return
}
