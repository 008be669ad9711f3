// RUN: not jit-opt %s -p 'loop-divide-by-invariant{features="avx9"}' 2>&1 | filecheck %s

// CHECK: loop-divide-by-invariant: unknown features 'avx9'; known are x86-64-v1, x86-64-v2
func.func @do_not_guess() {
  func.return
}
