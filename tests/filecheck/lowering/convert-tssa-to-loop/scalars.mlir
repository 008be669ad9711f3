// RUN: jit-opt %s -p tssa-fuse,tssa-bufferize,convert-tssa-to-loop | filecheck %s

// NaN goes through and -0 < +0: not maxnumf.
// CHECK-LABEL: func.func @maximum
// CHECK:         arith.maximumf %{{.*}}, %{{.*}} : f32
func.func @maximum(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = tssa.maximum %x, %y : (tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %0 : tensor<f32>
}

// CHECK-LABEL: func.func @minimum_of_bool
// CHECK:         arith.andi %{{.*}}, %{{.*}} : i1
func.func @minimum_of_bool(%x: tensor<i1>, %y: tensor<i1>) -> tensor<i1> {
  %0 = tssa.minimum %x, %y : (tensor<i1>, tensor<i1>) -> tensor<i1>
  func.return %0 : tensor<i1>
}

// Comparisons with NaN are false, except !=.
// CHECK-LABEL: func.func @comparisons
// CHECK:         arith.cmpf olt
// CHECK:         arith.cmpf une
func.func @comparisons(%x: tensor<f32>, %y: tensor<f32>) -> (tensor<i1>, tensor<i1>) {
  %0 = tssa.less %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %1 = tssa.not_equal %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
  func.return %0, %1 : tensor<i1>, tensor<i1>
}

// False < True: an unsigned comparison of single bits.
// CHECK-LABEL: func.func @comparison_of_bool
// CHECK:         arith.cmpi ult, %{{.*}}, %{{.*}} : i1
func.func @comparison_of_bool(%x: tensor<i1>, %y: tensor<i1>) -> tensor<i1> {
  %0 = tssa.less %x, %y : (tensor<i1>, tensor<i1>) -> tensor<i1>
  func.return %0 : tensor<i1>
}

// The count is masked, so no shift is undefined, then wide counts give 0.
// CHECK-LABEL: func.func @left_shift
// CHECK:         %[[IN:.*]] = arith.cmpi ult, %[[C:.*]], %{{.*}} : i64
// CHECK-NEXT:    %[[M:.*]] = arith.andi %[[C]], %{{.*}} : i64
// CHECK-NEXT:    %[[S:.*]] = arith.shli %{{.*}}, %[[M]] : i64
// CHECK-NEXT:    arith.select %[[IN]], %[[S]], %{{.*}} : i64
func.func @left_shift(%x: tensor<i64>, %y: tensor<i64>) -> tensor<i64> {
  %0 = tssa.left_shift %x, %y : (tensor<i64>, tensor<i64>) -> tensor<i64>
  func.return %0 : tensor<i64>
}

// CHECK-LABEL: func.func @right_shift
// CHECK:         %[[IN:.*]] = arith.cmpi ult, %[[C:.*]], %{{.*}} : i64
// CHECK-NEXT:    %[[M:.*]] = arith.select %[[IN]], %[[C]], %{{.*}} : i64
// CHECK-NEXT:    arith.shrsi %{{.*}}, %[[M]] : i64
func.func @right_shift(%x: tensor<i64>, %y: tensor<i64>) -> tensor<i64> {
  %0 = tssa.right_shift %x, %y : (tensor<i64>, tensor<i64>) -> tensor<i64>
  func.return %0 : tensor<i64>
}

// The conversion sees 0 in place of NaN and of what does not fit, for which it is undefined.
// CHECK-LABEL: func.func @float_to_integer
// CHECK:         %[[MIN:.*]] = arith.constant -9223372036854775808 : i64
// CHECK:         %[[A:.*]] = arith.cmpf oge, %[[X:.*]], %{{.*}} : f32
// CHECK-NEXT:    %[[B:.*]] = arith.cmpf olt, %[[X]], %{{.*}} : f32
// CHECK-NEXT:    %[[F:.*]] = arith.andi %[[A]], %[[B]] : i1
// CHECK-NEXT:    %[[S:.*]] = arith.select %[[F]], %[[X]], %{{.*}} : f32
// CHECK-NEXT:    %[[C:.*]] = arith.fptosi %[[S]] : f32 to i64
// CHECK-NEXT:    arith.select %[[F]], %[[C]], %[[MIN]] : i64
func.func @float_to_integer(%x: tensor<f32>) -> tensor<i64> {
  %0 = tssa.cast %x : (tensor<f32>) -> tensor<i64>
  func.return %0 : tensor<i64>
}

// The smallest integer stays itself.
// CHECK-LABEL: func.func @abs_of_integers
// CHECK:         %[[N:.*]] = arith.subi %{{.*}}, %[[X:.*]] : i64
// CHECK-NEXT:    arith.maxsi %[[X]], %[[N]] : i64
func.func @abs_of_integers(%x: tensor<i64>) -> tensor<i64> {
  %0 = tssa.abs %x : (tensor<i64>) -> tensor<i64>
  func.return %0 : tensor<i64>
}

// Every width has its own bounds; those of int32 are exact in f64.
// CHECK-LABEL: func.func @double_to_int32
// CHECK:         %[[MIN:.*]] = arith.constant -2147483648 : i32
// CHECK:         %[[A:.*]] = arith.cmpf oge, %[[X:.*]], %{{.*}} : f64
// CHECK-NEXT:    %[[B:.*]] = arith.cmpf olt, %[[X]], %{{.*}} : f64
// CHECK-NEXT:    %[[F:.*]] = arith.andi %[[A]], %[[B]] : i1
// CHECK-NEXT:    %[[S:.*]] = arith.select %[[F]], %[[X]], %{{.*}} : f64
// CHECK-NEXT:    %[[C:.*]] = arith.fptosi %[[S]] : f64 to i32
// CHECK-NEXT:    arith.select %[[F]], %[[C]], %[[MIN]] : i32
func.func @double_to_int32(%x: tensor<f64>) -> tensor<i32> {
  %0 = tssa.cast %x : (tensor<f64>) -> tensor<i32>
  func.return %0 : tensor<i32>
}

// CHECK-LABEL: func.func @casts_between_widths
// CHECK:         arith.trunci %{{.*}} : i64 to i32
// CHECK:         arith.truncf %{{.*}} : f64 to f32
// CHECK:         arith.extsi %{{.*}} : i32 to i64
// CHECK:         arith.sitofp %{{.*}} : i32 to f64
// CHECK:         arith.cmpi ne, %{{.*}}, %{{.*}} : i32
// CHECK:         arith.extui %{{.*}} : i1 to i32
func.func @casts_between_widths(%i: tensor<i32>, %j: tensor<i64>, %x: tensor<f64>, %b: tensor<i1>)
    -> (tensor<i64>, tensor<i32>, tensor<f64>, tensor<f32>, tensor<i1>, tensor<i32>) {
  %0 = tssa.cast %i : (tensor<i32>) -> tensor<i64>
  %1 = tssa.cast %j : (tensor<i64>) -> tensor<i32>
  %2 = tssa.cast %i : (tensor<i32>) -> tensor<f64>
  %3 = tssa.cast %x : (tensor<f64>) -> tensor<f32>
  %4 = tssa.cast %i : (tensor<i32>) -> tensor<i1>
  %5 = tssa.cast %b : (tensor<i1>) -> tensor<i32>
  func.return %0, %1, %2, %3, %4, %5
    : tensor<i64>, tensor<i32>, tensor<f64>, tensor<f32>, tensor<i1>, tensor<i32>
}

// 32 is past the width.
// CHECK-LABEL: func.func @left_shift_of_int32
// CHECK-DAG:     %[[W:.*]] = arith.constant 32 : i32
// CHECK-DAG:     %[[MOST:.*]] = arith.constant 31 : i32
// CHECK:         %[[IN:.*]] = arith.cmpi ult, %[[C:.*]], %[[W]] : i32
// CHECK-NEXT:    %[[M:.*]] = arith.andi %[[C]], %[[MOST]] : i32
// CHECK-NEXT:    %[[S:.*]] = arith.shli %{{.*}}, %[[M]] : i32
// CHECK-NEXT:    arith.select %[[IN]], %[[S]], %{{.*}} : i32
func.func @left_shift_of_int32(%x: tensor<i32>, %y: tensor<i32>) -> tensor<i32> {
  %0 = tssa.left_shift %x, %y : (tensor<i32>, tensor<i32>) -> tensor<i32>
  func.return %0 : tensor<i32>
}

// -x flips the sign of zero, 0 - x does not.
// CHECK-LABEL: func.func @do_not_subtract_to_negate
// CHECK:         arith.negf
// CHECK-NOT:     arith.subf
// CHECK:         func.return
func.func @do_not_subtract_to_negate(%x: tensor<f32>) -> tensor<f32> {
  %0 = tssa.negative %x : (tensor<f32>) -> tensor<f32>
  func.return %0 : tensor<f32>
}

// One rounding per operation.
// CHECK-LABEL: func.func @do_not_contract
// CHECK-NOT:     math.fma
// CHECK:         arith.mulf
// CHECK-NEXT:    %{{.*}} = memref.load
// CHECK-NEXT:    arith.addf
func.func @do_not_contract(%x: tensor<f32>, %y: tensor<f32>, %z: tensor<f32>) -> tensor<f32> {
  %0 = tssa.multiply %x, %y : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %1 = tssa.add %0, %z : (tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %1 : tensor<f32>
}
