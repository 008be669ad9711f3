// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="strong(f32[], int)"}' | filecheck %s --check-prefix=STRONG
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="squared(f32[], int)"}' 2>&1 | filecheck %s --check-prefix=SQUARED
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="strong(i64[], int)"}' | filecheck %s --check-prefix=INTEGER

// A register that is a Python float first and float32 later is carried as float32, since every use of it has a
// float32 beside it: the interpreter casts there, with the same result.

vm.pool ["float 0.1", "int 1"]

// STRONG:      %[[ONE:.*]] = tssa.cast %{{.*}} : (tensor<f64>) -> tensor<f32>
// STRONG-NEXT: cf.br ^[[HEAD:.*]](%[[ONE]]
// STRONG-NEXT: ^[[HEAD]](%[[X:.*]]: tensor<f32>):
// STRONG:      tssa.add %[[X]], %{{.*}} : (tensor<f32>, tensor<f32>) -> tensor<f32>
// INTEGER:     ^{{.*}}(%[[X:.*]]: tensor<f64>):
// INTEGER:     tssa.add %[[X]], %{{.*}} : (tensor<f64>, tensor<f64>) -> tensor<f64>
vm.func @strong(2) -> 1 registers 3 {
^entry:
  vm.const r2 = 0
  vm.br ^head
^head:
  vm.apply r2 = add(r2, r0)
  vm.cond_br r1, ^head, ^exit
^exit:
  vm.return(r2)
}

// Here the first product is computed in float64 by the interpreter, the others are not.
// SQUARED: multiply of a value that is float* or float32, depending on the path, has no one dtype
vm.func @squared(2) -> 1 registers 3 {
^entry:
  vm.const r2 = 0
  vm.br ^head
^head:
  vm.apply r2 = multiply(r2, r2)
  vm.apply r2 = multiply(r2, r0)
  vm.cond_br r1, ^head, ^exit
^exit:
  vm.return(r2)
}
