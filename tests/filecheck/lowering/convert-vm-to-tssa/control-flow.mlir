// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="newton(f32[n], int)"}' | filecheck %s --check-prefix=LOOP
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="choose(f32[n], float)"}' | filecheck %s --check-prefix=BRANCH
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="select(f32[n], i64[])"}' | filecheck %s --check-prefix=SWITCH
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="again(i64[])"}' | filecheck %s --check-prefix=ENTRY
// RUN: jit-opt %s -p 'convert-vm-to-tssa{signature="twice(f32[n])"}' | filecheck %s --check-prefix=CALL
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="recursive(f32[n])"}' 2>&1 | filecheck %s --check-prefix=RECURSIVE
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="grows(f32[n], int)"}' 2>&1 | filecheck %s --check-prefix=GROWS
// RUN: not jit-opt %s -p 'convert-vm-to-tssa{signature="choose(f32[n], f32[2])"}' 2>&1 | filecheck %s --check-prefix=RANK

vm.pool ["int 0", "int 1", "float 0.5"]

// Only registers that differ at a join and are live become block arguments: not r0, r1, nor the scratch r5.
// LOOP:      func.func @newton(%[[A:.*]]: tensor<?xf32, #tssa.dims<[n]>>, %[[N:.*]]: tensor<i64> {tssa.weak})
// LOOP:        cf.br ^[[HEAD:.*]](%[[ZERO:.*]], %[[A]] : tensor<i64>, tensor<?xf32, #tssa.dims<[n]>>)
// LOOP-NEXT: ^[[HEAD]](%[[I:.*]]: tensor<i64>, %[[X:.*]]: tensor<?xf32, #tssa.dims<[n]>>):
// LOOP-NEXT:   %[[LESS:.*]] = tssa.less %[[I]], %[[N]] : (tensor<i64>, tensor<i64>) -> tensor<i1>
// LOOP-NEXT:   %[[C:.*]] = tensor.extract %[[LESS]][] : tensor<i1>
// LOOP-NEXT:   cf.cond_br %[[C]], ^[[BODY:.*]], ^[[EXIT:.*]]
// LOOP:      ^[[BODY]]:
// LOOP-NEXT:   tssa.divide %[[A]], %[[X]]
// LOOP:        cf.br ^[[HEAD]](%{{.*}}, %{{.*}} : tensor<i64>, tensor<?xf32, #tssa.dims<[n]>>)
vm.func @newton(2) -> 2 registers 8 {
^entry:
  vm.const r2 = 0
  vm.move r3 = r0
  vm.br ^head
^head:
  vm.apply r4 = less(r2, r1)
  vm.cond_br r4, ^body, ^exit
^body:
  vm.destroy r4
  vm.apply r5 = divide(r0, r3)
  vm.apply r5 = add(r5, r3)
  vm.const r6 = 2
  vm.apply r3 = multiply(r5, r6)
  vm.const r7 = 1
  vm.apply r2 = add(r2, r7)
  vm.br ^head
^exit:
  vm.return(r3, r2)
}

// Any rank-0 number may decide a branch: non-zero is true.
// BRANCH:      %[[T:.*]] = tssa.cast %{{.*}} : (tensor<f64>) -> tensor<i1>
// BRANCH-NEXT: %[[C:.*]] = tensor.extract %[[T]][] : tensor<i1>
// BRANCH-NEXT: cf.cond_br %[[C]], ^[[THEN:.*]], ^[[JOIN:.*]](%[[X:.*]] : tensor<?xf32, #tssa.dims<[n]>>)
// BRANCH:      ^[[THEN]]:
// BRANCH-NEXT:   %[[Y:.*]] = tssa.negative %[[X]]
// BRANCH-NEXT:   cf.br ^[[JOIN]](%[[Y]] : tensor<?xf32, #tssa.dims<[n]>>)
// BRANCH-NEXT: ^[[JOIN]](%[[R:.*]]: tensor<?xf32, #tssa.dims<[n]>>):
// BRANCH-NEXT:   func.return %[[R]]
// RANK: cond_br needs a value of rank 0, got shape (2,)
vm.func @choose(2) -> 1 registers 2 {
^entry:
  vm.cond_br r1, ^then, ^join
^then:
  vm.apply r0 = negative(r0)
  vm.br ^join
^join:
  vm.return(r0)
}

// SWITCH:      %[[K:.*]] = tssa.constant {value = dense<-3> : tensor<i64>}
// SWITCH-NEXT: %[[E:.*]] = tssa.equal %[[S:.*]], %[[K]]
// SWITCH-NEXT: %[[C:.*]] = tensor.extract %[[E]][]
// SWITCH-NEXT: cf.cond_br %[[C]], ^[[A:.*]], ^[[NEXT:bb[0-9]+]]
// SWITCH-NEXT: ^[[NEXT]]:
// SWITCH-NEXT: %[[L:.*]] = tssa.constant {value = dense<7> : tensor<i64>}
// SWITCH-NEXT: %[[F:.*]] = tssa.equal %[[S]], %[[L]]
// SWITCH-NEXT: %[[D:.*]] = tensor.extract %[[F]][]
// SWITCH-NEXT: cf.cond_br %[[D]], ^[[B:.*]], ^[[DEFAULT:.*]]
vm.func @select(2) -> 1 registers 2 {
^entry:
  vm.switch r1 [-3: ^a, 7: ^b, default: ^c]
^a:
  vm.apply r0 = negative(r0)
  vm.return(r0)
^b:
  vm.apply r0 = abs(r0)
  vm.return(r0)
^c:
  vm.return(r0)
}

// A first block that is branched to gets an entry in front of it.
// ENTRY:      func.func @again(%[[X:.*]]: tensor<i64>)
// ENTRY:        cf.br ^[[TOP:.*]](%[[X]] : tensor<i64>)
// ENTRY-NEXT: ^[[TOP]](%[[Y:.*]]: tensor<i64>):
vm.func @again(1) -> 1 registers 2 {
^loop:
  vm.const r1 = 1
  vm.apply r0 = right_shift(r0, r1)
  vm.cond_br r0, ^loop, ^exit
^exit:
  vm.return(r0)
}

// CALL-NOT: call
// CALL:     %[[A:.*]] = tssa.negative
// CALL:     %[[B:.*]] = tssa.negative %[[A]]
// CALL:     func.return %[[B]]
vm.func @twice(1) -> 1 registers 1 {
^entry:
  vm.call r0 = @negated(r0)
  vm.call r0 = @negated(r0)
  vm.return(r0)
}
vm.func @negated(1) -> 1 registers 2 {
^entry:
  vm.apply r1 = negative(r0)
  vm.return(r1)
}

// RECURSIVE: @recursive calls itself (@recursive -> @recursive), which is not compiled
vm.func @recursive(1) -> 1 registers 1 {
^entry:
  vm.call r0 = @recursive(r0)
  vm.return(r0)
}

// GROWS: register 0 at block head has shape (n,) on one path and (1, n) on another; give it one shape
vm.func @grows(2) -> 1 registers 2 {
^entry:
  vm.br ^head
^head:
  vm.cond_br r1, ^body, ^exit
^body:
  vm.apply r0 = getitem(r0) {index = #vm.index<"[newaxis]">}
  vm.br ^head
^exit:
  vm.return(r0)
}
