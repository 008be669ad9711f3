// RUN: jit-opt %s -p tssa-fuse | filecheck %s

// CHECK-LABEL: func.func @a_chain_becomes_one_group
// CHECK-NEXT:    %[[R:.*]] = tssa.group ins(%x, %y : tensor<8xf32>, tensor<8xf32>) {
// CHECK-NEXT:    ^{{.*}}(%[[X:.*]]: tensor<8xf32>, %[[Y:.*]]: tensor<8xf32>):
// CHECK-NEXT:      %[[A:.*]] = tssa.add %[[X]], %[[Y]]
// CHECK-NEXT:      %[[B:.*]] = tssa.exp %[[A]]
// CHECK-NEXT:      %[[C:.*]] = tssa.multiply %[[B]], %[[A]]
// CHECK-NEXT:      tssa.yield %[[C]]
// CHECK-NEXT:    } -> tensor<8xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @a_chain_becomes_one_group(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %a = tssa.add %x, %y : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %b = tssa.exp %a : (tensor<8xf32>) -> tensor<8xf32>
  %c = tssa.multiply %b, %a : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %c : tensor<8xf32>
}

// A bias and an activation follow the whole sum of a product.
// CHECK-LABEL: func.func @an_epilogue_joins_its_product
// CHECK-NEXT:    tssa.group ins(%x, %w, %b :
// CHECK-NEXT:    ^
// CHECK-NEXT:      tssa.matmul
// CHECK-NEXT:      tssa.broadcast
// CHECK-NEXT:      tssa.add
// CHECK-NEXT:      tssa.tanh
// CHECK-NEXT:      tssa.yield
func.func @an_epilogue_joins_its_product(
    %x: tensor<4x8xf32>, %w: tensor<8x2xf32>, %b: tensor<2xf32>) -> tensor<4x2xf32> {
  %0 = tssa.matmul %x, %w : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  %1 = tssa.broadcast %b : (tensor<2xf32>) -> tensor<4x2xf32>
  %2 = tssa.add %0, %1 : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %3 = tssa.tanh %2 : (tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return %3 : tensor<4x2xf32>
}

// One number and a broadcast cost nothing, so each group has its own.
// CHECK-LABEL: func.func @constants_and_broadcasts_are_in_every_group_that_reads_them
// CHECK-NEXT:    tssa.group ins(%x : tensor<8xf32>) {
// CHECK:           tssa.constant
// CHECK-NEXT:      tssa.broadcast
// CHECK-NEXT:      tssa.add
// CHECK-NEXT:      tssa.yield
// CHECK:         tssa.group ins(%y : tensor<8xf32>) {
// CHECK:           tssa.constant
// CHECK-NEXT:      tssa.broadcast
// CHECK-NEXT:      tssa.multiply
// CHECK-NEXT:      tssa.yield
// CHECK-NOT:     tssa.broadcast
// CHECK:         func.return
func.func @constants_and_broadcasts_are_in_every_group_that_reads_them(
    %x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c = tssa.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %b = tssa.broadcast %c : (tensor<f32>) -> tensor<8xf32>
  %0 = tssa.add %x, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = tssa.multiply %y, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @scalar_arithmetic_joins_what_it_feeds
// CHECK-NEXT:    tssa.group ins(%x, %s : tensor<8xf32>, tensor<f64>) {
// CHECK:           tssa.cast
// CHECK-NEXT:      tssa.broadcast
// CHECK-NEXT:      tssa.multiply
// CHECK-NEXT:      tssa.yield
func.func @scalar_arithmetic_joins_what_it_feeds(
    %x: tensor<8xf32>, %s: tensor<f64> {tssa.weak}) -> tensor<8xf32> {
  %c = tssa.cast %s : (tensor<f64>) -> tensor<f32>
  %b = tssa.broadcast %c : (tensor<f32>) -> tensor<8xf32>
  %0 = tssa.multiply %x, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @a_diamond_is_one_group
// CHECK-COUNT-1: tssa.group
// CHECK-NOT:     tssa.group
// CHECK:         func.return
func.func @a_diamond_is_one_group(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = tssa.negative %a : (tensor<8xf32>) -> tensor<8xf32>
  %c = tssa.abs %a : (tensor<8xf32>) -> tensor<8xf32>
  %d = tssa.add %b, %c : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %d : tensor<8xf32>
}

// An operation that nobody reads is left to tssa-dce.
// CHECK-LABEL: func.func @unread_results_are_kept
// CHECK:         tssa.group
// CHECK:           tssa.exp
func.func @unread_results_are_kept(%x: tensor<8xf32>) {
  %a = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  func.return
}

// Symbolic sizes are one shape where their expressions are equal.
// CHECK-LABEL: func.func @symbolic_shapes_fuse
// CHECK-COUNT-1: tssa.group
// CHECK-NOT:     tssa.group
// CHECK:         func.return
func.func @symbolic_shapes_fuse(
    %x: tensor<?xf32, #tssa.dims<[n + 1]>>) -> tensor<?xf32, #tssa.dims<[n + 1]>> {
  %a = tssa.exp %x : (tensor<?xf32, #tssa.dims<[n + 1]>>) -> tensor<?xf32, #tssa.dims<[n + 1]>>
  %b = tssa.abs %a : (tensor<?xf32, #tssa.dims<[n + 1]>>) -> tensor<?xf32, #tssa.dims<[n + 1]>>
  func.return %b : tensor<?xf32, #tssa.dims<[n + 1]>>
}
