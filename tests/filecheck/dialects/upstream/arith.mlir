// RUN: jit-opt %s --verify-each | jit-opt --verify-each | filecheck %s
// RUN: jit-opt %s --print-op-generic | jit-opt --verify-each | filecheck %s

// CHECK-LABEL: func.func @compares
// CHECK-NEXT:    arith.cmpf olt, %a, %b : vector<4xf32>
// CHECK-NEXT:    arith.cmpf une, %x, %x fastmath<nnan> : f32
// CHECK-NEXT:    arith.cmpi slt, %i, %i : index
// CHECK-NEXT:    arith.cmpi ule, %v, %v {note} : vector<4xindex>
// CHECK-NEXT:    arith.cmpi eq, %t, %t : tensor<?x3xi64>
func.func @compares(%a: vector<4xf32>, %b: vector<4xf32>, %x: f32, %i: index, %v: vector<4xindex>, %t: tensor<?x3xi64>)
    -> (vector<4xi1>, i1, i1, vector<4xi1>, tensor<?x3xi1>) {
  %0 = arith.cmpf olt, %a, %b : vector<4xf32>
  %1 = arith.cmpf une, %x, %x fastmath<nnan> : f32
  %2 = arith.cmpi slt, %i, %i : index
  %3 = arith.cmpi ule, %v, %v {note} : vector<4xindex>
  %4 = arith.cmpi eq, %t, %t : tensor<?x3xi64>
  func.return %0, %1, %2, %3, %4 : vector<4xi1>, i1, i1, vector<4xi1>, tensor<?x3xi1>
}

// CHECK-LABEL: func.func @selects
// CHECK-NEXT:    arith.select %m, %a, %b : vector<4xi1>, vector<4xf32>
// CHECK-NEXT:    arith.select %c, %a, %b : vector<4xf32>
// CHECK-NEXT:    arith.select %c, %r, %r : memref<?xf32>
func.func @selects(%m: vector<4xi1>, %c: i1, %a: vector<4xf32>, %b: vector<4xf32>, %r: memref<?xf32>) {
  %0 = arith.select %m, %a, %b : vector<4xi1>, vector<4xf32>
  %1 = arith.select %c, %a, %b : vector<4xf32>
  %2 = arith.select %c, %r, %r : memref<?xf32>
  func.return
}
