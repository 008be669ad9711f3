// RUN: jit-opt %s -p loop-stream | filecheck %s

// Large and aligned: past the cache, then a fence; otherwise as it was.
func.func @any_size(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %n step %c8 {
    %v = vector.load %x[%i] : memref<?xf32>, vector<8xf32>
    vector.store %v, %y[%i] : memref<?xf32>, vector<8xf32>
  } {loop.kind = "parallel", loop.schedule = #loop.schedule<stream = 4096>}
  func.return
}
// CHECK-LABEL: func.func @any_size
// CHECK:       %[[P:.*]] = "memref.extract_aligned_pointer_as_index"(%y)
// CHECK:       %[[C31:.*]] = arith.constant 31 : index
// CHECK-NEXT:  %[[M:.*]] = arith.andi %[[P]], %[[C31]] : index
// CHECK:       %[[D:.*]] = memref.dim %y
// CHECK:       %[[C4:.*]] = arith.constant 4 : index
// CHECK-NEXT:  %[[S:.*]] = arith.muli %{{.*}}, %{{.*}} : index
// CHECK:       %[[C:.*]] = arith.constant 4096 : index
// CHECK-NEXT:  %[[L:.*]] = arith.cmpi slt, %[[C]], %[[S]] : index
// CHECK:       %[[A:.*]] = arith.cmpi eq, %[[M]], %{{.*}} : index
// CHECK-NEXT:  %[[B:.*]] = arith.andi %[[L]], %[[A]] : i1
// CHECK-NEXT:  scf.if %[[B]] {
// CHECK-NEXT:    scf.for %i = %c0 to %n step %c8 {
// CHECK-NEXT:      vector.load %x[%i] : memref<?xf32>, vector<8xf32>
// CHECK-NEXT:      vector.store %{{.*}}, %y[%i] {nontemporal = true} : memref<?xf32>, vector<8xf32>
// CHECK-NEXT:    } {loop.kind = "parallel"}
// CHECK-NEXT:    llvm.fence seq_cst
// CHECK-NEXT:  } else {
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      vector.load
// CHECK-NEXT:      vector.store %{{.*}}, %y[%{{.*}}] : memref<?xf32>, vector<8xf32>
// CHECK-NEXT:    } {loop.kind = "parallel"}
// CHECK-NEXT:  }

// The fence is in the thread that has stored; the test is in front of all of it.
func.func @chunks(%y: memref<?xf32>, %n: index, %v: vector<8xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c = arith.constant 1024 : index
  loop.parallel (%b, %e) = (%c0) to (%n) chunk (%c) : index {
    scf.for %i = %b to %e step %c8 {
      vector.store %v, %y[%i] : memref<?xf32>, vector<8xf32>
    } {loop.schedule = #loop.schedule<stream = 4096>}
    loop.yield
  }
  func.return
}
// CHECK-LABEL: func.func @chunks
// CHECK:       %[[B:.*]] = arith.andi %{{.*}}, %{{.*}} : i1
// CHECK-NEXT:  loop.parallel
// CHECK-NEXT:    scf.if %[[B]] {
// CHECK:           llvm.fence seq_cst
// CHECK-NEXT:    } else {

// Rows of whole vectors, and a size that is known to be large: the address alone decides.
func.func @rows(%y: memref<1024x1024xf32>, %v: vector<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %n = arith.constant 1024 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c8 {
      vector.store %v, %y[%i, %j] : memref<1024x1024xf32>, vector<8xf32>
    } {loop.schedule = #loop.schedule<stream = 4096>}
  }
  func.return
}
// CHECK-LABEL: func.func @rows
// CHECK:       %[[A:.*]] = arith.cmpi eq
// CHECK-NEXT:  scf.for
// CHECK-NEXT:    scf.if %[[A]] {
// CHECK:           vector.store {{.*}} {nontemporal = true}

// ---- profitability

func.func @do_not_stream_what_fits(%y: memref<1024xf32>, %v: vector<8xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %n = arith.constant 1024 : index
  scf.for %i = %c0 to %n step %c8 {
    vector.store %v, %y[%i] : memref<1024xf32>, vector<8xf32>
  } {loop.schedule = #loop.schedule<stream = 4096>}
  func.return
}
// CHECK-LABEL: func.func @do_not_stream_what_fits
// CHECK-NOT:   scf.if
// CHECK-NOT:   nontemporal
// CHECK:       func.return

// The end of each row waits for nothing: one fence behind all of them, and the copy for small results has no prefetch.
func.func @one_fence_for_all_rows(%x: memref<?x1024xf32>, %y: memref<?x1024xf32>, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c1024 = arith.constant 1024 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %c1024 step %c8 {
      %v = vector.load %x[%i, %j] : memref<?x1024xf32>, vector<8xf32>
      vector.store %v, %y[%i, %j] : memref<?x1024xf32>, vector<8xf32>
    } {loop.schedule = #loop.schedule<stream = 4096, prefetch = 4096>}
  }
  func.return
}
// CHECK-LABEL: func.func @one_fence_for_all_rows
// CHECK:       %[[L:.*]] = arith.andi %{{.*}}, %{{.*}} : i1
// CHECK-NEXT:  scf.for %i
// CHECK-NEXT:    scf.if %[[L]] {
// CHECK-NEXT:      scf.for %j
// CHECK-NEXT:        vector.load
// CHECK-NEXT:        vector.store %{{.*}} {nontemporal = true}
// CHECK-NEXT:      } {loop.schedule = #loop.schedule<prefetch = 4096>}
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        vector.load
// CHECK-NEXT:        vector.store
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK-NEXT:  scf.if %[[L]] {
// CHECK-NEXT:    llvm.fence seq_cst
// CHECK-NEXT:  }
