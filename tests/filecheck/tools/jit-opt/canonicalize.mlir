// RUN: jit-opt %s -p canonicalize --verify-each | filecheck %s
// RUN: jit-opt %s --print-op-generic | jit-opt -p 'canonicalize' | filecheck %s

// xDSL's own passes run in jit-opt, also on the generic form from standard input.

// CHECK-LABEL: func.func @adds_zero
// CHECK-NEXT:    func.return %x : i32
func.func @adds_zero(%x : i32) -> i32 {
  %zero = arith.constant 0 : i32
  %y = arith.addi %x, %zero : i32
  func.return %y : i32
}
