// RUN: not jit-opt %s --verify-each 2>&1 | filecheck %s

// CHECK: memref.prefetch needs an index for each axis
func.func @rank(%x: memref<?x8xf32>, %i: index) {
  memref.prefetch %x[%i], read, locality<3>, data : memref<?x8xf32>
  func.return
}
