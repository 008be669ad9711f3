// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="row(f32[n,8], int)"}' | filecheck %s --check-prefix=ROW
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="window(f32[n], int)"}' | filecheck %s --check-prefix=WINDOW
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="write(f32[4], int)"}' | filecheck %s --check-prefix=WRITE
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="do_not_guess_a_size(f32[n], int)"}' 2>&1 | filecheck %s --check-prefix=SIZE
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="do_not_follow_what_wraps(f32[n], int)"}' 2>&1 | filecheck %s --check-prefix=WRAPS

// An index that changes around a loop is an operand. It is checked where it is used, not by a guard: the loop
// may take no step. From the end it counts where it is negative.

vm.pool ["int 0", "int 1", "int 4"]

// ROW-NOT:  tssa.guards
// ROW:      ^[[HEAD:.*]](%[[I:.*]]: tensor<i64>):
// ROW-NEXT:   tssa.check_bounds %[[I]] {lower = #tssa.dims<[-1 * n]>, upper = #tssa.dims<[n + -1]>} : tensor<i64>
// ROW-NEXT:   %[[R:.*]] = tssa.extract %{{.*}}, %[[I]] {offsets = #tssa.dims<[wrap(_0, n), 0]>, steps = array<i64: 1, 1>} : (tensor<?x8xf32, #tssa.dims<[n, 8]>>, tensor<i64>) -> tensor<1x8xf32>
// ROW-NEXT:   tssa.reshape %[[R]] : (tensor<1x8xf32>) -> tensor<8xf32>
vm.func @row(2) -> 1 registers 6 {
^entry:
  vm.const r2 = 0
  vm.const r4 = 1
  vm.br ^head
^head:
  vm.apply r3 = getitem(r0, r2) {index = #vm.index<"[$1]">}
  vm.apply r2 = add(r2, r4)
  vm.apply r5 = less(r2, r1)
  vm.cond_br r5, ^head, ^exit
^exit:
  vm.return(r3)
}

// Both bounds of a slice change, their difference does not: it is the size.
// WINDOW:      ^[[HEAD:.*]](%[[I:.*]]: tensor<i64>):
// WINDOW-NEXT:   %[[J:.*]] = tssa.add %[[I]], %{{.*}} : (tensor<i64>, tensor<i64>) -> tensor<i64>
// WINDOW-NEXT:   tssa.check_bounds %[[I]], %[[J]] {lower = #tssa.dims<[0]>, upper = #tssa.dims<[n]>} : tensor<i64>, tensor<i64>
// WINDOW-NEXT:   tssa.extract %{{.*}}, %[[I]] {offsets = #tssa.dims<[_0]>, steps = array<i64: 2>} : (tensor<?xf32, #tssa.dims<[n]>>, tensor<i64>) -> tensor<2xf32>
vm.func @window(2) -> 1 registers 8 {
^entry:
  vm.const r2 = 0
  vm.const r4 = 1
  vm.const r6 = 2
  vm.br ^head
^head:
  vm.apply r7 = add(r2, r6)
  vm.apply r3 = getitem(r0, r2, r7) {index = #vm.index<"[$1:$2:2]">}
  vm.apply r2 = add(r2, r4)
  vm.apply r5 = less(r2, r1)
  vm.cond_br r5, ^head, ^exit
^exit:
  vm.return(r3)
}

// WRITE:      ^[[HEAD:.*]](%[[X:.*]]: tensor<4xf32>, %[[I:.*]]: tensor<i64>):
// WRITE:        tssa.check_bounds %[[I]] {lower = #tssa.dims<[-4]>, upper = #tssa.dims<[3]>} : tensor<i64>
// WRITE:        tssa.insert %[[X]], %{{.*}}, %[[I]] {offsets = #tssa.dims<[wrap(_0, 4)]>, steps = array<i64: 1>} : (tensor<4xf32>, tensor<1xf32>, tensor<i64>) -> tensor<4xf32>
vm.func @write(2) -> 1 registers 6 {
^entry:
  vm.const r2 = 0
  vm.const r4 = 1
  vm.br ^head
^head:
  vm.apply r0 = setitem(r0, r2, r2) {index = #vm.index<"[$2]">}
  vm.apply r2 = add(r2, r4)
  vm.apply r5 = less(r2, r1)
  vm.cond_br r5, ^head, ^exit
^exit:
  vm.return(r0)
}

// SIZE: getitem: the size of the slice [0:$1] depends on tensor data
vm.func @do_not_guess_a_size(2) -> 1 registers 6 {
^entry:
  vm.const r2 = 0
  vm.const r4 = 1
  vm.br ^head
^head:
  vm.apply r3 = getitem(r0, r2) {index = #vm.index<"[0:$1]">}
  vm.apply r2 = add(r2, r4)
  vm.apply r5 = less(r2, r1)
  vm.cond_br r5, ^head, ^exit
^exit:
  vm.return(r3)
}

// max(i, 1) - max(i, 1) is 0, but a function of what may wrap is not followed.
// WRAPS: depends on tensor data
vm.func @do_not_follow_what_wraps(2) -> 1 registers 8 {
^entry:
  vm.const r2 = 0
  vm.const r4 = 1
  vm.br ^head
^head:
  vm.apply r6 = maximum(r2, r4)
  vm.apply r7 = maximum(r2, r4)
  vm.apply r3 = getitem(r0, r6, r7) {index = #vm.index<"[$1:$2]">}
  vm.apply r2 = add(r2, r4)
  vm.apply r5 = less(r2, r1)
  vm.cond_br r5, ^head, ^exit
^exit:
  vm.return(r3)
}
