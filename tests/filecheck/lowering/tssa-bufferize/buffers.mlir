// RUN: jit-opt %s -p tssa-bufferize | filecheck %s

// The first result goes to the arena, the second where the caller wants it.
// CHECK-LABEL: func.func @results_are_written_where_the_caller_wants_them
// CHECK-SAME:    (%x: memref<?xf32> {tssa.dims = #tssa.dims<[n]>}, %out0: memref<f32>, %arena: memref<?xi8>)
// CHECK-SAME:    attributes {loop.noalias, tssa.arena = #tssa.dims<[64 * floordiv(4 * n + 63, 64)]>}
// CHECK:         %[[N:.*]] = memref.dim %x,
// CHECK:         %[[T:.*]] = memref.view %arena[%{{.*}}][%[[N]]] : memref<?xi8> to memref<?xf32>
// CHECK:         tssa.group ins(%x : memref<?xf32>) outs(%[[T]] : memref<?xf32>) {
// CHECK:         tssa.group ins(%[[T]] : memref<?xf32>) outs(%out0 : memref<f32>) {
// CHECK:         func.return
// CHECK-NEXT:  }
func.func @results_are_written_where_the_caller_wants_them(
    %x: tensor<?xf32, #tssa.dims<[n]>>) -> tensor<f32> {
  %0 = tssa.group ins(%x : tensor<?xf32, #tssa.dims<[n]>>) {
  ^bb0(%a: tensor<?xf32, #tssa.dims<[n]>>):
    %b = tssa.exp %a : (tensor<?xf32, #tssa.dims<[n]>>) -> tensor<?xf32, #tssa.dims<[n]>>
    tssa.yield %b : tensor<?xf32, #tssa.dims<[n]>>
  } -> tensor<?xf32, #tssa.dims<[n]>>
  %1 = tssa.group ins(%0 : tensor<?xf32, #tssa.dims<[n]>>) {
  ^bb0(%a: tensor<?xf32, #tssa.dims<[n]>>):
    %b = tssa.sum %a {axes = array<i64: 0>} : (tensor<?xf32, #tssa.dims<[n]>>) -> tensor<f32>
    tssa.yield %b : tensor<f32>
  } -> tensor<f32>
  func.return %1 : tensor<f32>
}

// CHECK-LABEL: func.func @bool_is_a_byte_and_a_python_scalar_is_plain
// CHECK-SAME:    (%x: memref<8xi8>, %s: f64 {tssa.weak}, %out0: memref<8xi8>, %arena: memref<?xi8>)
// CHECK-SAME:    tssa.arena = #tssa.dims<[0]>
// CHECK-NEXT:    tssa.group ins(%x, %s : memref<8xi8>, f64) outs(%out0 : memref<8xi8>) {
// CHECK-NEXT:    ^{{.*}}(%{{.*}}: tensor<8xi1>, %{{.*}}: tensor<f64>):
func.func @bool_is_a_byte_and_a_python_scalar_is_plain(
    %x: tensor<8xi1>, %s: tensor<f64> {tssa.weak}) -> tensor<8xi1> {
  %0 = tssa.group ins(%x, %s : tensor<8xi1>, tensor<f64>) {
  ^bb0(%a: tensor<8xi1>, %b: tensor<f64>):
    %c = tssa.cast %b : (tensor<f64>) -> tensor<i1>
    %d = tssa.broadcast %c : (tensor<i1>) -> tensor<8xi1>
    %e = tssa.logical_and %a, %d : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
    tssa.yield %e : tensor<8xi1>
  } -> tensor<8xi1>
  func.return %0 : tensor<8xi1>
}

// Reshape, transpose and extract name the same memory.
// CHECK-LABEL: func.func @views_are_no_copies
// CHECK:         %[[V:.*]] = memref.reinterpret_cast %x to offset: [5], sizes: [2, 3], strides: [2, 4]
// CHECK-SAME:      memref<12xf32> to memref<2x3xf32, strided<[2, 4], offset: 5>>
// CHECK-NOT:     memref.view
// CHECK:         tssa.group ins(%[[V]] :
func.func @views_are_no_copies(%x: tensor<12xf32>) -> tensor<2x3xf32> {
  %0 = tssa.reshape %x : (tensor<12xf32>) -> tensor<3x4xf32>
  %1 = tssa.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %2 = tssa.extract %1 {offsets = #tssa.dims<[1, 1]>, steps = array<i64: 2, 1>}
    : (tensor<4x3xf32>) -> tensor<2x3xf32>
  %3 = tssa.extract %2 {offsets = #tssa.dims<[0, 0]>, steps = array<i64: 1, 1>}
    : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = tssa.group ins(%3 : tensor<2x3xf32>) {
  ^bb0(%a: tensor<2x3xf32>):
    %b = tssa.exp %a : (tensor<2x3xf32>) -> tensor<2x3xf32>
    tssa.yield %b : tensor<2x3xf32>
  } -> tensor<2x3xf32>
  func.return %4 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @a_reshape_of_columns_is_copied_first
// CHECK:         %[[C:.*]] = memref.reinterpret_cast %x to offset: [0], sizes: [4, 3], strides: [1, 4]
// CHECK:         %[[T:.*]] = memref.reinterpret_cast %out0 to offset: [0], sizes: [4, 3], strides: [3, 1]
// CHECK:         tssa.group ins(%[[C]] : {{.*}}) outs(%[[T]] : memref<4x3xf32>) {
// CHECK:         tssa.group ins(%out0 : memref<12xf32>) outs(%out0
func.func @a_reshape_of_columns_is_copied_first(%x: tensor<3x4xf32>) -> tensor<12xf32> {
  %0 = tssa.transpose %x {permutation = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %1 = tssa.reshape %0 : (tensor<4x3xf32>) -> tensor<12xf32>
  %2 = tssa.group ins(%1 : tensor<12xf32>) {
  ^bb0(%a: tensor<12xf32>):
    %b = tssa.exp %a : (tensor<12xf32>) -> tensor<12xf32>
    tssa.yield %b : tensor<12xf32>
  } -> tensor<12xf32>
  func.return %2 : tensor<12xf32>
}

// x[:, 0]: an axis of size 1 may disappear from any memory.
// CHECK-LABEL: func.func @a_column_is_a_view
// CHECK:         memref.reinterpret_cast %x to offset: [0], sizes: [3], strides: [4]
// CHECK-NOT:     memref.view
// CHECK:         func.return
func.func @a_column_is_a_view(%x: tensor<3x4xf32>) -> tensor<3xf32> {
  %0 = tssa.extract %x {offsets = #tssa.dims<[0, 0]>, steps = array<i64: 1, 1>}
    : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %1 = tssa.reshape %0 : (tensor<3x1xf32>) -> tensor<3xf32>
  func.return %1 : tensor<3xf32>
}

// CHECK-LABEL: func.func @the_strides_of_an_argument_are_read_when_it_is_called
// CHECK-SAME:    (%x: memref<?x8xf32, strided<[?, ?], offset: ?>>
// CHECK:         %{{.*}}, %[[O:[0-9]+]], %{{.*}}, %{{.*}}, %[[S0:[0-9]+]], %[[S1:[0-9]+]] = memref.extract_strided_metadata %x
// CHECK:         memref.reinterpret_cast %x to offset: [%[[O]]], sizes: [8, %{{.*}}], strides: [%[[S1]], %[[S0]]]
func.func @the_strides_of_an_argument_are_read_when_it_is_called(
    %x: tensor<?x8xf32, #tssa.dims<[n, 8]>> {tssa.strided}) -> tensor<8x?xf32, #tssa.dims<[8, n]>> {
  %0 = tssa.transpose %x {permutation = array<i64: 1, 0>}
    : (tensor<?x8xf32, #tssa.dims<[n, 8]>>) -> tensor<8x?xf32, #tssa.dims<[8, n]>>
  func.return %0 : tensor<8x?xf32, #tssa.dims<[8, n]>>
}

// CHECK-LABEL: func.func @an_argument_that_is_returned_is_copied
// CHECK:         tssa.group ins(%x : memref<8xf32>) outs(%out0 : memref<8xf32>) {
// CHECK:         tssa.group ins(%x : memref<8xf32>) outs(%out1 : memref<8xf32>) {
func.func @an_argument_that_is_returned_is_copied(
    %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  func.return %x, %x : tensor<8xf32>, tensor<8xf32>
}

// The values of integer arguments are symbols.
// CHECK-LABEL: func.func @sizes_come_from_arguments
// CHECK:         %[[K:.*]] = arith.index_cast %k : i64 to index
// CHECK:         memref.reinterpret_cast %x to offset: [%[[K]]], sizes: [2], strides: [1]
func.func @sizes_come_from_arguments(%x: tensor<8xf32>, %k: tensor<i64> {tssa.weak}) -> tensor<2xf32> {
  %0 = tssa.extract %x {offsets = #tssa.dims<[s1]>, steps = array<i64: 1>}
    : (tensor<8xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}

// The right operand of a product is read along its rows.
// CHECK-LABEL: func.func @a_transposed_right_operand_is_copied
// CHECK:         %[[T:.*]] = memref.view %arena
// CHECK:         tssa.group ins(%{{.*}} : memref<8x2xf32, strided<[1, 8]>>) outs(%[[T]] : memref<8x2xf32>) {
// CHECK:         tssa.group ins(%x, %[[T]] :
func.func @a_transposed_right_operand_is_copied(
    %x: tensor<4x8xf32>, %w: tensor<2x8xf32>) -> tensor<4x2xf32> {
  %0 = tssa.transpose %w {permutation = array<i64: 1, 0>} : (tensor<2x8xf32>) -> tensor<8x2xf32>
  %1 = tssa.group ins(%x, %0 : tensor<4x8xf32>, tensor<8x2xf32>) {
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>):
    %c = tssa.matmul %a, %b : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    tssa.yield %c : tensor<4x2xf32>
  } -> tensor<4x2xf32>
  func.return %1 : tensor<4x2xf32>
}
