// RUN: jit-opt %s -p 'loop-divide-by-invariant{features="x86-64-v4"}' | filecheck %s

func.func @do_not_multiply_by_the_reciprocal_of_what_varies(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %step = arith.constant 16 : index
  scf.for %i = %c0 to %n step %step {
    %v = vector.load %x[%i] : memref<?xf32>, vector<16xf32>
    %s = vector.load %y[%i] : memref<?xf32>, vector<16xf32>
    %q = arith.divf %v, %s : vector<16xf32>
    vector.store %q, %x[%i] : memref<?xf32>, vector<16xf32>
  }
  func.return
}
// CHECK-LABEL: func.func @do_not_multiply_by_the_reciprocal_of_what_varies
// CHECK-NOT:     vector.reduction
// CHECK:         arith.divf

func.func @do_not_multiply_what_is_the_same_in_each_iteration(%x: memref<?xf32>, %n: index, %v: vector<16xf32>, %s: vector<16xf32>) {
  %c0 = arith.constant 0 : index
  %step = arith.constant 16 : index
  scf.for %i = %c0 to %n step %step {
    %q = arith.divf %v, %s : vector<16xf32>
    vector.store %q, %x[%i] : memref<?xf32>, vector<16xf32>
  }
  func.return
}
// CHECK-LABEL: func.func @do_not_multiply_what_is_the_same_in_each_iteration
// CHECK-NOT:     vector.reduction
// CHECK:         arith.divf

func.func @do_not_multiply_numbers(%x: memref<?xf32>, %n: index, %s: f32) {
  %c0 = arith.constant 0 : index
  %step = arith.constant 1 : index
  scf.for %i = %c0 to %n step %step {
    %v = memref.load %x[%i] : memref<?xf32>
    %q = arith.divf %v, %s : f32
    memref.store %q, %x[%i] : memref<?xf32>
  }
  func.return
}
// CHECK-LABEL: func.func @do_not_multiply_numbers
// CHECK-NOT:     vector.reduction
// CHECK:         arith.divf

func.func @do_not_multiply_a_few_lanes(%x: memref<?xf32>, %n: index, %s: vector<4xf32>) {
  %c0 = arith.constant 0 : index
  %step = arith.constant 4 : index
  scf.for %i = %c0 to %n step %step {
    %v = vector.load %x[%i] : memref<?xf32>, vector<4xf32>
    %q = arith.divf %v, %s : vector<4xf32>
    vector.store %q, %x[%i] : memref<?xf32>, vector<4xf32>
  }
  func.return
}
// CHECK-LABEL: func.func @do_not_multiply_a_few_lanes
// CHECK-NOT:     vector.reduction
// CHECK:         arith.divf

func.func @do_not_multiply_half_numbers(%x: memref<?xf16>, %n: index, %s: vector<16xf16>) {
  %c0 = arith.constant 0 : index
  %step = arith.constant 16 : index
  scf.for %i = %c0 to %n step %step {
    %v = vector.load %x[%i] : memref<?xf16>, vector<16xf16>
    %q = arith.divf %v, %s : vector<16xf16>
    vector.store %q, %x[%i] : memref<?xf16>, vector<16xf16>
  }
  func.return
}
// CHECK-LABEL: func.func @do_not_multiply_half_numbers
// CHECK-NOT:     vector.reduction
// CHECK:         arith.divf

func.func @do_not_multiply_by_an_unsafe_constant(%x: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %step = arith.constant 16 : index
  %s = arith.constant dense<-3.0> : vector<16xf32>
  scf.for %i = %c0 to %n step %step {
    %v = vector.load %x[%i] : memref<?xf32>, vector<16xf32>
    %q = arith.divf %v, %s : vector<16xf32>
    vector.store %q, %x[%i] : memref<?xf32>, vector<16xf32>
  }
  func.return
}
// CHECK-LABEL: func.func @do_not_multiply_by_an_unsafe_constant
// CHECK-NOT:     vector.reduction
// CHECK:         arith.divf

func.func @do_not_multiply_by_a_power_of_two(%x: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %step = arith.constant 16 : index
  %s = arith.constant dense<8.0> : vector<16xf32>
  scf.for %i = %c0 to %n step %step {
    %v = vector.load %x[%i] : memref<?xf32>, vector<16xf32>
    %q = arith.divf %v, %s : vector<16xf32>
    vector.store %q, %x[%i] : memref<?xf32>, vector<16xf32>
  }
  func.return
}
// CHECK-LABEL: func.func @do_not_multiply_by_a_power_of_two
// CHECK-NOT:     vector.reduction
// CHECK:         arith.divf

func.func @do_not_prepare_for_three_iterations(%x: memref<?xf32>, %s: vector<16xf32>) {
  %c0 = arith.constant 0 : index
  %step = arith.constant 16 : index
  %n = arith.constant 48 : index
  scf.for %i = %c0 to %n step %step {
    %v = vector.load %x[%i] : memref<?xf32>, vector<16xf32>
    %q = arith.divf %v, %s : vector<16xf32>
    vector.store %q, %x[%i] : memref<?xf32>, vector<16xf32>
  }
  func.return
}
// CHECK-LABEL: func.func @do_not_prepare_for_three_iterations
// CHECK-NOT:     vector.reduction
// CHECK:         arith.divf

func.func @do_not_prepare_for_what_whole_vectors_leave(%x: memref<?xf32>, %n: index, %s: vector<16xf32>, %z: vector<16xf32>) {
  %c0 = arith.constant 0 : index
  %step = arith.constant 16 : index
  scf.for %i = %c0 to %n step %step {
    %left = arith.subi %n, %i : index
    %m = vector.create_mask %left : vector<16xi1>
    %v = vector.maskedload %x[%i], %m, %z : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %q = arith.divf %v, %s : vector<16xf32>
    vector.maskedstore %x[%i], %m, %q : memref<?xf32>, vector<16xi1>, vector<16xf32>
  }
  func.return
}
// CHECK-LABEL: func.func @do_not_prepare_for_what_whole_vectors_leave
// CHECK-NOT:     vector.reduction
// CHECK:         arith.divf

func.func @do_not_multiply_beside_functions_that_take_longer(%x: memref<?xf32>, %n: index, %s: vector<16xf32>) {
  %c0 = arith.constant 0 : index
  %step = arith.constant 16 : index
  scf.for %i = %c0 to %n step %step {
    %v = vector.load %x[%i] : memref<?xf32>, vector<16xf32>
    %e = math.exp %v : vector<16xf32>
    %q = arith.divf %e, %s : vector<16xf32>
    vector.store %q, %x[%i] : memref<?xf32>, vector<16xf32>
  }
  func.return
}
// CHECK-LABEL: func.func @do_not_multiply_beside_functions_that_take_longer
// CHECK-NOT:     vector.reduction
// CHECK:         arith.divf
