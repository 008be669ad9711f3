// RUN: jit-opt %s -p expand-elementary | filecheck %s

// CHECK-LABEL: func.func @exp_is_a_fixed_sequence
// CHECK-NOT:     math.exp
// CHECK:         arith.cmpf olt, %x, {{%.+}} : vector<8xf32>
// CHECK-NEXT:    arith.select
// CHECK:         math.fma
// CHECK:         arith.bitcast {{%.+}} : vector<8xf32> to vector<8xi32>
// CHECK-NEXT:    arith.shrui
// CHECK:         arith.mulf
// CHECK-NEXT:    [[R:%.+]] = arith.mulf
// CHECK-NEXT:    func.return [[R]] : vector<8xf32>
func.func @exp_is_a_fixed_sequence(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.exp %x : vector<8xf32>
  func.return %y : vector<8xf32>
}

// float64 has the same design with more coefficients.
// CHECK-LABEL: func.func @log_of_f64
// CHECK-NOT:     math.log
// CHECK:         arith.bitcast {{%.+}} : vector<4xf64> to vector<4xi64>
// CHECK:         arith.shrui {{%.+}} : vector<4xi64>
// CHECK:         arith.divf
// CHECK:         math.fma
// CHECK:         func.return {{%.+}} : vector<4xf64>
func.func @log_of_f64(%x: vector<4xf64>) -> vector<4xf64> {
  %y = math.log %x : vector<4xf64>
  func.return %y : vector<4xf64>
}

// CHECK-LABEL: func.func @rsqrt_corrects_its_quotient
// CHECK-NOT:     math.rsqrt
// CHECK:         [[R:%.+]] = math.sqrt %x : vector<8xf32>
// CHECK-NEXT:    [[Y:%.+]] = arith.divf {{%.+}}, [[R]] : vector<8xf32>
// CHECK-COUNT-4: math.fma
// CHECK-NEXT:    arith.cmpf ogt
// CHECK-NEXT:    arith.select {{%.+}}, {{%.+}}, [[Y]] : vector<8xi1>, vector<8xf32>
func.func @rsqrt_corrects_its_quotient(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.rsqrt %x : vector<8xf32>
  func.return %y : vector<8xf32>
}

// CHECK-LABEL: func.func @constants_stand_at_the_start_once
// CHECK:         arith.constant 1.44269502 : f32
// CHECK-NOT:     arith.constant 1.44269502 : f32
// CHECK:         scf.for
// CHECK-NOT:     arith.constant
// CHECK:         math.copysign
// CHECK:         math.copysign
func.func @constants_stand_at_the_start_once(%n: index, %x: f32) -> f32 {
  %r = scf.for %i = %n to %n step %n iter_args(%a = %x) -> (f32) {
    %e = math.exp %a : f32
    %t = math.tanh %e : f32
    %f = math.erf %t : f32
    scf.yield %f : f32
  }
  func.return %r : f32
}

// CHECK-LABEL: func.func @a_function_that_math_lacks
// CHECK-NOT:     loop.elementary
// CHECK:         arith.divf {{%.+}}, {{%.+}} : vector<8xf32>
// CHECK:         arith.select {{%.+}} : vector<8xi1>, vector<8xf32>
// CHECK:         func.return {{%.+}} : vector<8xf32>
func.func @a_function_that_math_lacks(%x: vector<8xf32>) -> vector<8xf32> {
  %y = loop.elementary "gelu" %x : vector<8xf32>
  func.return %y : vector<8xf32>
}

// CHECK-LABEL: func.func @do_not_touch_other_functions
// CHECK-NEXT:    math.sqrt
func.func @do_not_touch_other_functions(%x: f32) -> f32 {
  %y = math.sqrt %x : f32
  func.return %y : f32
}
