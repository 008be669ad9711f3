// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="nobody()"}' 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="either(f32[n])"}' 2>&1 | filecheck %s --check-prefix=COUNT
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="either(f32[n], f16[n])"}' 2>&1 | filecheck %s --check-prefix=DTYPE
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="either(f32[], i64[])"}' 2>&1 | filecheck %s --check-prefix=RESULTS
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="forever(f32[n])"}' 2>&1 | filecheck %s --check-prefix=FOREVER

// NAME: no function @nobody in the module; it has @either, @forever
// COUNT: @either takes 2 argument(s), the signature either(f32[n]) has 1
// DTYPE: unknown dtype 'f16' (known: f32, f64, i32, i64, bool, float, int, pybool)

// RESULTS: the function returns float32 () or int64 (); give its results one type
vm.func @either(2) -> 1 registers 2 {
^entry:
  vm.cond_br r0, ^a, ^b
^a:
  vm.return(r0)
^b:
  vm.return(r1)
}

// FOREVER: the function never returns
vm.func @forever(1) -> 1 registers 1 {
^entry:
  vm.br ^loop
^loop:
  vm.br ^loop
^never:
  vm.return(r0)
}
