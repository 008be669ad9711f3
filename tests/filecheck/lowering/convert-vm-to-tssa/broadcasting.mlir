// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="bias(f32[n,8], f32[8])"}' | filecheck %s --check-prefix=BIAS
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="bias(f32[n], f32[m])"}' | filecheck %s --check-prefix=EQUAL
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="bias(f32[n], f32[8])"}' | filecheck %s --check-prefix=KNOWN
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="bias(f32[n], f32[1])"}' | filecheck %s --check-prefix=ONE
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="bias(f32[0,3], f32[3])"}' | filecheck %s --check-prefix=EMPTY
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="bias(f32[n], f32[n]) where 2 <= n"}' | filecheck %s --check-prefix=MANY
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="bias(f32[3], f32[4])"}' 2>&1 | filecheck %s --check-prefix=NEVER

// Broadcasts are explicit, and sizes that must agree become guards.

vm.func @bias(2) -> 1 registers 3 {
^entry:
  vm.apply r2 = add(r0, r1)
  vm.return(r2)
}

// BIAS:      func.func @bias(%[[X:.*]]: tensor<?x8xf32, #tssa.dims<[n, 8]>>, %[[B:.*]]: tensor<8xf32>) -> tensor<?x8xf32, #tssa.dims<[n, 8]>> {
// BIAS-NEXT:   %[[C:.*]] = tssa.broadcast %[[B]] : (tensor<8xf32>) -> tensor<?x8xf32, #tssa.dims<[n, 8]>>
// BIAS-NEXT:   %[[Y:.*]] = tssa.add %[[X]], %[[C]]
// BIAS-NEXT:   func.return %[[Y]]

// EQUAL:      func.func @bias(%[[X:.*]]: tensor<?xf32, #tssa.dims<[n]>>, %[[B:.*]]: tensor<?xf32, #tssa.dims<[n]>>)
// EQUAL-SAME: tssa.guards = [#tssa.guard<n == m>]
// EQUAL-NEXT:   tssa.add %[[X]], %[[B]]

// KNOWN:      func.func @bias(%[[X:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>)
// KNOWN-SAME: tssa.guards = [#tssa.guard<n == 8>]
// KNOWN-NEXT:   tssa.add %[[X]], %[[B]]

// A size of 1 broadcasts without a guard.
// ONE:      func.func @bias(%[[X:.*]]: tensor<?xf32, #tssa.dims<[n]>>, %[[B:.*]]: tensor<1xf32>) -> tensor<?xf32, #tssa.dims<[n]>> {
// ONE-NEXT:   %[[C:.*]] = tssa.broadcast %[[B]]
// ONE-NEXT:   tssa.add %[[X]], %[[C]]

// EMPTY: tssa.add %{{.*}}, %{{.*}} : (tensor<0x3xf32>, tensor<0x3xf32>) -> tensor<0x3xf32>

// MANY: func.func @bias({{.*}}) -> {{.*}} attributes {tssa.guards = [#tssa.guard<2 <= n>]} {

// NEVER: add: shapes (3,) and (4,) do not broadcast; sizes must be equal or 1
