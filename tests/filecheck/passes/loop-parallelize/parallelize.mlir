// RUN: jit-opt %s -p loop-parallelize | filecheck %s
// RUN: jit-opt %s -p 'loop-parallelize{threads=1024}' | filecheck %s --check-prefix=ALL

// A chunk is a whole number of steps of about as many points.
func.func @chunk(%x: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %v = arith.constant dense<1.0> : vector<16xf32>
  scf.for %i = %c0 to %n step %c16 {
    vector.store %v, %x[%i] : memref<?xf32>, vector<16xf32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<threads = 1000>}
  func.return
}
// CHECK-LABEL: func.func @chunk
// CHECK:       %[[C:.*]] = arith.constant 992 : index
// CHECK-NEXT:  loop.parallel (%[[B:.*]], %[[E:.*]]) = (%c0) to (%n) chunk (%[[C]]) : index {
// CHECK-NEXT:    scf.for %i = %[[B]] to %[[E]] step %c16 {
// CHECK-NEXT:      vector.store
// CHECK-NEXT:    } {loop.kind = "parallel"}
// CHECK-NEXT:    loop.yield
// CHECK-NEXT:  }

// Points of the loops inside count: 100 rows of 64 columns are 6400.
func.func @rows(%x: memref<100x64xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = arith.constant 100 : index
  %n = arith.constant 64 : index
  scf.for %i = %c0 to %m step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      memref.store %v, %x[%i, %j] : memref<100x64xf32>
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<threads = 1024>}
  func.return
}
// CHECK-LABEL: func.func @rows
// CHECK:       %[[C:.*]] = arith.constant 16 : index
// CHECK-NEXT:  loop.parallel (%[[B:.*]], %[[E:.*]]) = (%c0) to (%m) chunk (%[[C]]) : index {
// CHECK-NEXT:    scf.for %i = %[[B]] to %[[E]] step %c1 {
// CHECK-NEXT:      scf.for %j = %c0 to %n step %c1 {

// How many rows are worth it is computed where the columns are known at run time only.
func.func @columns_at_run_time(%x: memref<?x?xf32>, %m: index, %n: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %m step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      memref.store %v, %x[%i, %j] : memref<?x?xf32>
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<threads = 1024>}
  func.return
}
// CHECK-LABEL: func.func @columns_at_run_time
// CHECK:       %[[N:.*]] = arith.maxsi %n
// CHECK:       %[[N1:.*]] = arith.maxsi %[[N]]
// CHECK:       %[[Q:.*]] = arith.divui %{{.*}}, %[[N1]] : index
// CHECK:       %[[C:.*]] = arith.maxsi %[[Q]]
// CHECK-NEXT:  loop.parallel (%{{.*}}) = (%c0) to (%m) chunk (%[[C]]) : index {

// A compiler that embeds the pass gives the option: outermost loops that are independent, marked or not.
func.func @stranger(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %y[%i] : memref<?xf32>
  }
  func.return
}
// CHECK-LABEL: func.func @stranger
// CHECK-NOT:   loop.parallel
// CHECK:       func.return
// ALL-LABEL:   func.func @stranger
// ALL:         loop.parallel (%{{.*}}) = (%c0) to (%n) chunk (%{{.*}}) : index {

// Memory that the body allocates belongs to the chunk: it stays inside.
func.func @own_memory(%x: memref<?xf32>, %n: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.alloca() : memref<f32>
    memref.store %v, %a[] : memref<f32>
    %w = memref.load %a[] : memref<f32>
    memref.store %w, %x[%i] : memref<?xf32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<threads = 1024>}
  func.return
}
// CHECK-LABEL: func.func @own_memory
// CHECK:       loop.parallel
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      memref.alloca

// What contains most loops counts, not what comes first: 8 columns, 6 rows in tiles, 100 products each. Where the
// tiles of rows end is computed in front.
func.func @tiles(%x: memref<?x?xf32>, %n: index, %m: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %c100 = arith.constant 100 : index
  scf.for %p = %c0 to %n step %c8 {
    scf.for %r = %c0 to %c100 step %c1 {
      memref.store %v, %x[%r, %p] : memref<?x?xf32>
    }
    %t = arith.divui %m, %c6 : index
    %u = arith.muli %t, %c6 : index
    scf.for %i = %c0 to %u step %c6 {
      %e = arith.addi %p, %c8 : index
      scf.for %j = %p to %e step %c1 {
        memref.store %v, %x[%i, %j] : memref<?x?xf32>
      }
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<threads = 1024>}
  func.return
}
// CHECK-LABEL: func.func @tiles
// CHECK:       %t = arith.divui %m, %c6
// CHECK-NEXT:  %u = arith.muli %t, %c6
// CHECK:       %[[U:.*]] = arith.maxsi %u,
// CHECK:       arith.muli %[[U]],
// CHECK:       loop.parallel
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      scf.for %r
// CHECK:           scf.for %i = %c0 to %u step %c6

// Blocks of a row: as many points as in whole blocks, or in the only one.
func.func @blocks(%x: memref<?x?xf32>, %m: index, %b: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4096 = arith.constant 4096 : index
  %n = memref.dim %x, %c1 : memref<?x?xf32>
  scf.for %i = %c0 to %m step %c1 {
    scf.for %g = %c0 to %b step %c1 {
      %l = arith.muli %g, %c4096 : index
      %e = arith.addi %l, %c4096 : index
      %u = arith.minsi %e, %n : index
      scf.for %j = %l to %u step %c1 {
        memref.store %v, %x[%i, %j] : memref<?x?xf32>
      }
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<threads = 16384>}
  func.return
}
// CHECK-LABEL: func.func @blocks
// CHECK:       %[[E:.*]] = arith.minsi %{{.*}}, %n : index
// CHECK:       %[[B:.*]] = arith.maxsi %b,
// CHECK:       arith.muli %[[B]], %[[E]]
// CHECK:       loop.parallel

// A loop of one iteration leaves the threads to what is inside.
func.func @one_panel(%x: memref<?x64xf32>, %m: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %p = %c0 to %c64 step %c64 {
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %c0 to %c64 step %c1 {
        memref.store %v, %x[%i, %j] : memref<?x64xf32>
      }
    } {loop.kind = "parallel"}
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<threads = 1024>}
  func.return
}
// CHECK-LABEL: func.func @one_panel
// CHECK:       scf.for %p
// CHECK:         %[[C:.*]] = arith.constant 16 : index
// CHECK-NEXT:    loop.parallel (%{{.*}}) = (%c0) to (%m) chunk (%[[C]]) : index {

// A division that might be one by zero stays where it is.
func.func @do_not_hoist_divisions(%x: memref<?x?xf32>, %m: index, %n: index, %d: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %m step %c1 {
    %u = arith.divui %n, %d : index
    scf.for %j = %c0 to %u step %c1 {
      memref.store %v, %x[%i, %j] : memref<?x?xf32>
    }
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<threads = 1024>}
  func.return
}
// CHECK-LABEL: func.func @do_not_hoist_divisions
// CHECK:       loop.parallel
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      %u = arith.divui %n, %d

// ---- profitability

func.func @do_not_split_one_iteration(%x: memref<64xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c64 {
    memref.store %v, %x[%i] : memref<64xf32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<threads = 16>}
  func.return
}
// CHECK-LABEL: func.func @do_not_split_one_iteration
// CHECK-NOT:   loop.parallel
// CHECK:       } {loop.kind = "parallel"}

func.func @do_not_split_what_is_too_short(%x: memref<2000xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 2000 : index
  scf.for %i = %c0 to %n step %c1 {
    memref.store %v, %x[%i] : memref<2000xf32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<threads = 1024>}
  func.return
}
// CHECK-LABEL: func.func @do_not_split_what_is_too_short
// CHECK-NOT:   loop.parallel
// CHECK:       } {loop.kind = "parallel"}
