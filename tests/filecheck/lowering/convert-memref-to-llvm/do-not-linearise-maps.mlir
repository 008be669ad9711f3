// RUN: not jit-opt %s -p convert-memref-to-llvm 2>&1 | filecheck %s

// CHECK: conversion to llvm needs a strided layout
func.func @do_not_linearise_affine_maps(%m: memref<4x4xf32, affine_map<(d0, d1) -> (d1 floordiv 2, d0)>>, %i: index) -> f32 {
  %x = memref.load %m[%i, %i] : memref<4x4xf32, affine_map<(d0, d1) -> (d1 floordiv 2, d0)>>
  func.return %x : f32
}
