// RUN: jit-opt %s -p 'expand-elementary{features="x86-64-v4"}' | filecheck %s
// RUN: jit-opt %s -p 'expand-elementary{features="x86-64-v3"}' | filecheck %s --check-prefix=V3
// RUN: not jit-opt %s -p 'expand-elementary{features="avx9"}' 2>&1 | filecheck %s --check-prefix=UNKNOWN

// UNKNOWN: expand-elementary: unknown features 'avx9'; known are x86-64-v1, x86-64-v2
// V3-NOT: llvm.call_intrinsic

// The last steps of exp are a product with a power of two: one instruction for a register.
func.func @one_register(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp %x : vector<16xf32>
  func.return %y : vector<16xf32>
}
// CHECK-LABEL: func.func @one_register
// CHECK-DAG:     %[[SMALLEST:.*]] = arith.constant dense<-1.056250e+02> : vector<16xf32>
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK-DAG:     %[[MODE:.*]] = arith.constant 4 : i32
// CHECK:         %[[N:.*]] = arith.subf %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK-NOT:     arith.bitcast
// CHECK:         %[[KEPT:.*]] = arith.cmpf uge, %x, %[[SMALLEST]]
// CHECK-NEXT:    %[[BITS:.*]] = vector.bitcast %[[KEPT]] : vector<16xi1> to vector<1xi16>
// CHECK-NEXT:    %[[MASK:.*]] = vector.extract %[[BITS]][0] : i16 from vector<1xi16>
// CHECK-NEXT:    %[[Y:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"(%{{[0-9]+}}, %[[N]], %[[ZERO]], %[[MASK]], %[[MODE]])
// CHECK-NEXT:    func.return %[[Y]]

func.func @three_registers(%x: vector<24xf64>) -> vector<24xf64> {
  %y = math.exp %x : vector<24xf64>
  func.return %y : vector<24xf64>
}
// CHECK-LABEL: func.func @three_registers
// CHECK:         %[[P:.*]] = vector.shuffle %[[ALLP:.*]], %[[ALLP]] [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK-NEXT:    %[[N:.*]] = vector.shuffle %[[ALLN:.*]], %[[ALLN]] [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK-NEXT:    vector.shuffle %x, %x [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK:         %[[A:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.pd.512"(%[[P]], %[[N]], %{{.*}}, %{{.*}}, %{{.*}})
// CHECK:         %[[B:.*]] = llvm.call_intrinsic
// CHECK:         %[[C:.*]] = llvm.call_intrinsic
// CHECK-NEXT:    %[[AB:.*]] = vector.shuffle %[[A]], %[[B]] [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
// CHECK-NEXT:    vector.shuffle %[[AB]], %[[C]] [0, 1, {{.*}}, 23] : vector<16xf64>, vector<8xf64>

func.func @do_not_scale_half_a_register(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.exp %x : vector<8xf32>
  func.return %y : vector<8xf32>
}
// CHECK-LABEL: func.func @do_not_scale_half_a_register
// CHECK-NOT:     llvm.call_intrinsic
// CHECK:         func.return

func.func @do_not_scale_a_number(%x: f32) -> f32 {
  %y = math.exp %x : f32
  func.return %y : f32
}
// CHECK-LABEL: func.func @do_not_scale_a_number
// CHECK-NOT:     llvm.call_intrinsic
// CHECK:         func.return

func.func @do_not_scale_what_is_no_product_at_the_end(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.tanh %x : vector<16xf32>
  func.return %y : vector<16xf32>
}
// CHECK-LABEL: func.func @do_not_scale_what_is_no_product_at_the_end
// CHECK-NOT:     llvm.call_intrinsic
// CHECK:         func.return
