// RUN: not jit-opt %s -p tssa-bufferize,convert-tssa-to-loop 2>&1 | filecheck %s

// CHECK: a group would go over its columns more than once; run tssa-fuse, which makes no such groups
!t = tensor<64x8xf32>
func.func @do_not_go_over_columns_again(%x: !t) -> !t {
  %g = tssa.group ins(%x : !t) {
  ^bb0(%a : !t):
    %0 = tssa.sum %a {axes = array<i64: 0>} : (!t) -> tensor<8xf32>
    %1 = tssa.broadcast %0 : (tensor<8xf32>) -> !t
    %2 = tssa.subtract %a, %1 : (!t, !t) -> !t
    tssa.yield %2 : !t
  } -> !t
  func.return %g : !t
}
