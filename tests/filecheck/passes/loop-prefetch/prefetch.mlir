// RUN: jit-opt %s -p loop-prefetch | filecheck %s

// 64 bytes are 16 elements: a prefetch for each line that an iteration reads.
func.func @lines(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %n step %c32 {
    %v = vector.load %x[%i] : memref<?xf32>, vector<32xf32>
    vector.store %v, %y[%i] : memref<?xf32>, vector<32xf32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<prefetch = 4096>}
  func.return
}
// CHECK-LABEL: func.func @lines
// CHECK:       scf.for %i
// CHECK-NEXT:    %[[D:.*]] = arith.constant 1024 : index
// CHECK-NEXT:    %[[A:.*]] = arith.addi %i, %[[D]] : index
// CHECK-NEXT:    memref.prefetch %x[%[[A]]], read, locality<3>, data : memref<?xf32>
// CHECK-NEXT:    %[[E:.*]] = arith.constant 1040 : index
// CHECK-NEXT:    %[[B:.*]] = arith.addi %i, %[[E]] : index
// CHECK-NEXT:    memref.prefetch %x[%[[B]]], read, locality<3>, data : memref<?xf32>
// CHECK-NEXT:    vector.load %x[%i]
// CHECK-NEXT:    vector.store
// CHECK-NEXT:  } {loop.kind = "parallel"}

// A loop of a reduction, along a row; it carries the sum.
func.func @along_a_row(%x: memref<?x?xf64>, %r: index, %n: index, %z: vector<8xf64>) -> vector<8xf64> {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %s = scf.for %i = %c0 to %n step %c8 iter_args(%t = %z) -> (vector<8xf64>) {
    %v = vector.load %x[%r, %i] : memref<?x?xf64>, vector<8xf64>
    %u = arith.addf %t, %v : vector<8xf64>
    scf.yield %u : vector<8xf64>
  } {loop.schedule = #loop.schedule<prefetch = 4096>}
  func.return %s : vector<8xf64>
}
// CHECK-LABEL: func.func @along_a_row
// CHECK:         %[[D:.*]] = arith.constant 512 : index
// CHECK-NEXT:    %[[A:.*]] = arith.addi %i, %[[D]] : index
// CHECK-NEXT:    memref.prefetch %x[%r, %[[A]]], read, locality<3>, data : memref<?x?xf64>

// What lies still, and what this function has made, is in a cache; what goes along is announced.
func.func @only_what_goes_along(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %m = memref.alloca() : memref<64xf32>
  scf.for %i = %c0 to %n step %c8 {
    %b = memref.load %y[%c0] : memref<?xf32>
    %w = vector.load %m[%i] : memref<64xf32>, vector<8xf32>
    %v = vector.load %x[%i] : memref<?xf32>, vector<8xf32>
  } {loop.schedule = #loop.schedule<prefetch = 4096>}
  func.return
}
// CHECK-LABEL: func.func @only_what_goes_along
// CHECK-COUNT-1: memref.prefetch %x
// CHECK-NOT:   memref.prefetch
// CHECK-NOT:   loop.remark
// CHECK:       func.return

func.func @do_not_prefetch_own_memory(%n: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %m = memref.alloca() : memref<64xf32>
  scf.for %i = %c0 to %n step %c8 {
    %w = vector.load %m[%i] : memref<64xf32>, vector<8xf32>
  } {loop.schedule = #loop.schedule<prefetch = 4096>}
  func.return
}
// CHECK-LABEL: func.func @do_not_prefetch_own_memory
// CHECK-NOT:   memref.prefetch
// CHECK:       func.return

func.func @do_not_prefetch_down_a_column(%x: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %v = vector.load %x[%i, %c0] : memref<?x8xf32>, vector<8xf32>
  } {loop.schedule = #loop.schedule<prefetch = 4096>}
  func.return
}
// CHECK-LABEL: func.func @do_not_prefetch_down_a_column
// CHECK-NOT:   memref.prefetch
// CHECK:       loop.remark = "loop-prefetch: nothing that it reads lies along it"

func.func @do_not_prefetch_with_gaps(%x: memref<?xf32, strided<[2], offset: ?>>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32, strided<[2], offset: ?>>
  } {loop.schedule = #loop.schedule<prefetch = 4096>}
  func.return
}
// CHECK-LABEL: func.func @do_not_prefetch_with_gaps
// CHECK-NOT:   memref.prefetch
// CHECK:       loop.remark = "loop-prefetch: nothing that it reads lies along it"

func.func @do_not_prefetch_by_an_unknown_step(%x: memref<?xf32>, %n: index, %s: index) {
  %c0 = arith.constant 0 : index
  scf.for %i = %c0 to %n step %s {
    %v = memref.load %x[%i] : memref<?xf32>
  } {loop.schedule = #loop.schedule<prefetch = 4096>}
  func.return
}
// CHECK-LABEL: func.func @do_not_prefetch_by_an_unknown_step
// CHECK-NOT:   memref.prefetch
// CHECK:       loop.remark = "loop-prefetch: its step is not a positive constant"
