// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="mean(f32[n,10])"}' | filecheck %s --check-prefix=MEAN
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="var(f32[n,m])"}' | filecheck %s --check-prefix=VAR
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="any(f32[n,m,k])"}' | filecheck %s --check-prefix=ANY
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="twice(f32[n,m])"}' 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="any(f32[n,m])"}' 2>&1 | filecheck %s --check-prefix=RANGE
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="least(f32[n,0])"}' 2>&1 | filecheck %s --check-prefix=EMPTY

vm.pool []

// A static number of elements is a constant, the sum comes first.
// MEAN:      %[[S:.*]] = tssa.sum %{{.*}} {axes = array<i64: 1>} : {{.*}} -> tensor<?xf32, #tssa.dims<[n]>>
// MEAN-NEXT: %[[C:.*]] = tssa.constant {value = dense<1.000000e+01> : tensor<f32>}
// MEAN-NEXT: %[[B:.*]] = tssa.broadcast %[[C]]
// MEAN-NEXT: tssa.divide %[[S]], %[[B]]
vm.func @mean(1) -> 1 registers 2 {
^entry:
  vm.apply r1 = mean(r0) {axis = -1 : i64, keepdims = false}
  vm.return(r1)
}

// Two passes over the operand; what is subtracted from the number of elements leaves at least 0.
// VAR:      %[[S:.*]] = tssa.sum %[[X:.*]] {axes = array<i64: 0>}
// VAR:      %[[N:.*]] = tssa.size {value = #tssa.dims<[n]>}
// VAR-NEXT: %[[F:.*]] = tssa.cast %[[N]] : (tensor<i64>) -> tensor<f32>
// VAR-NEXT: %[[B:.*]] = tssa.broadcast %[[F]]
// VAR-NEXT: %[[M:.*]] = tssa.divide %[[S]], %[[B]]
// VAR-NEXT: %[[R:.*]] = tssa.reshape %[[M]]
// VAR-NEXT: %[[W:.*]] = tssa.broadcast %[[R]]
// VAR-NEXT: %[[D:.*]] = tssa.subtract %[[X]], %[[W]]
// VAR-NEXT: %[[Q:.*]] = tssa.multiply %[[D]], %[[D]]
// VAR-NEXT: %[[T:.*]] = tssa.sum %[[Q]] {axes = array<i64: 0>}
// VAR-NEXT: tssa.size {value = #tssa.dims<[max(n + -1, 0)]>}
// VAR:      tssa.divide %[[T]]
vm.func @var(1) -> 1 registers 2 {
^entry:
  vm.apply r1 = var(r0) {axis = 0 : i64, keepdims = false, correction = 1 : i64}
  vm.return(r1)
}

// The largest bool; axes are counted from 0 and ascend.
// ANY:      %[[B:.*]] = tssa.cast %{{.*}} -> tensor<?x?x?xi1, #tssa.dims<[n, m, k]>>
// ANY-NEXT: tssa.max %[[B]] {axes = array<i64: 0, 2>} : {{.*}} -> tensor<?xi1, #tssa.dims<[m]>>
// RANGE: any: axis 2 is out of range for an array of rank 2
vm.func @any(1) -> 1 registers 2 {
^entry:
  vm.apply r1 = any(r0) {axis = array<i64: 2, 0>, keepdims = false}
  vm.return(r1)
}

// TWICE: sum: axis (1, -1) names axis 1 twice; name it once
vm.func @twice(1) -> 1 registers 2 {
^entry:
  vm.apply r1 = sum(r0) {axis = array<i64: 1, -1>, keepdims = false}
  vm.return(r1)
}

// EMPTY: min of an axis of size 0 has no value; shape (n, 0)
vm.func @least(1) -> 1 registers 2 {
^entry:
  vm.apply r1 = min(r0) {axis = array<i64: 0, 1>, keepdims = false}
  vm.return(r1)
}
