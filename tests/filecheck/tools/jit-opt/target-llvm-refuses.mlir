// RUN: not jit-opt %s -t llvm 2>&1 | filecheck %s

// CHECK: target-llvm-refuses.mlir: error: in target 'llvm': llvm-text: func.func at the top of the module is no llvm.func; lower it first
func.func @f() {
  func.return
}
