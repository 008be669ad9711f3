// RUN: jit-opt %s -p loop-pack | filecheck %s

// CHECK-LABEL: func.func @pack_the_panels_of_two_tiles
// CHECK:         scf.for %[[P:.*]] = %c0 to %n step %{{.*}} {
// CHECK:           %[[FULL:.*]] = arith.addi %[[P]], %{{.*}} : index
// CHECK-NEXT:      %[[END:.*]] = arith.minsi %[[FULL]], %n : index
// CHECK-NEXT:      %[[PANEL:.*]] = memref.alloca() {alignment = 64 : i64} : memref<40x16xf32>
// CHECK:           scf.for %[[R:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK-NEXT:        scf.for %[[COL:.*]] = %[[P]] to %[[END]] step %{{.*}} {
// CHECK-NEXT:          %[[V:.*]] = memref.load %B[%[[R]], %[[COL]]] : memref<40x?xf32>
// CHECK-NEXT:          %[[AT:.*]] = arith.subi %[[COL]], %[[P]] : index
// CHECK-NEXT:          memref.store %[[V]], %[[PANEL]][%[[R]], %[[AT]]] : memref<40x16xf32>
// CHECK-NEXT:        } {loop.kind = "parallel", loop.schedule = #loop.schedule<vector = 8>}
// CHECK:           scf.for %t = %[[P]] to %[[END]] step %c8 {
// CHECK:             scf.for %i
// CHECK-NEXT:          scf.for %j = %t
// CHECK-NEXT:            %[[AT:.*]] = arith.subi %j, %[[P]] : index
// CHECK-NEXT:            %x = memref.load %[[PANEL]][%k, %[[AT]]] : memref<40x16xf32>
func.func @pack_the_panels_of_two_tiles(%B: memref<40x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %n step %c8 {
    %t8 = arith.addi %t, %c8 : index
    %e = arith.minsi %t8, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<40x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 2>}
  func.return
}

// The loop writes elements of the matrix.
// CHECK-LABEL: func.func @do_not_pack_what_is_written
// CHECK-NOT:     memref.alloca
// CHECK:         loop.remark = "loop-pack: nothing that the loops inside read again can be packed"
func.func @do_not_pack_what_is_written(%B: memref<40x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %n step %c8 {
    %t8 = arith.addi %t, %c8 : index
    %e = arith.minsi %t8, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<40x?xf32>
        memref.store %x, %B[%k, %j] : memref<40x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 2>}
  func.return
}

// Without loop.noalias the stores to %C may go to %B.
// CHECK-LABEL: func.func @do_not_pack_what_may_be_written
// CHECK-NOT:     memref.alloca
// CHECK:         loop.remark = "loop-pack: nothing that the loops inside read again can be packed"
func.func @do_not_pack_what_may_be_written(%B: memref<40x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %n step %c8 {
    %t8 = arith.addi %t, %c8 : index
    %e = arith.minsi %t8, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<40x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 2>}
  func.return
}

// How much to copy is not known.
// CHECK-LABEL: func.func @do_not_pack_unknown_numbers_of_rows
// CHECK-NOT:     memref.alloca
// CHECK:         loop.remark = "loop-pack: nothing that the loops inside read again can be packed"
func.func @do_not_pack_unknown_numbers_of_rows(%B: memref<?x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %n step %c8 {
    %t8 = arith.addi %t, %c8 : index
    %e = arith.minsi %t8, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<?x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 2>}
  func.return
}

// Columns that are not next to each other.
// CHECK-LABEL: func.func @do_not_pack_strided_matrices
// CHECK-NOT:     memref.alloca
// CHECK:         loop.remark = "loop-pack: nothing that the loops inside read again can be packed"
func.func @do_not_pack_strided_matrices(%B: memref<40x?xf32, strided<[?, ?]>>, %C: memref<?x?xf32>, %m: index, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %n step %c8 {
    %t8 = arith.addi %t, %c8 : index
    %e = arith.minsi %t8, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<40x?xf32, strided<[?, ?]>>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 2>}
  func.return
}

// The columns that are read do not start with the tile.
// CHECK-LABEL: func.func @do_not_pack_other_columns
// CHECK-NOT:     memref.alloca
// CHECK:         loop.remark = "loop-pack: nothing that the loops inside read again can be packed"
func.func @do_not_pack_other_columns(%B: memref<40x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %n step %c8 {
    %t8 = arith.addi %t, %c8 : index
    %e = arith.minsi %t8, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %c0 to %c8 step %c1 {
        %x = memref.load %B[%k, %j] : memref<40x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 2>}
  func.return
}

// A row of the panel has no bound.
// CHECK-LABEL: func.func @do_not_pack_columns_beyond_the_tile
// CHECK-NOT:     memref.alloca
// CHECK:         loop.remark = "loop-pack: nothing that the loops inside read again can be packed"
func.func @do_not_pack_columns_beyond_the_tile(%B: memref<40x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %n step %c8 {
    %t8 = arith.addi %t, %c8 : index
    %e = arith.minsi %t8, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %n step %c1 {
        %x = memref.load %B[%k, %j] : memref<40x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 2>}
  func.return
}

// Panels are made of neighbouring columns.
// CHECK-LABEL: func.func @do_not_pack_every_other_column
// CHECK-NOT:     memref.alloca
// CHECK:         loop.remark = "loop-pack: nothing that the loops inside read again can be packed"
func.func @do_not_pack_every_other_column(%B: memref<40x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %n step %c8 {
    %t8 = arith.addi %t, %c8 : index
    %e = arith.minsi %t8, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c8 {
        %x = memref.load %B[%k, %j] : memref<40x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 2>}
  func.return
}

// A vector is not read by rows and columns.
// CHECK-LABEL: func.func @do_not_pack_single_rows
// CHECK-NOT:     memref.alloca
// CHECK:         loop.remark = "loop-pack: nothing that the loops inside read again can be packed"
func.func @do_not_pack_single_rows(%B: memref<40xf32>, %C: memref<?x?xf32>, %m: index, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %n step %c8 {
    %t8 = arith.addi %t, %c8 : index
    %e = arith.minsi %t8, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k] : memref<40xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 2>}
  func.return
}

// 16 x 65536 elements do not stay in a cache that is close.
// CHECK-LABEL: func.func @do_not_pack_large_panels
// CHECK-NOT:     memref.alloca
// CHECK:         loop.remark = "loop-pack: nothing that the loops inside read again can be packed"
func.func @do_not_pack_large_panels(%B: memref<65536x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %n step %c8 {
    %t8 = arith.addi %t, %c8 : index
    %e = arith.minsi %t8, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<65536x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 2>}
  func.return
}

// A schedule asks for it.
// CHECK-LABEL: func.func @do_not_pack_without_being_asked
// CHECK-NOT:     memref.alloca
// CHECK-NOT:     loop.remark
// CHECK:         func.return
func.func @do_not_pack_without_being_asked(%B: memref<40x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %n step %c8 {
    %t8 = arith.addi %t, %c8 : index
    %e = arith.minsi %t8, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<40x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    }
  } {loop.kind = "parallel"}
  func.return
}
