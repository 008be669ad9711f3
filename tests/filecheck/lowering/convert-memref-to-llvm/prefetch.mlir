// RUN: jit-opt %s -p convert-memref-to-llvm | filecheck %s

// The address of an element that need not exist: no promise is made about it.
// CHECK-LABEL: func.func @ahead
// CHECK:         %[[P:.*]] = llvm.getelementptr
// CHECK-NEXT:    "llvm.intr.prefetch"(%[[P]]) <{rw = 0 : i32, hint = 3 : i32, cache = 1 : i32}> : (!llvm.ptr) -> ()
func.func @ahead(%x: memref<?xf32>, %i: index) {
  memref.prefetch %x[%i], read, locality<3>, data : memref<?xf32>
  func.return
}
