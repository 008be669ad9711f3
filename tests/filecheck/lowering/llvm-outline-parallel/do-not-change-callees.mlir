// RUN: not jit-opt %s -p llvm-outline-parallel 2>&1 | filecheck %s

llvm.func @f(%n: i64) {
  loop.parallel (%b, %e) = (%n) to (%n) chunk (%n) : i64 {
    loop.yield
  }
  llvm.return
}
llvm.func @g(%n: i64) {
  llvm.call @f(%n) : (i64) -> ()
  llvm.return
}
// CHECK: f is called in the module and gets a further argument, the context; inline it before
