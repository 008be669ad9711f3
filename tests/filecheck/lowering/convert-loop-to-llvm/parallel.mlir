// RUN: jit-opt %s -p convert-loop-to-llvm | filecheck %s
// RUN: jit-opt %s -p convert-to-llvm | filecheck %s --check-prefix=WALK

func.func @types(%a: index, %b: index, %c: index) {
  loop.parallel (%i, %j) = (%a) to (%b) chunk (%c) : index {
    "test.op"(%i) : (index) -> ()
    loop.yield
  }
  func.return
}
// CHECK-LABEL: func.func @types
// CHECK:       %[[A:.*]] = builtin.unrealized_conversion_cast %a : index to i64
// CHECK:       loop.parallel (%[[I:.*]], %{{.*}}) = (%[[A]]) to (%{{.*}}) chunk (%{{.*}}) : i64 {
// CHECK-NEXT:    %[[X:.*]] = builtin.unrealized_conversion_cast %[[I]] : i64 to index
// CHECK-NEXT:    "test.op"(%[[X]]) : (index) -> ()
// CHECK-NEXT:    loop.yield

// Stack memory of the region is allocated at its top, other memory at the top of the function.
func.func @frames(%n: index, %x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %o = memref.alloca() : memref<1xi64>
  %one = arith.constant 1 : i64
  memref.store %one, %o[%c0] : memref<1xi64>
  loop.parallel (%b, %e) = (%c0) to (%n) chunk (%c1) : index {
    %s = memref.load %o[%c0] : memref<1xi64>
    cf.br ^bb1
  ^bb1:
    %a = memref.alloca() : memref<3xf32>
    %v = memref.load %x[%b] : memref<?xf32>
    memref.store %v, %a[%c0] : memref<3xf32>
    %w = memref.load %a[%c1] : memref<3xf32>
    memref.store %w, %x[%b] : memref<?xf32>
    loop.yield
  }
  func.return
}
// WALK-LABEL: llvm.func @frames
// WALK:       llvm.alloca %{{.*}} x i64
// WALK:       loop.parallel (%{{.*}}) = (%{{.*}}) to (%{{.*}}) chunk (%{{.*}}) : i64 {
// WALK-NEXT:    llvm.alloca %{{.*}} x f32
// WALK:         llvm.br ^
