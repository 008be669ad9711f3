// RUN: not jit-opt %s -p expand-elementary 2>&1 | filecheck %s

// CHECK: expand-elementary knows math.exp of f32 and f64 only, not of f16
func.func @do_not_expand_f16(%x: f16) -> f16 {
  %y = math.exp %x : f16
  func.return %y : f16
}
