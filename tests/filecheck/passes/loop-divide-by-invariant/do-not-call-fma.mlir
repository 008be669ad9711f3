// RUN: jit-opt %s -p 'loop-divide-by-invariant{features="x86-64-v2"}' | filecheck %s

func.func @do_not_multiply_where_a_multiply_add_is_a_call(%x: memref<?xf32>, %n: index, %s: vector<8xf32>) {
  %c0 = arith.constant 0 : index
  %step = arith.constant 8 : index
  scf.for %i = %c0 to %n step %step {
    %v = vector.load %x[%i] : memref<?xf32>, vector<8xf32>
    %q = arith.divf %v, %s : vector<8xf32>
    vector.store %q, %x[%i] : memref<?xf32>, vector<8xf32>
  }
  func.return
}
// CHECK-LABEL: func.func @do_not_multiply_where_a_multiply_add_is_a_call
// CHECK-NOT:     vector.reduction
// CHECK:         arith.divf
