// RUN: jit-opt %s -p 'loop-divide-by-invariant{features="x86-64-v4"}' | filecheck %s

// Two rows with a divisor each: two reciprocals in front, constants once, divisions where lanes are in doubt.
func.func @rows(%x: memref<2x?xf32>, %y: memref<2x?xf32>, %n: index, %a: f32, %b: f32) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %s = vector.broadcast %a : f32 to vector<16xf32>
  %t = vector.broadcast %b : f32 to vector<16xf32>
  scf.for %i = %c0 to %n step %c16 {
    %v = vector.load %x[%c0, %i] : memref<2x?xf32>, vector<16xf32>
    %q = arith.divf %v, %s : vector<16xf32>
    vector.store %q, %y[%c0, %i] : memref<2x?xf32>, vector<16xf32>
    %w = vector.load %x[%c1, %i] : memref<2x?xf32>, vector<16xf32>
    %r = arith.divf %w, %t : vector<16xf32>
    vector.store %r, %y[%c1, %i] : memref<2x?xf32>, vector<16xf32>
  } {loop.kind = "parallel"}
  func.return
}
// CHECK-LABEL: func.func @rows
// CHECK:         %[[SMALLEST:.*]] = arith.constant dense<1.17549435e-38> : vector<16xf32>
// CHECK-NEXT:    %[[LOW:.*]] = arith.cmpf oge, %s, %[[SMALLEST]]
// CHECK-NEXT:    %[[LARGEST:.*]] = arith.constant dense<4.61168602e+18>
// CHECK-NEXT:    %[[HIGH:.*]] = arith.cmpf ole, %s, %[[LARGEST]]
// CHECK-NEXT:    %[[SAFE:.*]] = arith.andi %[[LOW]], %[[HIGH]] : vector<16xi1>
// CHECK-NEXT:    %[[ONE:.*]] = arith.constant dense<1.000000e+00>
// CHECK-NEXT:    %[[EXACT:.*]] = arith.divf %[[ONE]], %s
// CHECK-NEXT:    %[[SCALAR:.*]] = arith.constant 0x7fc00000 : f32
// CHECK-NEXT:    %[[NAN:.*]] = vector.broadcast %[[SCALAR]] : f32 to vector<16xf32>
// CHECK-NEXT:    %[[Y:.*]] = arith.select %[[SAFE]], %[[EXACT]], %[[NAN]] : vector<16xi1>, vector<16xf32>
// CHECK-NEXT:    %[[NY:.*]] = arith.negf %[[Y]]
// CHECK-DAG:     %[[EXPONENT:.*]] = arith.constant dense<1610612736> : vector<16xi32>
// CHECK-DAG:     %[[MAGNITUDE:.*]] = arith.constant dense<2147483647> : vector<16xi32>
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant dense<0> : vector<16xi32>
// CHECK:         arith.divf %[[ONE]], %t
// CHECK:         scf.for
// CHECK:           %v = vector.load
// CHECK-NEXT:      %[[BITS:.*]] = arith.bitcast %v : vector<16xf32> to vector<16xi32>
// CHECK-NEXT:      %[[E:.*]] = arith.andi %[[BITS]], %[[EXPONENT]]
// CHECK-NEXT:      %[[M:.*]] = arith.andi %[[BITS]], %[[MAGNITUDE]]
// CHECK-NEXT:      %[[SMALL:.*]] = arith.cmpi eq, %[[E]], %[[ZERO]]
// CHECK-NEXT:      %[[SOME:.*]] = arith.cmpi ne, %[[M]], %[[ZERO]]
// CHECK-NEXT:      %[[TINY:.*]] = arith.andi %[[SMALL]], %[[SOME]] : vector<16xi1>
// CHECK-NEXT:      %[[ANY:.*]] = vector.reduction <or>, %[[TINY]] : vector<16xi1> into i1
// CHECK-NEXT:      %[[Q:.*]] = scf.if %[[ANY]] -> (vector<16xf32>) {
// CHECK-NEXT:        %[[D:.*]] = arith.divf %v, %s
// CHECK-NEXT:        scf.yield %[[D]]
// CHECK-NEXT:      } else {
// CHECK-NEXT:        %[[Q0:.*]] = arith.mulf %v, %[[Y]]
// CHECK-NEXT:        %[[MINUS:.*]] = arith.negf %v
// CHECK-NEXT:        %[[EXCESS:.*]] = math.fma %[[Q0]], %s, %[[MINUS]]
// CHECK-NEXT:        %[[Q1:.*]] = math.fma %[[EXCESS]], %[[NY]], %[[Q0]]
// CHECK-NEXT:        %[[NAN:.*]] = arith.cmpf uno, %[[Q1]], %[[Q1]]
// CHECK-NEXT:        %[[UNKNOWN:.*]] = vector.reduction <or>, %[[NAN]] : vector<16xi1> into i1
// CHECK-NEXT:        %[[P:.*]] = scf.if %[[UNKNOWN]] -> (vector<16xf32>) {
// CHECK-NEXT:          %[[DD:.*]] = arith.divf %v, %s
// CHECK-NEXT:          scf.yield %[[DD]]
// CHECK-NEXT:        } else {
// CHECK-NEXT:          scf.yield %[[Q1]]
// CHECK-NEXT:        }
// CHECK-NEXT:        scf.yield %[[P]]
// CHECK-NEXT:      }
// CHECK-NEXT:      vector.store %[[Q]], %y
// CHECK:           arith.bitcast %w
// CHECK-NOT:       arith.constant
// CHECK:           arith.divf %w, %t
// CHECK:           arith.mulf %w

// A divisor for each lane; float64 has its own limits.
func.func @lanes(%x: memref<?x8xf64>, %n: index, %s: vector<8xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %v = vector.load %x[%i, %c0] : memref<?x8xf64>, vector<8xf64>
    %q = arith.divf %v, %s : vector<8xf64>
    vector.store %q, %x[%i, %c0] : memref<?x8xf64>, vector<8xf64>
  }
  func.return
}
// CHECK-LABEL: func.func @lanes
// CHECK:         arith.constant dense<2.2250738585072014e-308> : vector<8xf64>
// CHECK:         arith.constant dense<3.3519519824856493e+153> : vector<8xf64>
// CHECK:         arith.constant dense<6917529027641081856> : vector<8xi64>
// CHECK:         scf.for
// CHECK:           vector.reduction <or>

// A constant that is no power of two.
func.func @thirds(%x: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %s = arith.constant dense<3.0> : vector<16xf32>
  scf.for %i = %c0 to %n step %c16 {
    %v = vector.load %x[%i] : memref<?xf32>, vector<16xf32>
    %q = arith.divf %v, %s : vector<16xf32>
    vector.store %q, %x[%i] : memref<?xf32>, vector<16xf32>
  }
  func.return
}
// CHECK-LABEL: func.func @thirds
// CHECK:           vector.reduction <or>
