// RUN: jit-opt %s -p lower-scf-to-cf | filecheck %s

// CHECK-LABEL: func.func @tests_at_the_bottom
// CHECK:         [[C:%.+]] = arith.cmpi slt, %lb, %ub : index
// CHECK-NEXT:    cf.cond_br [[C]], ^[[B:.+]](%lb, %x : index, f32), ^[[E:.+]](%x : f32)
// CHECK-NEXT:  ^[[B]]([[I:%.+]]: index, [[A:%.+]]: f32):
// CHECK-NEXT:    [[S:%.+]] = arith.addf [[A]], [[A]] : f32
// CHECK-NEXT:    [[N:%.+]] = arith.addi [[I]], %step : index
// CHECK-NEXT:    [[G:%.+]] = arith.cmpi slt, [[N]], %ub : index
// CHECK-NEXT:    cf.cond_br [[G]], ^[[B]]([[N]], [[S]] : index, f32), ^[[E]]([[S]] : f32)
// CHECK-NEXT:  ^[[E]]([[R:%.+]]: f32):
// CHECK-NEXT:    func.return [[R]] : f32
func.func @tests_at_the_bottom(%lb: index, %ub: index, %step: index, %x: f32) -> f32 {
  %r = scf.for %i = %lb to %ub step %step iter_args(%a = %x) -> (f32) {
    %s = arith.addf %a, %a : f32
    scf.yield %s : f32
  }
  func.return %r : f32
}

// CHECK-LABEL: func.func @enters_without_a_test_when_bounds_are_known
// CHECK-NOT:     cf.cond_br
// CHECK:         cf.br ^{{.+}}({{%.+}} : index)
func.func @enters_without_a_test_when_bounds_are_known() {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %8 = arith.constant 8 : index
  scf.for %i = %0 to %8 step %1 {
    "test.op"(%i) : (index) -> ()
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_enter_an_empty_range
// CHECK:         arith.cmpi slt, {{%.+}}, {{%.+}} : index
// CHECK-NEXT:    cf.cond_br
func.func @do_not_enter_an_empty_range() {
  %0 = arith.constant 0 : index
  %8 = arith.constant 8 : index
  scf.for %i = %8 to %0 step %8 {
    "test.op"(%i) : (index) -> ()
  }
  func.return
}

// CHECK-LABEL: func.func @nests
// CHECK:         cf.cond_br
// CHECK:         cf.cond_br
// CHECK-NEXT:  ^[[INNER:.+]]([[J:%.+]]: index):
// CHECK-NEXT:    "test.op"([[J]])
// CHECK:         cf.cond_br {{%.+}}, ^[[INNER]]
func.func @nests(%n: index) {
  scf.for %i = %n to %n step %n {
    scf.for %j = %i to %n step %n {
      "test.op"(%j) : (index) -> ()
    }
  }
  func.return
}
