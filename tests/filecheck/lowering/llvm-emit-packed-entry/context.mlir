// RUN: jit-opt %s -p convert-to-llvm,llvm-outline-parallel,llvm-emit-packed-entry | filecheck %s

// Slots: pointer, size, stride of %o; the arena; the context.
// CHECK-LABEL: llvm.func @jd_entry
// CHECK-SAME:    ([[SLOTS:%.+]]: !llvm.ptr) -> i32
// CHECK:         [[P4:%.+]] = llvm.getelementptr [[SLOTS]][4] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT:    [[C:%.+]] = llvm.load [[P4]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK:         llvm.load [[C]] {alignment = 8 : i64} : !llvm.ptr -> i64
func.func @main(%o: memref<?xf64>, %arena: memref<?xi8>) attributes {tssa.arena = #tssa.dims<[8]>} {
  %0 = arith.constant 0 : index
  %n = memref.dim %o, %0 : memref<?xf64>
  loop.parallel (%b, %e) = (%0) to (%n) chunk (%n) : index {
    loop.yield
  }
  func.return
}
