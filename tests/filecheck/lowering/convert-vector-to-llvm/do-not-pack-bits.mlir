// RUN: not jit-opt %s -p convert-vector-to-llvm 2>&1 | filecheck %s

// CHECK: vector.store of i1 would be packed bits; keep bool as i8 in memory
func.func @do_not_pack_bools_into_bits(%a: memref<?xi1>, %i: index, %v: vector<8xi1>) {
  vector.store %v, %a[%i] : memref<?xi1>, vector<8xi1>
  func.return
}
