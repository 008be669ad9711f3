// RUN: jit-opt %s -p tssa-fuse,tssa-bufferize | filecheck %s

// An argument that is a constant comes before the results, keeps its mark, and is read where it is.
// CHECK-LABEL: func.func @constant_is_an_input
// CHECK-SAME:    (%x: memref<?x70xf32> {tssa.dims = #tssa.dims<[n, 70]>}, %w: memref<70xf32> {tssa.constant = 3 : i64}, %out0: memref<?x70xf32> {tssa.dims = #tssa.dims<[n, 70]>}, %arena: memref<?xi8>)
// CHECK:         tssa.group ins(%x, %w : memref<?x70xf32>, memref<70xf32>) outs(%out0 : memref<?x70xf32>)
func.func @constant_is_an_input(%x: tensor<?x70xf32, #tssa.dims<[n, 70]>>, %w: tensor<70xf32> {tssa.constant = 3 : i64}) -> tensor<?x70xf32, #tssa.dims<[n, 70]>> {
  %b = tssa.broadcast %w : (tensor<70xf32>) -> tensor<?x70xf32, #tssa.dims<[n, 70]>>
  %c = tssa.add %x, %b : (tensor<?x70xf32, #tssa.dims<[n, 70]>>, tensor<?x70xf32, #tssa.dims<[n, 70]>>) -> tensor<?x70xf32, #tssa.dims<[n, 70]>>
  func.return %c : tensor<?x70xf32, #tssa.dims<[n, 70]>>
}

// %w is dead after %a, of the same type, and not overwritten all the same.
// CHECK-LABEL: func.func @do_not_write_a_constant
// CHECK:         tssa.group ins(%w : memref<70xf32>) outs(%[[A:.*]] : memref<70xf32>)
// CHECK:         tssa.insert
func.func @do_not_write_a_constant(
    %w: tensor<70xf32> {tssa.constant = 0 : i64}, %x: tensor<2xf32>) -> tensor<70xf32> {
  %a = tssa.abs %w : (tensor<70xf32>) -> tensor<70xf32>
  %s = tssa.insert %a, %x {offsets = #tssa.dims<[1]>, steps = array<i64: 1>}
    : (tensor<70xf32>, tensor<2xf32>) -> tensor<70xf32>
  func.return %s : tensor<70xf32>
}

// What is returned is a copy; the caller owns results.
// CHECK-LABEL: func.func @returned_constant_is_copied
// CHECK:         %[[V:.*]] = memref.reinterpret_cast %w
// CHECK:         tssa.group ins(%[[V]] : memref<7x10xf32>) outs(%out0 : memref<7x10xf32>)
// CHECK-NEXT:    ^{{.*}}(%[[B:.*]]: tensor<7x10xf32>):
// CHECK-NEXT:      tssa.yield %[[B]]
func.func @returned_constant_is_copied(%w: tensor<70xf32> {tssa.constant = 0 : i64}) -> tensor<7x10xf32> {
  %a = tssa.reshape %w : (tensor<70xf32>) -> tensor<7x10xf32>
  func.return %a : tensor<7x10xf32>
}
