// RUN: jit-opt %s -p loop-pack | filecheck %s

// Each panel takes 512 KiB; four are what one function may have.
// CHECK-LABEL: func.func @do_not_fill_the_stack
// CHECK-COUNT-4: memref.alloca() {alignment = 64 : i64} : memref<1x16384x8xf32>
// CHECK-NOT:     memref.alloca
// CHECK:         loop.remark = "loop-pack: the panels of this function would fill the stack"
func.func @do_not_fill_the_stack(%B: memref<16384x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %n step %c8 {
    %t8 = arith.addi %t, %c8 : index
    %e = arith.minsi %t8, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<16384x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  scf.for %t = %c0 to %n step %c8 {
    %t8 = arith.addi %t, %c8 : index
    %e = arith.minsi %t8, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<16384x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  scf.for %t = %c0 to %n step %c8 {
    %t8 = arith.addi %t, %c8 : index
    %e = arith.minsi %t8, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<16384x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  scf.for %t = %c0 to %n step %c8 {
    %t8 = arith.addi %t, %c8 : index
    %e = arith.minsi %t8, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<16384x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  scf.for %t = %c0 to %n step %c8 {
    %t8 = arith.addi %t, %c8 : index
    %e = arith.minsi %t8, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<16384x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  func.return
}

// Another function has a stack of its own.
// CHECK-LABEL: func.func @count_per_function
// CHECK:         memref.alloca() {alignment = 64 : i64} : memref<1x16384x8xf32>
func.func @count_per_function(%B: memref<16384x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %n step %c8 {
    %t8 = arith.addi %t, %c8 : index
    %e = arith.minsi %t8, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<16384x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  func.return
}
