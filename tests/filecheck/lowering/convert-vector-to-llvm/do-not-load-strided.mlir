// RUN: not jit-opt %s -p convert-vector-to-llvm 2>&1 | filecheck %s

// CHECK: vector.load needs stride 1, not memref<?xf32, strided<[2]>>
func.func @do_not_load_lanes_that_are_no_neighbours(%a: memref<?xf32, strided<[2]>>, %i: index) -> vector<8xf32> {
  %v = vector.load %a[%i] : memref<?xf32, strided<[2]>>, vector<8xf32>
  func.return %v : vector<8xf32>
}
