// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="scale(f32[n], float)"}' | filecheck %s --check-prefix=FLOAT
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="scale(i64[n], int)"}' | filecheck %s --check-prefix=INT
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="scale(int, float)"}' | filecheck %s --check-prefix=WEAK
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="scale(f32[], i64[])"}' 2>&1 | filecheck %s --check-prefix=DOUBLE

// A Python scalar is weak: it takes the dtype of what it meets. The cast comes before the broadcast.

vm.func @scale(2) -> 1 registers 3 {
^entry:
  vm.apply r2 = multiply(r0, r1)
  vm.return(r2)
}

// FLOAT:      func.func @scale(%[[X:.*]]: tensor<?xf32, #tssa.dims<[n]>>, %[[S:.*]]: tensor<f64> {tssa.weak})
// FLOAT-NEXT:   %[[T:.*]] = tssa.cast %[[S]] : (tensor<f64>) -> tensor<f32>
// FLOAT-NEXT:   %[[B:.*]] = tssa.broadcast %[[T]]
// FLOAT-NEXT:   tssa.multiply %[[X]], %[[B]]

// INT:      func.func @scale(%[[X:.*]]: tensor<?xi64, #tssa.dims<[n]>>, %[[S:.*]]: tensor<i64> {tssa.weak})
// INT-NEXT:   %[[B:.*]] = tssa.broadcast %[[S]]
// INT-NEXT:   tssa.multiply %[[X]], %[[B]]

// Weak with weak stays weak, and so does the result.
// WEAK:      func.func @scale(%[[X:.*]]: tensor<i64> {tssa.weak}, %[[S:.*]]: tensor<f64> {tssa.weak}) -> (tensor<f64> {tssa.weak})
// WEAK-NEXT:   %[[T:.*]] = tssa.cast %[[X]] : (tensor<i64>) -> tensor<f64>
// WEAK-NEXT:   tssa.multiply %[[T]], %[[S]] : (tensor<f64>, tensor<f64>) -> tensor<f64>

// DOUBLE: multiply: float32 with int64 gives float64 in NumPy, which is not supported
