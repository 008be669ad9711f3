// RUN: not jit-opt %s --verify-each 2>&1 | filecheck %s

// CHECK: llvm.select needs vector<4xi1> to go with vector<4xf32>
func.func @refused(%a: vector<4xf32>, %m: vector<3xi1>, %i: i32) {
  %r = "llvm.select"(%m, %a, %a) <{fastmathFlags = #llvm.fastmath<none>}> : (vector<3xi1>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>
  func.return
}
