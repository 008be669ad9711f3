// RUN: jit-opt %s -p convert-to-llvm | filecheck %s

// CHECK-LABEL: llvm.func @past_the_cache
// CHECK:         llvm.store %{{.*}}, %{{.*}} {alignment = 32 : i64, nontemporal} : vector<8xf32>, !llvm.ptr
// CHECK-NEXT:    llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : vector<8xf32>, !llvm.ptr
// CHECK-NEXT:    llvm.fence seq_cst
func.func @past_the_cache(%y: memref<?xf32>, %i: index, %v: vector<8xf32>) {
  vector.store %v, %y[%i] {nontemporal = true} : memref<?xf32>, vector<8xf32>
  vector.store %v, %y[%i] : memref<?xf32>, vector<8xf32>
  llvm.fence seq_cst
  func.return
}
