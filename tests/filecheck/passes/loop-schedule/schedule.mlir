// RUN: jit-opt %s -p 'loop-schedule{features=x86-64-v3}' | filecheck %s
// RUN: jit-opt %s -p 'loop-schedule{features=x86-64-v4}' | filecheck %s --check-prefix=V4
// RUN: jit-opt %s -p 'loop-schedule{features=x86-64-v1}' | filecheck %s --check-prefix=V1
// RUN: not jit-opt %s -p 'loop-schedule{features=z80}' 2>&1 | filecheck %s --check-prefix=UNKNOWN

// UNKNOWN: loop-schedule: unknown features 'z80'; known are x86-64-v1, x86-64-v2, x86-64-v3, x86-64-v4

// CHECK-LABEL: func.func @elementwise
// CHECK:         kinds [parallel] schedule <vector = 8, unroll = 2, stream = 4194304, prefetch = 16384, threads = 16384> {
// V4-LABEL:    func.func @elementwise
// V4:            kinds [parallel] schedule <vector = 16, unroll = 2, stream = 4194304, prefetch = 16384, threads = 16384> {
// V1-LABEL:    func.func @elementwise
// V1:            kinds [parallel] schedule <vector = 4, unroll = 2, stream = 4194304, prefetch = 16384, threads = 16384> {
func.func @elementwise(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %y[%i] : memref<?xf32>
  }
  func.return
}

// Half the lanes for twice the bytes.
// CHECK-LABEL: func.func @wide_elements
// CHECK:         kinds [parallel] schedule <vector = 4, unroll = 2, stream = 4194304, prefetch = 16384, threads = 16384> {
func.func @wide_elements(%x: memref<?xi64>, %y: memref<?xi64>, %n: index) {
  %c0 = arith.constant 0 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %v = memref.load %x[%i] : memref<?xi64>
    memref.store %v, %y[%i] : memref<?xi64>
  }
  func.return
}

// The widest element decides: its vector fills one register, those of the others a part.
// CHECK-LABEL: func.func @mixed_widths
// CHECK:         kinds [parallel] schedule <vector = 4, unroll = 2, stream = 4194304, prefetch = 16384, threads = 16384> {
// V4-LABEL:    func.func @mixed_widths
// V4:            kinds [parallel] schedule <vector = 8, unroll = 2, stream = 4194304, prefetch = 16384, threads = 16384> {
func.func @mixed_widths(%x: memref<?xi32>, %b: memref<?xi8>, %y: memref<?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %v = memref.load %x[%i] : memref<?xi32>
    %w = arith.sitofp %v : i32 to f64
    memref.store %w, %y[%i] : memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: func.func @int32
// CHECK:         kinds [parallel] schedule <vector = 8, unroll = 2, stream = 4194304, prefetch = 16384, threads = 16384> {
func.func @int32(%x: memref<?xi32>, %b: memref<?xi8>, %n: index) {
  %c0 = arith.constant 0 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %v = memref.load %x[%i] : memref<?xi32>
    %w = arith.trunci %v : i32 to i8
    memref.store %w, %b[%i] : memref<?xi8>
  }
  func.return
}

// The 32 lanes of a sum are one vector on every machine.
// CHECK-LABEL: func.func @lanes_of_a_sum
// CHECK:         kinds [parallel] schedule <vector = 32> {
// V1-LABEL:    func.func @lanes_of_a_sum
// V1:            kinds [parallel] schedule <vector = 32> {
func.func @lanes_of_a_sum(%x: f32, %lanes: memref<32xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  loop.nest (%i) = (%c0) to (%c32) step (1) kinds [parallel] {
    memref.store %x, %lanes[%i] : memref<32xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @matmul
// CHECK:         kinds [parallel, parallel] schedule <tile = [0, 16], order = [1, 0], vector = 16, jam = [6, 1], rest = 4{{.*}}> {
// CHECK:         kinds [reduction] {
// V4-LABEL:    func.func @matmul
// V4:            kinds [parallel, parallel] schedule <tile = [0, 32], order = [1, 0], vector = 32, jam = [8, 1], rest = 4{{.*}}> {
func.func @matmul(%A: memref<?x?xf32>, %B: memref<?x?xf32>, %C: memref<?x?xf32>, %m: index, %n: index, %K: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  loop.nest (%i, %j) = (%c0, %c0) to (%m, %n) step (1, 1) kinds [parallel, parallel] {
    %acc = memref.alloca() : memref<f32>
    memref.store %zero, %acc[] : memref<f32>
    loop.nest (%k) = (%c0) to (%K) step (1) kinds [reduction] {
      %a = memref.load %A[%i, %k] : memref<?x?xf32>
      %b = memref.load %B[%k, %j] : memref<?x?xf32>
      %s = memref.load %acc[] : memref<f32>
      %t = math.fma %a, %b, %s : f32
      memref.store %t, %acc[] : memref<f32>
    }
    %r = memref.load %acc[] : memref<f32>
    memref.store %r, %C[%i, %j] : memref<?x?xf32>
  }
  func.return
}

// Nine rows are five and four, not six and three.
// CHECK-LABEL: func.func @balanced_rows
// CHECK:         jam = [5, 1]
func.func @balanced_rows(%A: memref<?x?xf32>, %B: memref<?x?xf32>, %C: memref<?x?xf32>, %n: index, %K: index) {
  %c0 = arith.constant 0 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  loop.nest (%i, %j) = (%c0, %c0) to (%c9, %n) step (1, 1) kinds [parallel, parallel] {
    %acc = memref.alloca() : memref<f32>
    memref.store %zero, %acc[] : memref<f32>
    loop.nest (%k) = (%c0) to (%K) step (1) kinds [reduction] {
      %b = memref.load %B[%k, %j] : memref<?x?xf32>
      memref.store %b, %acc[] : memref<f32>
    }
    %r = memref.load %acc[] : memref<f32>
    memref.store %r, %C[%i, %j] : memref<?x?xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_vectorise_strided_elements
// CHECK:         kinds [parallel] {
func.func @do_not_vectorise_strided_elements(%x: memref<?xf32, strided<[?], offset: ?>>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %v = memref.load %x[%i] : memref<?xf32, strided<[?], offset: ?>>
    memref.store %v, %y[%i] : memref<?xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_vectorise_reductions
// CHECK:         kinds [reduction] {
func.func @do_not_vectorise_reductions(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [reduction] {
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %y[%i] : memref<?xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_overrule_a_schedule
// CHECK:         kinds [parallel] schedule <unroll = 3> {
func.func @do_not_overrule_a_schedule(%x: f32, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] schedule <unroll = 3> {
    memref.store %x, %y[%i] : memref<?xf32>
  }
  func.return
}

// Nothing is shared between the columns of a maximum: long segments of rows.
// CHECK-LABEL: func.func @columns
// CHECK:         kinds [parallel] schedule <tile = [4096], vector = 8, threads = 16384, distribute = 4096> {
// CHECK:         kinds [reduction] {
// CHECK:         kinds [reduction] schedule <unroll = 8> {
// V4-LABEL:    func.func @columns
// V4:            schedule <tile = [4096], vector = 16, threads = 16384, distribute = 4096> {
func.func @columns(%A: memref<?x?xf32>, %C: memref<?xf32>, %n: index, %K: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  loop.nest (%j) = (%c0) to (%n) step (1) kinds [parallel] {
    %acc = memref.alloca() : memref<f32>
    memref.store %zero, %acc[] : memref<f32>
    loop.nest (%g) = (%c0) to (%K) step (8) kinds [reduction] {
      %e = arith.addi %g, %c8 : index
      loop.nest (%k) = (%g) to (%e) step (1) kinds [reduction] {
        %s = memref.load %acc[] : memref<f32>
        %a = memref.load %A[%k, %j] : memref<?x?xf32>
        %t = arith.maximumf %s, %a : f32
        memref.store %t, %acc[] : memref<f32>
      }
    }
    %r = memref.load %acc[] : memref<f32>
    memref.store %r, %C[%j] : memref<?xf32>
  }
  func.return
}

// Lanes in memory and neighbours along the columns: that is no product, though the columns share a number per row.
// CHECK-LABEL: func.func @weighted_columns
// CHECK:         kinds [parallel] schedule <tile = [4096], vector = 8, threads = 16384, distribute = 4096> {
func.func @weighted_columns(%A: memref<?x?xf32>, %W: memref<?xf32>, %C: memref<?xf32>, %n: index, %K: index) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  loop.nest (%j) = (%c0) to (%n) step (1) kinds [parallel] {
    %acc = memref.alloca() : memref<32xf32>
    loop.nest (%l) = (%c0) to (%c32) step (1) kinds [parallel] {
      loop.nest (%k) = (%c0) to (%K) step (32) kinds [reduction] {
        %i = arith.addi %k, %l : index
        %s = memref.load %acc[%l] : memref<32xf32>
        %a = memref.load %A[%i, %j] : memref<?x?xf32>
        %w = memref.load %W[%i] : memref<?xf32>
        %p = arith.mulf %a, %w : f32
        %t = arith.addf %s, %p : f32
        memref.store %t, %acc[%l] : memref<32xf32>
      }
    }
    %r = memref.load %acc[%c0] : memref<32xf32>
    memref.store %r, %C[%j] : memref<?xf32>
  }
  func.return
}

// Rows of a sum go abreast.
// CHECK-LABEL: func.func @rows
// CHECK:         kinds [parallel] schedule <tile = [4], jam = [4], threads = 16384> {
func.func @rows(%A: memref<?x?xf32>, %C: memref<?xf32>, %n: index, %K: index) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %acc = memref.alloca() : memref<32xf32>
    loop.nest (%k) = (%c0) to (%K) step (32) kinds [reduction] {
      loop.nest (%l) = (%c0) to (%c32) step (1) kinds [parallel] {
        %s = memref.load %acc[%l] : memref<32xf32>
        %at = arith.addi %k, %l : index
        %a = memref.load %A[%i, %at] : memref<?x?xf32>
        %t = arith.addf %s, %a : f32
        memref.store %t, %acc[%l] : memref<32xf32>
      }
    }
    %r = memref.load %acc[%c0] : memref<32xf32>
    memref.store %r, %C[%i] : memref<?xf32>
  }
  func.return
}

// Rows that share a vector go abreast as far as registers hold their lanes.
// CHECK-LABEL: func.func @matrix_times_vector
// CHECK:         kinds [parallel] schedule <tile = [3], jam = [3], threads = 16384> {
// V4-LABEL:    func.func @matrix_times_vector
// V4:            kinds [parallel] schedule <tile = [4], jam = [4], threads = 16384> {
// V1-LABEL:    func.func @matrix_times_vector
// V1:            loop.nest (%i) = {{.*}} kinds [parallel] schedule <threads = 16384> {
func.func @matrix_times_vector(
    %A: memref<?x?xf32>, %X: memref<?xf32>, %C: memref<?xf32>, %n: index, %K: index) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %acc = memref.alloca() : memref<32xf32>
    loop.nest (%k) = (%c0) to (%K) step (32) kinds [reduction] {
      loop.nest (%l) = (%c0) to (%c32) step (1) kinds [parallel] {
        %s = memref.load %acc[%l] : memref<32xf32>
        %at = arith.addi %k, %l : index
        %a = memref.load %A[%i, %at] : memref<?x?xf32>
        %x = memref.load %X[%at] : memref<?xf32>
        %t = math.fma %a, %x, %s : f32
        memref.store %t, %acc[%l] : memref<32xf32>
      }
    }
    %r = memref.load %acc[%c0] : memref<32xf32>
    memref.store %r, %C[%i] : memref<?xf32>
  }
  func.return
}

// Lanes of 8 bytes take the registers of one row.
// CHECK-LABEL: func.func @do_not_put_rows_of_eight_bytes_abreast
// CHECK:         loop.nest (%i) = {{.*}} kinds [parallel] schedule <threads = 16384> {
// V4-LABEL:    func.func @do_not_put_rows_of_eight_bytes_abreast
// V4:            kinds [parallel] schedule <tile = [4], jam = [4], threads = 16384> {
func.func @do_not_put_rows_of_eight_bytes_abreast(
    %A: memref<?x?xf64>, %X: memref<?xf64>, %C: memref<?xf64>, %n: index, %K: index) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %acc = memref.alloca() : memref<32xf64>
    loop.nest (%k) = (%c0) to (%K) step (32) kinds [reduction] {
      loop.nest (%l) = (%c0) to (%c32) step (1) kinds [parallel] {
        %s = memref.load %acc[%l] : memref<32xf64>
        %at = arith.addi %k, %l : index
        %a = memref.load %A[%i, %at] : memref<?x?xf64>
        %x = memref.load %X[%at] : memref<?xf64>
        %t = math.fma %a, %x, %s : f64
        memref.store %t, %acc[%l] : memref<32xf64>
      }
    }
    %r = memref.load %acc[%c0] : memref<32xf64>
    memref.store %r, %C[%i] : memref<?xf64>
  }
  func.return
}

// Four rows are two and two, not three and one that is done three times.
// CHECK-LABEL: func.func @four_rows_times_vector
// CHECK:         kinds [parallel] schedule <tile = [2], jam = [2], threads = 16384> {
func.func @four_rows_times_vector(
    %A: memref<?x?xf32>, %X: memref<?xf32>, %C: memref<?xf32>, %K: index) {
  %n = arith.constant 4 : index
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %acc = memref.alloca() : memref<32xf32>
    loop.nest (%k) = (%c0) to (%K) step (32) kinds [reduction] {
      loop.nest (%l) = (%c0) to (%c32) step (1) kinds [parallel] {
        %s = memref.load %acc[%l] : memref<32xf32>
        %at = arith.addi %k, %l : index
        %a = memref.load %A[%i, %at] : memref<?x?xf32>
        %x = memref.load %X[%at] : memref<?xf32>
        %t = math.fma %a, %x, %s : f32
        memref.store %t, %acc[%l] : memref<32xf32>
      }
    }
    %r = memref.load %acc[%c0] : memref<32xf32>
    memref.store %r, %C[%i] : memref<?xf32>
  }
  func.return
}

// The first sweep over a large row brings it; rows that lie abreast, and what was read before, are not announced.
// V4-LABEL:    func.func @sweeps_over_large_rows
// V4:            loop.nest (%i) = {{.*}} kinds [parallel] schedule <threads = 16384> {
// V4:              loop.nest {{.*}} step (32) kinds [reduction] schedule <prefetch = 8192> {
// V4:              loop.nest {{.*}} step (32) kinds [reduction] {
func.func @sweeps_over_large_rows(%A: memref<4096x1024xf32>, %C: memref<4096xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c1024 = arith.constant 1024 : index
  %c4096 = arith.constant 4096 : index
  loop.nest (%i) = (%c0) to (%c4096) step (1) kinds [parallel] {
    %acc = memref.alloca() : memref<32xf32>
    loop.nest (%k) = (%c0) to (%c1024) step (32) kinds [reduction] {
      loop.nest (%l) = (%c0) to (%c32) step (1) kinds [parallel] {
        %s = memref.load %acc[%l] : memref<32xf32>
        %at = arith.addi %k, %l : index
        %a = memref.load %A[%i, %at] : memref<4096x1024xf32>
        %t = arith.addf %a, %s : f32
        memref.store %t, %acc[%l] : memref<32xf32>
      }
    }
    loop.nest (%k) = (%c0) to (%c1024) step (32) kinds [reduction] {
      loop.nest (%l) = (%c0) to (%c32) step (1) kinds [parallel] {
        %s = memref.load %acc[%l] : memref<32xf32>
        %at = arith.addi %k, %l : index
        %a = memref.load %A[%i, %at] : memref<4096x1024xf32>
        %t = arith.mulf %a, %s : f32
        memref.store %t, %acc[%l] : memref<32xf32>
      }
    }
    %r = memref.load %acc[%c0] : memref<32xf32>
    memref.store %r, %C[%i] : memref<4096xf32>
  }
  func.return
}

// Sums that are joined behind the nest: one at a time, some on any thread.
// CHECK-LABEL: func.func @blocks_of_a_row
// CHECK:         loop.nest (%i) = {{.*}} kinds [parallel] schedule <threads = 65536> {
func.func @blocks_of_a_row(%x: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %block = arith.constant 4096 : index
  %found = memref.alloca() : memref<1024xf32>
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %acc = memref.alloca() : memref<32xf32>
    %first = arith.muli %i, %block : index
    %end = arith.addi %first, %block : index
    loop.nest (%k) = (%first) to (%end) step (32) kinds [reduction] {
      loop.nest (%l) = (%c0) to (%c32) step (1) kinds [parallel] {
        %s = memref.load %acc[%l] : memref<32xf32>
        %at = arith.addi %k, %l : index
        %a = memref.load %x[%at] : memref<?xf32>
        %t = arith.addf %a, %s : f32
        memref.store %t, %acc[%l] : memref<32xf32>
      }
    }
    %r = memref.load %acc[%c0] : memref<32xf32>
    memref.store %r, %found[%i] : memref<1024xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @do_not_take_rows_for_blocks
// CHECK:         loop.nest (%i) = {{.*}} kinds [parallel] schedule <tile = [4], jam = [4], threads = 16384> {
func.func @do_not_take_rows_for_blocks(%x: memref<?xf32>, %found: memref<1024xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %block = arith.constant 4096 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %acc = memref.alloca() : memref<32xf32>
    %first = arith.muli %i, %block : index
    %end = arith.addi %first, %block : index
    loop.nest (%k) = (%first) to (%end) step (32) kinds [reduction] {
      loop.nest (%l) = (%c0) to (%c32) step (1) kinds [parallel] {
        %s = memref.load %acc[%l] : memref<32xf32>
        %at = arith.addi %k, %l : index
        %a = memref.load %x[%at] : memref<?xf32>
        %t = arith.addf %a, %s : f32
        memref.store %t, %acc[%l] : memref<32xf32>
      }
    }
    %r = memref.load %acc[%c0] : memref<32xf32>
    memref.store %r, %found[%i] : memref<1024xf32>
  }
  func.return
}

// A loop that divides waits for the divider.
// CHECK-LABEL: func.func @do_not_unroll_divisions
// CHECK:         kinds [parallel] schedule <vector = 8, stream = 4194304, prefetch = 16384, threads = 16384> {
func.func @do_not_unroll_divisions(%x: memref<?xf32>, %y: memref<?xf32>, %s: f32, %n: index) {
  %c0 = arith.constant 0 : index
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %v = memref.load %x[%i] : memref<?xf32>
    %q = arith.divf %v, %s : f32
    memref.store %q, %y[%i] : memref<?xf32>
  }
  func.return
}
