// RUN: not jit-opt %s -p convert-arith-to-llvm 2>&1 | filecheck %s

// CHECK: conversion to llvm needs vectors of one dimension, not vector<2x4xf32>
func.func @do_not_convert_vectors_of_two_dimensions(%a: vector<2x4xf32>) -> vector<2x4xf32> {
  %s = arith.addf %a, %a : vector<2x4xf32>
  func.return %s : vector<2x4xf32>
}
