// RUN: not jit-opt %s --verify-each 2>&1 | filecheck %s

// CHECK: arith.cmpi needs one of eq, ne, slt
func.func @refused(%a: vector<4xf32>, %m: vector<3xi1>, %i: i32) {
  %r = arith.cmpi less, %i, %i : i32
  func.return
}
