// RUN: not jit-opt %s -p convert-vector-to-llvm 2>&1 | filecheck %s

// CHECK: of vector.reduction it knows <or> of a vector alone
func.func @do_not_add_lanes_in_an_order_of_its_own(%v: vector<8xf32>) -> f32 {
  %s = vector.reduction <add>, %v : vector<8xf32> into f32
  func.return %s : f32
}
