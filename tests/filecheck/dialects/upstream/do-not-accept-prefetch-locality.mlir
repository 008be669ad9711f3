// RUN: not jit-opt %s --verify-each 2>&1 | filecheck %s

// CHECK: memref.prefetch: locality is a number from 0 to 3
func.func @locality(%x: memref<?xf32>, %i: index) {
  memref.prefetch %x[%i], read, locality<4>, data : memref<?xf32>
  func.return
}
