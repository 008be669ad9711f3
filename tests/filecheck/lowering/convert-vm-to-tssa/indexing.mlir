// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="row(f32[n,4], int)"}' | filecheck %s --check-prefix=ROW
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="row(f32[n,4], i64[])"}' | filecheck %s --check-prefix=ROW
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="everything(f32[n])"}' | filecheck %s --check-prefix=EVERYTHING
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="steps(f32[10])"}' | filecheck %s --check-prefix=STEPS
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="store(f32[4,3], int)"}' | filecheck %s --check-prefix=STORE
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="last(f32[0])"}' 2>&1 | filecheck %s --check-prefix=BOUNDS
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="by_data(f32[n], i64[n])"}' 2>&1 | filecheck %s --check-prefix=DATA

vm.pool ["int 0"]

// A value of an argument is the symbol s<k>, weak or not; the index must be in range, which a guard says.
// ROW:      tssa.guards = [#tssa.guard<0 <= n + s1>, #tssa.guard<s1 + 1 <= n>]
// ROW-NEXT: %[[R:.*]] = tssa.extract %{{.*}} {offsets = #tssa.dims<[wrap(s1, n), 0]>, steps = array<i64: 1, 1>} {{.*}} -> tensor<1x4xf32>
// ROW-NEXT: tssa.reshape %[[R]] : (tensor<1x4xf32>) -> tensor<4xf32>
vm.func @row(2) -> 1 registers 3 {
^entry:
  vm.apply r2 = getitem(r0, r1) {index = #vm.index<"[$1]">}
  vm.return(r2)
}

// EVERYTHING:      func.func @everything(%[[X:.*]]: tensor<?xf32, #tssa.dims<[n]>>)
// EVERYTHING-NEXT: %[[Y:.*]] = tssa.reshape %[[X]] {{.*}} -> tensor<?x1xf32, #tssa.dims<[n, 1]>>
// EVERYTHING-NEXT: func.return %[[X]], %[[Y]]
vm.func @everything(1) -> 2 registers 3 {
^entry:
  vm.apply r1 = getitem(r0) {index = #vm.index<"[...]">}
  vm.apply r2 = getitem(r0) {index = #vm.index<"[:, newaxis]">}
  vm.return(r1, r2)
}

// STEPS: tssa.extract %{{.*}} {offsets = #tssa.dims<[1]>, steps = array<i64: 3>} : (tensor<10xf32>) -> tensor<3xf32>
vm.func @steps(1) -> 1 registers 2 {
^entry:
  vm.apply r1 = getitem(r0) {index = #vm.index<"[1:-1:3]">}
  vm.return(r1)
}

// What is stored is cast, broadcast to the selected shape, and given all axes of the whole.
// STORE:      func.func @store(%[[X:.*]]: tensor<4x3xf32>, %[[I:.*]]: tensor<i64> {tssa.weak})
// STORE-NEXT: %[[C:.*]] = tssa.cast %[[I]] : (tensor<i64>) -> tensor<f32>
// STORE-NEXT: %[[B:.*]] = tssa.broadcast %[[C]] : (tensor<f32>) -> tensor<2xf32>
// STORE-NEXT: %[[P:.*]] = tssa.reshape %[[B]] : (tensor<2xf32>) -> tensor<2x1xf32>
// STORE-NEXT: tssa.insert %[[X]], %[[P]] {offsets = #tssa.dims<[2, 2]>, steps = array<i64: 1, 1>}
vm.func @store(2) -> 1 registers 3 {
^entry:
  vm.apply r2 = setitem(r0, r1) {index = #vm.index<"[2:, -1]">}
  vm.return(r2)
}

// BOUNDS: getitem: index -1 is out of range for axis 0 of size 0
vm.func @last(1) -> 1 registers 2 {
^entry:
  vm.apply r1 = getitem(r0) {index = #vm.index<"[-1]">}
  vm.return(r1)
}

// DATA: depends on tensor data
vm.func @by_data(2) -> 1 registers 4 {
^entry:
  vm.apply r2 = sum(r1) {axis = none, keepdims = false}
  vm.apply r3 = getitem(r0, r2) {index = #vm.index<"[0:$1]">}
  vm.return(r3)
}
