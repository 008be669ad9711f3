// RUN: jit-opt %s -p tssa-fuse,tssa-bufferize,convert-tssa-to-loop | filecheck %s

// Contiguous axes before, among and behind the reduced ones are one axis each.
// CHECK-LABEL: func.func @axes_inside
// CHECK:         %[[X:.*]] = memref.reinterpret_cast %x to offset: [0], sizes: [6, 20, 42], strides: [840, 42, 1]
// CHECK:         %[[Y:.*]] = memref.reinterpret_cast %out0 to offset: [0], sizes: [6, 42], strides: [42, 1]
// CHECK:         loop.nest (%[[I:.*]], %[[J:.*]]) = ({{.*}}) step (1, 1) kinds [parallel, parallel] {
// CHECK:           memref.alloca() : memref<32xf32>
// CHECK:           %{{.*}} = memref.load %[[X]][%[[I]], %{{.*}}, %[[J]]]
// CHECK:           memref.store %{{.*}}, %[[Y]][%[[I]], %[[J]]]
func.func @axes_inside(%x: tensor<2x3x4x5x6x7xf32>) -> tensor<2x3x6x7xf32> {
  %0 = tssa.sum %x {axes = array<i64: 2, 3>} : (tensor<2x3x4x5x6x7xf32>) -> tensor<2x3x6x7xf32>
  func.return %0 : tensor<2x3x6x7xf32>
}

// A maximum has no order: one accumulator where elements are not next to each other. It has two parts: the largest of
// the bits as integers, and the smallest of them rotated.
// CHECK-LABEL: func.func @the_maximum_of_columns
// CHECK-DAG:     %[[R:.*]] = arith.constant -2139095041 : i32
// CHECK:         loop.nest (%[[J:.*]]) = ({{.*}}) step (1) kinds [parallel] {
// CHECK-NEXT:      %[[A:.*]] = memref.alloca() : memref<i32>
// CHECK-NEXT:      %[[B:.*]] = memref.alloca() : memref<i32>
// CHECK:           loop.nest (%[[G:.*]]) = (%{{.*}}) to (%{{.*}}) step (8) kinds [reduction] {
// CHECK-NEXT:        %[[E:.*]] = arith.addi %[[G]], %{{.*}} : index
// CHECK-NEXT:        loop.nest (%[[K:.*]]) = (%[[G]]) to (%[[E]]) step (1) kinds [reduction] {
// CHECK-NEXT:        %[[M:.*]] = memref.load %[[A]][]
// CHECK-NEXT:        %[[N:.*]] = memref.load %[[B]][]
// CHECK-NEXT:        %[[V:.*]] = memref.load %x[%[[K]], %[[J]]]
// CHECK-NEXT:        %[[I:.*]] = arith.bitcast %[[V]] : f32 to i32
// CHECK-NEXT:        %[[T:.*]] = arith.addi %[[I]], %[[R]] : i32
// CHECK-NEXT:        arith.maxsi %[[M]], %[[I]] : i32
// CHECK-NEXT:        arith.minsi %[[N]], %[[T]] : i32
// CHECK:           %[[S:.*]] = arith.cmpi slt, %[[P:.*]], %{{.*}} : i32
// CHECK-NEXT:      %[[F:.*]] = arith.cmpi slt, %[[Q:.*]], %[[R]] : i32
// CHECK-NEXT:      %[[O:.*]] = arith.ori %[[S]], %[[F]] : i1
// CHECK-NEXT:      %[[U:.*]] = arith.addi %[[Q]], %{{.*}} : i32
// CHECK-NEXT:      %[[W:.*]] = arith.select %[[O]], %[[U]], %[[P]] : i32
// CHECK-NEXT:      arith.bitcast %[[W]] : i32 to f32
func.func @the_maximum_of_columns(%x: tensor<70x8xf32>) -> tensor<8xf32> {
  %0 = tssa.max %x {axes = array<i64: 0>} : (tensor<70x8xf32>) -> tensor<8xf32>
  func.return %0 : tensor<8xf32>
}

// A minimum is the maximum of floats with the other sign.
// CHECK-LABEL: func.func @the_minimum_of_columns
// CHECK-DAG:     %[[C:.*]] = arith.constant -9223372036854775808 : i64
// CHECK-DAG:     %[[R:.*]] = arith.constant 4503599627370495 : i64
// CHECK:         %[[I:.*]] = arith.bitcast %{{.*}} : f64 to i64
// CHECK-NEXT:    %[[S:.*]] = arith.addi %[[I]], %[[C]] : i64
// CHECK-NEXT:    %[[T:.*]] = arith.addi %[[I]], %[[R]] : i64
// CHECK-NEXT:    arith.maxsi %{{.*}}, %[[S]] : i64
// CHECK-NEXT:    arith.minsi %{{.*}}, %[[T]] : i64
func.func @the_minimum_of_columns(%x: tensor<70x8xf64>) -> tensor<8xf64> {
  %0 = tssa.min %x {axes = array<i64: 0>} : (tensor<70x8xf64>) -> tensor<8xf64>
  func.return %0 : tensor<8xf64>
}

// A row of one element is that element, + (+0.0) for a sum.
// CHECK-LABEL: func.func @rows_of_one_element
// CHECK-NOT:     memref.alloca
// CHECK:         arith.addf
// CHECK-NOT:     arith.addf
// CHECK:         func.return
func.func @rows_of_one_element(%x: tensor<4x1xf32>, %y: tensor<5xf32>) -> (tensor<4xf32>, tensor<5xf32>) {
  %0 = tssa.sum %x {axes = array<i64: 1>} : (tensor<4x1xf32>) -> tensor<4xf32>
  %1 = tssa.max %y {axes = array<i64>} : (tensor<5xf32>) -> tensor<5xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<5xf32>
}

// A short row needs no lanes in memory: its elements are folded as the lanes would be.
// CHECK-LABEL: func.func @rows_of_three
// CHECK:         loop.nest (%[[I:.*]]) = ({{.*}}) step (1) kinds [parallel] {
// CHECK-NEXT:      %[[A:.*]] = memref.load %x[%[[I]], %{{.*}}]
// CHECK-NEXT:      %[[B:.*]] = memref.load %x[%[[I]], %{{.*}}]
// CHECK-NEXT:      %[[C:.*]] = memref.load %x[%[[I]], %{{.*}}]
// CHECK-NEXT:      %[[S:.*]] = arith.addf %[[A]], %[[C]] : f32
// CHECK-NEXT:      %[[T:.*]] = arith.addf %[[S]], %[[B]] : f32
// CHECK-NEXT:      arith.addf %[[T]], %{{.*}} : f32
func.func @rows_of_three(%x: tensor<4x3xf32>) -> tensor<4xf32> {
  %0 = tssa.sum %x {axes = array<i64: 1>} : (tensor<4x3xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// So do columns of a few elements: one loop, along them.
// CHECK-LABEL: func.func @columns_of_three
// CHECK-NOT:     memref.alloca
// CHECK:         loop.nest (%[[J:.*]]) = ({{.*}}) step (1) kinds [parallel] {
// CHECK-NEXT:      %[[A:.*]] = memref.load %x[%{{.*}}, %[[J]]]
// CHECK-NEXT:      %[[B:.*]] = memref.load %x[%{{.*}}, %[[J]]]
// CHECK-NEXT:      %[[C:.*]] = memref.load %x[%{{.*}}, %[[J]]]
// CHECK-NEXT:      %[[S:.*]] = arith.addf %[[A]], %[[C]] : f32
// CHECK-NEXT:      %[[T:.*]] = arith.addf %[[S]], %[[B]] : f32
// CHECK-NEXT:      arith.addf %[[T]], %{{.*}} : f32
func.func @columns_of_three(%x: tensor<3x40xf32>) -> tensor<40xf32> {
  %0 = tssa.sum %x {axes = array<i64: 0>} : (tensor<3x40xf32>) -> tensor<40xf32>
  func.return %0 : tensor<40xf32>
}
