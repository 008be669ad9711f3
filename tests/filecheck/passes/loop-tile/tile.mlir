// RUN: jit-opt %s -p loop-tile | filecheck %s

// The last axis is split: whole tiles without a minimum, then the ragged one.
// CHECK-LABEL: func.func @whole_and_ragged_tiles
// CHECK:         %[[REST:.*]] = arith.remui
// CHECK:         loop.nest (%i, %j) = (%c0, %{{.*}}) to (%m, %[[MAIN:.*]]) step (1, 16) kinds [parallel, parallel] schedule <order = [1, 0], jam = [6, 1]> {
// CHECK-NEXT:      %{{.*}} = arith.constant 16 : index
// CHECK-NEXT:      %[[END:.*]] = arith.addi %j, %{{.*}} : index
// CHECK-NEXT:      loop.nest (%[[J:.*]]) = (%j) to (%[[END]]) step (1) kinds [parallel] schedule <vector = 16> {
// CHECK-NEXT:        memref.store %x, %out[%i, %[[J]]] : memref<?x?xf32>
// CHECK:         loop.nest (%[[I:.*]], %[[JT:.*]]) = (%c0, %[[MAIN]]) to (%m, %n) step (1, 16) kinds [parallel, parallel] schedule <order = [1, 0], jam = [6, 1]> {
// CHECK:           %[[FULL:.*]] = arith.addi %[[JT]], %{{.*}} : index
// CHECK-NEXT:      %[[LAST:.*]] = arith.minsi %[[FULL]], %n : index
// CHECK-NEXT:      loop.nest (%[[J:.*]]) = (%[[JT]]) to (%[[LAST]]) step (1) kinds [parallel] schedule <vector = 16> {
// CHECK-NEXT:        memref.store %x, %out[%[[I]], %[[J]]] : memref<?x?xf32>
func.func @whole_and_ragged_tiles(%out: memref<?x?xf32>, %x: f32, %m: index, %n: index) {
  %c0 = arith.constant 0 : index
  loop.nest (%i, %j) = (%c0, %c0) to (%m, %n) step (1, 1) kinds [parallel, parallel] schedule <tile = [0, 16], order = [1, 0], vector = 16, jam = [6, 1]> {
    memref.store %x, %out[%i, %j] : memref<?x?xf32>
  }
  func.return
}

// Four whole tiles are a nest of their own: for each row, before the next four. What is left over is one tile.
// CHECK-LABEL: func.func @panels_of_four_tiles
// CHECK:         loop.nest (%i, %[[P:.*]]) = (%c0, %{{.*}}) to (%m, %[[MAIN:.*]]) step (1, 64) kinds [parallel, parallel] schedule <order = [1, 0], jam = [6, 1], pack = 1> {
// CHECK:           %[[FULL:.*]] = arith.addi %[[P]], %{{.*}} : index
// CHECK-NEXT:      %[[LAST:.*]] = arith.minsi %[[FULL]], %[[MAIN]] : index
// CHECK-NEXT:      loop.nest (%[[T:.*]]) = (%[[P]]) to (%[[LAST]]) step (16) kinds [parallel] {
// CHECK:             loop.nest (%[[J:.*]]) = (%[[T]]) to (%{{.*}}) step (1) kinds [parallel] schedule <vector = 16> {
// CHECK-NEXT:          memref.store %x, %out[%i, %[[J]]] : memref<?x?xf32>
// CHECK:         loop.nest (%[[I:.*]], %[[JT:.*]]) = (%c0, %[[MAIN]]) to (%m, %n) step (1, 16) kinds [parallel, parallel] schedule <order = [1, 0], jam = [6, 1], pack = 1> {
// CHECK:           loop.nest (%{{.*}}) = (%[[JT]])
// CHECK-NOT:       loop.nest
// CHECK:         func.return
func.func @panels_of_four_tiles(%out: memref<?x?xf32>, %x: f32, %m: index, %n: index) {
  %c0 = arith.constant 0 : index
  loop.nest (%i, %j) = (%c0, %c0) to (%m, %n) step (1, 1) kinds [parallel, parallel] schedule <tile = [0, 16], order = [1, 0], vector = 16, jam = [6, 1], panel = 4, pack = 1> {
    memref.store %x, %out[%i, %j] : memref<?x?xf32>
  }
  func.return
}

// A size that divides leaves no ragged tile, and no axis is left outside that has one tile only.
// CHECK-LABEL: func.func @tiles_that_divide
// CHECK:         loop.nest (%i) = (%{{.*}}) to (%{{.*}}) step (4) kinds [parallel] {
// CHECK:           loop.nest (%[[I:.*]], %j) = (%i, %c0) to (%{{.*}}, %c8) step (1, 1) kinds [parallel, parallel] {
// CHECK-NOT:     loop.nest
func.func @tiles_that_divide(%out: memref<?x?xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  loop.nest (%i, %j) = (%c0, %c0) to (%c8, %c8) step (1, 1) kinds [parallel, parallel] schedule <tile = [4, 8]> {
    memref.store %x, %out[%i, %j] : memref<?x?xf32>
  }
  func.return
}

// A ragged tile of an axis that is not the last ends at the bound; its step is kept.
// CHECK-LABEL: func.func @ragged_rows
// CHECK:         loop.nest (%i, %j) = (%a, %a) to (%n, %n) step (8, 1) kinds [parallel, reduction] {
// CHECK:           %[[FULL:.*]] = arith.addi %i, %{{.*}} : index
// CHECK-NEXT:      %[[LAST:.*]] = arith.minsi %[[FULL]], %n : index
// CHECK-NEXT:      loop.nest (%{{.*}}) = (%i) to (%[[LAST]]) step (2) kinds [parallel] {
func.func @ragged_rows(%out: memref<?x?xf32>, %x: f32, %a: index, %n: index) {
  loop.nest (%i, %j) = (%a, %a) to (%n, %n) step (2, 1) kinds [parallel, reduction] schedule <tile = [4, 0]> {
    memref.store %x, %out[%i, %j] : memref<?x?xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_tile_a_reduction
// CHECK:         loop.nest (%i, %k) = (%a, %a) to (%n, %n) step (1, 1) kinds [parallel, reduction] schedule <tile = [4, 4]> attributes {loop.remark = "loop-tile: a tiled axis is a reduction, and its order is meaning"} {
func.func @do_not_tile_a_reduction(%a: index, %n: index) {
  loop.nest (%i, %k) = (%a, %a) to (%n, %n) step (1, 1) kinds [parallel, reduction] schedule <tile = [4, 4]> {
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_tile_without_being_asked
// CHECK:         loop.nest (%i) = (%a) to (%n) step (1) kinds [parallel] schedule <vector = 8> {
func.func @do_not_tile_without_being_asked(%a: index, %n: index) {
  loop.nest (%i) = (%a) to (%n) step (1) kinds [parallel] schedule <vector = 8> {
  }
  func.return
}

// A ragged tile is not jammed: most of its copies would not exist.
// CHECK-LABEL: func.func @do_not_jam_ragged_tiles
// CHECK:         loop.nest ({{.*}}) = ({{.*}}) step (4) kinds [parallel] {
// CHECK:           loop.nest (%{{.*}}) = ({{.*}}) step (1) kinds [parallel] schedule <jam = [4]> {
// CHECK:         loop.nest ({{.*}}) to (%n) step (4) kinds [parallel] {
// CHECK:           loop.nest (%{{.*}}) = ({{.*}}) step (1) kinds [parallel] {
func.func @do_not_jam_ragged_tiles(%out: memref<?xf32>, %x: f32, %n: index) {
  %c0 = arith.constant 0 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] schedule <tile = [4], jam = [4]> {
    memref.store %x, %out[%i] : memref<?xf32>
  }
  func.return
}

// Tiles that are distributed over many loops are not doubled: each loop ends at the tile's bound.
// CHECK-LABEL: func.func @tiles_to_distribute
// CHECK:         loop.nest (%i) = (%{{.*}}) to (%n) step (64) kinds [parallel] {
// CHECK:           %[[E:.*]] = arith.minsi %{{.*}}, %n : index
// CHECK-NEXT:      loop.nest (%{{.*}}) = (%i) to (%[[E]]) step (1) kinds [parallel] schedule <distribute = 64> {
// CHECK-NOT:     loop.nest
func.func @tiles_to_distribute(%out: memref<?xf32>, %x: f32, %n: index) {
  %c0 = arith.constant 0 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] schedule <tile = [64], distribute = 64> {
    memref.store %x, %out[%i] : memref<?xf32>
  }
  func.return
}
