// RUN: jit-opt %s -p llvm-outline-parallel | filecheck %s

// What lives in the region comes through the environment, constants are made again, branches stay.
llvm.func @scale(%p: !llvm.ptr, %n: i64, %v: vector<4xf32>) attributes {jd.abi = ["i64"]} {
  %c0 = llvm.mlir.constant(0 : i64) : i64
  %c4 = llvm.mlir.constant(4 : i64) : i64
  %c = llvm.mlir.constant(4096 : i64) : i64
  loop.parallel (%b, %e) = (%c0) to (%n) chunk (%c) : i64 {
    llvm.br ^bb1(%b : i64)
  ^bb1(%i: i64):
    %q = llvm.getelementptr %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %v, %q {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
    %j = llvm.add %i, %c4 : i64
    %more = llvm.icmp "slt" %j, %e : i64
    llvm.cond_br %more, ^bb1(%j : i64), ^bb2
  ^bb2:
    loop.yield
  }
  llvm.return
}
// CHECK:      llvm.func internal @scale.parallel.0(%[[ENV:.*]]: !llvm.ptr, %[[B:.*]]: i64, %[[E:.*]]: i64) {
// CHECK-NEXT:   %[[C4:.*]] = llvm.mlir.constant(4) : i64
// CHECK-NEXT:   %[[P0:.*]] = llvm.getelementptr %[[ENV]][0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(!llvm.ptr, vector<4xf32>)>
// CHECK-NEXT:   %[[P:.*]] = llvm.load %[[P0]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT:   %[[V0:.*]] = llvm.getelementptr %[[ENV]][0, 1]
// CHECK-NEXT:   %[[V:.*]] = llvm.load %[[V0]] {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
// CHECK-NEXT:   llvm.br ^[[L:.*]](%[[B]] : i64)
// CHECK-NEXT: ^[[L]](%[[I:.*]]: i64):
// CHECK-NEXT:   %[[Q:.*]] = llvm.getelementptr %[[P]][%[[I]]]
// CHECK-NEXT:   llvm.store %[[V]], %[[Q]]
// CHECK-NEXT:   %[[J:.*]] = llvm.add %[[I]], %[[C4]] : i64
// CHECK-NEXT:   %[[M:.*]] = llvm.icmp "slt" %[[J]], %[[E]] : i64
// CHECK:        llvm.return

// CHECK:      llvm.func @scale(%p: !llvm.ptr, %n: i64, %v: vector<4xf32>, %[[CTX:.*]]: !llvm.ptr) attributes {jd.abi = ["i64", "context"]} {
// CHECK:        %[[FRAME:.*]] = llvm.alloca %{{.*}} x !llvm.struct<(!llvm.ptr, vector<4xf32>)> {alignment = 64 : i64}
// CHECK:        llvm.store %p, %{{.*}} {alignment = 8 : i64}
// CHECK:        llvm.store %v, %{{.*}} {alignment = 4 : i64}
// CHECK-NEXT:   %[[X:.*]] = llvm.sub %n, %c0 : i64
// CHECK-NEXT:   %[[LARGE:.*]] = llvm.icmp "slt" %c, %[[X]] : i64
// CHECK-NEXT:   %[[T:.*]] = llvm.load %[[CTX]] {alignment = 8 : i64} : !llvm.ptr -> i64
// CHECK:        %[[SEVERAL:.*]] = llvm.icmp "slt" %{{.*}}, %[[T]] : i64
// CHECK-NEXT:   %[[BOTH:.*]] = llvm.and %[[LARGE]], %[[SEVERAL]] : i1
// CHECK-NEXT:   llvm.cond_br %[[BOTH]], ^[[SHARED:.*]], ^[[ALONE:.*]]
// CHECK-NEXT: ^[[SHARED]]:
// CHECK-NEXT:   %[[F0:.*]] = llvm.getelementptr %[[CTX]][1] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-NEXT:   %[[F:.*]] = llvm.load %[[F0]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT:   %[[BODY:.*]] = llvm.mlir.addressof @scale.parallel.0 : !llvm.ptr
// CHECK-NEXT:   llvm.call %[[F]](%[[CTX]], %[[BODY]], %[[FRAME]], %c0, %n, %c)
// CHECK-NEXT:   llvm.br ^[[AFTER:.*]]
// CHECK-NEXT: ^[[ALONE]]:
// CHECK-NEXT:   llvm.call @scale.parallel.0(%[[FRAME]], %c0, %n)
// CHECK-NEXT:   llvm.br ^[[AFTER]]
// CHECK-NEXT: ^[[AFTER]]:
// CHECK-NEXT:   llvm.return

llvm.func @nothing_to_outline() {
  llvm.return
}
// CHECK:      llvm.func @nothing_to_outline() {
// CHECK-NEXT:   llvm.return
