// RUN: not jit-opt %s -p convert-to-llvm,llvm-emit-packed-entry 2>&1 | filecheck %s

// CHECK: needs one function with jd.abi, found 2
func.func @one() {
  func.return
}
func.func @two() {
  func.return
}
