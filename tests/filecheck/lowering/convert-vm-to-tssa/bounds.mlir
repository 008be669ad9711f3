// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="largest(f32[n,m]) where 2 <= n, n <= 64, 8 divides n"}' | filecheck %s --check-prefix=BOUNDS
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="largest(f32[n,m]) where 1 <= m"}' | filecheck %s --check-prefix=IMPLIED
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="largest(f32[n,m]) where 9 <= n, n <= 8"}' 2>&1 | filecheck %s --check-prefix=NEVER

// Bounds of a signature are guards: the code is for nothing else, and needs no others that they imply.

vm.func @largest(1) -> 1 registers 2 {
^entry:
  vm.apply r1 = max(r0) {axis = 1, keepdims = false}
  vm.return(r1)
}

// BOUNDS: tssa.guards = [#tssa.guard<2 <= n>, #tssa.guard<n <= 64>, #tssa.guard<8 * floordiv(n, 8) == n>, #tssa.guard<1 <= m>]

// IMPLIED: tssa.guards = [#tssa.guard<1 <= m>]}

// NEVER: no size is within these bounds
