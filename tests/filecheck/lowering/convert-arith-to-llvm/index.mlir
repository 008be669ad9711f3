// RUN: jit-opt %s -p convert-arith-to-llvm | filecheck %s

// CHECK-LABEL: func.func @index_is_64_bits
// CHECK-NEXT:    [[C:%.+]] = llvm.mlir.constant(8) : i64
// CHECK-NEXT:    [[I:%.+]] = builtin.unrealized_conversion_cast %i : index to i64
// CHECK-NEXT:    [[S:%.+]] = llvm.add [[I]], [[C]] : i64
// CHECK-NEXT:    [[R:%.+]] = builtin.unrealized_conversion_cast [[S]] : i64 to index
// CHECK-NEXT:    func.return [[R]] : index
func.func @index_is_64_bits(%i: index) -> index {
  %c = arith.constant 8 : index
  %s = arith.addi %i, %c : index
  func.return %s : index
}

// CHECK-LABEL: func.func @index_casts_change_the_width_only
// CHECK-NEXT:    [[W:%.+]] = llvm.sext %x : i32 to i64
// CHECK-NEXT:    [[N:%.+]] = llvm.trunc [[W]] : i64 to i32
// CHECK-NEXT:    func.return [[N]], [[W]] : i32, i64
func.func @index_casts_change_the_width_only(%x: i32) -> (i32, i64) {
  %w = arith.index_cast %x : i32 to index
  %n = arith.index_cast %w : index to i32
  %s = arith.index_cast %w : index to i64
  func.return %n, %s : i32, i64
}

// CHECK-LABEL: func.func @makes_each_constant_once_at_the_entry
// CHECK-NEXT:    [[C:%.+]] = llvm.mlir.constant(2 : i32) : i32
// CHECK-NEXT:    [[V:%.+]] = llvm.mlir.constant(dense<1.000000e+00> : vector<4xf32>) : vector<4xf32>
// CHECK-NEXT:    llvm.add %x, [[C]] : i32
// CHECK-NEXT:    llvm.mul {{%.+}}, [[C]] : i32
// CHECK-NOT:     llvm.mlir.constant
func.func @makes_each_constant_once_at_the_entry(%x: i32) -> (i32, vector<4xf32>) {
  %a = arith.constant 2 : i32
  %s = arith.addi %x, %a : i32
  %b = arith.constant 2 : i32
  %p = arith.muli %s, %b : i32
  %v = arith.constant dense<1.0> : vector<4xf32>
  func.return %p, %v : i32, vector<4xf32>
}
