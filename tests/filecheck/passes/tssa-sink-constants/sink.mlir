// RUN: jit-opt %s -p tssa-sink-constants | filecheck %s

// CHECK-LABEL: func.func @to_the_loop_that_reads_it
// CHECK-NEXT:    cf.br ^[[L:.*]](%x
// CHECK-NEXT:  ^[[L]](%[[V:.*]]: tensor<8xf32>):
// CHECK-NEXT:    %[[H:.*]] = tssa.constant {value = dense<5.000000e-01> : tensor<8xf32>}
// CHECK-NEXT:    tssa.multiply %[[V]], %[[H]]
func.func @to_the_loop_that_reads_it(%x: tensor<8xf32>) -> tensor<8xf32> {
  %half = tssa.constant {value = dense<0.5> : tensor<8xf32>} : () -> tensor<8xf32>
  cf.br ^loop(%x : tensor<8xf32>)
^loop(%v: tensor<8xf32>):
  %w = tssa.multiply %v, %half : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  cf.br ^loop(%w : tensor<8xf32>)
}

// A copy for each block, the original for its own; a size is a number too.
// CHECK-LABEL: func.func @to_every_reader
// CHECK-NEXT:    %[[A:.*]] = tssa.size {value = #tssa.dims<[n]>}
// CHECK-NEXT:    tssa.add %[[A]], %[[A]]
// CHECK:       ^{{.*}}:
// CHECK-NEXT:    %[[B:.*]] = tssa.size {value = #tssa.dims<[n]>}
// CHECK-NEXT:    %[[D:.*]] = tssa.negative %[[B]]
// CHECK-NEXT:    tssa.add %[[D]], %[[B]]
func.func @to_every_reader(%x: tensor<?xf32, #tssa.dims<[n]>>, %c: i1) -> tensor<i64> {
  %n = tssa.size {value = #tssa.dims<[n]>} : () -> tensor<i64>
  %d = tssa.add %n, %n : (tensor<i64>, tensor<i64>) -> tensor<i64>
  cf.cond_br %c, ^other, ^same
^other:
  %e = tssa.negative %n : (tensor<i64>) -> tensor<i64>
  %f = tssa.add %e, %n : (tensor<i64>, tensor<i64>) -> tensor<i64>
  func.return %f : tensor<i64>
^same:
  func.return %d : tensor<i64>
}

// CHECK-LABEL: func.func @do_not_sink_a_table
// CHECK-NEXT:    tssa.constant
// CHECK-NEXT:    cf.br
func.func @do_not_sink_a_table() -> tensor<2xf32> {
  %t = tssa.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  cf.br ^next
^next:
  %a = tssa.abs %t : (tensor<2xf32>) -> tensor<2xf32>
  func.return %a : tensor<2xf32>
}

// CHECK-LABEL: func.func @do_not_sink_what_has_operands
// CHECK-NEXT:    tssa.negative
// CHECK-NEXT:    cf.br
func.func @do_not_sink_what_has_operands(%x: tensor<f32>) -> tensor<f32> {
  %n = tssa.negative %x : (tensor<f32>) -> tensor<f32>
  cf.br ^next
^next:
  %a = tssa.abs %n : (tensor<f32>) -> tensor<f32>
  func.return %a : tensor<f32>
}

// CHECK-LABEL: func.func @do_not_copy_within_a_block
// CHECK-NEXT:    tssa.constant
// CHECK-NEXT:    tssa.add
// CHECK-NEXT:    cf.br
func.func @do_not_copy_within_a_block(%x: tensor<f32>) -> tensor<f32> {
  %k = tssa.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %n = tssa.add %x, %k : (tensor<f32>, tensor<f32>) -> tensor<f32>
  cf.br ^next
^next:
  func.return %n : tensor<f32>
}
