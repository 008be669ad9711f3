// RUN: jit-opt %s -p convert-math-to-llvm | filecheck %s

// CHECK-LABEL: func.func @exactly_rounded_functions_become_intrinsics
// CHECK-NEXT:    llvm.intr.fma(%a, %a, %a) : (vector<8xf32>, vector<8xf32>, vector<8xf32>) -> vector<8xf32>
// CHECK-NEXT:    llvm.intr.sqrt
// CHECK-NEXT:    llvm.intr.fabs
// CHECK-NEXT:    llvm.intr.copysign
// CHECK-NEXT:    llvm.intr.floor
// CHECK-NEXT:    llvm.intr.ceil
// CHECK-NEXT:    llvm.intr.trunc
// CHECK-NEXT:    llvm.intr.roundeven
func.func @exactly_rounded_functions_become_intrinsics(%a: vector<8xf32>) -> vector<8xf32> {
  %0 = math.fma %a, %a, %a : vector<8xf32>
  %1 = math.sqrt %0 : vector<8xf32>
  %2 = math.absf %1 : vector<8xf32>
  %3 = math.copysign %2, %a : vector<8xf32>
  %4 = math.floor %3 : vector<8xf32>
  %5 = math.ceil %4 : vector<8xf32>
  %6 = math.trunc %5 : vector<8xf32>
  %7 = math.roundeven %6 : vector<8xf32>
  func.return %7 : vector<8xf32>
}

// CHECK-LABEL: func.func @counts_bits_of_zero_and_takes_the_absolute_minimum
// CHECK-NEXT:    "llvm.intr.cttz"(%x) <{is_zero_poison = false}> : (i64) -> i64
// CHECK-NEXT:    "llvm.intr.ctlz"({{%.+}}) <{is_zero_poison = false}> : (i64) -> i64
// CHECK-NEXT:    llvm.intr.ctpop
// CHECK-NEXT:    "llvm.intr.abs"({{%.+}}) <{is_int_min_poison = false}> : (i64) -> i64
func.func @counts_bits_of_zero_and_takes_the_absolute_minimum(%x: i64) -> i64 {
  %0 = math.cttz %x : i64
  %1 = math.ctlz %0 : i64
  %2 = math.ctpop %1 : i64
  %3 = math.absi %2 : i64
  func.return %3 : i64
}

// CHECK-LABEL: func.func @do_not_touch_functions_without_an_exact_intrinsic
// CHECK-NEXT:    math.log1p
func.func @do_not_touch_functions_without_an_exact_intrinsic(%a: f32) -> f32 {
  %0 = math.log1p %a : f32
  func.return %0 : f32
}
