// RUN: jit-opt %s -p convert-vector-to-llvm | filecheck %s

// CHECK-LABEL: func.func @broadcasts_a_scalar_once
// CHECK:         [[I:%.+]] = llvm.insertelement %x, {{%.+}}[{{%.+}} : i32] : vector<4xf32>
// CHECK-NEXT:    [[S:%.+]] = llvm.shufflevector [[I]], [[I]] [0, 0, 0, 0] : vector<4xf32>
// CHECK-NEXT:    func.return [[S]], [[S]] : vector<4xf32>, vector<4xf32>
func.func @broadcasts_a_scalar_once(%x: f32) -> (vector<4xf32>, vector<4xf32>) {
  %a = vector.broadcast %x : f32 to vector<4xf32>
  %b = vector.broadcast %x : f32 to vector<4xf32>
  func.return %a, %b : vector<4xf32>, vector<4xf32>
}

// CHECK-LABEL: func.func @a_mask_of_constant_size_is_a_constant
// CHECK-NEXT:    [[M:%.+]] = llvm.mlir.constant(dense<[true, true, true, false]> : vector<4xi1>) : vector<4xi1>
// CHECK:         func.return [[M]]
func.func @a_mask_of_constant_size_is_a_constant() -> vector<4xi1> {
  %n = llvm.mlir.constant(3) : i64
  %c = builtin.unrealized_conversion_cast %n : i64 to index
  %m = vector.create_mask %c : vector<4xi1>
  func.return %m : vector<4xi1>
}

// CHECK-LABEL: func.func @a_mask_compares_lanes_with_the_clamped_size
// CHECK-DAG:     [[L:%.+]] = llvm.mlir.constant(dense<[0, 1, 2, 3]> : vector<4xi32>) : vector<4xi32>
// CHECK-DAG:     [[N:%.+]] = llvm.intr.smin({{%.+}}, {{%.+}}) : (i64, i64) -> i64
// CHECK-DAG:     [[T:%.+]] = llvm.trunc [[N]] : i64 to i32
// CHECK:         [[S:%.+]] = llvm.shufflevector {{%.+}}, {{%.+}} [0, 0, 0, 0] : vector<4xi32>
// CHECK-NEXT:    [[M:%.+]] = llvm.icmp "slt" [[L]], [[S]] : vector<4xi32>
func.func @a_mask_compares_lanes_with_the_clamped_size(%n: index) -> vector<4xi1> {
  %m = vector.create_mask %n : vector<4xi1>
  func.return %m : vector<4xi1>
}

// CHECK-LABEL: func.func @moves_single_lanes
// CHECK:         [[X:%.+]] = llvm.extractelement %v[{{%.+}} : i64] : vector<4xf32>
// CHECK-NEXT:    [[W:%.+]] = llvm.insertelement [[X]], %v[{{%.+}} : i64] : vector<4xf32>
// CHECK-NEXT:    llvm.shufflevector [[W]], %v [4, 1, 2, 0, 0] : vector<4xf32>
func.func @moves_single_lanes(%v: vector<4xf32>, %i: index) -> vector<5xf32> {
  %x = vector.extract %v[2] : f32 from vector<4xf32>
  %w = vector.insert %x, %v[%i] : f32 into vector<4xf32>
  %s = vector.shuffle %w, %v [4, 1, 2, 0, 0] : vector<4xf32>, vector<4xf32>
  func.return %s : vector<5xf32>
}

// CHECK-LABEL: func.func @multiplies_and_adds_in_one_rounding
// CHECK-NEXT:    llvm.intr.fma(%v, %v, %v)
func.func @multiplies_and_adds_in_one_rounding(%v: vector<4xf32>) -> vector<4xf32> {
  %x = vector.fma %v, %v, %v : vector<4xf32>
  func.return %x : vector<4xf32>
}

// CHECK-LABEL: @any_lane
// CHECK-NEXT:  %{{.*}} = "llvm.intr.vector.reduce.or"(%m) : (vector<16xi1>) -> i1
func.func @any_lane(%m: vector<16xi1>) -> i1 {
  %a = vector.reduction <or>, %m : vector<16xi1> into i1
  func.return %a : i1
}
