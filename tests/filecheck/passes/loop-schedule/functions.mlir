// RUN: jit-opt %s --split-input-file -p 'loop-schedule{features=x86-64-v3}' | filecheck %s
// RUN: jit-opt %s --split-input-file -p 'loop-schedule{features=x86-64-v1}' | filecheck %s --check-prefix=V1

// The steps of a function wait for each other: four registers go side by side.
// CHECK-LABEL: builtin.module attributes {loop.interleave} {
// CHECK:       func.func @function
// CHECK:         kinds [parallel] schedule <vector = 32, threads = 16384> {
// Without FMA, a step is a call for each lane.
// V1-LABEL:    func.func @function
// V1:            kinds [parallel] schedule <vector = 4, unroll = 2, threads = 16384> {
func.func @function(%A: memref<?xf32>, %C: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %a = memref.load %A[%i] : memref<?xf32>
    %r = math.exp %a : f32
    memref.store %r, %C[%i] : memref<?xf32>
  }
  func.return
}

// -----

// Two registers of 8-byte elements: their functions have more constants.
// CHECK-LABEL: func.func @function_of_eight_bytes
// CHECK:         kinds [parallel] schedule <vector = 8, threads = 16384> {
func.func @function_of_eight_bytes(%A: memref<?xf64>, %C: memref<?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %a = memref.load %A[%i] : memref<?xf64>
    %r = math.exp %a : f64
    memref.store %r, %C[%i] : memref<?xf64>
  }
  func.return
}

// -----

// A root is one instruction.
// CHECK-LABEL: builtin.module {
// CHECK:       func.func @do_not_widen_what_is_one_instruction
// CHECK:         kinds [parallel] schedule <vector = 8, unroll = 2, stream = 4194304, prefetch = 16384, threads = 16384> {
func.func @do_not_widen_what_is_one_instruction(%A: memref<?xf32>, %C: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %a = memref.load %A[%i] : memref<?xf32>
    %r = math.sqrt %a : f32
    memref.store %r, %C[%i] : memref<?xf32>
  }
  func.return
}

// -----

// Rows abreast are chains side by side already, and need the registers.
// CHECK-LABEL: builtin.module {
// CHECK:       func.func @do_not_interleave_beside_rows
// CHECK:         kinds [parallel] schedule <tile = [4], jam = [4]
func.func @do_not_interleave_beside_rows(
    %A: memref<?x?xf32>, %C: memref<?xf32>, %n: index, %K: index) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %acc = memref.alloca() : memref<32xf32>
    loop.nest (%k) = (%c0) to (%K) step (32) kinds [reduction] {
      loop.nest (%l) = (%c0) to (%c32) step (1) kinds [parallel] {
        %s = memref.load %acc[%l] : memref<32xf32>
        %at = arith.addi %k, %l : index
        %a = memref.load %A[%i, %at] : memref<?x?xf32>
        %e = math.exp %a : f32
        %t = arith.addf %s, %e : f32
        memref.store %t, %acc[%l] : memref<32xf32>
      }
    }
    %r = memref.load %acc[%c0] : memref<32xf32>
    memref.store %r, %C[%i] : memref<?xf32>
  }
  func.return
}
