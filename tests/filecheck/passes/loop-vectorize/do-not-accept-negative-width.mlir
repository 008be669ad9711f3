// RUN: not jit-opt %s -p 'loop-vectorize{width=-8}' 2>&1 | filecheck %s

// CHECK: in pass 'loop-vectorize': loop-vectorize: width -8 is negative; give a number of
func.func @do_not_accept_a_negative_width() {
  func.return
}
