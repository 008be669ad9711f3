// RUN: jit-opt %s -p loop-distribute --verify-each | filecheck %s

// Each straight run gets a loop along the axis, memory an element per iteration. The reduction without loops inside
// stays whole, so that its accumulator can be a register; what does not depend on the axis is computed once.
// CHECK-LABEL: func.func @a_sum_of_columns
// CHECK:         %[[A:.*]] = memref.alloca() {alignment = 64 : i64} : memref<32x64xf32>
// CHECK-NEXT:    loop.nest (%[[L0:.*]]) = (%c0) to (%c32) step (1) kinds [parallel] {
// CHECK-NEXT:      loop.nest (%[[K0:.*]]) = (%{{.*}}) to (%{{.*}}) step (1) kinds [parallel] schedule <vector = 8> {
// CHECK-NEXT:        memref.store %zero, %[[A]][%[[L0]], %[[K0]]]
// CHECK:         loop.nest (%[[G:.*]]) = (%c0) to (%n) step (128) kinds [reduction] {
// CHECK-NEXT:      loop.nest (%[[L:.*]]) = (%c0) to (%c32) step (1) kinds [parallel] {
// CHECK-NEXT:        %[[E:.*]] = arith.addi %[[G]], %c128 : index
// CHECK-NEXT:        loop.nest (%[[K:.*]]) = (%{{.*}}) to (%{{.*}}) step (1) kinds [parallel] schedule <vector = 8> {
// CHECK-NEXT:          loop.nest (%[[I:.*]]) = (%[[G]]) to (%[[E]]) step (32) kinds [reduction] {
// CHECK-NEXT:            %[[R:.*]] = arith.addi %[[I]], %[[L]] : index
// CHECK-NEXT:            %[[S:.*]] = memref.load %[[A]][%[[L]], %[[K]]] : memref<32x64xf32>
// CHECK-NEXT:            %[[X:.*]] = memref.load %x[%[[R]], %[[K]]]
// CHECK:         loop.nest (%[[K1:.*]]) = ({{.*}}) kinds [parallel] schedule <vector = 8> {
// CHECK-NEXT:      %[[T:.*]] = memref.load %[[A]][%c0, %[[K1]]]
// CHECK-NEXT:      memref.store %[[T]], %y[%[[K1]]]
func.func @a_sum_of_columns(%x: memref<?x64xf32>, %y: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  loop.nest (%j) = (%c0) to (%c64) step (1) kinds [parallel] schedule <vector = 8, distribute = 64> {
    %acc = memref.alloca() : memref<32xf32>
    loop.nest (%l) = (%c0) to (%c32) step (1) kinds [parallel] schedule <vector = 32> {
      memref.store %zero, %acc[%l] : memref<32xf32>
    }
    loop.nest (%g) = (%c0) to (%n) step (128) kinds [reduction] {
      loop.nest (%l) = (%c0) to (%c32) step (1) kinds [parallel] {
        %e = arith.addi %g, %c128 : index
        loop.nest (%i) = (%g) to (%e) step (32) kinds [reduction] {
          %r = arith.addi %i, %l : index
          %s = memref.load %acc[%l] : memref<32xf32>
          %v = memref.load %x[%r, %j] : memref<?x64xf32>
          %t = arith.addf %s, %v : f32
          memref.store %t, %acc[%l] : memref<32xf32>
        }
      }
    }
    %t = memref.load %acc[%c0] : memref<32xf32>
    memref.store %t, %y[%j] : memref<64xf32>
  }
  func.return
}

// The other axes stay around it; a lower bound is added where the index is used.
// CHECK-LABEL: func.func @the_last_of_two_axes
// CHECK:         %[[N:.*]] = arith.subi %{{.*}}, %a : index
// CHECK:         loop.nest (%[[I:.*]]) = (%c0) to (%n) step (1) kinds [parallel] {
// CHECK-NEXT:      loop.nest (%[[K:.*]]) = (%{{.*}}) to (%[[N]]) step (1) kinds [parallel] {
// CHECK-NEXT:        %[[J:.*]] = arith.addi %a, %[[K]] : index
// CHECK-NEXT:        memref.store %zero, %y[%[[I]], %[[J]]]
func.func @the_last_of_two_axes(%y: memref<?x?xf32>, %a: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %b = arith.addi %a, %c64 : index
  loop.nest (%i, %j) = (%c0, %a) to (%n, %b) step (1, 1) kinds [parallel, parallel] schedule <distribute = 64> {
    memref.store %zero, %y[%i, %j] : memref<?x?xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_distribute_a_reduction
// CHECK:         loop.nest (%j) = {{.*}} kinds [reduction] schedule <distribute = 64> attributes {loop.remark = "loop-distribute: its innermost axis is no parallel one of step 1"}
func.func @do_not_distribute_a_reduction(%a: index) {
  %c64 = arith.constant 64 : index
  %b = arith.addi %a, %c64 : index
  loop.nest (%j) = (%a) to (%b) step (1) kinds [reduction] schedule <distribute = 64> {
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_overflow_the_memory
// CHECK:         loop.remark = "loop-distribute: it may have more than 64 iterations"
func.func @do_not_overflow_the_memory(%a: index, %n: index) {
  loop.nest (%j) = (%a) to (%n) step (1) kinds [parallel] schedule <distribute = 64> {
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_reorder_calls
// CHECK:         loop.remark = "loop-distribute: func.call is not known to be safe in another order"
func.func @do_not_reorder_calls(%a: index) {
  %c64 = arith.constant 64 : index
  %b = arith.addi %a, %c64 : index
  loop.nest (%j) = (%a) to (%b) step (1) kinds [parallel] schedule <distribute = 64> {
    func.call @callee(%j) : (index) -> ()
  }
  func.return
}
func.func private @callee(index)

// CHECK-LABEL: func.func @do_not_distribute_over_a_triangle
// CHECK:         loop.remark = "loop-distribute: the bounds of an inner loop depend on its index"
func.func @do_not_distribute_over_a_triangle(%a: index) {
  %c64 = arith.constant 64 : index
  %b = arith.addi %a, %c64 : index
  loop.nest (%j) = (%a) to (%b) step (1) kinds [parallel] schedule <distribute = 64> {
    loop.nest (%i) = (%a) to (%j) step (1) kinds [reduction] {
    }
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_carry_values_between_runs
// CHECK:         loop.remark = "loop-distribute: a value that is made in front of a loop is used behind it"
func.func @do_not_carry_values_between_runs(%x: memref<?xf32>, %a: index) {
  %c64 = arith.constant 64 : index
  %b = arith.addi %a, %c64 : index
  loop.nest (%j) = (%a) to (%b) step (1) kinds [parallel] schedule <distribute = 64> {
    %v = memref.load %x[%j] : memref<?xf32>
    loop.nest (%i) = (%a) to (%b) step (1) kinds [parallel] {
    }
    memref.store %v, %x[%j] : memref<?xf32>
  }
  func.return
}

// The same number for every %j, but the load of it is in the first run.
// CHECK-LABEL: func.func @do_not_carry_what_is_the_same_everywhere_into_a_loop
// CHECK:         loop.remark = "loop-distribute: a value that is made in front of a loop is used behind it"
func.func @do_not_carry_what_is_the_same_everywhere_into_a_loop(%x: memref<?xf32>, %s: memref<f32>, %a: index) {
  %c64 = arith.constant 64 : index
  %b = arith.addi %a, %c64 : index
  loop.nest (%j) = (%a) to (%b) step (1) kinds [parallel] schedule <distribute = 64> {
    %v = memref.load %s[] : memref<f32>
    loop.nest (%i) = (%a) to (%b) step (1) kinds [parallel] {
      memref.store %v, %x[%j] : memref<?xf32>
    }
  }
  func.return
}

// The sum would be made outside, the load it is made of in a run.
// CHECK-LABEL: func.func @do_not_make_outside_what_needs_a_load
// CHECK:         loop.remark = "loop-distribute: a value that is made in front of a loop is used behind it"
func.func @do_not_make_outside_what_needs_a_load(%x: memref<?xf32>, %s: memref<f32>, %a: index) {
  %c64 = arith.constant 64 : index
  %b = arith.addi %a, %c64 : index
  loop.nest (%j) = (%a) to (%b) step (1) kinds [parallel] schedule <distribute = 64> {
    %v = memref.load %s[] : memref<f32>
    %w = arith.addf %v, %v : f32
    loop.nest (%i) = (%a) to (%b) step (1) kinds [parallel] {
      memref.store %w, %x[%j] : memref<?xf32>
    }
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_fill_the_stack
// CHECK:         loop.remark = "loop-distribute: its memory would fill the stack"
func.func @do_not_fill_the_stack(%x: memref<?xf32>, %a: index) {
  %c65536 = arith.constant 65536 : index
  %b = arith.addi %a, %c65536 : index
  loop.nest (%j) = (%a) to (%b) step (1) kinds [parallel] schedule <distribute = 65536> {
    %acc = memref.alloca() : memref<32xf32>
  }
  func.return
}
