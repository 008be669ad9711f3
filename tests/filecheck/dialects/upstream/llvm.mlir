// RUN: jit-opt %s --verify-each | jit-opt --verify-each | filecheck %s
// RUN: jit-opt %s --print-op-generic | jit-opt --verify-each | filecheck %s

// CHECK-LABEL: llvm.func @vectors
// CHECK-NEXT:    [[C:%.+]] = llvm.fcmp "olt" {{%.+}}, {{%.+}} : vector<4xf32>
// CHECK-NEXT:    llvm.fcmp "uno" {{%.+}}, {{%.+}} : f32
// CHECK-NEXT:    llvm.select [[C]], {{%.+}}, {{%.+}} : vector<4xi1>, vector<4xf32>
// CHECK-NEXT:    llvm.extractelement {{%.+}}[{{%.+}} : i32] : vector<4xf32>
// CHECK-NEXT:    llvm.fptosi {{%.+}} : vector<4xf32> to vector<4xi32>
// CHECK-NEXT:    llvm.fptoui {{%.+}} : vector<4xf32> to vector<4xi32>
// CHECK-NEXT:    llvm.uitofp {{%.+}} : i32 to f32
llvm.func @vectors(%a: vector<4xf32>, %b: vector<4xf32>, %x: f32, %i: i32) {
  %0 = llvm.fcmp "olt" %a, %b : vector<4xf32>
  %1 = llvm.fcmp "uno" %x, %x : f32
  %2 = llvm.select %0, %a, %b : vector<4xi1>, vector<4xf32>
  %3 = llvm.extractelement %a[%i : i32] : vector<4xf32>
  %4 = llvm.fptosi %a : vector<4xf32> to vector<4xi32>
  %5 = llvm.fptoui %a : vector<4xf32> to vector<4xi32>
  %6 = llvm.uitofp %i : i32 to f32
  llvm.return
}

// CHECK-LABEL: llvm.func @intrinsics
// CHECK-NEXT:    [[V:%.+]] = llvm.intr.masked.load {{%.+}}, {{%.+}}, {{%.+}} {alignment = 4 : i32} : (!llvm.ptr, vector<4xi1>, vector<4xi32>) -> vector<4xi32>
// CHECK-NEXT:    llvm.intr.masked.store [[V]], {{%.+}}, {{%.+}} {alignment = 4 : i32} : vector<4xi32>, vector<4xi1> into !llvm.ptr
// CHECK-NEXT:    llvm.intr.maximum({{%.+}}, {{%.+}}) : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
// CHECK-NEXT:    llvm.intr.minimum({{%.+}}, {{%.+}}) : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
// CHECK-NEXT:    llvm.intr.roundeven({{%.+}}) : (vector<4xf32>) -> vector<4xf32>
// CHECK-NEXT:    llvm.intr.trunc({{%.+}}) : (vector<4xf32>) -> vector<4xf32>
// CHECK-NEXT:    llvm.intr.smax
// CHECK-NEXT:    llvm.intr.smin
// CHECK-NEXT:    llvm.intr.umax
// CHECK-NEXT:    llvm.intr.umin
// CHECK-NEXT:    llvm.intr.ctpop
// CHECK-NEXT:    "llvm.intr.cttz"({{%.+}}) <{is_zero_poison = false}> : (vector<4xi32>) -> vector<4xi32>
// CHECK-NEXT:    "llvm.intr.ctlz"
// CHECK-NEXT:    "llvm.intr.abs"({{%.+}}) <{is_int_min_poison = false}> : (vector<4xi32>) -> vector<4xi32>
llvm.func @intrinsics(%p: !llvm.ptr, %m: vector<4xi1>, %v: vector<4xi32>, %a: vector<4xf32>) {
  %0 = llvm.intr.masked.load %p, %m, %v {alignment = 4 : i32} : (!llvm.ptr, vector<4xi1>, vector<4xi32>) -> vector<4xi32>
  llvm.intr.masked.store %0, %p, %m {alignment = 4 : i32} : vector<4xi32>, vector<4xi1> into !llvm.ptr
  %1 = llvm.intr.maximum(%a, %a) : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
  %2 = llvm.intr.minimum(%a, %a) : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
  %3 = llvm.intr.roundeven(%a) : (vector<4xf32>) -> vector<4xf32>
  %4 = llvm.intr.trunc(%a) : (vector<4xf32>) -> vector<4xf32>
  %5 = llvm.intr.smax(%v, %v) : (vector<4xi32>, vector<4xi32>) -> vector<4xi32>
  %6 = llvm.intr.smin(%v, %v) : (vector<4xi32>, vector<4xi32>) -> vector<4xi32>
  %7 = llvm.intr.umax(%v, %v) : (vector<4xi32>, vector<4xi32>) -> vector<4xi32>
  %8 = llvm.intr.umin(%v, %v) : (vector<4xi32>, vector<4xi32>) -> vector<4xi32>
  %9 = llvm.intr.ctpop(%v) : (vector<4xi32>) -> vector<4xi32>
  %10 = "llvm.intr.cttz"(%v) <{is_zero_poison = false}> : (vector<4xi32>) -> vector<4xi32>
  %11 = "llvm.intr.ctlz"(%v) <{is_zero_poison = false}> : (vector<4xi32>) -> vector<4xi32>
  %12 = "llvm.intr.abs"(%v) <{is_int_min_poison = false}> : (vector<4xi32>) -> vector<4xi32>
  llvm.return
}
