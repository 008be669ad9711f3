// RUN: jit-opt %s -p loop-pack | filecheck %s

// CHECK-LABEL: func.func @pack_two_tiles_at_a_time
// CHECK:         scf.for %[[P:.*]] = %c0 to %n step %c16 {
// CHECK:           %[[PANEL:.*]] = memref.alloca() {alignment = 64 : i64} : memref<2x40x8xf32>
// CHECK:           %[[END:.*]] = arith.minsi %{{.*}}, %n : index
// CHECK:           scf.for %[[R:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK-NEXT:        scf.for %[[T:.*]] = %[[P]] to %[[END]] step %{{.*}} {
// CHECK-NEXT:          %[[DISTANCE:.*]] = arith.subi %[[T]], %[[P]] : index
// CHECK:               %[[NUMBER:.*]] = arith.divui %[[DISTANCE]], %{{.*}} : index
// CHECK:               %[[STOP:.*]] = arith.minsi %{{.*}}, %[[END]] : index
// CHECK:               scf.for %[[COL:.*]] = %[[T]] to %[[STOP]] step %{{.*}} {
// CHECK-NEXT:            %[[V:.*]] = memref.load %B[%[[R]], %[[COL]]] : memref<40x?xf32>
// CHECK-NEXT:            %[[AT:.*]] = arith.subi %[[COL]], %[[T]] : index
// CHECK-NEXT:            memref.store %[[V]], %[[PANEL]][%[[NUMBER]], %[[R]], %[[AT]]] : memref<2x40x8xf32>
// CHECK-NEXT:          } {loop.kind = "parallel", loop.schedule = #loop.schedule<vector = 8>}
// CHECK-NEXT:        } {loop.kind = "parallel", loop.schedule = #loop.schedule<unroll = 2>}
// CHECK:           scf.for %i
// CHECK:             scf.for %t = %[[P]] to
// CHECK-NEXT:          %[[DISTANCE:.*]] = arith.subi %t, %[[P]] : index
// CHECK:               %[[NUMBER:.*]] = arith.divui %[[DISTANCE]], %{{.*}} : index
// CHECK:               scf.for %j = %t
// CHECK-NEXT:            %[[AT:.*]] = arith.subi %j, %t : index
// CHECK-NEXT:            %x = memref.load %[[PANEL]][%[[NUMBER]], %k, %[[AT]]] : memref<2x40x8xf32>
func.func @pack_two_tiles_at_a_time(%B: memref<40x?xf32>, %C: memref<?x?xf32>, %n: index) attributes {loop.noalias} {
  %m = arith.constant 9 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %k = arith.constant 5 : index
  scf.for %p = %c0 to %n step %c16 {
    %p16 = arith.addi %p, %c16 : index
    %q = arith.minsi %p16, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %t = %p to %q step %c8 {
        %t8 = arith.addi %t, %c8 : index
        %e = arith.minsi %t8, %n : index
        scf.for %j = %t to %e step %c1 {
          %x = memref.load %B[%k, %j] : memref<40x?xf32>
          memref.store %x, %C[%i, %j] : memref<?x?xf32>
        }
      }
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  func.return
}

// Of the rows, those that an inner loop reads.
// CHECK-LABEL: func.func @pack_a_block_of_rows
// CHECK:         scf.for %t = %c0 to %c32 step %c8 {
// CHECK:           %[[PANEL:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1x5x8xf32>
// CHECK:           %[[COUNT:.*]] = arith.subi %last, %first : index
// CHECK:           scf.for %[[R:.*]] = %{{.*}} to %[[COUNT]] step
// CHECK:             %[[ROW:.*]] = arith.addi %[[R]], %first : index
// CHECK:               memref.load %B[%[[ROW]], %{{.*}}] : memref<?x?xf32>
// CHECK:           scf.for %k = %first to %last step %c1 {
// CHECK-NEXT:        %[[K:.*]] = arith.subi %k, %first : index
// CHECK-NEXT:        %x = memref.load %[[PANEL]][%{{.*}}, %[[K]], %{{.*}}] : memref<1x5x8xf32>
func.func @pack_a_block_of_rows(%B: memref<?x?xf32>, %C: memref<?x?xf32>, %K: index, %first: index) attributes {loop.noalias} {
  %m = arith.constant 9 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %first5 = arith.addi %first, %c5 : index
  %last = arith.minsi %first5, %K : index
  scf.for %t = %c0 to %c32 step %c8 {
    %e = arith.addi %t, %c8 : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %t to %e step %c1 {
        scf.for %k = %first to %last step %c1 {
          %x = memref.load %B[%k, %j] : memref<?x?xf32>
          memref.store %x, %C[%i, %j] : memref<?x?xf32>
        }
      }
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  func.return
}

// All rows are in one group: each element is read once.
// CHECK-LABEL: func.func @do_not_pack_what_is_read_once
// CHECK-NOT:     memref.alloca
// CHECK:         loop.remark = "loop-pack: nothing that the loops inside read again can be packed"
func.func @do_not_pack_what_is_read_once(%B: memref<40x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c4 = arith.constant 4 : index
  %k = arith.constant 5 : index
  scf.for %t = %c0 to %n step %c8 {
    %t8 = arith.addi %t, %c8 : index
    %e = arith.minsi %t8, %n : index
    scf.for %i = %c0 to %c4 step %c1 {
      scf.for %j = %t to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<40x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [6]>}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  func.return
}

// The same with two tiles at a time: going on to the next tile is not reading again.
// CHECK-LABEL: func.func @do_not_pack_tiles_that_are_read_once
// CHECK-NOT:     memref.alloca
// CHECK:         loop.remark = "loop-pack: nothing that the loops inside read again can be packed"
func.func @do_not_pack_tiles_that_are_read_once(%B: memref<40x?xf32>, %C: memref<?x?xf32>, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %k = arith.constant 5 : index
  scf.for %p = %c0 to %n step %c16 {
    %p16 = arith.addi %p, %c16 : index
    scf.for %i = %c0 to %c4 step %c1 {
      scf.for %t = %p to %p16 step %c8 {
        %e = arith.addi %t, %c8 : index
        scf.for %j = %t to %e step %c1 {
          %x = memref.load %B[%k, %j] : memref<40x?xf32>
          memref.store %x, %C[%i, %j] : memref<?x?xf32>
        } {loop.kind = "parallel"}
      } {loop.kind = "parallel"}
    } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [4]>}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  func.return
}

// Three columns at a time are no whole number of tiles in eight.
// CHECK-LABEL: func.func @do_not_pack_tiles_that_do_not_fit
// CHECK-NOT:     memref.alloca
// CHECK:         loop.remark = "loop-pack: nothing that the loops inside read again can be packed"
func.func @do_not_pack_tiles_that_do_not_fit(%B: memref<40x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %k = arith.constant 5 : index
  scf.for %p = %c0 to %n step %c8 {
    %p8 = arith.addi %p, %c8 : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %t = %p to %p8 step %c3 {
        %e = arith.addi %t, %c3 : index
        scf.for %j = %t to %e step %c1 {
          %x = memref.load %B[%k, %j] : memref<40x?xf32>
          memref.store %x, %C[%i, %j] : memref<?x?xf32>
        }
      }
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  func.return
}

// Tiles go on where the panel ends.
// CHECK-LABEL: func.func @do_not_pack_tiles_beyond_the_panel
// CHECK-NOT:     memref.alloca
// CHECK:         loop.remark = "loop-pack: nothing that the loops inside read again can be packed"
func.func @do_not_pack_tiles_beyond_the_panel(%B: memref<40x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %k = arith.constant 5 : index
  scf.for %p = %c0 to %n step %c8 {
    scf.for %i = %c0 to %m step %c1 {
      scf.for %t = %p to %n step %c4 {
        %e = arith.addi %t, %c4 : index
        scf.for %j = %t to %e step %c1 {
          %x = memref.load %B[%k, %j] : memref<40x?xf32>
          memref.store %x, %C[%i, %j] : memref<?x?xf32>
        }
      }
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
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
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
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
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
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
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
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
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
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
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
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
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
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
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
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
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
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

// Whether there are more rows than go side by side is seen when the code runs: if not, nothing is copied, and the loops
// inside read the matrix, whose next tile is 8 columns further and whose next row %n elements.
// CHECK-LABEL: func.func @pack_for_many_rows
// CHECK:         scf.for %[[P:.*]] = %c0 to %n step %c8 {
// CHECK:           %[[PANEL:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1x40x8xf32>
// CHECK:           %[[ONCE:.*]] = arith.constant 4 : index
// CHECK-NEXT:      %[[PAYS:.*]] = arith.cmpi slt, %[[ONCE]], %m : index
// CHECK:           %[[COUNT:.*]] = arith.select %[[PAYS]], %{{.*}}, %{{.*}} : index
// CHECK:           scf.for %{{.*}} = %{{.*}} to %[[COUNT]] step
// CHECK:           %[[ROW:.*]] = memref.dim %B, %{{.*}} : memref<40x?xf32>
// CHECK:           %[[CAST:.*]] = "memref.cast"(%[[PANEL]]) : (memref<1x40x8xf32>) -> memref<?x?x8xf32, strided<[?, ?, 1], offset: ?>>
// CHECK-NEXT:      %[[TILES:.*]] = memref.reinterpret_cast %B to offset: [%[[P]]], sizes: [%[[COUNTED:.*]], %{{.*}}, 8], strides: [%{{.*}}, %[[ROW]], 1]
// CHECK-NEXT:      %[[FROM:.*]] = arith.select %[[PAYS]], %[[CAST]], %[[TILES]] : memref<?x?x8xf32, strided<[?, ?, 1], offset: ?>>
// CHECK:           %x = memref.load %[[FROM]][%{{.*}}, %k, %{{.*}}]
func.func @pack_for_many_rows(%B: memref<40x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %k = arith.constant 5 : index
  scf.for %p = %c0 to %n step %c8 {
    %p8 = arith.addi %p, %c8 : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %p to %p8 step %c1 {
        %x = memref.load %B[%k, %j] : memref<40x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [4]>}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  func.return
}

// How many rows the matrix has is seen when the code runs: more than there is room for are read where they are.
// CHECK-LABEL: func.func @pack_what_fits
// CHECK:           memref.alloca() {alignment = 64 : i64} : memref<1x16384x8xf32>
// CHECK:           %[[ROWS:.*]] = memref.dim %B, %{{.*}} : memref<?x?xf32>
// CHECK-NEXT:      %[[MOST:.*]] = arith.constant 16385 : index
// CHECK-NEXT:      %[[FITS:.*]] = arith.cmpi slt, %[[ROWS]], %[[MOST]] : index
// CHECK-NOT:       arith.andi
// CHECK:           %[[COUNT:.*]] = arith.select %[[FITS]], %[[ROWS]], %{{.*}} : index
// CHECK:           scf.for %{{.*}} = %{{.*}} to %[[COUNT]] step
// CHECK:           arith.select %[[FITS]], %{{.*}}, %{{.*}} : memref<?x?x8xf32, strided<[?, ?, 1], offset: ?>>
func.func @pack_what_fits(%B: memref<?x?xf32>, %C: memref<?x?xf32>, %n: index, %k: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %m = arith.constant 9 : index
  scf.for %p = %c0 to %n step %c8 {
    %p8 = arith.addi %p, %c8 : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %p to %p8 step %c1 {
        %x = memref.load %B[%k, %j] : memref<?x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [4]>}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  func.return
}

// A last tile of a matrix with any number of rows.
// CHECK-LABEL: func.func @do_not_pack_few_columns_of_unknown_rows
// CHECK-NOT:     memref.alloca
// CHECK:         loop.remark = "loop-pack: nothing that the loops inside read again can be packed"
func.func @do_not_pack_few_columns_of_unknown_rows(%B: memref<?x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index) attributes {loop.noalias} {
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
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  func.return
}

// Past a last tile that lacks columns there may be no memory of the matrix: it is copied always.
// CHECK-LABEL: func.func @do_not_read_few_columns_as_a_tile
// CHECK:           memref.alloca() {alignment = 64 : i64} : memref<1x40x8xf32>
// CHECK-NOT:       arith.select
// CHECK-NOT:       memref.reinterpret_cast
// CHECK:         func.return
func.func @do_not_read_few_columns_as_a_tile(%B: memref<40x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %k = arith.constant 5 : index
  scf.for %p = %c0 to %n step %c8 {
    %p8 = arith.addi %p, %c8 : index
    %e = arith.minsi %p8, %n : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %p to %e step %c1 {
        %x = memref.load %B[%k, %j] : memref<40x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [4]>}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  func.return
}

// How many rows there are is not known where the panel would be copied.
// CHECK-LABEL: func.func @do_not_ask_what_is_not_known_yet
// CHECK:           memref.alloca() {alignment = 64 : i64} : memref<1x40x8xf32>
// CHECK-NOT:       arith.select
// CHECK:         func.return
func.func @do_not_ask_what_is_not_known_yet(%B: memref<40x?xf32>, %C: memref<?x?xf32>, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %k = arith.constant 5 : index
  scf.for %p = %c0 to %n step %c8 {
    %p8 = arith.addi %p, %c8 : index
    %m = arith.muli %p, %p : index
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %p to %p8 step %c1 {
        %x = memref.load %B[%k, %j] : memref<40x?xf32>
        memref.store %x, %C[%i, %j] : memref<?x?xf32>
      }
    } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [4]>}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<pack = 1>}
  func.return
}
