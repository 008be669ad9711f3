// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="scale(f32[n], float)"}' | filecheck %s --check-prefix=FLOAT
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="scale(i64[n], int)"}' | filecheck %s --check-prefix=INT
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="scale(int, float)"}' | filecheck %s --check-prefix=WEAK
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="scale(f32[], i64[])"}' | filecheck %s --check-prefix=DOUBLE
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="scale(i32[n], int)"}' | filecheck %s --check-prefix=NARROW
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="shifted(i32[n], int)"}' | filecheck %s --check-prefix=INT32

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

// DOUBLE:      func.func @scale(%[[X:.*]]: tensor<f32>, %[[Y:.*]]: tensor<i64>) -> tensor<f64>
// DOUBLE-NEXT:   %[[A:.*]] = tssa.cast %[[X]] : (tensor<f32>) -> tensor<f64>
// DOUBLE-NEXT:   %[[B:.*]] = tssa.cast %[[Y]] : (tensor<i64>) -> tensor<f64>
// DOUBLE-NEXT:   tssa.multiply %[[A]], %[[B]]

// A Python integer beside int32 is one, says a guard; the interpreter refuses any other.
// NARROW:      func.func @scale(%{{.*}}: tensor<?xi32, #tssa.dims<[n]>>, %[[S:.*]]: tensor<i64> {tssa.weak})
// NARROW-SAME:   tssa.guards = [#tssa.guard<0 <= s1 + 2147483648>, #tssa.guard<s1 <= 2147483647>]
// NARROW-NEXT:   tssa.cast %[[S]] : (tensor<i64>) -> tensor<i32>

// One that is known only when the code runs is checked there.
// INT32:      %[[S:.*]] = tssa.left_shift
// INT32-NEXT: tssa.check_bounds %[[S]] {lower = #tssa.dims<[-2147483648]>, upper = #tssa.dims<[2147483647]>}
// INT32-NEXT: tssa.cast %[[S]] : (tensor<i64>) -> tensor<i32>
vm.func @shifted(2) -> 1 registers 4 {
^entry:
  vm.apply r2 = left_shift(r1, r1)
  vm.apply r3 = multiply(r0, r2)
  vm.return(r3)
}
