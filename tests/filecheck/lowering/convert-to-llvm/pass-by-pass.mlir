// RUN: jit-opt %s -p convert-vector-to-llvm,convert-memref-to-llvm,convert-arith-to-llvm,convert-cf-to-llvm,convert-func-to-llvm,reconcile-unrealized-casts | filecheck %s
// RUN: jit-opt %s -p convert-func-to-llvm,convert-cf-to-llvm,convert-arith-to-llvm,convert-memref-to-llvm,convert-vector-to-llvm,reconcile-unrealized-casts | filecheck %s
// RUN: jit-opt %s -p convert-to-llvm | filecheck %s

// One by one, in any order, the passes leave no cast either.
// CHECK-LABEL: llvm.func @adds
// CHECK-NOT:     unrealized_conversion_cast
// CHECK:         llvm.load {{%.+}} {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>
// CHECK-NOT:     unrealized_conversion_cast
// CHECK:         llvm.store {{%.+}}, {{%.+}} {alignment = 4 : i64} : f32, !llvm.ptr
// CHECK-NOT:     unrealized_conversion_cast
// CHECK:         llvm.return
func.func @adds(%a: memref<?xf32>, %arena: memref<?xi8>, %n: index) {
  %0 = arith.constant 0 : index
  cf.br ^next(%0 : index)
^next(%i: index):
  %v = vector.load %a[%i] : memref<?xf32>, vector<8xf32>
  %w = arith.addf %v, %v : vector<8xf32>
  %view = memref.view %arena[%n][] : memref<?xi8> to memref<8xf32>
  vector.store %w, %view[%0] : memref<8xf32>, vector<8xf32>
  %x = memref.load %a[%i] : memref<?xf32>
  memref.store %x, %view[%0] : memref<8xf32>
  %j = arith.addi %i, %n : index
  %size = memref.dim %a, %0 : memref<?xf32>
  %c = arith.cmpi slt, %j, %size : index
  cf.cond_br %c, ^next(%j : index), ^end
^end:
  func.return
}
