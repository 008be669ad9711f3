// RUN: jit-opt %s -p tssa-fuse,tssa-bufferize | filecheck %s

// A check is one assertion; the view behind it begins where the index says, and is made there: the index
// changes its memory later.
// CHECK-LABEL: func.func @a_row
// CHECK:         %[[V:.*]] = memref.load %i[] : memref<i64>
// CHECK-NEXT:    %[[I:.*]] = arith.index_cast %[[V]] : i64 to index
// CHECK-NEXT:    %[[A:.*]] = arith.cmpi sle, %{{.*}}, %[[I]] : index
// CHECK-NEXT:    %[[B:.*]] = arith.cmpi sle, %[[I]], %{{.*}} : index
// CHECK-NEXT:    %[[C:.*]] = arith.andi %[[A]], %[[B]] : i1
// CHECK-NEXT:    cf.assert %[[C]], "an index, a slice or an integer is out of bounds"
// CHECK:         %[[N:.*]] = arith.cmpi slt, %[[J:.*]], %{{.*}} : index
// CHECK-NEXT:    %[[W:.*]] = arith.select %[[N]], %{{.*}}, %[[J]] : index
// CHECK-NEXT:    %[[O:.*]] = arith.muli %[[W]], %{{.*}} : index
// CHECK-NEXT:    %[[R:.*]] = memref.reinterpret_cast %x to offset: [%[[O]]], sizes: [1, 8], strides: [8, 1]
// CHECK-NEXT:    tssa.group ins(%[[R]] : memref<1x8xf32, strided<[8, 1], offset: ?>>) outs(%out0 : memref<1x8xf32>)
func.func @a_row(%x: tensor<4x8xf32>, %i: tensor<i64>) -> tensor<1x8xf32> {
  tssa.check_bounds %i {lower = #tssa.dims<[-4]>, upper = #tssa.dims<[3]>} : tensor<i64>
  %r = tssa.extract %x, %i {offsets = #tssa.dims<[wrap(_0, 4), 0]>, steps = array<i64: 1, 1>} : (tensor<4x8xf32>, tensor<i64>) -> tensor<1x8xf32>
  %a = tssa.abs %r : (tensor<1x8xf32>) -> tensor<1x8xf32>
  func.return %a : tensor<1x8xf32>
}

// An element of a row: the offsets add up.
// CHECK-LABEL: func.func @an_element_of_a_row
// CHECK:         memref.reinterpret_cast %x
// CHECK:         %[[S:.*]] = arith.addi
// CHECK-NEXT:    memref.reinterpret_cast %x to offset: [%[[S]]], sizes: [1, 1], strides: [8, 1]
func.func @an_element_of_a_row(%x: tensor<4x8xf32>, %i: tensor<i64>, %j: tensor<i64>) -> tensor<1x1xf32> {
  %r = tssa.extract %x, %i {offsets = #tssa.dims<[_0, 0]>, steps = array<i64: 1, 1>} : (tensor<4x8xf32>, tensor<i64>) -> tensor<1x8xf32>
  %e = tssa.extract %r, %j {offsets = #tssa.dims<[0, _0]>, steps = array<i64: 1, 1>} : (tensor<1x8xf32>, tensor<i64>) -> tensor<1x1xf32>
  %a = tssa.abs %e : (tensor<1x1xf32>) -> tensor<1x1xf32>
  func.return %a : tensor<1x1xf32>
}

// A carried array takes an element in place, in the caller's buffer: no copy of the whole in the loop.
// CHECK-LABEL: func.func @an_element_is_written_in_place
// CHECK:         cf.br ^[[L:.*]]
// CHECK-NEXT:  ^[[L]]:
// CHECK-NEXT:    tssa.group ins(%out0, %v, %i : memref<4xf32>, memref<1xf32>, memref<i64>) outs(%out0 : memref<4xf32>)
// CHECK-NOT:     tssa.group
// CHECK:         func.return
func.func @an_element_is_written_in_place(%x: tensor<4xf32>, %v: tensor<1xf32>, %i: tensor<i64>, %g: tensor<i1>) -> tensor<4xf32> {
  cf.br ^loop(%x : tensor<4xf32>)
^loop(%a: tensor<4xf32>):
  %b = tssa.insert %a, %v, %i {offsets = #tssa.dims<[_0]>, steps = array<i64: 1>} : (tensor<4xf32>, tensor<1xf32>, tensor<i64>) -> tensor<4xf32>
  %c = tensor.extract %g[] : tensor<i1>
  cf.cond_br %c, ^loop(%b : tensor<4xf32>), ^done
^done:
  func.return %b : tensor<4xf32>
}
