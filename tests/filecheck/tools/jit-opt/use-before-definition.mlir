// RUN: not jit-opt %s 2>&1 | filecheck %s

// xDSL's verifier accepts this module; the dominance check refuses it.

// CHECK: use-before-definition.mlir: error: in the input: value '%x', result 0 of 'arith.constant' does not dominate its use by 'arith.addi'
func.func @use_before_definition() -> i32 {
  %y = arith.addi %x, %x : i32
  %x = arith.constant 1 : i32
  func.return %y : i32
}
