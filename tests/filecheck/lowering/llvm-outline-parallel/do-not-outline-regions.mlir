// RUN: not jit-opt %s -p llvm-outline-parallel 2>&1 | filecheck %s

llvm.func @f(%n: i64) {
  loop.parallel (%b, %e) = (%n) to (%n) chunk (%n) : i64 {
    loop.parallel (%c, %d) = (%b) to (%e) chunk (%n) : i64 {
      loop.yield
    }
    loop.yield
  }
  llvm.return
}
// CHECK: loop.parallel inside loop.parallel has a region; lower it before
