// RUN: jit-opt %s -p lower-scf-to-cf | filecheck %s

// CHECK-LABEL: func.func @leaves_where_it_fails
// CHECK-NEXT:    cf.cond_br %ok, ^[[AFTER:.*]], ^[[FAILED:.*]]
// CHECK-NEXT:  ^[[FAILED]]:
// CHECK-NEXT:    func.return {jd.status = 1 : i32}
// CHECK-NEXT:  ^[[AFTER]]:
// CHECK-NEXT:    func.return
func.func @leaves_where_it_fails(%ok: i1) {
  cf.assert %ok, "no"
  func.return
}

// CHECK-LABEL: func.func @leaves_from_inside_a_loop
// CHECK:       ^[[BODY:.*]](%{{.*}}: index):
// CHECK-NEXT:    cf.cond_br %ok, ^[[AFTER:.*]], ^[[FAILED:.*]]
// CHECK-NEXT:  ^[[FAILED]]:
// CHECK-NEXT:    func.return {jd.status = 1 : i32}
// CHECK-NEXT:  ^[[AFTER]]:
// CHECK:         cf.cond_br %{{.*}}, ^[[BODY]](%{{.*}} : index), ^[[END:.*]]
// CHECK:       ^[[END]]:
// CHECK-NEXT:    func.return
func.func @leaves_from_inside_a_loop(%ok: i1, %a: index, %b: index, %s: index) {
  scf.for %i = %a to %b step %s {
    cf.assert %ok, "no"
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_leave_a_function_with_results
// CHECK-NEXT:    cf.assert %ok, "no"
func.func @do_not_leave_a_function_with_results(%ok: i1) -> i1 {
  cf.assert %ok, "no"
  func.return %ok : i1
}
