// RUN: jit-opt %s -p convert-to-llvm | filecheck %s

// CHECK-LABEL: llvm.func @views_an_arena_at_a_byte_offset
// CHECK:         [[P:%.+]] = llvm.getelementptr %1[{{%.+}}] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK:         [[Q:%.+]] = llvm.getelementptr [[P]][{{%.+}}] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK:         llvm.load [[Q]] {alignment = 4 : i64} : !llvm.ptr -> f32
func.func @views_an_arena_at_a_byte_offset(%arena: memref<?xi8>, %at: index, %n: index) -> f32 {
  %v = memref.view %arena[%at][%n] : memref<?xi8> to memref<?xf32>
  %x = memref.load %v[%n] : memref<?xf32>
  func.return %x : f32
}

// A window of a matrix: its offset is a number, its strides are those of the matrix.
// CHECK-LABEL: llvm.func @a_subview_is_arithmetic_only
// CHECK-NOT:     llvm.insertvalue
// CHECK:         [[C:%.+]] = llvm.getelementptr {{%.+}}[19] : (!llvm.ptr) -> !llvm.ptr, f32
// CHECK:         llvm.load [[C]]
func.func @a_subview_is_arithmetic_only(%m: memref<8x8xf32>, %i: index) -> f32 {
  %s = memref.subview %m[2, 3][4, 4][1, 1] : memref<8x8xf32> to memref<4x4xf32, strided<[8, 1], offset: 19>>
  %x = memref.load %s[%i, %i] : memref<4x4xf32, strided<[8, 1], offset: 19>>
  func.return %x : f32
}

// CHECK-LABEL: llvm.func @drops_unit_axes
// CHECK:         llvm.getelementptr {{%.+}}[16] : (!llvm.ptr) -> !llvm.ptr, f32
func.func @drops_unit_axes(%m: memref<8x8xf32>, %i: index) -> f32 {
  %s = memref.subview %m[2, 0][1, 8][1, 1] : memref<8x8xf32> to memref<8xf32, strided<[1], offset: 16>>
  %x = memref.load %s[%i] : memref<8xf32, strided<[1], offset: 16>>
  func.return %x : f32
}

// CHECK-LABEL: llvm.func @reshapes_without_moving
// CHECK:         [[C:%.+]] = llvm.mlir.constant(12) : i64
// CHECK:         llvm.return [[C]] : i64
func.func @reshapes_without_moving(%m: memref<3x4xf32>) -> index {
  %c = memref.collapse_shape %m [[0, 1]] : memref<3x4xf32> into memref<12xf32>
  %0 = arith.constant 0 : index
  %n = memref.dim %c, %0 : memref<12xf32>
  func.return %n : index
}

// CHECK-LABEL: llvm.func @reinterprets_with_given_strides
// CHECK-SAME:    [[I:%[^:]+]]: i64, [[STRIDE:%[^:]+]]: i64) -> f32
// CHECK:         llvm.mul [[I]], [[STRIDE]] : i64
func.func @reinterprets_with_given_strides(%m: memref<?xf32>, %i: index, %stride: index) -> f32 {
  %r = memref.reinterpret_cast %m to offset: [0], sizes: [4, 4], strides: [%stride, 1]
      : memref<?xf32> to memref<4x4xf32, strided<[?, 1]>>
  %x = memref.load %r[%i, %i] : memref<4x4xf32, strided<[?, 1]>>
  func.return %x : f32
}

// Offset, sizes and strides of an argument are arguments of their own.
// CHECK-LABEL: llvm.func @reads_the_strides_of_an_argument
// CHECK-SAME:    (%{{.*}}, %[[S:[0-9]+]]: i64) -> i64
// CHECK:         llvm.return %[[S]] : i64
func.func @reads_the_strides_of_an_argument(%m: memref<?xf32, strided<[?], offset: ?>>) -> index {
  %base, %offset, %size, %stride = memref.extract_strided_metadata %m
    : memref<?xf32, strided<[?], offset: ?>> -> memref<f32>, index, index, index
  func.return %stride : index
}
