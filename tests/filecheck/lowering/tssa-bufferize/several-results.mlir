// RUN: jit-opt %s -p 'tssa-fuse,tssa-bufferize{check=true}' | filecheck %s

// One buffer per result, in order.
// CHECK-LABEL: func.func @every_result_has_its_buffer
// CHECK:         tssa.group ins(%x : memref<8xf32>) outs(%out1, %out0 : memref<8xf32>, memref<8xf32>)
func.func @every_result_has_its_buffer(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = tssa.abs %a : (tensor<8xf32>) -> tensor<8xf32>
  func.return %b, %a : tensor<8xf32>, tensor<8xf32>
}

// Two results die with the same operand: one of them takes its place, not both.
// CHECK-LABEL: func.func @one_result_takes_the_place_of_an_operand
// CHECK:         tssa.group ins(%out0, %y : memref<8xf32>, memref<8xf32>) outs(%out0, %out1 : memref<8xf32>, memref<8xf32>)
func.func @one_result_takes_the_place_of_an_operand(
    %x: tensor<8xf32>, %y: tensor<8xf32>, %p: tensor<2xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = tssa.insert %x, %p {offsets = #tssa.dims<[1]>, steps = array<i64: 1>}
    : (tensor<8xf32>, tensor<2xf32>) -> tensor<8xf32>
  %b = tssa.add %a, %y : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %c = tssa.multiply %a, %y : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %b, %c : tensor<8xf32>, tensor<8xf32>
}

// The last read of %a's row comes before or with the first write of the quotient's: one buffer.
// CHECK-LABEL: func.func @rows_are_normalised_in_place
// CHECK:         tssa.group ins(%out0 : memref<4x8xf32>) outs(%out0 : memref<4x8xf32>)
// CHECK:           tssa.sum
// CHECK:           tssa.divide
func.func @rows_are_normalised_in_place(%x: tensor<4x8xf32>, %p: tensor<2x2xf32>) -> tensor<4x8xf32> {
  %a = tssa.insert %x, %p {offsets = #tssa.dims<[1, 1]>, steps = array<i64: 1, 1>}
    : (tensor<4x8xf32>, tensor<2x2xf32>) -> tensor<4x8xf32>
  %b = tssa.sum %a {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %c = tssa.reshape %b : (tensor<4xf32>) -> tensor<4x1xf32>
  %d = tssa.broadcast %c : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %e = tssa.divide %a, %d : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %e : tensor<4x8xf32>
}

// exp(%a) is kept in the place of the result while %a is still needed for the last step.
// CHECK-LABEL: func.func @do_not_overwrite_a_row_that_is_read_again
// CHECK:         %[[A:.*]] = memref.view %arena
// CHECK:         tssa.group ins(%[[A]] : memref<4x8xf32>) outs(%out0 : memref<4x8xf32>)
// CHECK:           tssa.sum
// CHECK:           tssa.multiply
func.func @do_not_overwrite_a_row_that_is_read_again(%x: tensor<4x8xf32>, %p: tensor<2x2xf32>) -> tensor<4x8xf32> {
  %a = tssa.insert %x, %p {offsets = #tssa.dims<[1, 1]>, steps = array<i64: 1, 1>}
    : (tensor<4x8xf32>, tensor<2x2xf32>) -> tensor<4x8xf32>
  %e = tssa.exp %a : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %b = tssa.sum %e {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %c = tssa.reshape %b : (tensor<4xf32>) -> tensor<4x1xf32>
  %d = tssa.broadcast %c : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %f = tssa.divide %e, %d : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %g = tssa.multiply %f, %a : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %g : tensor<4x8xf32>
}
