// RUN: jit-opt %s -p loop-stream | filecheck %s

func.func @do_not_stream_nothing(%x: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %n step %c8 {
    %v = vector.load %x[%i] : memref<?xf32>, vector<8xf32>
  } {loop.schedule = #loop.schedule<stream = 4096>}
  func.return
}
// CHECK-LABEL: func.func @do_not_stream_nothing
// CHECK-NOT:   scf.if
// CHECK:       loop.remark = "loop-stream: it stores nothing"

func.func @do_not_stream_scalars(%y: memref<?xf32>, %n: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    memref.store %v, %y[%i] : memref<?xf32>
  } {loop.schedule = #loop.schedule<stream = 4096>}
  func.return
}
// CHECK-LABEL: func.func @do_not_stream_scalars
// CHECK-NOT:   scf.if
// CHECK:       loop.remark = "loop-stream: a store is no whole vector of 16 to 64 bytes"

func.func @do_not_stream_odd_vectors(%y: memref<?xf32>, %n: index, %v: vector<6xf32>) {
  %c0 = arith.constant 0 : index
  %c6 = arith.constant 6 : index
  scf.for %i = %c0 to %n step %c6 {
    vector.store %v, %y[%i] : memref<?xf32>, vector<6xf32>
  } {loop.schedule = #loop.schedule<stream = 4096>}
  func.return
}
// CHECK-LABEL: func.func @do_not_stream_odd_vectors
// CHECK-NOT:   scf.if
// CHECK:       loop.remark = "loop-stream: a store is no whole vector of 16 to 64 bytes"

func.func @do_not_stream_misplaced_steps(%y: memref<?xf32>, %n: index, %v: vector<8xf32>) {
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c4 to %n step %c8 {
    vector.store %v, %y[%i] : memref<?xf32>, vector<8xf32>
  } {loop.schedule = #loop.schedule<stream = 4096>}
  func.return
}
// CHECK-LABEL: func.func @do_not_stream_misplaced_steps
// CHECK-NOT:   scf.if
// CHECK:       loop.remark = "loop-stream: a store may begin in the middle of a vector"

func.func @do_not_stream_misplaced_rows(%y: memref<?x?xf32>, %m: index, %n: index, %v: vector<8xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  scf.for %j = %c0 to %n step %c8 {
    vector.store %v, %y[%m, %j] : memref<?x?xf32>, vector<8xf32>
  } {loop.schedule = #loop.schedule<stream = 4096>}
  func.return
}
// CHECK-LABEL: func.func @do_not_stream_misplaced_rows
// CHECK-NOT:   scf.if
// CHECK:       loop.remark = "loop-stream: a store may begin in the middle of a vector"

func.func @do_not_stream_strided(%y: memref<?xf32, strided<[1], offset: ?>>, %n: index, %v: vector<8xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  scf.for %j = %c0 to %n step %c8 {
    vector.store %v, %y[%j] : memref<?xf32, strided<[1], offset: ?>>, vector<8xf32>
  } {loop.schedule = #loop.schedule<stream = 4096>}
  func.return
}
// CHECK-LABEL: func.func @do_not_stream_strided
// CHECK-NOT:   scf.if
// CHECK:       loop.remark = "loop-stream: a store may begin in the middle of a vector"

func.func @do_not_stream_in_place(%y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %n step %c8 {
    %v = vector.load %y[%i] : memref<?xf32>, vector<8xf32>
    %w = arith.addf %v, %v : vector<8xf32>
    vector.store %w, %y[%i] : memref<?xf32>, vector<8xf32>
  } {loop.schedule = #loop.schedule<stream = 4096>}
  func.return
}
// CHECK-LABEL: func.func @do_not_stream_in_place
// CHECK-NOT:   scf.if
// CHECK:       loop.remark = "loop-stream: it reads what it writes"

func.func @do_not_stream_scratch(%m: index, %n: index, %v: vector<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %m step %c1 {
    %y = memref.alloca(%n) : memref<?xf32>
    scf.for %j = %c0 to %n step %c8 {
      vector.store %v, %y[%j] : memref<?xf32>, vector<8xf32>
    } {loop.schedule = #loop.schedule<stream = 4096>}
  }
  func.return
}
// CHECK-LABEL: func.func @do_not_stream_scratch
// CHECK-NOT:   scf.if
// CHECK:       loop.remark = "loop-stream: it writes memory that is made inside a loop"
