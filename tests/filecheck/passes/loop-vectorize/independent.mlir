// RUN: jit-opt %s -p 'loop-vectorize{width=8}' | filecheck %s

// Loops of others, without a kind: independence is proved from their addresses.

// CHECK-LABEL: func.func @same_index
// CHECK:         vector.store
func.func @same_index(%X: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %X[%i] : memref<?xf32>
    memref.store %x, %X[%i] : memref<?xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @other_row
// CHECK:         vector.store
func.func @other_row(%X: memref<2x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %j = arith.addi %i, %c1 : index
    %x = memref.load %X[%c0, %j] : memref<2x?xf32>
    memref.store %x, %X[%c1, %i] : memref<2x?xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @further_apart_than_the_loop_is_long
// CHECK:         vector.store
func.func @further_apart_than_the_loop_is_long(%X: memref<32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c16 step %c1 {
    %j = arith.addi %i, %c16 : index
    %x = memref.load %X[%j] : memref<32xf32>
    memref.store %x, %X[%i] : memref<32xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @arguments_that_do_not_overlap
// CHECK:         vector.store
func.func @arguments_that_do_not_overlap(%X: memref<?xf32>, %Y: memref<?xf32>, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %X[%i] : memref<?xf32>
    memref.store %x, %Y[%i] : memref<?xf32>
  }
  func.return
}
