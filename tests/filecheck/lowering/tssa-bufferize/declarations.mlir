// RUN: jit-opt %s -p tssa-bufferize | filecheck %s

// CHECK: func.func private @do_not_change_a_declaration(tensor<f32>) -> tensor<f32>
func.func private @do_not_change_a_declaration(tensor<f32>) -> tensor<f32>
