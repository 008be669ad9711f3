// RUN: not jit-opt %s --allow-unregistered-dialect -p 'tssa-fuse,tssa-bufferize' 2>&1 | filecheck %s

// CHECK: in pass 'tssa-bufferize': tssa-bufferize: strange.op works on tensors and has no form on buffers here; lower it first
func.func @do_not_guess_the_buffers_of_an_unknown_operation(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "tssa.exp"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "strange.op"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
