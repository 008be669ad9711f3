// RUN: jit-opt %s --allow-unregistered-dialect -p 'loop-vectorize{width=8}' | filecheck %s

// CHECK-LABEL: @do_not_vectorize_an_operation_of_an_unknown_dialect
// CHECK: "strange.op"(%{{.*}}) : (f32) -> f32
// CHECK: loop.remark = "loop-vectorize: strange.op has no form on vectors"
func.func @do_not_vectorize_an_operation_of_an_unknown_dialect(%m: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %m[%i] : memref<?xf32>
    %y = "strange.op"(%x) : (f32) -> f32
    memref.store %y, %m[%i] : memref<?xf32>
  } {"loop.kind" = "parallel"}
  func.return
}

// CHECK-LABEL: @do_not_look_into_a_region_of_an_unknown_dialect
// CHECK: "strange.region"() ({
// CHECK: loop.remark = "loop-vectorize: strange.region has no form on vectors"
func.func @do_not_look_into_a_region_of_an_unknown_dialect(%m: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %m[%i] : memref<?xf32>
    "strange.region"() ({
      "strange.use"(%x) : (f32) -> ()
    }) : () -> ()
    memref.store %x, %m[%i] : memref<?xf32>
  } {"loop.kind" = "parallel"}
  func.return
}
