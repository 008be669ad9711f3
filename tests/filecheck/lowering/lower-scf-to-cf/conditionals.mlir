// RUN: jit-opt %s -p lower-scf-to-cf | filecheck %s

// CHECK-LABEL: func.func @chooses_a_value
// CHECK:         cf.cond_br %c, ^[[T:.+]], ^[[F:.+]]
// CHECK-NEXT:  ^[[T]]:
// CHECK-NEXT:    cf.br ^[[E:.+]](%a : f32)
// CHECK-NEXT:  ^[[F]]:
// CHECK-NEXT:    cf.br ^[[E]](%b : f32)
// CHECK-NEXT:  ^[[E]]([[R:%.+]]: f32):
// CHECK-NEXT:    func.return [[R]] : f32
func.func @chooses_a_value(%c: i1, %a: f32, %b: f32) -> f32 {
  %r = scf.if %c -> (f32) {
    scf.yield %a : f32
  } else {
    scf.yield %b : f32
  }
  func.return %r : f32
}

// CHECK-LABEL: func.func @skips_a_missing_branch
// CHECK:         cf.cond_br %c, ^[[T:.+]], ^[[E:.+]]
// CHECK-NEXT:  ^[[T]]:
// CHECK-NEXT:    "test.op"
// CHECK-NEXT:    cf.br ^[[E]]
// CHECK-NEXT:  ^[[E]]:
func.func @skips_a_missing_branch(%c: i1) {
  scf.if %c {
    "test.op"() : () -> ()
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_touch_other_operations_of_scf
// CHECK:         scf.while
func.func @do_not_touch_other_operations_of_scf(%c: i1) {
  scf.while () : () -> () {
    scf.condition(%c)
  } do {
    scf.yield
  }
  func.return
}
