// RUN: jit-opt %s -p convert-arith-to-llvm | filecheck %s

// CHECK-LABEL: func.func @operates_lane_by_lane
// CHECK-NEXT:    [[S:%.+]] = llvm.fadd %a, %b : vector<8xf32>
// CHECK-NEXT:    [[N:%.+]] = llvm.fneg [[S]] : vector<8xf32>
// CHECK-NEXT:    [[P:%.+]] = llvm.mul %i, %i : i64
// CHECK-NEXT:    func.return [[N]], [[P]] : vector<8xf32>, i64
func.func @operates_lane_by_lane(%a: vector<8xf32>, %b: vector<8xf32>, %i: i64) -> (vector<8xf32>, i64) {
  %s = arith.addf %a, %b : vector<8xf32>
  %n = arith.negf %s : vector<8xf32>
  %p = arith.muli %i, %i : i64
  func.return %n, %p : vector<8xf32>, i64
}

// CHECK-LABEL: func.func @compares_and_selects_lane_by_lane
// CHECK-NEXT:    [[C:%.+]] = llvm.fcmp "olt" %a, %b : vector<8xf32>
// CHECK-NEXT:    [[R:%.+]] = llvm.select [[C]], %a, %b : vector<8xi1>, vector<8xf32>
// CHECK-NEXT:    [[U:%.+]] = llvm.fcmp "uno" %a, %a : vector<8xf32>
// CHECK-NEXT:    [[E:%.+]] = llvm.icmp "ult" %i, %i : vector<8xi32>
func.func @compares_and_selects_lane_by_lane(%a: vector<8xf32>, %b: vector<8xf32>, %i: vector<8xi32>)
    -> (vector<8xf32>, vector<8xi1>, vector<8xi1>) {
  %c = arith.cmpf olt, %a, %b : vector<8xf32>
  %r = arith.select %c, %a, %b : vector<8xi1>, vector<8xf32>
  %u = arith.cmpf uno, %a, %a : vector<8xf32>
  %e = arith.cmpi ult, %i, %i : vector<8xi32>
  func.return %r, %u, %e : vector<8xf32>, vector<8xi1>, vector<8xi1>
}

// CHECK-LABEL: func.func @keeps_nan_and_signed_zero
// CHECK-NEXT:    [[A:%.+]] = llvm.intr.maximum(%a, %b) : (f32, f32) -> f32
// CHECK-NEXT:    [[B:%.+]] = llvm.intr.minimum([[A]], %b) : (f32, f32) -> f32
// CHECK-NEXT:    [[C:%.+]] = llvm.intr.maxnum([[B]], %b) : (f32, f32) -> f32
func.func @keeps_nan_and_signed_zero(%a: f32, %b: f32) -> f32 {
  %0 = arith.maximumf %a, %b : f32
  %1 = arith.minimumf %0, %b : f32
  %2 = arith.maxnumf %1, %b : f32
  func.return %2 : f32
}

// CHECK-LABEL: func.func @drops_permissions_to_round_otherwise
// CHECK-NEXT:    [[R:%.+]] = llvm.fmul %a, %a : f32
// CHECK-NEXT:    [[I:%.+]] = llvm.add %i, %i : i32
func.func @drops_permissions_to_round_otherwise(%a: f32, %i: i32) -> (f32, i32) {
  %r = arith.mulf %a, %a fastmath<fast> : f32
  %s = arith.addi %i, %i overflow<nsw> : i32
  func.return %r, %s : f32, i32
}

// CHECK-LABEL: func.func @casts_to_wider_elements
// CHECK-NEXT:    [[A:%.+]] = llvm.sext %i : vector<8xi32> to vector<8xi64>
// CHECK-NEXT:    [[B:%.+]] = llvm.trunc [[A]] : vector<8xi64> to vector<8xi32>
// CHECK-NEXT:    [[C:%.+]] = llvm.sitofp [[B]] : vector<8xi32> to vector<8xf64>
// CHECK-NEXT:    [[D:%.+]] = llvm.fptosi [[C]] : vector<8xf64> to vector<8xi32>
// CHECK-NEXT:    [[E:%.+]] = llvm.fpext %x : vector<8xf32> to vector<8xf64>
func.func @casts_to_wider_elements(%i: vector<8xi32>, %x: vector<8xf32>) -> (vector<8xi32>, vector<8xf64>) {
  %0 = arith.extsi %i : vector<8xi32> to vector<8xi64>
  %1 = arith.trunci %0 : vector<8xi64> to vector<8xi32>
  %2 = arith.sitofp %1 : vector<8xi32> to vector<8xf64>
  %3 = arith.fptosi %2 : vector<8xf64> to vector<8xi32>
  %4 = arith.extf %x : vector<8xf32> to vector<8xf64>
  func.return %3, %4 : vector<8xi32>, vector<8xf64>
}

// CHECK-LABEL: func.func @casts
// CHECK-NEXT:    [[A:%.+]] = llvm.fptosi %a : vector<4xf32> to vector<4xi32>
// CHECK-NEXT:    [[B:%.+]] = llvm.sitofp [[A]] : vector<4xi32> to vector<4xf32>
// CHECK-NEXT:    [[C:%.+]] = llvm.bitcast [[B]] : vector<4xf32> to vector<4xi32>
// CHECK-NEXT:    [[D:%.+]] = llvm.trunc [[C]] : vector<4xi32> to vector<4xi8>
// CHECK-NEXT:    [[E:%.+]] = llvm.zext [[D]] : vector<4xi8> to vector<4xi64>
// CHECK-NEXT:    [[F:%.+]] = llvm.uitofp [[E]] : vector<4xi64> to vector<4xf64>
// CHECK-NEXT:    [[G:%.+]] = llvm.fptrunc [[F]] : vector<4xf64> to vector<4xf32>
func.func @casts(%a: vector<4xf32>) -> vector<4xf32> {
  %0 = arith.fptosi %a : vector<4xf32> to vector<4xi32>
  %1 = arith.sitofp %0 : vector<4xi32> to vector<4xf32>
  %2 = arith.bitcast %1 : vector<4xf32> to vector<4xi32>
  %3 = arith.trunci %2 : vector<4xi32> to vector<4xi8>
  %4 = arith.extui %3 : vector<4xi8> to vector<4xi64>
  %5 = arith.uitofp %4 : vector<4xi64> to vector<4xf64>
  %6 = arith.truncf %5 : vector<4xf64> to vector<4xf32>
  func.return %6 : vector<4xf32>
}

// CHECK-LABEL: func.func @do_not_touch_what_expands_elsewhere
// CHECK-NEXT:    arith.floordivsi
func.func @do_not_touch_what_expands_elsewhere(%a: i64) -> i64 {
  %0 = arith.floordivsi %a, %a : i64
  func.return %0 : i64
}
