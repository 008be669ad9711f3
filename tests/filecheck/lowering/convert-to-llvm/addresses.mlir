// RUN: jit-opt %s -p lower-scf-to-cf,convert-to-llvm | filecheck %s

// What depends on the row stands outside the loop over columns, an address is computed once, a constant
// distance comes last, and no cast or descriptor is left.
// CHECK-LABEL: llvm.func @shares_addresses
// CHECK-NOT:     unrealized_conversion_cast
// CHECK-NOT:     llvm.insertvalue
// CHECK-DAG:     [[OFFSET:%.+]] = llvm.mul {{%.+}}, {{%.+}} : i64
// CHECK-DAG:     [[ROW:%.+]] = llvm.getelementptr {{%.+}}[[[OFFSET]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-DAG:     [[NEXT:%.+]] = llvm.getelementptr {{%.+}}[[[OFFSET]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK:       ^{{.+}}([[J:%.+]]: i64):
// CHECK-NEXT:    [[A:%.+]] = llvm.getelementptr [[ROW]][[[J]]]
// CHECK-NEXT:    [[B:%.+]] = llvm.getelementptr [[NEXT]][[[J]]]
// CHECK-NEXT:    [[C:%.+]] = llvm.getelementptr [[A]][4] : (!llvm.ptr) -> !llvm.ptr, f32
// CHECK-NEXT:    llvm.load [[A]]
// CHECK-NEXT:    llvm.load [[B]]
// CHECK-NEXT:    llvm.load [[C]]
// CHECK-NOT:     llvm.getelementptr
// CHECK:         llvm.store {{%.+}}, [[A]]
func.func @shares_addresses(%m: memref<?x?xf32>, %i: index) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %4 = arith.constant 4 : index
  %n = memref.dim %m, %1 : memref<?x?xf32>
  scf.for %j = %0 to %n step %1 {
    %next = arith.addi %i, %1 : index
    %x = memref.load %m[%i, %j] : memref<?x?xf32>
    %y = memref.load %m[%next, %j] : memref<?x?xf32>
    %later = arith.addi %j, %4 : index
    %z = memref.load %m[%i, %later] : memref<?x?xf32>
    %s = arith.addf %x, %y : f32
    %t = arith.addf %s, %z : f32
    memref.store %t, %m[%i, %j] : memref<?x?xf32>
  }
  func.return
}
