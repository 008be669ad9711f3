// RUN: jit-opt %s -p loop-pack-constants | filecheck %s

// 50 columns are 7 panels; the last one has 2 columns and zeros.
// CHECK-LABEL: func.func @panels_of_eight_columns
// CHECK-SAME:    %B: memref<7x40x8xf32> {tssa.constant = 3 : i64, loop.packed = 8 : i64}
// CHECK:         scf.for %t = %c0 to %c48 step %c8 {
// CHECK:           %[[P:.*]] = arith.divui %t, %{{.*}} : index
// CHECK:           scf.for %j = %t
// CHECK-NEXT:        %[[AT:.*]] = arith.subi %j, %t : index
// CHECK-NEXT:        %x = memref.load %B[%[[P]], %k, %[[AT]]] : memref<7x40x8xf32>
// CHECK:         } {loop.kind = "parallel"}
func.func @panels_of_eight_columns(%B: memref<40x50xf32> {tssa.constant = 3 : i64}, %C: memref<?x50xf32>, %m: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c48 = arith.constant 48 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %c48 step %c8 {
    %e = arith.addi %t, %c8 : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<40x50xf32>
        memref.store %x, %C[%i, %j] : memref<?x50xf32>
      }
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  func.return
}

// Whoever calls passes it as it is.
// CHECK-LABEL: func.func @do_not_pack_other_arguments
// CHECK-SAME:    %B: memref<40x50xf32>,
func.func @do_not_pack_other_arguments(%B: memref<40x50xf32> , %C: memref<?x50xf32>, %m: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c48 = arith.constant 48 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %c48 step %c8 {
    %e = arith.addi %t, %c8 : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<40x50xf32>
        memref.store %x, %C[%i, %j] : memref<?x50xf32>
      }
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  func.return
}

// A use that knows nothing of panels.
// CHECK-LABEL: func.func @do_not_pack_what_is_used_otherwise
// CHECK-SAME:    %B: memref<40x50xf32> {tssa.constant = 3 : i64}
func.func @do_not_pack_what_is_used_otherwise(%B: memref<40x50xf32> {tssa.constant = 3 : i64}, %C: memref<?x50xf32>, %m: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c48 = arith.constant 48 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %c48 step %c8 {
    %e = arith.addi %t, %c8 : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<40x50xf32>
        memref.store %x, %C[%i, %j] : memref<?x50xf32>
      }
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  %y = memref.load %B[%c0, %c0] : memref<40x50xf32>
  memref.store %y, %C[%c0, %c0] : memref<?x50xf32>
  func.return
}

// The tiles begin in the middle of a panel.
// CHECK-LABEL: func.func @do_not_pack_from_within_a_panel
// CHECK-SAME:    %B: memref<40x50xf32> {tssa.constant = 3 : i64}
func.func @do_not_pack_from_within_a_panel(%B: memref<40x50xf32> {tssa.constant = 3 : i64}, %C: memref<?x50xf32>, %m: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c48 = arith.constant 48 : index
  %k = arith.constant 5 : index
  scf.for %t = %c4 to %c48 step %c8 {
    %e = arith.addi %t, %c8 : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<40x50xf32>
        memref.store %x, %C[%i, %j] : memref<?x50xf32>
      }
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  func.return
}

// The schedule says nothing.
// CHECK-LABEL: func.func @do_not_pack_without_being_asked
// CHECK-SAME:    %B: memref<40x50xf32> {tssa.constant = 3 : i64}
func.func @do_not_pack_without_being_asked(%B: memref<40x50xf32> {tssa.constant = 3 : i64}, %C: memref<?x50xf32>, %m: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c48 = arith.constant 48 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %c48 step %c8 {
    %e = arith.addi %t, %c8 : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<40x50xf32>
        memref.store %x, %C[%i, %j] : memref<?x50xf32>
      }
    }
  } {loop.kind = "parallel"}
  func.return
}

// How many panels there are is not known.
// CHECK-LABEL: func.func @do_not_pack_unknown_widths
// CHECK-SAME:    %B: memref<40x?xf32> {tssa.constant = 3 : i64}
func.func @do_not_pack_unknown_widths(%B: memref<40x?xf32> {tssa.constant = 3 : i64}, %C: memref<?x50xf32>, %m: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c48 = arith.constant 48 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %c48 step %c8 {
    %e = arith.addi %t, %c8 : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<40x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x50xf32>
      }
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  func.return
}

// It is packed already.
// CHECK-LABEL: func.func @do_not_pack_twice
// CHECK-SAME:    %B: memref<40x50xf32> {loop.packed = 8 : i64, tssa.constant = 3 : i64}
func.func @do_not_pack_twice(%B: memref<40x50xf32> {loop.packed = 8 : i64, tssa.constant = 3 : i64}, %C: memref<?x50xf32>, %m: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c48 = arith.constant 48 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %c48 step %c8 {
    %e = arith.addi %t, %c8 : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<40x50xf32>
        memref.store %x, %C[%i, %j] : memref<?x50xf32>
      }
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  func.return
}

// Two loops that want panels of different widths.
// CHECK-LABEL: func.func @do_not_pack_for_two_widths
// CHECK-SAME:    %B: memref<40x50xf32> {tssa.constant = 3 : i64}
func.func @do_not_pack_for_two_widths(%B: memref<40x50xf32> {tssa.constant = 3 : i64}, %C: memref<?x50xf32>) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c48 = arith.constant 48 : index
  scf.for %t = %c0 to %c48 step %c8 {
    %e = arith.addi %t, %c8 : index
    scf.for %j = %t to %e step %c1 {
      %x = memref.load %B[%c1, %j] : memref<40x50xf32>
      memref.store %x, %C[%c0, %j] : memref<?x50xf32>
    }
  } {loop.schedule = #loop.schedule<pack = 1>}
  scf.for %t = %c0 to %c48 step %c4 {
    %e = arith.addi %t, %c4 : index
    scf.for %j = %t to %e step %c1 {
      %x = memref.load %B[%c1, %j] : memref<40x50xf32>
      memref.store %x, %C[%c1, %j] : memref<?x50xf32>
    }
  } {loop.schedule = #loop.schedule<pack = 1>}
  func.return
}
