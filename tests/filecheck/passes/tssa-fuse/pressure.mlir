// RUN: jit-opt %s -p 'tssa-fuse{features=x86-64-v3}' | filecheck %s
// RUN: jit-opt %s -p 'tssa-fuse{features=x86-64-v4}' | filecheck %s --check-prefix WIDE

// Twelve inputs and a result: that many buffers have no addresses in registers.
// CHECK-LABEL: func.func @do_not_go_through_more_buffers_than_addresses
// CHECK-COUNT-2: tssa.group
// CHECK-NOT:     tssa.group
// CHECK:         func.return
func.func @do_not_go_through_more_buffers_than_addresses(%x0: tensor<8xf32>, %x1: tensor<8xf32>, %x2: tensor<8xf32>, %x3: tensor<8xf32>, %x4: tensor<8xf32>, %x5: tensor<8xf32>, %x6: tensor<8xf32>, %x7: tensor<8xf32>, %x8: tensor<8xf32>, %x9: tensor<8xf32>, %x10: tensor<8xf32>, %x11: tensor<8xf32>) -> tensor<8xf32> {
  %s0 = tssa.add %x0, %x1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s1 = tssa.add %s0, %x2 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s2 = tssa.add %s1, %x3 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s3 = tssa.add %s2, %x4 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s4 = tssa.add %s3, %x5 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s5 = tssa.add %s4, %x6 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s6 = tssa.add %s5, %x7 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s7 = tssa.add %s6, %x8 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s8 = tssa.add %s7, %x9 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s9 = tssa.add %s8, %x10 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s10 = tssa.add %s9, %x11 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %s10 : tensor<8xf32>
}

// Sixteen powers of %x, used from the last to the first: they would all be alive at once. A machine with 32 vector
// registers holds them.
// CHECK-LABEL: func.func @do_not_hold_more_values_than_vector_registers
// CHECK-COUNT-2: tssa.group
// CHECK:         func.return
// WIDE-LABEL: func.func @do_not_hold_more_values_than_vector_registers
// WIDE-COUNT-1: tssa.group
// WIDE-NOT:     tssa.group
// WIDE:         func.return
func.func @do_not_hold_more_values_than_vector_registers(%x: tensor<8xf32>) -> tensor<8xf32> {
  %p0 = tssa.multiply %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %p1 = tssa.multiply %p0, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %p2 = tssa.multiply %p1, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %p3 = tssa.multiply %p2, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %p4 = tssa.multiply %p3, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %p5 = tssa.multiply %p4, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %p6 = tssa.multiply %p5, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %p7 = tssa.multiply %p6, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %p8 = tssa.multiply %p7, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %p9 = tssa.multiply %p8, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %p10 = tssa.multiply %p9, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %p11 = tssa.multiply %p10, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %p12 = tssa.multiply %p11, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %p13 = tssa.multiply %p12, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %p14 = tssa.multiply %p13, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %p15 = tssa.multiply %p14, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %p16 = tssa.multiply %p15, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s0 = tssa.add %p16, %p15 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s1 = tssa.add %s0, %p14 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s2 = tssa.add %s1, %p13 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s3 = tssa.add %s2, %p12 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s4 = tssa.add %s3, %p11 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s5 = tssa.add %s4, %p10 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s6 = tssa.add %s5, %p9 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s7 = tssa.add %s6, %p8 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s8 = tssa.add %s7, %p7 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s9 = tssa.add %s8, %p6 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s10 = tssa.add %s9, %p5 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s11 = tssa.add %s10, %p4 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s12 = tssa.add %s11, %p3 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s13 = tssa.add %s12, %p2 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s14 = tssa.add %s13, %p1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s15 = tssa.add %s14, %p0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %s15 : tensor<8xf32>
}

// Each of the fifty is 36 operations long; together they leave the decoded part of the loop.
// CHECK-LABEL: func.func @do_not_make_a_body_longer_than_the_core_keeps_decoded
// CHECK-COUNT-2: tssa.group
// CHECK-NOT:     tssa.group
// CHECK:         func.return
func.func @do_not_make_a_body_longer_than_the_core_keeps_decoded(%x: tensor<8xf32>) -> tensor<8xf32> {
  %t0 = tssa.tanh %x : (tensor<8xf32>) -> tensor<8xf32>
  %t1 = tssa.tanh %t0 : (tensor<8xf32>) -> tensor<8xf32>
  %t2 = tssa.tanh %t1 : (tensor<8xf32>) -> tensor<8xf32>
  %t3 = tssa.tanh %t2 : (tensor<8xf32>) -> tensor<8xf32>
  %t4 = tssa.tanh %t3 : (tensor<8xf32>) -> tensor<8xf32>
  %t5 = tssa.tanh %t4 : (tensor<8xf32>) -> tensor<8xf32>
  %t6 = tssa.tanh %t5 : (tensor<8xf32>) -> tensor<8xf32>
  %t7 = tssa.tanh %t6 : (tensor<8xf32>) -> tensor<8xf32>
  %t8 = tssa.tanh %t7 : (tensor<8xf32>) -> tensor<8xf32>
  %t9 = tssa.tanh %t8 : (tensor<8xf32>) -> tensor<8xf32>
  %t10 = tssa.tanh %t9 : (tensor<8xf32>) -> tensor<8xf32>
  %t11 = tssa.tanh %t10 : (tensor<8xf32>) -> tensor<8xf32>
  %t12 = tssa.tanh %t11 : (tensor<8xf32>) -> tensor<8xf32>
  %t13 = tssa.tanh %t12 : (tensor<8xf32>) -> tensor<8xf32>
  %t14 = tssa.tanh %t13 : (tensor<8xf32>) -> tensor<8xf32>
  %t15 = tssa.tanh %t14 : (tensor<8xf32>) -> tensor<8xf32>
  %t16 = tssa.tanh %t15 : (tensor<8xf32>) -> tensor<8xf32>
  %t17 = tssa.tanh %t16 : (tensor<8xf32>) -> tensor<8xf32>
  %t18 = tssa.tanh %t17 : (tensor<8xf32>) -> tensor<8xf32>
  %t19 = tssa.tanh %t18 : (tensor<8xf32>) -> tensor<8xf32>
  %t20 = tssa.tanh %t19 : (tensor<8xf32>) -> tensor<8xf32>
  %t21 = tssa.tanh %t20 : (tensor<8xf32>) -> tensor<8xf32>
  %t22 = tssa.tanh %t21 : (tensor<8xf32>) -> tensor<8xf32>
  %t23 = tssa.tanh %t22 : (tensor<8xf32>) -> tensor<8xf32>
  %t24 = tssa.tanh %t23 : (tensor<8xf32>) -> tensor<8xf32>
  %t25 = tssa.tanh %t24 : (tensor<8xf32>) -> tensor<8xf32>
  %t26 = tssa.tanh %t25 : (tensor<8xf32>) -> tensor<8xf32>
  %t27 = tssa.tanh %t26 : (tensor<8xf32>) -> tensor<8xf32>
  %t28 = tssa.tanh %t27 : (tensor<8xf32>) -> tensor<8xf32>
  %t29 = tssa.tanh %t28 : (tensor<8xf32>) -> tensor<8xf32>
  %t30 = tssa.tanh %t29 : (tensor<8xf32>) -> tensor<8xf32>
  %t31 = tssa.tanh %t30 : (tensor<8xf32>) -> tensor<8xf32>
  %t32 = tssa.tanh %t31 : (tensor<8xf32>) -> tensor<8xf32>
  %t33 = tssa.tanh %t32 : (tensor<8xf32>) -> tensor<8xf32>
  %t34 = tssa.tanh %t33 : (tensor<8xf32>) -> tensor<8xf32>
  %t35 = tssa.tanh %t34 : (tensor<8xf32>) -> tensor<8xf32>
  %t36 = tssa.tanh %t35 : (tensor<8xf32>) -> tensor<8xf32>
  %t37 = tssa.tanh %t36 : (tensor<8xf32>) -> tensor<8xf32>
  %t38 = tssa.tanh %t37 : (tensor<8xf32>) -> tensor<8xf32>
  %t39 = tssa.tanh %t38 : (tensor<8xf32>) -> tensor<8xf32>
  %t40 = tssa.tanh %t39 : (tensor<8xf32>) -> tensor<8xf32>
  %t41 = tssa.tanh %t40 : (tensor<8xf32>) -> tensor<8xf32>
  %t42 = tssa.tanh %t41 : (tensor<8xf32>) -> tensor<8xf32>
  %t43 = tssa.tanh %t42 : (tensor<8xf32>) -> tensor<8xf32>
  %t44 = tssa.tanh %t43 : (tensor<8xf32>) -> tensor<8xf32>
  %t45 = tssa.tanh %t44 : (tensor<8xf32>) -> tensor<8xf32>
  %t46 = tssa.tanh %t45 : (tensor<8xf32>) -> tensor<8xf32>
  %t47 = tssa.tanh %t46 : (tensor<8xf32>) -> tensor<8xf32>
  %t48 = tssa.tanh %t47 : (tensor<8xf32>) -> tensor<8xf32>
  %t49 = tssa.tanh %t48 : (tensor<8xf32>) -> tensor<8xf32>
  func.return %t49 : tensor<8xf32>
}
