// RUN: jit-opt %s -p convert-to-llvm | filecheck %s

// Of two memrefs, the parts of the descriptor that differ are selected.
// CHECK-LABEL: llvm.func @one_of_two
// CHECK-SAME:    {{%.+}}: i64, [[S:%.+]]: i64, [[I:%.+]]: i64) -> f32
// CHECK-DAG:     [[BASE:%.+]] = llvm.select %b, {{%.+}}, {{%.+}} : i1, !llvm.ptr
// CHECK-DAG:     [[STRIDE:%.+]] = llvm.select %b, [[S]], {{%.+}} : i1, i64
// CHECK-NOT:     llvm.select
// CHECK:         llvm.mul [[I]], [[STRIDE]]
// CHECK-NEXT:    llvm.getelementptr [[BASE]]
// CHECK-NOT:     llvm.insertvalue
func.func @one_of_two(%b: i1, %x: memref<?xf32>, %y: memref<?xf32>, %s: index, %i: index) -> f32 {
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %p = memref.reinterpret_cast %x to offset: [%zero], sizes: [4, 8], strides: [%s, 1] : memref<?xf32> to memref<4x8xf32, strided<[?, 1], offset: ?>>
  %q = memref.reinterpret_cast %y to offset: [%zero], sizes: [4, 8], strides: [%one, 1] : memref<?xf32> to memref<4x8xf32, strided<[?, 1], offset: ?>>
  %m = arith.select %b, %p, %q : memref<4x8xf32, strided<[?, 1], offset: ?>>
  %v = memref.load %m[%i, %i] : memref<4x8xf32, strided<[?, 1], offset: ?>>
  func.return %v : f32
}
