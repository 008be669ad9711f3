// RUN: not jit-opt %s -p convert-to-llvm,llvm-emit-packed-entry 2>&1 | filecheck %s

// CHECK: an argument of type f32 has no slot
func.func @main(%x: f32) {
  func.return
}
