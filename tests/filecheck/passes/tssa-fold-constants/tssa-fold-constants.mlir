// RUN: jit-opt %s -p tssa-fold-constants,tssa-dce --verify-each | filecheck %s

// CHECK-LABEL: func.func @folds_a_cast_and_what_follows
// CHECK-NEXT:    %[[A:.*]] = tssa.constant {value = dense<7.500000e-01> : tensor<f32>}
// CHECK-NEXT:    func.return %[[A]]
func.func @folds_a_cast_and_what_follows() -> tensor<f32> {
  %a = tssa.constant {value = dense<0.5> : tensor<f64>} : () -> tensor<f64>
  %b = tssa.cast %a : (tensor<f64>) -> tensor<f32>
  %c = tssa.constant {value = dense<1.5> : tensor<f32>} : () -> tensor<f32>
  %d = tssa.multiply %b, %c : (tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %d : tensor<f32>
}

// CHECK-LABEL: func.func @folds_across_blocks
// CHECK:         cf.br ^next
// CHECK-NEXT:  ^next:
// CHECK-NEXT:    %[[A:.*]] = tssa.constant {value = dense<-9223372036854775808> : tensor<i64>}
// CHECK-NEXT:    func.return %[[A]]
func.func @folds_across_blocks() -> tensor<i64> {
  %a = tssa.constant {value = dense<9223372036854775807> : tensor<i64>} : () -> tensor<i64>
  %b = tssa.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  cf.br ^next
^next:
  %c = tssa.add %a, %b : (tensor<i64>, tensor<i64>) -> tensor<i64>
  func.return %c : tensor<i64>
}

// CHECK-LABEL: func.func @folds_known_sizes
// CHECK-NEXT:    %[[A:.*]] = tssa.constant {value = dense<8> : tensor<i64>}
// CHECK-NEXT:    %[[B:.*]] = tssa.size {value = #tssa.dims<[n]>}
// CHECK-NEXT:    func.return %[[A]], %[[B]]
func.func @folds_known_sizes(%x : tensor<?xf32, #tssa.dims<[n]>>) -> (tensor<i64>, tensor<i64>) {
  %a = tssa.size {value = #tssa.dims<[8]>} : () -> tensor<i64>
  %b = tssa.size {value = #tssa.dims<[n]>} : () -> tensor<i64>
  func.return %a, %b : tensor<i64>, tensor<i64>
}

// CHECK-LABEL: func.func @folds_moves_of_constants
// CHECK-NEXT:    tssa.constant {value = dense<{{\[\[}}1, 3], [2, 4]]> : tensor<2x2xi64>}
// CHECK-NEXT:    tssa.constant {value = dense<[2, 4]> : tensor<2xi64>}
// CHECK-NEXT:    func.return
func.func @folds_moves_of_constants() -> (tensor<2x2xi64>, tensor<2xi64>) {
  %a = tssa.constant {value = dense<[1, 2, 3, 4]> : tensor<4xi64>} : () -> tensor<4xi64>
  %b = tssa.reshape %a : (tensor<4xi64>) -> tensor<2x2xi64>
  %c = tssa.transpose %b {permutation = array<i64: 1, 0>} : (tensor<2x2xi64>) -> tensor<2x2xi64>
  %d = tssa.extract %a {offsets = #tssa.dims<[1]>, steps = array<i64: 2>} : (tensor<4xi64>) -> tensor<2xi64>
  func.return %c, %d : tensor<2x2xi64>, tensor<2xi64>
}

// CHECK-LABEL: func.func @sees_through_a_broadcast
// CHECK-NEXT:    tssa.constant {value = dense<[3, 4]> : tensor<2xi64>}
// CHECK-NEXT:    func.return
func.func @sees_through_a_broadcast() -> tensor<2xi64> {
  %a = tssa.constant {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %b = tssa.broadcast %a : (tensor<i64>) -> tensor<2xi64>
  %c = tssa.constant {value = dense<[1, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
  %d = tssa.add %b, %c : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  func.return %d : tensor<2xi64>
}

// A scalar in a register is cheaper than a table in memory.
// CHECK-LABEL: func.func @do_not_fold_a_broadcast
// CHECK:         tssa.broadcast
// CHECK-NEXT:    tssa.add
func.func @do_not_fold_a_broadcast(%x : tensor<4xf32>) -> tensor<4xf32> {
  %a = tssa.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %b = tssa.broadcast %a : (tensor<f32>) -> tensor<4xf32>
  %c = tssa.add %x, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %c : tensor<4xf32>
}

// CHECK-LABEL: func.func @do_not_fold_what_is_not_constant
// CHECK:         tssa.add %x,
func.func @do_not_fold_what_is_not_constant(%x : tensor<f32>) -> tensor<f32> {
  %a = tssa.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %b = tssa.add %x, %a : (tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %b : tensor<f32>
}

// Their bits belong to their own definitions.
// CHECK-LABEL: func.func @do_not_fold_elementary_functions_and_sums
// CHECK:         tssa.exp
// CHECK:         tssa.sum
// CHECK:         tssa.matmul
func.func @do_not_fold_elementary_functions_and_sums() -> (tensor<2xf32>, tensor<f32>, tensor<f32>) {
  %a = tssa.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = tssa.exp %a : (tensor<2xf32>) -> tensor<2xf32>
  %c = tssa.sum %a {axes = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  %d = tssa.matmul %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
  func.return %b, %c, %d : tensor<2xf32>, tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @do_not_fold_large_tensors
// CHECK:         tssa.negative
func.func @do_not_fold_large_tensors() -> tensor<65xi64> {
  %a = tssa.constant {value = dense<1> : tensor<65xi64>} : () -> tensor<65xi64>
  %b = tssa.negative %a : (tensor<65xi64>) -> tensor<65xi64>
  func.return %b : tensor<65xi64>
}

// 0 x m has no elements, but its second size is not known.
// CHECK-LABEL: func.func @do_not_fold_what_has_no_elements_but_no_known_shape
// CHECK:         tssa.reshape
// CHECK-NEXT:    tssa.insert
func.func @do_not_fold_what_has_no_elements_but_no_known_shape(%x : tensor<?x?xf32, #tssa.dims<[n, m]>>) -> tensor<?x?xf32, #tssa.dims<[n, m]>> {
  %a = tssa.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %b = tssa.broadcast %a : (tensor<f32>) -> tensor<0x1x?xf32, #tssa.dims<[0, 1, m]>>
  %c = tssa.reshape %b : (tensor<0x1x?xf32, #tssa.dims<[0, 1, m]>>) -> tensor<0x?xf32, #tssa.dims<[0, m]>>
  %d = tssa.insert %x, %c {offsets = #tssa.dims<[0, 0]>, steps = array<i64: 1, 1>} : (tensor<?x?xf32, #tssa.dims<[n, m]>>, tensor<0x?xf32, #tssa.dims<[0, m]>>) -> tensor<?x?xf32, #tssa.dims<[n, m]>>
  func.return %d : tensor<?x?xf32, #tssa.dims<[n, m]>>
}
