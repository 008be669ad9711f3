// RUN: jit-opt %s --verify-each | jit-opt --verify-each | filecheck %s
// RUN: jit-opt %s --print-op-generic | jit-opt --verify-each | filecheck %s

// CHECK-LABEL: func.func @prefetches
// CHECK-NEXT:    memref.prefetch %x[%i, %i], read, locality<3>, data : memref<?x8xf32>
// CHECK-NEXT:    memref.prefetch %y[], write, locality<0>, instr : memref<f32>
func.func @prefetches(%x: memref<?x8xf32>, %y: memref<f32>, %i: index) {
  memref.prefetch %x[%i, %i], read, locality<3>, data : memref<?x8xf32>
  memref.prefetch %y[], write, locality<0>, instr : memref<f32>
  func.return
}
