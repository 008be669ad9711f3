// RUN: not jit-opt %s -p convert-math-to-llvm 2>&1 | filecheck %s

// CHECK: no exact form of math.exp: run expand-elementary before it
func.func @do_not_call_libm_for_each_lane(%a: vector<8xf32>) -> vector<8xf32> {
  %0 = math.exp %a : vector<8xf32>
  func.return %0 : vector<8xf32>
}
