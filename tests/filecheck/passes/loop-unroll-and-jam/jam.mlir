// RUN: jit-opt %s --allow-unregistered-dialect -p loop-unroll-and-jam | filecheck %s

// What depends on the row is copied and what does not is shared; rows past the last one repeat it.
// CHECK-LABEL: func.func @rows_side_by_side
// CHECK:         %[[LAST:.*]] = arith.subi %m, %{{.*}} : index
// CHECK:         scf.for %i = %c0 to %m step %{{.*}} {
// CHECK:           %[[NEXT:.*]] = arith.addi %i, %{{.*}} : index
// CHECK-NEXT:      %[[I1:.*]] = arith.minsi %[[NEXT]], %[[LAST]] : index
// CHECK-NEXT:      %[[R:.*]], %[[R1:.*]] = scf.for %k = %c0 to %n step %c1 iter_args(%[[S:.*]] = %zero, %[[S1:.*]] = %zero) -> (f32, f32) {
// CHECK-NEXT:        %b = memref.load %B[%k] : memref<?xf32>
// CHECK-NEXT:        %[[A:.*]] = memref.load %A[%i, %k] : memref<?x?xf32>
// CHECK-NEXT:        %[[T:.*]] = math.fma %[[A]], %b, %[[S]] : f32
// CHECK-NEXT:        %[[A1:.*]] = memref.load %A[%[[I1]], %k] : memref<?x?xf32>
// CHECK-NEXT:        %[[T1:.*]] = math.fma %[[A1]], %b, %[[S1]] : f32
// CHECK-NEXT:        scf.yield %[[T]], %[[T1]] : f32, f32
// CHECK:           memref.store %[[R]], %C[%i] : memref<?xf32>
// CHECK-NEXT:      memref.store %[[R1]], %C[%[[I1]]] : memref<?xf32>
// CHECK-NEXT:    } {loop.kind = "parallel"}
func.func @rows_side_by_side(%A: memref<?x?xf32>, %B: memref<?xf32>, %C: memref<?xf32>, %m: index, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %m step %c1 {
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) {
      %a = memref.load %A[%i, %k] : memref<?x?xf32>
      %b = memref.load %B[%k] : memref<?xf32>
      %t = math.fma %a, %b, %s : f32
      scf.yield %t : f32
    }
    memref.store %r, %C[%i] : memref<?xf32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [2]>}
  func.return
}

// CHECK-LABEL: func.func @count_that_divides
// CHECK-NOT:     arith.minsi
// CHECK:         scf.for
// CHECK-COUNT-2:   memref.store
// CHECK-NOT:     memref.store
// CHECK:         func.return
func.func @count_that_divides(%x: memref<?xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  scf.for %i = %c0 to %c6 step %c1 {
    memref.store %v, %x[%i] : memref<?xf32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [2]>}
  func.return
}

// CHECK-LABEL: func.func @count_of_the_factor
// CHECK-NOT:     scf.for
// CHECK-COUNT-2: memref.store
// CHECK:         func.return
func.func @count_of_the_factor(%x: memref<?xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %c2 step %c1 {
    memref.store %v, %x[%i] : memref<?xf32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [4]>}
  func.return
}

// Memory of an iteration's own is copied with it.
// CHECK-LABEL: func.func @private_memory
// CHECK:           %[[P:.*]] = memref.alloca() : memref<f32>
// CHECK:           memref.store %{{.*}}, %[[P]][] : memref<f32>
// CHECK:           %[[Q:.*]] = memref.alloca() : memref<f32>
// CHECK:           memref.store %{{.*}}, %[[Q]][] : memref<f32>
// CHECK-NOT:     memref.alloca
// CHECK:         func.return
func.func @private_memory(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %p = memref.alloca() : memref<f32>
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %p[] : memref<f32>
    %w = memref.load %p[] : memref<f32>
    memref.store %w, %y[%i] : memref<?xf32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [2]>}
  func.return
}

// In place, the last row must not be done twice: what is left over gets a loop of its own.
// CHECK-LABEL: func.func @do_not_repeat_what_reads_its_own_result
// CHECK-NOT:     arith.minsi
// CHECK:         scf.for %i = %c0 to %{{.*}} step %{{.*}} {
// CHECK-COUNT-2:   memref.store
// CHECK:         scf.for %{{.*}} = %{{.*}} to %n step %c1 {
// CHECK:           memref.store
func.func @do_not_repeat_what_reads_its_own_result(%x: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %x[%i] : memref<?xf32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [2]>}
  func.return
}

// The same if the two memrefs may be one.
// CHECK-LABEL: func.func @do_not_repeat_what_may_alias
// CHECK-NOT:     arith.minsi
// CHECK:         scf.for
// CHECK:         scf.for
func.func @do_not_repeat_what_may_alias(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %y[%i] : memref<?xf32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [2]>}
  func.return
}

// Two sizes of groups: of n rows, a table knows how many groups of two (after those of three) waste least.
// CHECK-LABEL: func.func @rest_in_smaller_groups
// CHECK:         %[[REMAINDER:.*]] = arith.remui %{{.*}}, %{{.*}} : index
// CHECK:         arith.shrui
// CHECK:         %[[GROUPS:.*]] = arith.divui %{{.*}}, %{{.*}} : index
// CHECK-NEXT:    %[[MIDDLE:.*]] = arith.muli %[[GROUPS]], %{{.*}} : index
// CHECK:         %[[END:.*]] = arith.minsi %[[MIDDLE]], %n : index
// CHECK:         scf.for %i = %c0 to %[[END]] step
// CHECK-COUNT-3:   memref.store
// CHECK:         scf.for %i{{.*}} = %[[MIDDLE]] to %n step
// CHECK-COUNT-2:   memref.store
// CHECK-NOT:     memref.store
// CHECK:         func.return
func.func @rest_in_smaller_groups(%x: memref<?xf32>, %v: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    memref.store %v, %x[%i] : memref<?xf32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [3], rest = 2>}
  func.return
}

// Eight are two groups of four: none of six is compiled.
// CHECK-LABEL: func.func @all_in_smaller_groups
// CHECK-COUNT-4: memref.store
// CHECK-NOT:     memref.store
// CHECK:         func.return
func.func @all_in_smaller_groups(%x: memref<?xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %v, %x[%i] : memref<?xf32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [6], rest = 4>}
  func.return
}

// Rows that may not be done twice end one by one.
// CHECK-LABEL: func.func @do_not_make_smaller_groups_of_what_reads_its_own_result
// CHECK-NOT:     arith.shrui
// CHECK:         scf.for
// CHECK-COUNT-3:   memref.store
// CHECK:         scf.for %{{.*}} = %{{.*}} to %n step %c1 {
// CHECK:           memref.store
// CHECK-NEXT:    } {loop.kind = "parallel"}
func.func @do_not_make_smaller_groups_of_what_reads_its_own_result(%x: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %x[%i] : memref<?xf32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [3], rest = 2>}
  func.return
}

// CHECK-LABEL: func.func @do_not_jam_carried_values
// CHECK:         } {loop.remark = "loop-unroll-and-jam: it carries values from iteration to iteration"}
func.func @do_not_jam_carried_values(%a: index, %n: index, %x: f32) {
  %r = scf.for %i = %a to %n step %n iter_args(%s = %x) -> (f32) {
    scf.yield %s : f32
  } {loop.schedule = #loop.schedule<jam = [2]>}
  func.return
}

// CHECK-LABEL: func.func @do_not_jam_unknown_steps
// CHECK:         loop.remark = "loop-unroll-and-jam: its step is not a positive constant"
func.func @do_not_jam_unknown_steps(%a: index, %n: index) {
  scf.for %i = %a to %n step %n {
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [2]>}
  func.return
}

// CHECK-LABEL: func.func @do_not_jam_unknown_operations
// CHECK:         loop.remark = "loop-unroll-and-jam: test.op cannot be copied side by side"
func.func @do_not_jam_unknown_operations(%a: index, %n: index) {
  %c1 = arith.constant 1 : index
  scf.for %i = %a to %n step %c1 {
    "test.op"(%i) : (index) -> ()
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [2]>}
  func.return
}

// CHECK-LABEL: func.func @do_not_jam_triangles
// CHECK:         loop.remark = "loop-unroll-and-jam: the bounds of an inner loop depend on its index"
func.func @do_not_jam_triangles(%a: index, %n: index) {
  %c1 = arith.constant 1 : index
  scf.for %i = %a to %n step %c1 {
    scf.for %k = %i to %n step %c1 {
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [2]>}
  func.return
}

// inducer/loopy#600
// CHECK-LABEL: func.func @do_not_jam_dependent_iterations
// CHECK:         loop.remark = "loop-unroll-and-jam: %x is written and used again over 1 iterations"
func.func @do_not_jam_dependent_iterations(%x: memref<?xf32>, %a: index, %n: index) {
  %c1 = arith.constant 1 : index
  scf.for %i = %a to %n step %c1 {
    %j = arith.addi %i, %c1 : index
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %x[%j] : memref<?xf32>
  } {loop.schedule = #loop.schedule<jam = [2]>}
  func.return
}
