// RUN: not jit-opt %s --verify-each 2>&1 | filecheck %s

// CHECK: arith.cmpf needs vector<4xi1> to go with vector<4xf32>, not i1
func.func @refused(%a: vector<4xf32>, %m: vector<3xi1>, %i: i32) {
  %r = "arith.cmpf"(%a, %a) <{predicate = 1 : i64, fastmath = #arith.fastmath<none>}> : (vector<4xf32>, vector<4xf32>) -> i1
  func.return
}
