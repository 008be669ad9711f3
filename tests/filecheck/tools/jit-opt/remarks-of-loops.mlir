// RUN: jit-opt %s -p 'loop-vectorize{width=4}' --remarks 2>&1 | filecheck %s

// CHECK-COUNT-1: remark: @prefix: scf.for: loop-vectorize:
func.func @prefix(%x: memref<9xf32>, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    %next = arith.addi %i, %one : index
    %v = memref.load %x[%i] : memref<9xf32>
    memref.store %v, %x[%next] : memref<9xf32>
  }
  func.return
}
