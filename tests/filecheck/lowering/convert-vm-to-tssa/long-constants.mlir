// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="length(i64[65], i64[64])"}' | filecheck %s --check-prefix=LENGTH
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="twice(f32[n,70])"}' | filecheck %s --check-prefix=TWICE
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="called(f32[70])"}' | filecheck %s --check-prefix=CALLED
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="loop(i64[65])"}' | filecheck %s --check-prefix=LOOP

// A constant of more than 64 elements is an argument after the ordinary ones; it says which entry
// of the pool it is.

vm.pool ["i64[64] [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]", "float 1.0", "i64[65] [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]", "f32[70] [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]"]

vm.func @length(2) -> 2 registers 4 {
^entry:
  vm.const r2 = 2
  vm.const r3 = 0
  vm.apply r2 = add(r0, r2)
  vm.apply r3 = add(r1, r3)
  vm.return(r2, r3)
}

// LENGTH:      func.func @length(%r0: tensor<65xi64>, %r1: tensor<64xi64>, %[[C:.*]]: tensor<65xi64> {tssa.constant = 2 : i64}) -> (tensor<65xi64>, tensor<64xi64>)
// LENGTH-NEXT:   tssa.add %r0, %[[C]]
// LENGTH-NEXT:   %[[D:.*]] = tssa.constant {value = dense<0> : tensor<64xi64>}
// LENGTH-NEXT:   tssa.add %r1, %[[D]]

// One argument, however often it is used, inlined calls included; in the order of first use.
vm.func @twice(1) -> 2 registers 4 {
^entry:
  vm.const r1 = 3
  vm.apply r2 = add(r0, r1)
  vm.const r3 = 3
  vm.apply r2 = multiply(r2, r3)
  vm.call r3 = @called(r3)
  vm.return(r2, r3)
}
vm.func @called(1) -> 1 registers 2 {
^entry:
  vm.const r1 = 3
  vm.apply r1 = add(r0, r1)
  vm.return(r1)
}

// TWICE:      func.func @twice(%r0: tensor<?x70xf32, #tssa.dims<[n, 70]>>, %[[C:.*]]: tensor<70xf32> {tssa.constant = 3 : i64}) ->
// TWICE:         tssa.broadcast %[[C]]
// TWICE:         tssa.broadcast %[[C]]
// TWICE:         tssa.add %[[C]], %[[C]] : (tensor<70xf32>, tensor<70xf32>) -> tensor<70xf32>

// Another function of the program has arguments of its own; @length's constant is not among them.
// CALLED:      func.func @called(%r0: tensor<70xf32>, %[[C:.*]]: tensor<70xf32> {tssa.constant = 3 : i64}) -> tensor<70xf32>
// CALLED:        tssa.add %r0, %[[C]]

// The first block is branched to: the argument is one of the entry in front of it.
vm.func @loop(1) -> 1 registers 4 {
^head:
  vm.const r1 = 2
  vm.apply r0 = add(r0, r1)
  vm.apply r2 = sum(r0) {axis = none, keepdims = false}
  vm.cond_br r2, ^head, ^done
^done:
  vm.return(r0)
}

// LOOP:      func.func @loop(%r0: tensor<65xi64>, %[[C:.*]]: tensor<65xi64> {tssa.constant = 2 : i64}) -> tensor<65xi64>
// LOOP-NEXT:   cf.br ^[[HEAD:.*]](%r0 : tensor<65xi64>)
// LOOP-NEXT: ^[[HEAD]](%[[X:.*]]: tensor<65xi64>):
// LOOP-NEXT:   tssa.add %[[X]], %[[C]]
