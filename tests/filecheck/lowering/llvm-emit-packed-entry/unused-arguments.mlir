// RUN: jit-opt %s -p 'convert-to-llvm,llvm-emit-packed-entry{function=kernel entry=jd_kernel}' | filecheck %s

// CHECK:       llvm.func @other
func.func @other(%x: f64) {
  func.return
}

// CHECK-LABEL: llvm.func @jd_kernel
// CHECK-NOT:     llvm.load
// CHECK:         llvm.return
func.func @kernel(%m: memref<?xf32>) {
  func.return
}
