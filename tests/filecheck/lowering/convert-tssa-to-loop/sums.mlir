// RUN: jit-opt %s -p tssa-fuse,tssa-bufferize,convert-tssa-to-loop | filecheck %s

// Three plain loops, and the blocks of 512 that the sum is defined by. K = 0 runs the outer one once.
// CHECK-LABEL: func.func @a_product_is_three_plain_loops
// CHECK:         %[[K:.*]] = memref.dim %x,
// CHECK:         %[[ONCE:.*]] = arith.maxsi %[[K]], %{{.*}} : index
// CHECK:         loop.nest (%[[I:.*]], %[[J:.*]]) = ({{.*}}) step (1, 1) kinds [parallel, parallel] {
// CHECK-NEXT:      %[[TOTAL:.*]] = memref.alloca() : memref<f32>
// CHECK-NEXT:      %[[ACC:.*]] = memref.alloca() : memref<f32>
// CHECK-NEXT:      memref.store %[[NEG0:.*]], %[[TOTAL]][]
// CHECK-NEXT:      loop.nest (%[[B:.*]]) = (%{{.*}}) to (%[[ONCE]]) step (512) kinds [reduction] {
// CHECK-NEXT:        memref.store %[[ZERO:.*]], %[[ACC]][]
// CHECK-NEXT:        %[[NEXT:.*]] = arith.addi %[[B]], %{{.*}} : index
// CHECK-NEXT:        %[[E:.*]] = arith.minsi %[[NEXT]], %[[K]] : index
// CHECK-NEXT:        loop.nest (%[[P:.*]]) = (%[[B]]) to (%[[E]]) step (1) kinds [reduction] {
// CHECK-NEXT:          %[[X:.*]] = memref.load %x[%[[I]], %[[P]]]
// CHECK-NEXT:          %[[W:.*]] = memref.load %w[%[[P]], %[[J]]]
// CHECK-NEXT:          %[[A:.*]] = memref.load %[[ACC]][]
// CHECK-NEXT:          %[[F:.*]] = math.fma %[[X]], %[[W]], %[[A]] : f32
// CHECK-NEXT:          memref.store %[[F]], %[[ACC]][]
// CHECK-NEXT:        }
// CHECK-NEXT:        %[[T:.*]] = memref.load %[[TOTAL]][]
// CHECK-NEXT:        %[[A2:.*]] = memref.load %[[ACC]][]
// CHECK-NEXT:        %[[S:.*]] = arith.addf %[[T]], %[[A2]] : f32
// CHECK-NEXT:        memref.store %[[S]], %[[TOTAL]][]
// CHECK-NEXT:      }
// CHECK-NEXT:      %[[R:.*]] = memref.load %[[TOTAL]][]
// CHECK-NEXT:      %[[BIAS:.*]] = memref.load %b[%[[J]]]
// CHECK-NEXT:      %[[Y:.*]] = arith.addf %[[R]], %[[BIAS]] : f32
// CHECK-NEXT:      memref.store %[[Y]], %out0[%[[I]], %[[J]]]
func.func @a_product_is_three_plain_loops(%x: tensor<4x?xf32, #tssa.dims<[4, k]>>,
    %w: tensor<?x2xf32, #tssa.dims<[k, 2]>>, %b: tensor<2xf32>) -> tensor<4x2xf32> {
  %0 = tssa.matmul %x, %w
    : (tensor<4x?xf32, #tssa.dims<[4, k]>>, tensor<?x2xf32, #tssa.dims<[k, 2]>>) -> tensor<4x2xf32>
  %1 = tssa.broadcast %b : (tensor<2xf32>) -> tensor<4x2xf32>
  %2 = tssa.add %0, %1 : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return %2 : tensor<4x2xf32>
}

// CHECK-LABEL: func.func @integers_need_no_blocks
// CHECK:         loop.nest (%{{.*}}, %{{.*}}) = ({{.*}}) step (1, 1) kinds [parallel, parallel] {
// CHECK:           loop.nest (%{{.*}}) = ({{.*}}) step (1) kinds [reduction] {
// CHECK:             arith.muli
// CHECK-NEXT:        arith.addi
func.func @integers_need_no_blocks(%x: tensor<4x8xi64>, %w: tensor<8x2xi64>) -> tensor<4x2xi64> {
  %0 = tssa.matmul %x, %w : (tensor<4x8xi64>, tensor<8x2xi64>) -> tensor<4x2xi64>
  func.return %0 : tensor<4x2xi64>
}

// CHECK-LABEL: func.func @doubles_have_the_blocks_and_the_chain
// CHECK:           loop.nest (%{{.*}}) = ({{.*}}) step (512) kinds [reduction] {
// CHECK:             math.fma %{{.*}}, %{{.*}}, %{{.*}} : f64
// CHECK:           arith.addf %{{.*}}, %{{.*}} : f64
func.func @doubles_have_the_blocks_and_the_chain(%x: tensor<4x8xf64>, %w: tensor<8x2xf64>) -> tensor<4x2xf64> {
  %0 = tssa.matmul %x, %w : (tensor<4x8xf64>, tensor<8x2xf64>) -> tensor<4x2xf64>
  func.return %0 : tensor<4x2xf64>
}

// CHECK-LABEL: func.func @products_of_int32_wrap_in_int32
// CHECK:             arith.muli %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:        arith.addi %{{.*}}, %{{.*}} : i32
func.func @products_of_int32_wrap_in_int32(%x: tensor<4x8xi32>, %w: tensor<8x2xi32>) -> tensor<4x2xi32> {
  %0 = tssa.matmul %x, %w : (tensor<4x8xi32>, tensor<8x2xi32>) -> tensor<4x2xi32>
  func.return %0 : tensor<4x2xi32>
}

// CHECK-LABEL: func.func @a_sum_of_doubles_has_32_lanes
// CHECK:         memref.alloca() : memref<32xf64>
// CHECK:         loop.nest (%{{.*}}) = ({{.*}}) step (32) kinds [reduction] {
// CHECK:         arith.addf %{{.*}}, %{{.*}} : f64
func.func @a_sum_of_doubles_has_32_lanes(%x: tensor<4x100xf64>) -> tensor<4xf64> {
  %0 = tssa.sum %x {axes = array<i64: 1>} : (tensor<4x100xf64>) -> tensor<4xf64>
  func.return %0 : tensor<4xf64>
}

// One block: lanes from -0.0, chunks of 32, a ragged chunk, halves; then + (+0.0).
// CHECK-LABEL: func.func @a_short_sum_is_one_block
// CHECK:         loop.nest (%[[I:.*]]) = ({{.*}}) step (1) kinds [parallel] {
// CHECK-NEXT:      %[[L:.*]] = memref.alloca() : memref<32xf32>
// CHECK-NEXT:      loop.nest
// CHECK-NEXT:        memref.store %{{.*}}, %[[L]]
// CHECK:           loop.nest (%[[C:.*]]) = ({{.*}}) step (32) kinds [reduction] {
// CHECK-NEXT:        loop.nest (%[[N:.*]]) = ({{.*}}) step (1) kinds [parallel] {
// CHECK-NEXT:          %[[P:.*]] = arith.addi %[[C]], %[[N]] : index
// CHECK-NEXT:          %[[A:.*]] = memref.load %[[L]][%[[N]]]
// CHECK-NEXT:          %[[V:.*]] = memref.load %x[%[[I]], %[[P]]]
// CHECK-NEXT:          %[[S:.*]] = arith.addf %[[A]], %[[V]] : f32
// CHECK-NEXT:          memref.store %[[S]], %[[L]][%[[N]]]
// CHECK:           loop.nest {{.*}} kinds [parallel] {
// CHECK-COUNT-4:   loop.nest {{.*}} kinds [parallel] {
// CHECK-NOT:       loop.nest
// CHECK-NOT:       math.cttz
// CHECK:           func.return
func.func @a_short_sum_is_one_block(%x: tensor<4x70xf32>) -> tensor<4xf32> {
  %0 = tssa.sum %x {axes = array<i64: 1>} : (tensor<4x70xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// Lanes without elements stay at what changes nothing, so folding them is left out.
// CHECK-LABEL: func.func @a_dot_product_of_ten_folds_ten_lanes
// CHECK-NOT:     step (32)
// CHECK-COUNT-5: loop.nest {{.*}} kinds [parallel] {
// CHECK-NOT:     loop.nest
// CHECK:         func.return
func.func @a_dot_product_of_ten_folds_ten_lanes(%x: tensor<10xf32>, %y: tensor<10xf32>) -> tensor<f32> {
  %0 = tssa.matmul %x, %y : (tensor<10xf32>, tensor<10xf32>) -> tensor<f32>
  func.return %0 : tensor<f32>
}

// Blocks are joined by the binary tree that is aligned at 0, with a stack of partial sums.
// CHECK-LABEL: func.func @a_long_sum_joins_blocks_by_a_tree
// CHECK:         %[[STACK:.*]] = memref.alloca() : memref<40xf32>
// CHECK:         loop.nest (%[[B:.*]]) = ({{.*}}) step (1) kinds [reduction] {
// CHECK:           %[[PAIRS:.*]] = math.cttz %{{.*}} : i64
// CHECK:           loop.nest (%[[T:.*]]) = ({{.*}}) step (1) kinds [reduction] {
// CHECK-NEXT:        %[[W:.*]] = memref.load %[[STACK]][%[[T]]]
// CHECK-NEXT:        %[[S:.*]] = memref.load %[[SUM:.*]][]
// CHECK-NEXT:        %[[R:.*]] = arith.addf %[[W]], %[[S]] : f32
// CHECK-NEXT:        memref.store %[[R]], %[[SUM]][]
// CHECK:         math.ctlz
// CHECK:         loop.nest (%{{.*}}) = ({{.*}}) step (1) kinds [reduction] {
// CHECK:           arith.select
func.func @a_long_sum_joins_blocks_by_a_tree(%x: tensor<?xf32, #tssa.dims<[n]>>) -> tensor<f32> {
  %0 = tssa.sum %x {axes = array<i64: 0>} : (tensor<?xf32, #tssa.dims<[n]>>) -> tensor<f32>
  func.return %0 : tensor<f32>
}

// Blocks of an only row lie side by side; their sums enter the tree behind them.
// CHECK-LABEL: func.func @blocks_of_an_only_row_are_parallel
// CHECK-DAG:     %[[END:.*]] = arith.constant 150000 : index
// CHECK-DAG:     %[[COUNT:.*]] = arith.constant 37 : index
// CHECK:         %[[FOUND:.*]] = memref.alloca() : memref<1024xf32>
// CHECK:         loop.nest (%[[P:.*]]) = (%{{.*}}) to (%[[COUNT]]) step (1) kinds [parallel] {
// CHECK-NEXT:      %[[LANES:.*]] = memref.alloca() : memref<32xf32>
// CHECK-NEXT:      %[[B:.*]] = arith.addi %{{.*}}, %[[P]] : index
// CHECK-NEXT:      %[[FIRST:.*]] = arith.muli %[[B]], %{{.*}} : index
// CHECK-NEXT:      %[[NEXT:.*]] = arith.addi %[[FIRST]], %{{.*}} : index
// CHECK-NEXT:      arith.minsi %[[NEXT]], %[[END]] : index
// CHECK-NOT:       math.cttz
// CHECK:           memref.store %{{.*}}, %[[FOUND]][%[[P]]]
// CHECK:         loop.nest (%[[Q:.*]]) = (%{{.*}}) to (%[[COUNT]]) step (1) kinds [reduction] {
// CHECK-NEXT:      memref.load %[[FOUND]][%[[Q]]]
// CHECK:           math.cttz
// CHECK:         math.ctlz
func.func @blocks_of_an_only_row_are_parallel(%x: tensor<150000xf32>) -> tensor<f32> {
  %0 = tssa.sum %x {axes = array<i64: 0>} : (tensor<150000xf32>) -> tensor<f32>
  func.return %0 : tensor<f32>
}

// No more than 1024 at a time.
// CHECK-LABEL: func.func @the_blocks_of_a_row_of_any_length
// CHECK:         loop.nest (%{{.*}}) = ({{.*}}) step (1024) kinds [reduction] {
// CHECK:           loop.nest (%{{.*}}) = ({{.*}}) step (1) kinds [parallel] {
// CHECK:           loop.nest (%{{.*}}) = ({{.*}}) step (1) kinds [reduction] {
func.func @the_blocks_of_a_row_of_any_length(%x: tensor<?xi64, #tssa.dims<[n]>>) -> tensor<i64> {
  %0 = tssa.max %x {axes = array<i64: 0>} : (tensor<?xi64, #tssa.dims<[n]>>) -> tensor<i64>
  func.return %0 : tensor<i64>
}

// CHECK-LABEL: func.func @do_not_keep_the_blocks_of_one_of_many_rows
// CHECK-NOT:     memref<1024xf32>
// CHECK:         func.return
func.func @do_not_keep_the_blocks_of_one_of_many_rows(%x: tensor<?x150000xf32, #tssa.dims<[n, 150000]>>) -> tensor<?xf32, #tssa.dims<[n]>> {
  %0 = tssa.sum %x {axes = array<i64: 1>} : (tensor<?x150000xf32, #tssa.dims<[n, 150000]>>) -> tensor<?xf32, #tssa.dims<[n]>>
  func.return %0 : tensor<?xf32, #tssa.dims<[n]>>
}

// All axes of a contiguous buffer are one axis in C order.
// CHECK-LABEL: func.func @a_sum_of_all_axes_is_one_axis
// CHECK:         memref.reinterpret_cast %x to offset: [0], sizes: [280], strides: [1]
func.func @a_sum_of_all_axes_is_one_axis(%x: tensor<4x70xf32>) -> tensor<f32> {
  %0 = tssa.sum %x {axes = array<i64: 0, 1>} : (tensor<4x70xf32>) -> tensor<f32>
  func.return %0 : tensor<f32>
}

// CHECK-LABEL: func.func @a_maximum_starts_below_everything
// CHECK:         %{{.*}} = arith.constant -8388608 : i32
// CHECK:         arith.maxsi
// CHECK-NOT:     arith.addf
// CHECK:         func.return
func.func @a_maximum_starts_below_everything(%x: tensor<70xf32>) -> tensor<f32> {
  %0 = tssa.max %x {axes = array<i64: 0>} : (tensor<70xf32>) -> tensor<f32>
  func.return %0 : tensor<f32>
}

// A dot product is a sum in which each lane is a chain of fma.
// CHECK-LABEL: func.func @a_dot_product_is_a_sum
// CHECK:         memref.alloca() : memref<32xf32>
// CHECK:         math.fma %{{.*}}, %{{.*}}, %{{.*}} : f32
func.func @a_dot_product_is_a_sum(%x: tensor<4x70xf32>, %y: tensor<70xf32>) -> tensor<4xf32> {
  %0 = tssa.matmul %x, %y : (tensor<4x70xf32>, tensor<70xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
