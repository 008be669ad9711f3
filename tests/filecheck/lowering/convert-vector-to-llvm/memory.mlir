// RUN: jit-opt %s -p convert-vector-to-llvm | filecheck %s

// CHECK-LABEL: func.func @aligns_accesses_to_one_element
// CHECK:         [[P:%.+]] = llvm.getelementptr {{%.+}}[{{%.+}}] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK:         [[V:%.+]] = llvm.load [[P]] {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>
// CHECK-NEXT:    llvm.store [[V]], {{%.+}} {alignment = 4 : i64} : vector<8xf32>, !llvm.ptr
func.func @aligns_accesses_to_one_element(%a: memref<?xf32>, %b: memref<?xf32>, %i: index) {
  %v = vector.load %a[%i] : memref<?xf32>, vector<8xf32>
  vector.store %v, %b[%i] : memref<?xf32>, vector<8xf32>
  func.return
}

// CHECK-LABEL: func.func @masks_accesses
// CHECK:         [[V:%.+]] = llvm.intr.masked.load {{%.+}}, %m, %z {alignment = 8 : i32} : (!llvm.ptr, vector<4xi1>, vector<4xi64>) -> vector<4xi64>
// CHECK-NEXT:    llvm.intr.masked.store [[V]], {{%.+}}, %m {alignment = 8 : i32} : vector<4xi64>, vector<4xi1> into !llvm.ptr
func.func @masks_accesses(%a: memref<?xi64>, %i: index, %m: vector<4xi1>, %z: vector<4xi64>) {
  %v = vector.maskedload %a[%i], %m, %z : memref<?xi64>, vector<4xi1>, vector<4xi64> into vector<4xi64>
  vector.maskedstore %a[%i], %m, %v : memref<?xi64>, vector<4xi1>, vector<4xi64>
  func.return
}

// CHECK-LABEL: func.func @computes_an_address_once
// CHECK:         llvm.getelementptr
// CHECK:         llvm.load
// CHECK-NOT:     llvm.getelementptr
// CHECK:         llvm.store
func.func @computes_an_address_once(%a: memref<?xf32>, %i: index) {
  %v = vector.load %a[%i] : memref<?xf32>, vector<8xf32>
  vector.store %v, %a[%i] : memref<?xf32>, vector<8xf32>
  func.return
}
