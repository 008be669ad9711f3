// RUN: jit-opt %s -p tssa-fuse,tssa-bufferize --remarks 2>&1 | filecheck %s

// CHECK: remark: @around: tssa.exp is not merged with tssa.insert: one of them is a group of its own
// CHECK: remark: @around: tssa.exp is not merged with tssa.add: an operation outside depends on one and feeds the other
func.func @around(%x: tensor<8xf32>, %y: tensor<2xf32>) -> tensor<8xf32> {
  %a = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = tssa.insert %a, %y {offsets = #tssa.dims<[1]>, steps = array<i64: 1>}
    : (tensor<8xf32>, tensor<2xf32>) -> tensor<8xf32>
  %c = tssa.add %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %c : tensor<8xf32>
}
