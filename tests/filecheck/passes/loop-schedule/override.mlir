// RUN: jit-opt %s -p 'loop-schedule{override="elementwise: vector = 4, unroll = 3; 2: jam = [2, 1]"}' | filecheck %s
// RUN: jit-opt %s -p 'loop-schedule{override="0: vector = 4; 3:"}' | filecheck %s --check-prefix=NUMBER

// By family, also against a schedule that is there already; a number counts more.
func.func @f(%x: memref<?xf32>, %y: memref<?x?xf32>, %m: index, %n: index, %v: f32) {
  %c0 = arith.constant 0 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    memref.store %v, %x[%i] : memref<?xf32>
  }
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] schedule <vector = 16> {
    memref.store %v, %x[%i] : memref<?xf32>
  }
  loop.nest (%i, %j) = (%c0, %c0) to (%m, %n) step (1, 1) kinds [parallel, parallel] {
    memref.store %v, %y[%i, %j] : memref<?x?xf32>
  }
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    memref.store %v, %x[%i] : memref<?xf32>
  }
  func.return
}
// CHECK-LABEL: func.func @f
// CHECK:       loop.nest {{.*}} schedule <vector = 4, unroll = 3, asked = "nest 0 (elementwise)"> {
// CHECK:       loop.nest {{.*}} schedule <vector = 4, unroll = 3, asked = "nest 1 (elementwise)"> {
// CHECK:       loop.nest {{.*}} schedule <jam = [2, 1], asked = "nest 2 (elementwise)"> {
// CHECK:       loop.nest {{.*}} schedule <vector = 4, unroll = 3, asked = "nest 3 (elementwise)"> {

// What is not named is as ever; an empty schedule does nothing to a nest.
// NUMBER-LABEL: func.func @f
// NUMBER:       loop.nest {{.*}} schedule <vector = 4, asked = "nest 0 (elementwise)"> {
// NUMBER:       loop.nest {{.*}} schedule <vector = 16> {
// NUMBER:       loop.nest {{.*}} schedule <vector = 8,
// NUMBER:       loop.nest (%{{.*}}) = (%c0) to (%n) step (1) kinds [parallel] {
