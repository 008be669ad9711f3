// RUN: jit-opt %s --allow-unregistered-dialect -p loop-hoist-accumulators | filecheck %s

// Block result and total of a matmul: both leave memory, innermost first.
// CHECK-LABEL: func.func @nested_accumulators
// CHECK-NOT:     memref.alloca
// CHECK:         %[[W:.*]] = scf.for %b = %c0 to %n step %c8 iter_args(%[[T:.*]] = %negzero) -> (f32) {
// CHECK:           %[[U:.*]] = scf.for %k = %b to %e step %c1 iter_args(%[[S:.*]] = %zero) -> (f32) {
// CHECK-NEXT:        %x = memref.load %X[%k] : memref<?xf32>
// CHECK-NEXT:        %[[R:.*]] = arith.addf %[[S]], %x : f32
// CHECK-NEXT:        scf.yield %[[R]] : f32
// CHECK:           %[[V:.*]] = arith.addf %[[T]], %[[U]] : f32
// CHECK-NEXT:      scf.yield %[[V]] : f32
// CHECK:         func.return %[[W]] : f32
func.func @nested_accumulators(%X: memref<?xf32>, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %negzero = arith.constant -0.0 : f32
  %total = memref.alloca() : memref<f32>
  %acc = memref.alloca() : memref<f32>
  memref.store %negzero, %total[] : memref<f32>
  scf.for %b = %c0 to %n step %c8 {
    memref.store %zero, %acc[] : memref<f32>
    %e = arith.addi %b, %c8 : index
    scf.for %k = %b to %e step %c1 {
      %x = memref.load %X[%k] : memref<?xf32>
      %s = memref.load %acc[] : memref<f32>
      %r = arith.addf %s, %x : f32
      memref.store %r, %acc[] : memref<f32>
    }
    %t = memref.load %total[] : memref<f32>
    %u = memref.load %acc[] : memref<f32>
    %v = arith.addf %t, %u : f32
    memref.store %v, %total[] : memref<f32>
  }
  %w = memref.load %total[] : memref<f32>
  func.return %w : f32
}

// CHECK-LABEL: func.func @vectors
// CHECK:         scf.for %i = %a to %n step %c8 iter_args(%{{.*}} = %{{.*}}) -> (vector<8xf32>) {
// CHECK-NEXT:      %x = vector.load %X[%i] : memref<?xf32>, vector<8xf32>
// CHECK-NEXT:      %[[R:.*]] = arith.addf
// CHECK-NEXT:      scf.yield %[[R]] : vector<8xf32>
func.func @vectors(%X: memref<?xf32>, %a: index, %n: index) -> vector<8xf32> {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %lanes = memref.alloca() : memref<8xf32>
  scf.for %i = %a to %n step %c8 {
    %x = vector.load %X[%i] : memref<?xf32>, vector<8xf32>
    %s = vector.load %lanes[%c0] : memref<8xf32>, vector<8xf32>
    %r = arith.addf %s, %x : vector<8xf32>
    vector.store %r, %lanes[%c0] : memref<8xf32>, vector<8xf32>
  }
  %w = vector.load %lanes[%c0] : memref<8xf32>, vector<8xf32>
  func.return %w : vector<8xf32>
}

// A loop that is known to run may touch memory from elsewhere around itself.
// CHECK-LABEL: func.func @memory_of_others_in_a_loop_that_runs
// CHECK:         %[[S:.*]] = memref.load %y[%c0] : memref<?xf32>
// CHECK-NEXT:    %[[R:.*]] = scf.for %i = %c0 to %c8 step %c1 iter_args(%{{.*}} = %[[S]]) -> (f32) {
// CHECK:         memref.store %[[R]], %y[%c0] : memref<?xf32>
func.func @memory_of_others_in_a_loop_that_runs(%x: memref<?xf32>, %y: memref<?xf32>) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    %s = memref.load %y[%c0] : memref<?xf32>
    %t = arith.addf %s, %v : f32
    memref.store %t, %y[%c0] : memref<?xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_touch_memory_of_others_in_zero_iterations
// CHECK:         scf.for %i = %c0 to %n step %c1 {
// CHECK:           memref.load %y[%c0]
func.func @do_not_touch_memory_of_others_in_zero_iterations(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    %s = memref.load %y[%c0] : memref<?xf32>
    %t = arith.addf %s, %v : f32
    memref.store %t, %y[%c0] : memref<?xf32>
  }
  func.return
}

// The same for memory of our own at a place that need not exist (llvm/llvm-project#223232).
// CHECK-LABEL: func.func @do_not_touch_an_unknown_place_in_zero_iterations
// CHECK-NOT:     memref.load
// CHECK:         scf.for %i = %c0 to %n step %c1 {
// CHECK:           memref.load %p[%k]
func.func @do_not_touch_an_unknown_place_in_zero_iterations(%x: memref<?xf32>, %n: index, %k: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = memref.alloca() : memref<4xf32>
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    %s = memref.load %p[%k] : memref<4xf32>
    %t = arith.addf %s, %v : f32
    memref.store %t, %p[%k] : memref<4xf32>
  }
  %r = memref.load %p[%c0] : memref<4xf32>
  func.return %r : f32
}

// CHECK-LABEL: func.func @do_not_touch_memory_of_unknown_size_in_zero_iterations
// CHECK:         scf.for %i = %c0 to %n step %c1 {
// CHECK:           memref.load %p[%c0]
func.func @do_not_touch_memory_of_unknown_size_in_zero_iterations(%x: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = memref.alloca(%n) : memref<?xf32>
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    %s = memref.load %p[%c0] : memref<?xf32>
    %t = arith.addf %s, %v : f32
    memref.store %t, %p[%c0] : memref<?xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_hoist_what_may_alias
// CHECK-NOT:     iter_args
// CHECK:         func.return
func.func @do_not_hoist_what_may_alias(%x: memref<?xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    %s = memref.load %y[%c0] : memref<?xf32>
    %t = arith.addf %s, %v : f32
    memref.store %t, %y[%c0] : memref<?xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_hoist_a_moving_address
// CHECK-NOT:     iter_args
// CHECK:         func.return
func.func @do_not_hoist_a_moving_address(%x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %lanes = memref.alloca() : memref<8xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    %s = memref.load %lanes[%i] : memref<8xf32>
    %t = arith.addf %s, %x : f32
    memref.store %t, %lanes[%i] : memref<8xf32>
  }
  "test.use"(%lanes) : (memref<8xf32>) -> ()
  func.return
}

// Stored first: an iteration takes nothing over from the one before.
// CHECK-LABEL: func.func @do_not_carry_what_is_written_first
// CHECK-NOT:     iter_args
// CHECK:           memref.store
// CHECK:         func.return
func.func @do_not_carry_what_is_written_first(%y: memref<?xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %x, %y[%c0] : memref<?xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_hoist_around_unknown_effects
// CHECK-NOT:     iter_args
// CHECK:         func.return
func.func @do_not_hoist_around_unknown_effects(%x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %acc = memref.alloca() : memref<f32>
  scf.for %i = %c0 to %c8 step %c1 {
    %s = memref.load %acc[] : memref<f32>
    %t = arith.addf %s, %x : f32
    memref.store %t, %acc[] : memref<f32>
    "test.op"() : () -> ()
  }
  func.return
}

// A store that overlaps half of it: not the same address, so nothing is known.
// CHECK-LABEL: func.func @do_not_forward_across_an_overlap
// CHECK:         vector.store %v, %lanes[%c0]
// CHECK:         memref.store %x, %lanes[%c1]
// CHECK:         %[[W:.*]] = vector.load %lanes[%c0]
// CHECK:         func.return %[[W]]
func.func @do_not_forward_across_an_overlap(%x: f32, %v: vector<4xf32>) -> vector<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %lanes = memref.alloca() : memref<8xf32>
  vector.store %v, %lanes[%c0] : memref<8xf32>, vector<4xf32>
  memref.store %x, %lanes[%c1] : memref<8xf32>
  %w = vector.load %lanes[%c0] : memref<8xf32>, vector<4xf32>
  func.return %w : vector<4xf32>
}

// CHECK-LABEL: func.func @forward_past_what_is_elsewhere
// CHECK:         memref.store %x, %lanes[%c4]
// CHECK:         func.return %v
func.func @forward_past_what_is_elsewhere(%x: f32, %v: vector<4xf32>) -> vector<4xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %lanes = memref.alloca() : memref<8xf32>
  vector.store %v, %lanes[%c0] : memref<8xf32>, vector<4xf32>
  memref.store %x, %lanes[%c4] : memref<8xf32>
  %w = vector.load %lanes[%c0] : memref<8xf32>, vector<4xf32>
  "test.use"(%lanes) : (memref<8xf32>) -> ()
  func.return %w : vector<4xf32>
}
