// RUN: jit-opt %s | filecheck %s
// RUN: jit-opt %s | jit-opt | filecheck %s

// CHECK-LABEL: func.func @two_axes
// CHECK:         loop.nest (%i, %j) = (%a, %a) to (%m, %n) step (1, 2) kinds [parallel, reduction] schedule <tile = [0, 16], order = [1, 0], vector = 16, jam = [6, 1], rest = 4, unroll = 4> attributes {mine = 3 : i32} {
// CHECK-NEXT:      %z = arith.addi %i, %j : index
// CHECK-NEXT:      loop.nest (%k) = (%i) to (%z) step (1) kinds [parallel] {
// CHECK-NEXT:      }
// CHECK-NEXT:    }
func.func @two_axes(%a: index, %m: index, %n: index) {
  loop.nest (%i, %j) = (%a, %a) to (%m, %n) step (1, 2) kinds [parallel, reduction] schedule <tile = [0, 16], order = [1, 0], vector = 16, jam = [6, 1], rest = 4, unroll = 4> attributes {mine = 3 : i32} {
    %z = arith.addi %i, %j : index
    loop.nest (%k) = (%i) to (%z) step (1) kinds [parallel] {
    }
  }
  func.return
}

// CHECK-LABEL: func.func @schedule_of_a_loop
// CHECK:         } {loop.schedule = #loop.schedule<vector = 8>}
func.func @schedule_of_a_loop(%a: index, %n: index) {
  scf.for %i = %a to %n step %n {
  } {loop.schedule = #loop.schedule<vector = 8>}
  func.return
}

func.func @parallel(%a: index, %n: index) {
  loop.parallel (%b, %e) = (%a) to (%n) chunk (%n) : index {
    "test.op"(%b, %e) : (index, index) -> ()
    loop.yield
  }
  func.return
}
// CHECK:      loop.parallel (%b, %e) = (%a) to (%n) chunk (%n) : index {
// CHECK-NEXT:   "test.op"(%b, %e) : (index, index) -> ()
// CHECK-NEXT:   loop.yield
// CHECK-NEXT: }
