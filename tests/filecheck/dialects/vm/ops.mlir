// RUN: jit-opt %s | filecheck %s

// CHECK:      vm.pool ["float 0.0", "f32[2] [1.0, -0.0]"]
vm.pool ["float 0.0", "f32[2] [1.0, -0.0]"]

// CHECK:      vm.func @main(2) -> 1 registers 6 {
// CHECK-NEXT: ^entry:
// CHECK-NEXT:   vm.const r2 = 1
// CHECK-NEXT:   vm.apply r3 = add(r0, r2)
// CHECK-NEXT:   vm.apply r3 = getitem(r3, r1) {index = #vm.index<"[0:$1, ..., newaxis, -1]">}
// CHECK-NEXT:   vm.apply r3 = reshape(r3, r1) {shape = #vm.shape<"[$1, -1]">}
// CHECK-NEXT:   vm.apply r4 = max(r3) {axis = none, keepdims = false}
// CHECK-NEXT:   vm.move r5 = r4
// CHECK-NEXT:   vm.destroy r4
// CHECK-NEXT:   vm.cond_br r5, ^entry, ^choose
// CHECK-NEXT: ^choose:
// CHECK-NEXT:   vm.switch r1 [1: ^entry, -2: ^exit, default: ^choose]
// CHECK-NEXT: ^exit:
// CHECK-NEXT:   vm.call r4, r5 = @twice(r3)
// CHECK-NEXT:   vm.return(r5)
// CHECK-NEXT: }
vm.func @main(2) -> 1 registers 6 {
^entry:
  vm.const r2 = 1
  vm.apply r3 = add(r0, r2)
  vm.apply r3 = getitem(r3, r1) {index = #vm.index<"[0:$1, ..., newaxis, -1]">}
  vm.apply r3 = reshape(r3, r1) {shape = #vm.shape<"[$1, -1]">}
  vm.apply r4 = max(r3) {axis = none, keepdims = false}
  vm.move r5 = r4
  vm.destroy r4
  vm.cond_br r5, ^entry, ^choose
^choose:
  vm.switch r1 [1: ^entry, -2: ^exit, default: ^choose]
^exit:
  vm.call r4, r5 = @twice(r3)
  vm.return(r5)
}

// CHECK-NEXT: vm.func @twice(1) -> 2 registers 1 {
vm.func @twice(1) -> 2 registers 1 {
^entry:
  vm.br ^exit
^exit:
  vm.return(r0, r0)
}
