// RUN: jit-opt %s -p tssa-fuse,tssa-bufferize,convert-tssa-to-loop | filecheck %s

// Equal shapes, all contiguous: one axis over the elements in memory order.
// CHECK-LABEL: func.func @contiguous_buffers_collapse_to_one_axis
// CHECK:         %[[N:.*]] = memref.dim %x,
// CHECK:         %[[C:.*]] = arith.muli %[[N]], %{{.*}} : index
// CHECK:         %[[X:.*]] = memref.reinterpret_cast %x to offset: [0], sizes: [%[[C]]], strides: [1]
// CHECK:         %[[O:.*]] = memref.reinterpret_cast %out0 to offset: [0], sizes: [%[[C]]], strides: [1]
// CHECK:         loop.nest (%[[I:.*]]) = (%{{.*}}) to (%[[C]]) step (1) kinds [parallel] {
// CHECK-NEXT:      %[[V:.*]] = memref.load %[[X]][%[[I]]]
// CHECK-NEXT:      %[[E:.*]] = math.exp %[[V]] : f32
// CHECK-NEXT:      memref.store %[[E]], %[[O]][%[[I]]]
// CHECK-NEXT:    }
func.func @contiguous_buffers_collapse_to_one_axis(
    %x: tensor<?x8xf32, #tssa.dims<[n, 8]>>) -> tensor<?x8xf32, #tssa.dims<[n, 8]>> {
  %0 = tssa.exp %x : (tensor<?x8xf32, #tssa.dims<[n, 8]>>) -> tensor<?x8xf32, #tssa.dims<[n, 8]>>
  func.return %0 : tensor<?x8xf32, #tssa.dims<[n, 8]>>
}

// CHECK-LABEL: func.func @do_not_collapse_strided_buffers
// CHECK:         loop.nest (%[[I:.*]], %[[J:.*]]) = (%{{.*}}) step (1, 1) kinds [parallel, parallel] {
// CHECK-NEXT:      memref.load %x[%[[I]], %[[J]]]
func.func @do_not_collapse_strided_buffers(%x: tensor<4x8xf32> {tssa.strided}) -> tensor<4x8xf32> {
  %0 = tssa.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %0 : tensor<4x8xf32>
}

// Along a repeated axis the index is 0, a new leading axis has none.
// CHECK-LABEL: func.func @do_not_collapse_under_a_broadcast
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : index
// CHECK:         loop.nest (%[[I:.*]], %[[J:.*]]) = (%{{.*}}) step (1, 1) kinds [parallel, parallel] {
// CHECK-DAG:       memref.load %x[%[[I]], %[[ZERO]]] : memref<4x1xf32>
// CHECK-DAG:       memref.load %y[%[[J]]] : memref<8xf32>
func.func @do_not_collapse_under_a_broadcast(%x: tensor<4x1xf32>, %y: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = tssa.broadcast %x : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %1 = tssa.broadcast %y : (tensor<8xf32>) -> tensor<4x8xf32>
  %2 = tssa.add %0, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %2 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @rank_0_is_no_loop
// CHECK-NOT:     loop.nest
// CHECK:         %[[V:.*]] = memref.load %x[] : memref<f32>
// CHECK-NEXT:    %[[E:.*]] = math.exp %[[V]] : f32
// CHECK-NEXT:    memref.store %[[E]], %out0[] : memref<f32>
func.func @rank_0_is_no_loop(%x: tensor<f32>) -> tensor<f32> {
  %0 = tssa.exp %x : (tensor<f32>) -> tensor<f32>
  func.return %0 : tensor<f32>
}

// What has rank 0 is computed once, in front of the nest.
// CHECK-LABEL: func.func @scalars_are_computed_outside
// CHECK:         %[[S:.*]] = arith.truncf %s : f64 to f32
// CHECK:         loop.nest
// CHECK-NEXT:      %[[V:.*]] = memref.load %x
// CHECK-NEXT:      arith.mulf %[[V]], %[[S]] : f32
func.func @scalars_are_computed_outside(%x: tensor<8xf32>, %s: tensor<f64> {tssa.weak}) -> tensor<8xf32> {
  %c = tssa.cast %s : (tensor<f64>) -> tensor<f32>
  %b = tssa.broadcast %c : (tensor<f32>) -> tensor<8xf32>
  %0 = tssa.multiply %x, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %0 : tensor<8xf32>
}

// A byte that is not 0 is true; true is stored as 1.
// CHECK-LABEL: func.func @bool_in_memory
// CHECK:         %[[V:.*]] = memref.load %x[%{{.*}}] : memref<8xi8>
// CHECK-NEXT:    %[[B:.*]] = arith.cmpi ne, %[[V]], %{{.*}} : i8
// CHECK-NEXT:    %[[N:.*]] = arith.xori %[[B]], %{{.*}} : i1
// CHECK-NEXT:    %[[S:.*]] = arith.extui %[[N]] : i1 to i8
// CHECK-NEXT:    memref.store %[[S]], %out0
func.func @bool_in_memory(%x: tensor<8xi1>) -> tensor<8xi1> {
  %0 = tssa.logical_not %x : (tensor<8xi1>) -> tensor<8xi1>
  func.return %0 : tensor<8xi1>
}

// CHECK-LABEL: func.func @a_copy_moves_bytes
// CHECK:         loop.nest
// CHECK-NEXT:      %[[V:.*]] = memref.load %x[%{{.*}}] : memref<8xi8>
// CHECK-NEXT:      memref.store %[[V]], %out0
func.func @a_copy_moves_bytes(%x: tensor<8xi1>) -> tensor<8xi1> {
  func.return %x : tensor<8xi1>
}

// CHECK-LABEL: func.func @an_insertion_copies_then_writes_the_part
// CHECK:         loop.nest (%[[I:.*]]) = (%{{.*}}) step (1) kinds [parallel] {
// CHECK-NEXT:      %[[V:.*]] = memref.load %x[%[[I]]]
// CHECK-NEXT:      memref.store %[[V]], %out0[%[[I]]]
// CHECK-NEXT:    }
// CHECK-NEXT:    loop.nest (%[[J:.*]]) = (%{{.*}}) step (1) kinds [parallel] {
// CHECK-NEXT:      %[[S:.*]] = arith.muli %[[J]], %{{.*}} : index
// CHECK-NEXT:      %[[T:.*]] = arith.addi %[[S]], %{{.*}} : index
// CHECK-NEXT:      %[[P:.*]] = memref.load %y[%[[J]]]
// CHECK-NEXT:      memref.store %[[P]], %out0[%[[T]]]
func.func @an_insertion_copies_then_writes_the_part(%x: tensor<8xf32>, %y: tensor<2xf32>) -> tensor<8xf32> {
  %0 = tssa.insert %x, %y {offsets = #tssa.dims<[1]>, steps = array<i64: 3>}
    : (tensor<8xf32>, tensor<2xf32>) -> tensor<8xf32>
  func.return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @a_table_is_stored_element_by_element
// CHECK-NOT:     loop.nest
// CHECK-COUNT-3: memref.store
// CHECK-NEXT:    func.return
func.func @a_table_is_stored_element_by_element() -> tensor<3xf32> {
  %0 = tssa.constant {value = dense<[1.0, -0.0, 0.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  func.return %0 : tensor<3xf32>
}

// 0.0 and -0.0 are equal and not the same.
// CHECK-LABEL: func.func @do_not_take_zeros_of_two_signs_for_one_number
// CHECK-COUNT-2: memref.store
// CHECK-NEXT:    func.return
func.func @do_not_take_zeros_of_two_signs_for_one_number() -> tensor<2xf32> {
  %0 = tssa.constant {value = dense<[0.0, -0.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}

// CHECK-LABEL: func.func @a_size_is_a_value
// CHECK:         %[[N:.*]] = memref.dim %x
// CHECK:         %[[V:.*]] = arith.index_cast %[[N]] : index to i64
// CHECK-NEXT:    memref.store %[[V]], %out0[]
func.func @a_size_is_a_value(%x: tensor<?xf32, #tssa.dims<[n]>>) -> tensor<i64> {
  %0 = tssa.size {value = #tssa.dims<[n]>} : () -> tensor<i64>
  func.return %0 : tensor<i64>
}
