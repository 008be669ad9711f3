// RUN: not jit-opt %s -p convert-to-llvm,llvm-emit-packed-entry 2>&1 | filecheck %s

// CHECK: main returns a value; results must be memref arguments
func.func @main(%x: f64) -> f64 {
  func.return %x : f64
}
