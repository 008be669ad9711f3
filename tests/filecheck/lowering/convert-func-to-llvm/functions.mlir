// RUN: jit-opt %s -p convert-func-to-llvm | filecheck %s

// CHECK-LABEL: llvm.func @expands_memrefs
// CHECK-SAME:    ({{%.+}}: !llvm.ptr, {{%.+}}: !llvm.ptr, {{%.+}}: i64, {{%.+}}: i64, {{%.+}}: i64, {{%.+}}: i64, {{%.+}}: i64, {{%.+}}: f64)
// CHECK-SAME:    attributes {note = 1 : i32, jd.abi = ["memref<2>", "f64"]}
// CHECK-NEXT:    llvm.return
func.func @expands_memrefs(%m: memref<?x8xf32>, %x: f64) attributes {note = 1 : i32} {
  func.return
}

// CHECK-LABEL: llvm.func internal @private_functions_are_internal
// CHECK-SAME:    -> i64
func.func private @private_functions_are_internal(%i: index) -> index {
  func.return %i : index
}

// CHECK:       llvm.func @declares(i64) -> f32
func.func private @declares(index) -> f32

// CHECK-LABEL: llvm.func @calls_with_the_parts
// CHECK-SAME:    ([[A:%.+]]: !llvm.ptr, [[B:%.+]]: !llvm.ptr, {{%.+}}: i64, [[N:%.+]]: i64, {{%.+}}: i64, {{%.+}}: i64, {{%.+}}: i64, [[X:%.+]]: f64, [[I:%.+]]: i64) -> i64
// CHECK-DAG:     [[ZERO:%.+]] = llvm.mlir.constant(0) : i64
// CHECK-DAG:     [[EIGHT:%.+]] = llvm.mlir.constant(8) : i64
// CHECK-DAG:     [[ONE:%.+]] = llvm.mlir.constant(1) : i64
// CHECK:         llvm.call @expands_memrefs([[A]], [[B]], [[ZERO]], [[N]], [[EIGHT]], [[EIGHT]], [[ONE]], [[X]])
// CHECK:         [[R:%.+]] = llvm.call @private_functions_are_internal([[I]])
// CHECK-NEXT:    llvm.return [[R]] : i64
func.func @calls_with_the_parts(%m: memref<?x8xf32>, %x: f64, %i: index) -> index {
  func.call @expands_memrefs(%m, %x) : (memref<?x8xf32>, f64) -> ()
  %r = func.call @private_functions_are_internal(%i) : (index) -> index
  func.return %r : index
}

// CHECK-LABEL: llvm.func @several_results_are_a_struct
// CHECK-SAME:    -> !llvm.struct<(f32, i64)>
// CHECK:         [[U:%.+]] = llvm.mlir.undef : !llvm.struct<(f32, i64)>
// CHECK-NEXT:    [[A:%.+]] = llvm.insertvalue {{%.+}}, [[U]][0]
// CHECK-NEXT:    [[B:%.+]] = llvm.insertvalue {{%.+}}, [[A]][1]
// CHECK-NEXT:    llvm.return [[B]]
func.func @several_results_are_a_struct(%x: f32, %i: i64) -> (f32, i64) {
  func.return %x, %i : f32, i64
}
