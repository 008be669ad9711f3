// RUN: not jit-opt %s -p 'loop-parallelize{threads=-1}' 2>&1 | filecheck %s

func.func @f() {
  func.return
}
// CHECK: loop-parallelize: threads -1 is negative
