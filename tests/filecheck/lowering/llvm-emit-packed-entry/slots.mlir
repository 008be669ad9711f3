// RUN: jit-opt %s -p convert-to-llvm,llvm-emit-packed-entry | filecheck %s

// Slots: pointer, 2 sizes, 2 strides of %m; %x; %b; pointer, size, stride of %o; the arena.
// CHECK-LABEL: llvm.func @jd_entry
// CHECK-SAME:    ([[SLOTS:%.+]]: !llvm.ptr) -> i32
// CHECK-DAG:     [[P0:%.+]] = llvm.getelementptr [[SLOTS]][0] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-DAG:     llvm.load [[P0]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK-DAG:     [[P3:%.+]] = llvm.getelementptr [[SLOTS]][3] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-DAG:     llvm.load [[P3]] {alignment = 8 : i64} : !llvm.ptr -> i64
// CHECK-DAG:     [[P5:%.+]] = llvm.getelementptr [[SLOTS]][5] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-DAG:     llvm.load [[P5]] {alignment = 8 : i64} : !llvm.ptr -> f64
// CHECK-DAG:     [[P6:%.+]] = llvm.getelementptr [[SLOTS]][6] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-DAG:     [[B:%.+]] = llvm.load [[P6]] {alignment = 8 : i64} : !llvm.ptr -> i64
// CHECK-DAG:     llvm.trunc [[B]] : i64 to i1
// CHECK-DAG:     [[P7:%.+]] = llvm.getelementptr [[SLOTS]][7] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-DAG:     llvm.load [[P7]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK-DAG:     [[P10:%.+]] = llvm.getelementptr [[SLOTS]][10] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-DAG:     llvm.load [[P10]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK:         [[ZERO:%.+]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:    llvm.return [[ZERO]] : i32
func.func @main(%m: memref<?x?xf64>, %x: f64, %b: i1, %o: memref<?xf64>, %arena: memref<?xi8>)
    attributes {tssa.arena = #tssa.dims<[8]>} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %tmp = memref.view %arena[%0][] : memref<?xi8> to memref<1xf64>
  %y = memref.load %m[%1, %0] : memref<?x?xf64>
  %z = arith.select %b, %x, %y : f64
  memref.store %z, %tmp[%0] : memref<1xf64>
  memref.store %z, %o[%0] : memref<?xf64>
  func.return
}
