// RUN: jit-opt %s -p cse,dce --print-ir-after-all 2>&1 | filecheck %s

// CHECK: // ----- IR after cse ----- //
// CHECK-NEXT: builtin.module {
// CHECK: // ----- IR after dce ----- //
func.func @f() {
  func.return
}
