// RUN: not jit-opt %s -t c 2>&1 | filecheck %s

// CHECK: the C view cannot show vector.broadcast: it works on vectors; take the view before loop-vectorize
func.func @do_not_show_vectors(%x: f64, %out: memref<4xf64>) {
  %c0 = arith.constant 0 : index
  %v = vector.broadcast %x : f64 to vector<4xf64>
  vector.store %v, %out[%c0] : memref<4xf64>, vector<4xf64>
  func.return
}
