// RUN: jit-opt %s -p convert-loop-to-scf | filecheck %s

// CHECK-LABEL: func.func @one_loop_per_axis
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[FOUR:.*]] = arith.constant 4 : index
// CHECK:         scf.for %i = %a to %m step %[[ONE]] {
// CHECK-NEXT:      scf.for %j = %b to %n step %[[FOUR]] {
// CHECK-NEXT:        %s = arith.addi %i, %j : index
// CHECK-NEXT:        memref.store %x, %out[%s] : memref<?xf32>
// CHECK-NEXT:      } {loop.kind = "reduction"}
// CHECK-NEXT:    } {loop.kind = "parallel"}
func.func @one_loop_per_axis(%a: index, %b: index, %m: index, %n: index, %x: f32, %out: memref<?xf32>) {
  loop.nest (%i, %j) = (%a, %b) to (%m, %n) step (1, 4) kinds [parallel, reduction] {
    %s = arith.addi %i, %j : index
    memref.store %x, %out[%s] : memref<?xf32>
  }
  func.return
}

// Jam belongs to its axis, vector and unroll to the innermost one.
// CHECK-LABEL: func.func @schedule_is_split
// CHECK:         } {loop.kind = "parallel", loop.schedule = #loop.schedule<vector = 8, unroll = 2>}
// CHECK-NEXT:    } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [6]>}
func.func @schedule_is_split(%a: index, %n: index) {
  loop.nest (%i, %j) = (%a, %a) to (%n, %n) step (1, 1) kinds [parallel, parallel] schedule <vector = 8, jam = [6, 1], unroll = 2> {
  }
  func.return
}

// CHECK-LABEL: func.func @nests_in_nests
// CHECK:         scf.for %i = %a to %n step %{{.*}} {
// CHECK-NEXT:      %m = arith.addi %i, %n : index
// CHECK-NEXT:      scf.for %k = %i to %m step %{{.*}} {
// CHECK-NEXT:      } {loop.kind = "reduction"}
// CHECK-NEXT:    } {loop.kind = "parallel"}
func.func @nests_in_nests(%a: index, %n: index) {
  loop.nest (%i) = (%a) to (%n) step (1) kinds [parallel] {
    %m = arith.addi %i, %n : index
    loop.nest (%k) = (%i) to (%m) step (2) kinds [reduction] {
    }
  }
  func.return
}

// What is no nest stays.
// CHECK-LABEL: func.func @do_not_touch_other_loops
// CHECK:         scf.for %i = %a to %n step %n {
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
func.func @do_not_touch_other_loops(%a: index, %n: index) {
  scf.for %i = %a to %n step %n {
  }
  func.return
}
