// RUN: jit-opt %s -p convert-cf-to-llvm | filecheck %s

// CHECK-LABEL: func.func @converts_the_arguments_of_blocks
// CHECK:         [[N:%.+]] = builtin.unrealized_conversion_cast %n : index to i64
// CHECK-NEXT:    llvm.br ^[[L:.+]]([[N]] : i64)
// CHECK-NEXT:  ^[[L]]([[I:%.+]]: i64):
// CHECK-NEXT:    llvm.cond_br %c, ^[[L]]([[I]] : i64), ^[[E:.+]]
// CHECK-NEXT:  ^[[E]]:
// CHECK-NEXT:    func.return
func.func @converts_the_arguments_of_blocks(%n: index, %c: i1) {
  cf.br ^loop(%n : index)
^loop(%i: index):
  cf.cond_br %c, ^loop(%i : index), ^end
^end:
  func.return
}

// CHECK-LABEL: func.func @do_not_convert_arguments_of_functions
// CHECK-SAME:    (%x: index)
// CHECK-NEXT:    llvm.br
func.func @do_not_convert_arguments_of_functions(%x: index) {
  cf.br ^end
^end:
  func.return
}
