// RUN: not jit-opt %s 2>&1 | filecheck %s

// CHECK: syntax-error.mlir:[[# @LINE + 2]]:{{[0-9]+}}: error:
func.func @f() {
  %x = arith.constant : i32
}
