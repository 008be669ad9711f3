// RUN: not jit-opt %s -p 'tssa-fuse{typical="n"}' 2>&1 | filecheck %s

// CHECK: tssa-fuse: typical: 'n' is no size; write 'n=65536, m=16'
func.func @f() {
  func.return
}
