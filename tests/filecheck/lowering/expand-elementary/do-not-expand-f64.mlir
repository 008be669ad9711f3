// RUN: not jit-opt %s -p expand-elementary 2>&1 | filecheck %s

// CHECK: expand-elementary knows math.exp of f32 only, not of f64
func.func @do_not_expand_f64(%x: f64) -> f64 {
  %y = math.exp %x : f64
  func.return %y : f64
}
