// RUN: jit-opt %s -p loop-distribute --verify-each | filecheck %s

// An axis that was to be shared out to threads is gone: the parallel loop around a reduction is shared out instead.
// CHECK-LABEL: func.func @lanes
// CHECK:         loop.nest (%{{.*}}) = (%c0) to (%c32) step (1) kinds [parallel] schedule <threads = 65536> {
// CHECK-NEXT:      loop.nest (%{{.*}}) = (%c0) to (%c1024) step (128) kinds [reduction] {
// CHECK:             loop.nest ({{.*}}) kinds [parallel] schedule <vector = 8> {
// CHECK-NEXT:          loop.nest ({{.*}}) step (32) kinds [reduction] {
func.func @lanes(%x: memref<1024x64xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c1024 = arith.constant 1024 : index
  loop.nest (%j) = (%c0) to (%c64) step (1) kinds [parallel]
      schedule <vector = 8, distribute = 64, threads = 65536> {
    %acc = memref.alloca() : memref<32xf32>
    loop.nest (%l) = (%c0) to (%c32) step (1) kinds [parallel] {
      loop.nest (%g) = (%c0) to (%c1024) step (128) kinds [reduction] {
        %e = arith.addi %g, %c128 : index
        loop.nest (%i) = (%g) to (%e) step (32) kinds [reduction] {
          %r = arith.addi %i, %l : index
          %s = memref.load %acc[%l] : memref<32xf32>
          %v = memref.load %x[%r, %j] : memref<1024x64xf32>
          %t = arith.addf %s, %v : f32
          memref.store %t, %acc[%l] : memref<32xf32>
          loop.yield
        }
        loop.yield
      }
      loop.yield
    }
    loop.yield
  }
  func.return
}

// Neither what has no reduction inside, nor a loop in one that is shared out already.
// CHECK-LABEL: func.func @do_not_share_out_little
// CHECK:         loop.nest (%{{.*}}) = (%c0) to (%c32) step (1) kinds [parallel] {
// CHECK:         loop.nest (%{{.*}}) = (%c0) to (%c4) step (1) kinds [parallel] schedule <threads = 65536> {
// CHECK-NEXT:      loop.nest (%{{.*}}) = (%c0) to (%c1024) step (128) kinds [reduction] {
// CHECK-NEXT:        loop.nest (%{{.*}}) = (%c0) to (%c32) step (1) kinds [parallel] {
// CHECK-NOT:     threads
func.func @do_not_share_out_little(%x: memref<1024x64xf32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c1024 = arith.constant 1024 : index
  %zero = arith.constant 0.0 : f32
  loop.nest (%j) = (%c0) to (%c64) step (1) kinds [parallel]
      schedule <vector = 8, distribute = 64, threads = 65536> {
    %acc = memref.alloca() : memref<4x32xf32>
    loop.nest (%l) = (%c0) to (%c32) step (1) kinds [parallel] {
      memref.store %zero, %acc[%c0, %l] : memref<4x32xf32>
      loop.yield
    }
    loop.nest (%p) = (%c0) to (%c4) step (1) kinds [parallel] {
      loop.nest (%g) = (%c0) to (%c1024) step (128) kinds [reduction] {
        loop.nest (%l) = (%c0) to (%c32) step (1) kinds [parallel] {
          %e = arith.addi %g, %c128 : index
          loop.nest (%i) = (%g) to (%e) step (32) kinds [reduction] {
            %r = arith.addi %i, %l : index
            %s = memref.load %acc[%p, %l] : memref<4x32xf32>
            %v = memref.load %x[%r, %j] : memref<1024x64xf32>
            %t = arith.addf %s, %v : f32
            memref.store %t, %acc[%p, %l] : memref<4x32xf32>
            loop.yield
          }
          loop.yield
        }
        loop.yield
      }
      loop.yield
    }
    loop.yield
  }
  func.return
}
