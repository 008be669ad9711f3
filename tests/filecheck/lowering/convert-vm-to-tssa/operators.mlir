// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="softmax(f32[n,10])"}' | filecheck %s --check-prefix=SOFTMAX
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="dense(f32[n,k], f32[784,512])"}' | filecheck %s --check-prefix=DENSE
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="dense(f32[k], f32[m])"}' | filecheck %s --check-prefix=DOT
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="moves(f32[n,6])"}' | filecheck %s --check-prefix=MOVES
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="count(bool[n])"}' | filecheck %s --check-prefix=COUNT
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="largest(f32[n])"}' | filecheck %s --check-prefix=LARGEST
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="largest(f32[0])"}' 2>&1 | filecheck %s --check-prefix=NONE

vm.pool ["i64[] [3]"]

// keepdims is a reshape of the reduction that drops its axis.
// SOFTMAX:      %[[M:.*]] = tssa.max %[[X:.*]] {axes = array<i64: 1>} : (tensor<?x10xf32, #tssa.dims<[n, 10]>>) -> tensor<?xf32, #tssa.dims<[n]>>
// SOFTMAX-NEXT: %[[K:.*]] = tssa.reshape %[[M]] : (tensor<?xf32, #tssa.dims<[n]>>) -> tensor<?x1xf32, #tssa.dims<[n, 1]>>
// SOFTMAX-NEXT: %[[B:.*]] = tssa.broadcast %[[K]]
// SOFTMAX-NEXT: %[[D:.*]] = tssa.subtract %[[X]], %[[B]]
// SOFTMAX-NEXT: %[[E:.*]] = tssa.exp %[[D]]
// SOFTMAX-NEXT: tssa.sum %[[E]] {axes = array<i64: 1>}
vm.func @softmax(1) -> 1 registers 6 {
^entry:
  vm.apply r1 = max(r0) {axis = -1 : i64, keepdims = true}
  vm.apply r2 = subtract(r0, r1)
  vm.apply r3 = exp(r2)
  vm.apply r4 = sum(r3) {axis = -1 : i64, keepdims = true}
  vm.apply r5 = divide(r3, r4)
  vm.return(r5)
}

// DENSE:      func.func @dense(%[[X:.*]]: tensor<?x784xf32, #tssa.dims<[n, 784]>>
// DENSE-SAME: tssa.guards = [#tssa.guard<k == 784>]
// DENSE-NEXT: tssa.matmul %[[X]], %{{.*}} -> tensor<?x512xf32, #tssa.dims<[n, 512]>>
// DOT:        tssa.guards = [#tssa.guard<k == m>]
// DOT-NEXT:   tssa.matmul %{{.*}} -> tensor<f32>
vm.func @dense(2) -> 1 registers 3 {
^entry:
  vm.apply r2 = matmul(r0, r1)
  vm.return(r2)
}

// MOVES:      func.func @moves(%[[X:.*]]: tensor<?x6xf32, #tssa.dims<[n, 6]>>)
// MOVES-NEXT:   tssa.reshape %[[X]] {{.*}} -> tensor<?x3xf32, #tssa.dims<[2 * n, 3]>>
// MOVES-NEXT:   tssa.transpose %[[X]] {permutation = array<i64: 1, 0>} {{.*}} -> tensor<6x?xf32, #tssa.dims<[6, n]>>
// MOVES-NEXT:   tssa.size {value = #tssa.dims<[n]>} : () -> tensor<i64>
// MOVES-NEXT:   tssa.broadcast %[[X]] {{.*}} -> tensor<3x?x6xf32, #tssa.dims<[3, n, 6]>>
// MOVES-NEXT:   tssa.cast %[[X]] {{.*}} -> tensor<?x6xi64, #tssa.dims<[n, 6]>>
vm.func @moves(1) -> 5 registers 8 {
^entry:
  vm.apply r1 = reshape(r0) {shape = #vm.shape<"[-1, 3]">}
  vm.apply r2 = transpose(r0) {axes = none}
  vm.apply r3 = size(r0) {axis = 0 : i64}
  vm.const r4 = 0
  vm.apply r5 = broadcast_to(r0, r4, r3) {shape = #vm.shape<"[$1, $2, 6]">}
  vm.apply r6 = cast(r0) {dtype = "int64"}
  vm.return(r1, r2, r3, r5, r6)
}

// COUNT:      %[[I:.*]] = tssa.cast %{{.*}} -> tensor<?xi64, #tssa.dims<[n]>>
// COUNT-NEXT: tssa.sum %[[I]] {axes = array<i64: 0>} {{.*}} -> tensor<i64>
vm.func @count(1) -> 1 registers 2 {
^entry:
  vm.apply r1 = sum(r0) {axis = none, keepdims = false}
  vm.return(r1)
}

// LARGEST: tssa.guards = [#tssa.guard<1 <= n>]
// NONE: max of an axis of size 0 has no value; shape (0,)
vm.func @largest(1) -> 1 registers 2 {
^entry:
  vm.apply r1 = max(r0) {axis = none, keepdims = false}
  vm.return(r1)
}
