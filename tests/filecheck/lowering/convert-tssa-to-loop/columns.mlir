// RUN: jit-opt %s -p tssa-fuse,tssa-bufferize,convert-tssa-to-loop | filecheck %s

// The quotient of a column is kept on the stack and loaded in front of each loop down the column; the root follows the
// whole sum. Nothing else goes from loop to loop.
// CHECK-LABEL: func.func @distance
// CHECK:         loop.nest (%[[J:.*]]) = ({{.*}}) to ({{.*}}) step (1) kinds [parallel] {
// CHECK-NEXT:      %[[Q:.*]] = memref.alloca() : memref<f32>
// CHECK:           arith.divf
// CHECK-NEXT:      memref.store %{{.*}}, %[[Q]][]
// CHECK-NEXT:      %[[SUM:.*]] = memref.alloca() : memref<32xf32>
// CHECK:           %[[A:.*]] = memref.load %[[Q]][]
// CHECK-NEXT:      loop.nest (%{{.*}}) = ({{.*}}) to ({{.*}}) step (32) kinds [reduction] {
// CHECK:             %[[X:.*]] = memref.load %x[%{{.*}}, %[[J]]]
// CHECK-NEXT:        %[[D:.*]] = arith.subf %[[X]], %[[A]]
// CHECK-NEXT:        arith.mulf %[[D]], %[[D]]
// CHECK-NEXT:        arith.addf
// CHECK:           %[[B:.*]] = memref.load %[[Q]][]
// CHECK-NEXT:      loop.nest (%{{.*}}) = ({{.*}}) to ({{.*}}) step (32) kinds [reduction] {
// CHECK:             arith.subf %{{.*}}, %[[B]]
// CHECK-NOT:     arith.divf
// CHECK:           math.sqrt
// CHECK-NEXT:      memref.store %{{.*}}, %out0[%[[J]]]
// CHECK-NEXT:    }
!t = tensor<300x256xf32>
!k = tensor<256xf32>
func.func @distance(%x: !t, %a: !k, %b: !k) -> !k {
  %0 = tssa.divide %a, %b : (!k, !k) -> !k
  %1 = tssa.broadcast %0 : (!k) -> !t
  %2 = tssa.subtract %x, %1 : (!t, !t) -> !t
  %3 = tssa.multiply %2, %2 : (!t, !t) -> !t
  %4 = tssa.sum %3 {axes = array<i64: 0>} : (!t) -> !k
  %5 = tssa.sqrt %4 : (!k) -> !k
  func.return %5 : !k
}

// In any order: one accumulator, eight steps at a time.
// CHECK-LABEL: func.func @maximum
// CHECK:         loop.nest (%[[J:.*]]) = ({{.*}}) step (1) kinds [parallel] {
// CHECK:           loop.nest ({{.*}}) step (8) kinds [reduction] {
// CHECK:             %[[A:.*]] = memref.load %a[%[[J]]]
// CHECK-NEXT:        loop.nest (%[[I:.*]]) = ({{.*}}) step (1) kinds [reduction] {
// CHECK:               %[[X:.*]] = memref.load %x[%[[I]], %[[J]]]
// CHECK-NEXT:          arith.addf %[[X]], %[[A]]
// CHECK:               arith.maxsi
func.func @maximum(%x: !t, %a: !k) -> !k {
  %0 = tssa.broadcast %a : (!k) -> !t
  %1 = tssa.add %x, %0 : (!t, !t) -> !t
  %2 = tssa.max %1 {axes = array<i64: 0>} : (!t) -> !k
  func.return %2 : !k
}

// Axes behind are one, and so are those that are reduced: long segments. %a is repeated along all of the latter.
// CHECK-LABEL: func.func @axes_in_front
// CHECK-DAG:     %[[X1:.*]] = memref.reinterpret_cast %x to offset: [0], sizes: [40, 3, 4], strides: [12, 4, 1]
// CHECK:         loop.nest (%{{.*}}, %{{.*}}) =
func.func @axes_in_front(%x: tensor<5x8x3x4xf32>, %a: tensor<3x1xf32>) -> tensor<3x4xf32> {
  %0 = tssa.broadcast %a : (tensor<3x1xf32>) -> tensor<5x8x3x4xf32>
  %1 = tssa.multiply %x, %0 : (tensor<5x8x3x4xf32>, tensor<5x8x3x4xf32>) -> tensor<5x8x3x4xf32>
  %2 = tssa.sum %1 {axes = array<i64: 0, 1>} : (tensor<5x8x3x4xf32>) -> tensor<3x4xf32>
  func.return %2 : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @axes_behind
// CHECK-DAG:     %[[X2:.*]] = memref.reinterpret_cast %x to offset: [0], sizes: [40, 12], strides: [12, 1]
// CHECK-DAG:     %[[A2:.*]] = memref.reinterpret_cast %a to offset: [0], sizes: [12], strides: [1]
// CHECK:         loop.nest (%[[J:.*]]) =
// CHECK:           memref.load %[[A2]][%[[J]]]
// CHECK:           memref.load %[[X2]][%{{.*}}, %[[J]]]
func.func @axes_behind(%x: tensor<40x3x4xf32>, %a: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = tssa.broadcast %a : (tensor<3x4xf32>) -> tensor<40x3x4xf32>
  %1 = tssa.multiply %x, %0 : (tensor<40x3x4xf32>, tensor<40x3x4xf32>) -> tensor<40x3x4xf32>
  %2 = tssa.sum %1 {axes = array<i64: 0>} : (tensor<40x3x4xf32>) -> tensor<3x4xf32>
  func.return %2 : tensor<3x4xf32>
}

// One column is a row: 32 neighbours at a time.
// CHECK-LABEL: func.func @one_column
// CHECK:         memref.reinterpret_cast %x to offset: [0], sizes: [300], strides: [1]
// CHECK-NOT:     loop.nest {{.*}} step (128)
// CHECK:         math.sqrt
func.func @one_column(%x: tensor<300x1xf32>) -> tensor<1xf32> {
  %0 = tssa.multiply %x, %x : (tensor<300x1xf32>, tensor<300x1xf32>) -> tensor<300x1xf32>
  %1 = tssa.sum %0 {axes = array<i64: 0>} : (tensor<300x1xf32>) -> tensor<1xf32>
  %2 = tssa.sqrt %1 : (tensor<1xf32>) -> tensor<1xf32>
  func.return %2 : tensor<1xf32>
}

// A short column has no loop.
// CHECK-LABEL: func.func @short_columns
// CHECK:         loop.nest
// CHECK-NOT:     loop.nest
// CHECK:         func.return
func.func @short_columns(%x: tensor<3x256xf32>) -> !k {
  %0 = tssa.abs %x : (tensor<3x256xf32>) -> tensor<3x256xf32>
  %1 = tssa.sum %0 {axes = array<i64: 0>} : (tensor<3x256xf32>) -> !k
  func.return %1 : !k
}
