// RUN: jit-opt %s -p loop-vectorize | filecheck %s

// Columns of a matmul: the loop over k stays, its carried scalar becomes a carried vector, A stays scalar.
// CHECK-LABEL: func.func @loops_inside
// CHECK:         %[[Z:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK-NEXT:    scf.for %j = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK-NEXT:      %r = scf.for %k = %c0 to %n step %c1 iter_args(%s = %[[Z]]) -> (vector<16xf32>) {
// CHECK-NEXT:        %a = memref.load %A[%k] : memref<?xf32>
// CHECK-NEXT:        %b = vector.load %B[%k, %j] : memref<?x512xf32>, vector<16xf32>
// CHECK-NEXT:        %[[W:.*]] = vector.broadcast %a : f32 to vector<16xf32>
// CHECK-NEXT:        %t = math.fma %[[W]], %b, %s : vector<16xf32>
// CHECK-NEXT:        scf.yield %t : vector<16xf32>
// CHECK-NEXT:      } {loop.kind = "reduction"}
// CHECK-NEXT:      vector.store %r, %C[%j] : memref<512xf32>, vector<16xf32>
// CHECK-NEXT:    } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [2]>}
// CHECK-NOT:     scf.for
// CHECK:         func.return
func.func @loops_inside(%A: memref<?xf32>, %B: memref<?x512xf32>, %C: memref<512xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c512 = arith.constant 512 : index
  %zero = arith.constant 0.0 : f32
  scf.for %j = %c0 to %c512 step %c1 {
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) {
      %a = memref.load %A[%k] : memref<?xf32>
      %b = memref.load %B[%k, %j] : memref<?x512xf32>
      %t = math.fma %a, %b, %s : f32
      scf.yield %t : f32
    } {loop.kind = "reduction"}
    memref.store %r, %C[%j] : memref<512xf32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<vector = 16, jam = [2]>}
  func.return
}
