// RUN: jit-opt %s -p convert-memref-to-llvm | filecheck %s

// CHECK-LABEL: func.func @loads_and_stores_at_strides
// CHECK:         [[S:%.+]] = builtin.unrealized_conversion_cast %m : memref<?x8xf32> to !llvm.struct<(!llvm.ptr, !llvm.ptr, i64, !llvm.array<2 x i64>, !llvm.array<2 x i64>)>
// CHECK:         [[P:%.+]] = llvm.extractvalue [[S]][1]
// CHECK:         [[R:%.+]] = llvm.mul {{%.+}}, {{%.+}} : i64
// CHECK:         [[Q:%.+]] = llvm.getelementptr [[P]][[[R]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK:         [[E:%.+]] = llvm.getelementptr [[Q]][{{%.+}}] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK:         [[X:%.+]] = llvm.load [[E]] {alignment = 4 : i64} : !llvm.ptr -> f32
// CHECK-NEXT:    llvm.store [[X]], [[E]] {alignment = 4 : i64} : f32, !llvm.ptr
func.func @loads_and_stores_at_strides(%m: memref<?x8xf32>, %i: index, %j: index) {
  %x = memref.load %m[%i, %j] : memref<?x8xf32>
  memref.store %x, %m[%i, %j] : memref<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @asks_the_type_before_the_descriptor
// CHECK-DAG:     [[C:%.+]] = llvm.mlir.constant(8) : i64
// CHECK-DAG:     [[N:%.+]] = llvm.extractvalue {{%.+}}[3, 0]
// CHECK-DAG:     builtin.unrealized_conversion_cast [[N]] : i64 to index
// CHECK-DAG:     builtin.unrealized_conversion_cast [[C]] : i64 to index
// CHECK-NOT:     llvm.extractvalue
// CHECK:         func.return
func.func @asks_the_type_before_the_descriptor(%m: memref<?x8xf32>) -> (index, index) {
  %c0 = llvm.mlir.constant(0) : i64
  %0 = builtin.unrealized_conversion_cast %c0 : i64 to index
  %c1 = llvm.mlir.constant(1) : i64
  %1 = builtin.unrealized_conversion_cast %c1 : i64 to index
  %n = memref.dim %m, %0 : memref<?x8xf32>
  %k = memref.dim %m, %1 : memref<?x8xf32>
  func.return %n, %k : index, index
}

// CHECK-LABEL: func.func @static_allocas_move_out_of_loops
// CHECK:         llvm.alloca {{%.+}} x f32 {alignment = 64 : i64} : (i64) -> !llvm.ptr
// CHECK:         scf.for
// CHECK-NOT:     llvm.alloca
// CHECK:         llvm.store
func.func @static_allocas_move_out_of_loops(%n: index, %one: index, %x: f32) {
  scf.for %i = %one to %n step %one {
    %lanes = memref.alloca() : memref<32xf32>
    memref.store %x, %lanes[%one] : memref<32xf32>
  }
  func.return
}
