// RUN: jit-opt %s -p loop-hoist-accumulators | filecheck %s

// Lanes of a stored vector are taken from it: a sum's lanes, folded by halves, never are in memory.
func.func @halves(%v: vector<4xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %m = memref.alloca() : memref<4xf32>
  vector.store %v, %m[%c0] : memref<4xf32>, vector<4xf32>
  %a = vector.load %m[%c0] : memref<4xf32>, vector<2xf32>
  %b = vector.load %m[%c2] : memref<4xf32>, vector<2xf32>
  %s = arith.addf %a, %b : vector<2xf32>
  vector.store %s, %m[%c0] : memref<4xf32>, vector<2xf32>
  %x = memref.load %m[%c0] : memref<4xf32>
  %y = memref.load %m[%c1] : memref<4xf32>
  %t = arith.addf %x, %y : f32
  func.return %t : f32
}
// CHECK-LABEL: func.func @halves
// CHECK-NOT:     memref
// CHECK:         %[[A:.*]] = vector.shuffle %v, %v [0, 1]
// CHECK-NEXT:    %[[B:.*]] = vector.shuffle %v, %v [2, 3]
// CHECK-NEXT:    %[[S:.*]] = arith.addf %[[A]], %[[B]] : vector<2xf32>
// CHECK-NEXT:    %[[P:.*]] = vector.shuffle %[[S]], %[[S]] [0, 1, 0, 0]
// CHECK-NEXT:    %[[W:.*]] = vector.shuffle %v, %[[P]] [4, 5, 2, 3]
// CHECK-NEXT:    %[[X:.*]] = vector.extract %[[W]][0]
// CHECK-NEXT:    %[[Y:.*]] = vector.extract %[[W]][1]
// CHECK-NEXT:    arith.addf %[[X]], %[[Y]] : f32

func.func @do_not_take_lanes_at_unknown_places(%v: vector<4xf32>, %i: index) -> vector<2xf32> {
  %c0 = arith.constant 0 : index
  %m = memref.alloca() : memref<4xf32>
  vector.store %v, %m[%c0] : memref<4xf32>, vector<4xf32>
  %a = vector.load %m[%i] : memref<4xf32>, vector<2xf32>
  func.return %a : vector<2xf32>
}
// CHECK-LABEL: func.func @do_not_take_lanes_at_unknown_places
// CHECK:         vector.load

func.func @do_not_take_lanes_beyond_the_vector(%v: vector<4xf32>) -> vector<4xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %m = memref.alloca() : memref<8xf32>
  vector.store %v, %m[%c0] : memref<8xf32>, vector<4xf32>
  %a = vector.load %m[%c2] : memref<8xf32>, vector<4xf32>
  func.return %a : vector<4xf32>
}
// CHECK-LABEL: func.func @do_not_take_lanes_beyond_the_vector
// CHECK:         vector.load

func.func @do_not_take_lanes_of_another_row(%v: vector<4xf32>) -> vector<2xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.alloca() : memref<2x4xf32>
  vector.store %v, %m[%c0, %c0] : memref<2x4xf32>, vector<4xf32>
  %a = vector.load %m[%c1, %c0] : memref<2x4xf32>, vector<2xf32>
  func.return %a : vector<2xf32>
}
// CHECK-LABEL: func.func @do_not_take_lanes_of_another_row
// CHECK:         vector.load

// What others can see is not kept in a register: the store stays, and what it overwrote is forgotten.
func.func @do_not_merge_into_memory_of_others(%m: memref<4xf32>, %v: vector<4xf32>, %w: vector<2xf32>) -> vector<4xf32> {
  %c0 = arith.constant 0 : index
  vector.store %v, %m[%c0] : memref<4xf32>, vector<4xf32>
  vector.store %w, %m[%c0] : memref<4xf32>, vector<2xf32>
  %a = vector.load %m[%c0] : memref<4xf32>, vector<4xf32>
  func.return %a : vector<4xf32>
}
// CHECK-LABEL: func.func @do_not_merge_into_memory_of_others
// CHECK-NOT:     vector.shuffle
// CHECK:         vector.load

func.func @do_not_merge_masked_lanes(%v: vector<4xf32>, %w: vector<2xf32>, %k: vector<2xi1>) -> vector<4xf32> {
  %c0 = arith.constant 0 : index
  %m = memref.alloca() : memref<4xf32>
  vector.store %v, %m[%c0] : memref<4xf32>, vector<4xf32>
  vector.maskedstore %m[%c0], %k, %w : memref<4xf32>, vector<2xi1>, vector<2xf32>
  %a = vector.load %m[%c0] : memref<4xf32>, vector<4xf32>
  func.return %a : vector<4xf32>
}
// CHECK-LABEL: func.func @do_not_merge_masked_lanes
// CHECK-NOT:     vector.shuffle
// CHECK:         vector.load
