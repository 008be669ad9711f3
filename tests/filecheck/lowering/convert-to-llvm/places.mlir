// RUN: jit-opt %s -p convert-to-llvm --verify-each | filecheck %s

// Blocks may stand in any order: an address is placed behind its operands, not where it is first read about.
// CHECK-LABEL: llvm.func @follows_dominance_not_text
// CHECK:         llvm.br ^[[DEF:.+]]
// CHECK-NEXT:  ^[[USE:.+]]:
// CHECK-NEXT:    llvm.load [[P:%.+]] {alignment = 4 : i64} : !llvm.ptr -> f32
// CHECK:       ^[[DEF]]:
// CHECK-NEXT:    [[I:%.+]] = llvm.add
// CHECK-NEXT:    [[P]] = llvm.getelementptr {{%.+}}[[[I]]]
// CHECK-NEXT:    llvm.br ^[[USE]]
func.func @follows_dominance_not_text(%m: memref<?xf32>, %i: index) -> f32 {
  cf.br ^def
^use:
  %x = memref.load %m[%k] : memref<?xf32>
  func.return %x : f32
^def:
  %k = arith.addi %i, %i : index
  cf.br ^use
}

// CHECK-LABEL: builtin.module @nested
// CHECK-NEXT:    llvm.func @inside
builtin.module @nested {
  func.func @inside() {
    func.return
  }
}
