// RUN: jit-opt %s -p loop-parallelize | filecheck %s

func.func @do_not_split_sums(%x: memref<?xf32>, %n: index, %z: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %z) -> (f32) {
    %v = memref.load %x[%i] : memref<?xf32>
    %b = arith.addf %a, %v : f32
    scf.yield %b : f32
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<threads = 64>}
  func.return %s : f32
}
// CHECK-LABEL: func.func @do_not_split_sums
// CHECK-NOT:   loop.parallel
// CHECK:       loop.remark = "loop-parallelize: it carries values from iteration to iteration, and their order is meaning"}

func.func @do_not_guess_steps(%x: memref<?xf32>, %n: index, %s: index, %v: f32) {
  %c0 = arith.constant 0 : index
  scf.for %i = %c0 to %n step %s {
    memref.store %v, %x[%i] : memref<?xf32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<threads = 64>}
  func.return
}
// CHECK-LABEL: func.func @do_not_guess_steps
// CHECK-NOT:   loop.parallel
// CHECK:       loop.remark = "loop-parallelize: its step is not a positive constant of type index"}

func.func @do_not_count_in_other_types(%n: i32, %x: memref<f32>, %v: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    memref.store %v, %x[] : memref<f32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<threads = 64>}
  func.return
}
// CHECK-LABEL: func.func @do_not_count_in_other_types
// CHECK-NOT:   loop.parallel
// CHECK:       loop.remark = "loop-parallelize: its step is not a positive constant of type index"}

func.func @do_not_split_chains(%x: memref<?xf32>, %n: index) {
  %c1 = arith.constant 1 : index
  scf.for %i = %c1 to %n step %c1 {
    %j = arith.subi %i, %c1 : index
    %v = memref.load %x[%j] : memref<?xf32>
    memref.store %v, %x[%i] : memref<?xf32>
  } {loop.schedule = #loop.schedule<threads = 64>}
  func.return
}
// CHECK-LABEL: func.func @do_not_split_chains
// CHECK-NOT:   loop.parallel
// CHECK:       loop.remark = "loop-parallelize: %x is written and used again over 1 iterations"}

func.func @do_not_trust_other_memory(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %y[%i] : memref<?xf32>
  } {loop.schedule = #loop.schedule<threads = 64>}
  func.return
}
// CHECK-LABEL: func.func @do_not_trust_other_memory
// CHECK-NOT:   loop.parallel
// CHECK:       may overlap"}

func.func @do_not_nest_regions(%x: memref<?x?xf32>, %n: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      memref.store %v, %x[%i, %j] : memref<?x?xf32>
    } {loop.kind = "parallel", loop.schedule = #loop.schedule<threads = 64>}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<threads = 64>}
  func.return
}
// CHECK-LABEL: func.func @do_not_nest_regions
// CHECK:       loop.parallel
// CHECK-NOT:   loop.parallel
// CHECK:       } {loop.kind = "parallel", loop.remark = "loop-parallelize: a loop around it runs on several threads already"}
