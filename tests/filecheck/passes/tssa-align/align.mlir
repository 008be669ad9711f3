// RUN: jit-opt %s -p tssa-align | filecheck %s

// Rows of whole lines: a cast to the same type is a copy.
// CHECK-LABEL: func.func @whole_lines
// CHECK:         %[[A:.*]] = tssa.cast %w : (tensor<32x32xf32>) -> tensor<32x32xf32>
// CHECK-NEXT:    cf.br
// CHECK:         tssa.matmul %[[A]], %v
// CHECK:         tssa.matmul %[[A]], %
func.func @whole_lines(%w: tensor<32x32xf32>, %x: tensor<32xf32>) -> tensor<32xf32> {
  %zero = tssa.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  cf.br ^head(%zero, %x : tensor<i64>, tensor<32xf32>)
^head(%t: tensor<i64>, %v: tensor<32xf32>):
  %end = tssa.constant {value = dense<16> : tensor<i64>} : () -> tensor<i64>
  %one = tssa.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %less = tssa.less %t, %end : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %c = tensor.extract %less[] : tensor<i1>
  cf.cond_br %c, ^body, ^exit
^body:
  %a = tssa.matmul %w, %v : (tensor<32x32xf32>, tensor<32xf32>) -> tensor<32xf32>
  %b = tssa.matmul %w, %a : (tensor<32x32xf32>, tensor<32xf32>) -> tensor<32xf32>
  %u = tssa.add %t, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  cf.br ^head(%u, %b : tensor<i64>, tensor<32xf32>)
^exit:
  func.return %v : tensor<32xf32>
}

// Other rows get as much room as whole lines take, here of 8 numbers. A size that is not known is taken for 256.
// CHECK-LABEL: func.func @room_for_lines
// CHECK:         %[[Z:.*]] = tssa.constant {value = dense<0.000000e+00> : tensor<f64>}
// CHECK-NEXT:    %[[E:.*]] = tssa.broadcast %[[Z]] : (tensor<f64>) -> tensor<10x?xf64, #tssa.dims<[10, 8 * floordiv(n + 7, 8)]>>
// CHECK-NEXT:    %[[F:.*]] = tssa.insert %[[E]], %w {offsets = #tssa.dims<[0, 0]>
// CHECK-NEXT:    %[[A:.*]] = tssa.extract %[[F]] {offsets = #tssa.dims<[0, 0]>{{.*}} -> tensor<10x?xf64, #tssa.dims<[10, n]>>
// CHECK-NEXT:    cf.br
// CHECK:         tssa.matmul %x, %[[A]]
func.func @room_for_lines(%w: tensor<10x?xf64, #tssa.dims<[10, n]>>, %x: tensor<10xf64>) -> tensor<?xf64, #tssa.dims<[n]>> {
  %zero = tssa.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %none = tssa.constant {value = dense<1.0> : tensor<f64>} : () -> tensor<f64>
  %y = tssa.broadcast %none : (tensor<f64>) -> tensor<?xf64, #tssa.dims<[n]>>
  cf.br ^head(%zero, %y : tensor<i64>, tensor<?xf64, #tssa.dims<[n]>>)
^head(%t: tensor<i64>, %v: tensor<?xf64, #tssa.dims<[n]>>):
  %end = tssa.size {value = #tssa.dims<[n]>} : () -> tensor<i64>
  %two = tssa.constant {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %less = tssa.less %t, %end : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %c = tensor.extract %less[] : tensor<i1>
  cf.cond_br %c, ^body, ^exit
^body:
  %a = tssa.matmul %x, %w : (tensor<10xf64>, tensor<10x?xf64, #tssa.dims<[10, n]>>) -> tensor<?xf64, #tssa.dims<[n]>>
  %u = tssa.add %t, %two : (tensor<i64>, tensor<i64>) -> tensor<i64>
  cf.br ^head(%u, %a : tensor<i64>, tensor<?xf64, #tssa.dims<[n]>>)
^exit:
  func.return %v : tensor<?xf64, #tssa.dims<[n]>>
}

// A view that is made inside comes along; what it is a view of may be our own, if its rows lie apart. Copied once, in
// front of the outer loop.
// CHECK-LABEL: func.func @turned_in_two_loops
// CHECK:         %[[E:.*]] = tssa.exp %w
// CHECK:         %[[T:.*]] = tssa.transpose %[[E]]
// CHECK-NEXT:    %[[A:.*]] = tssa.cast %[[T]]
// CHECK-NEXT:    cf.br
// CHECK-NOT:     tssa.cast
// CHECK-NOT:     tssa.transpose
// CHECK:         tssa.matmul %[[A]], %u
func.func @turned_in_two_loops(%w: tensor<32x32xf32>, %x: tensor<32x1xf32>) -> tensor<32x1xf32> {
  %zero = tssa.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %e = tssa.exp %w : (tensor<32x32xf32>) -> tensor<32x32xf32>
  cf.br ^outer(%zero, %x : tensor<i64>, tensor<32x1xf32>)
^outer(%s: tensor<i64>, %v: tensor<32x1xf32>):
  %end = tssa.constant {value = dense<20> : tensor<i64>} : () -> tensor<i64>
  %one = tssa.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %l = tssa.less %s, %end : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %c = tensor.extract %l[] : tensor<i1>
  cf.cond_br %c, ^enter, ^exit
^enter:
  cf.br ^inner(%zero, %v : tensor<i64>, tensor<32x1xf32>)
^inner(%t: tensor<i64>, %u: tensor<32x1xf32>):
  %m = tssa.less %t, %end : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %d = tensor.extract %m[] : tensor<i1>
  cf.cond_br %d, ^body, ^next
^body:
  %r = tssa.transpose %e {permutation = array<i64: 1, 0>} : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %a = tssa.matmul %r, %u : (tensor<32x32xf32>, tensor<32x1xf32>) -> tensor<32x1xf32>
  %t1 = tssa.add %t, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  cf.br ^inner(%t1, %a : tensor<i64>, tensor<32x1xf32>)
^next:
  %s1 = tssa.add %s, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  cf.br ^outer(%s1, %u : tensor<i64>, tensor<32x1xf32>)
^exit:
  func.return %v : tensor<32x1xf32>
}

// CHECK-LABEL: func.func @do_not_copy_for_few_steps
// CHECK-NOT:     tssa.cast
func.func @do_not_copy_for_few_steps(%w: tensor<32x32xf32>, %x: tensor<32xf32>) -> tensor<32xf32> {
  %zero = tssa.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  cf.br ^head(%zero, %x : tensor<i64>, tensor<32xf32>)
^head(%t: tensor<i64>, %v: tensor<32xf32>):
  %end = tssa.constant {value = dense<30> : tensor<i64>} : () -> tensor<i64>
  %two = tssa.constant {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %less = tssa.less %t, %end : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %c = tensor.extract %less[] : tensor<i1>
  cf.cond_br %c, ^body, ^exit
^body:
  %a = tssa.matmul %w, %v : (tensor<32x32xf32>, tensor<32xf32>) -> tensor<32xf32>
  %u = tssa.add %t, %two : (tensor<i64>, tensor<i64>) -> tensor<i64>
  cf.br ^head(%u, %a : tensor<i64>, tensor<32xf32>)
^exit:
  func.return %v : tensor<32xf32>
}

// The loop may end before its counter does.
// CHECK-LABEL: func.func @do_not_copy_where_steps_are_not_known
// CHECK-NOT:     tssa.cast
func.func @do_not_copy_where_steps_are_not_known(%w: tensor<32x32xf32>, %x: tensor<32xf32>, %stop: tensor<i1>) -> tensor<32xf32> {
  %zero = tssa.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  cf.br ^head(%zero, %x : tensor<i64>, tensor<32xf32>)
^head(%t: tensor<i64>, %v: tensor<32xf32>):
  %end = tssa.constant {value = dense<100> : tensor<i64>} : () -> tensor<i64>
  %one = tssa.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %less = tssa.less %t, %end : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %c = tensor.extract %less[] : tensor<i1>
  cf.cond_br %c, ^body, ^exit
^body:
  %a = tssa.matmul %w, %v : (tensor<32x32xf32>, tensor<32xf32>) -> tensor<32xf32>
  %u = tssa.add %t, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %q = tensor.extract %stop[] : tensor<i1>
  cf.cond_br %q, ^exit, ^head(%u, %a : tensor<i64>, tensor<32xf32>)
^exit:
  func.return %v : tensor<32xf32>
}

// CHECK-LABEL: func.func @do_not_copy_for_a_counter_that_grows_by_no_constant
// CHECK-NOT:     tssa.cast
func.func @do_not_copy_for_a_counter_that_grows_by_no_constant(%w: tensor<32x32xf32>, %x: tensor<32xf32>) -> tensor<32xf32> {
  %zero = tssa.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  cf.br ^head(%zero, %x : tensor<i64>, tensor<32xf32>)
^head(%t: tensor<i64>, %v: tensor<32xf32>):
  %end = tssa.constant {value = dense<100> : tensor<i64>} : () -> tensor<i64>
  %less = tssa.less %t, %end : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %c = tensor.extract %less[] : tensor<i1>
  cf.cond_br %c, ^body, ^exit
^body:
  %a = tssa.matmul %w, %v : (tensor<32x32xf32>, tensor<32xf32>) -> tensor<32xf32>
  %u = tssa.add %t, %t : (tensor<i64>, tensor<i64>) -> tensor<i64>
  cf.br ^head(%u, %a : tensor<i64>, tensor<32xf32>)
^exit:
  func.return %v : tensor<32xf32>
}

// CHECK-LABEL: func.func @do_not_copy_what_no_near_cache_holds
// CHECK-NOT:     tssa.cast
func.func @do_not_copy_what_no_near_cache_holds(%w: tensor<1024x1024xf32>, %x: tensor<1024xf32>) -> tensor<1024xf32> {
  %zero = tssa.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  cf.br ^head(%zero, %x : tensor<i64>, tensor<1024xf32>)
^head(%t: tensor<i64>, %v: tensor<1024xf32>):
  %end = tssa.constant {value = dense<100> : tensor<i64>} : () -> tensor<i64>
  %one = tssa.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %less = tssa.less %t, %end : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %c = tensor.extract %less[] : tensor<i1>
  cf.cond_br %c, ^body, ^exit
^body:
  %a = tssa.matmul %w, %v : (tensor<1024x1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  %u = tssa.add %t, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  cf.br ^head(%u, %a : tensor<i64>, tensor<1024xf32>)
^exit:
  func.return %v : tensor<1024xf32>
}

// CHECK-LABEL: func.func @do_not_copy_what_begins_at_lines
// CHECK-NOT:     tssa.cast
func.func @do_not_copy_what_begins_at_lines(%w: tensor<32x32xf32>, %x: tensor<32xf32>) -> tensor<32xf32> {
  %zero = tssa.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %e = tssa.exp %w : (tensor<32x32xf32>) -> tensor<32x32xf32>
  cf.br ^head(%zero, %x : tensor<i64>, tensor<32xf32>)
^head(%t: tensor<i64>, %v: tensor<32xf32>):
  %end = tssa.constant {value = dense<100> : tensor<i64>} : () -> tensor<i64>
  %one = tssa.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %less = tssa.less %t, %end : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %c = tensor.extract %less[] : tensor<i1>
  cf.cond_br %c, ^body, ^exit
^body:
  %a = tssa.matmul %e, %v : (tensor<32x32xf32>, tensor<32xf32>) -> tensor<32xf32>
  %u = tssa.add %t, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  cf.br ^head(%u, %a : tensor<i64>, tensor<32xf32>)
^exit:
  func.return %v : tensor<32xf32>
}

// CHECK-LABEL: func.func @do_not_copy_what_the_loop_changes
// CHECK-NOT:     tssa.cast
func.func @do_not_copy_what_the_loop_changes(%w: tensor<32x32xf32>, %x: tensor<32xf32>) -> tensor<32xf32> {
  %zero = tssa.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  cf.br ^head(%zero, %w, %x : tensor<i64>, tensor<32x32xf32>, tensor<32xf32>)
^head(%t: tensor<i64>, %m: tensor<32x32xf32>, %v: tensor<32xf32>):
  %end = tssa.constant {value = dense<100> : tensor<i64>} : () -> tensor<i64>
  %one = tssa.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %less = tssa.less %t, %end : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %c = tensor.extract %less[] : tensor<i1>
  cf.cond_br %c, ^body, ^exit
^body:
  %r = tssa.transpose %m {permutation = array<i64: 1, 0>} : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %a = tssa.matmul %r, %v : (tensor<32x32xf32>, tensor<32xf32>) -> tensor<32xf32>
  %n = tssa.negative %m : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %u = tssa.add %t, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  cf.br ^head(%u, %n, %a : tensor<i64>, tensor<32x32xf32>, tensor<32xf32>)
^exit:
  func.return %v : tensor<32xf32>
}

// Its loops read each element of the matrices many times over, from copies of their own.
// CHECK-LABEL: func.func @do_not_copy_for_a_product_of_matrices
// CHECK-NOT:     tssa.cast
func.func @do_not_copy_for_a_product_of_matrices(%w: tensor<32x32xf32>, %x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %zero = tssa.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  cf.br ^head(%zero, %x : tensor<i64>, tensor<32x32xf32>)
^head(%t: tensor<i64>, %v: tensor<32x32xf32>):
  %end = tssa.constant {value = dense<100> : tensor<i64>} : () -> tensor<i64>
  %one = tssa.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %less = tssa.less %t, %end : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %c = tensor.extract %less[] : tensor<i1>
  cf.cond_br %c, ^body, ^exit
^body:
  %a = tssa.matmul %w, %v : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %u = tssa.add %t, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  cf.br ^head(%u, %a : tensor<i64>, tensor<32x32xf32>)
^exit:
  func.return %v : tensor<32x32xf32>
}

// CHECK-LABEL: func.func @do_not_copy_constants
// CHECK-NOT:     tssa.cast
func.func @do_not_copy_constants(%x: tensor<32xf32>, %w: tensor<32x32xf32> {tssa.constant = 0 : i64}) -> tensor<32xf32> {
  %zero = tssa.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  cf.br ^head(%zero, %x : tensor<i64>, tensor<32xf32>)
^head(%t: tensor<i64>, %v: tensor<32xf32>):
  %end = tssa.constant {value = dense<100> : tensor<i64>} : () -> tensor<i64>
  %one = tssa.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %less = tssa.less %t, %end : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %c = tensor.extract %less[] : tensor<i1>
  cf.cond_br %c, ^body, ^exit
^body:
  %a = tssa.matmul %w, %v : (tensor<32x32xf32>, tensor<32xf32>) -> tensor<32xf32>
  %u = tssa.add %t, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  cf.br ^head(%u, %a : tensor<i64>, tensor<32xf32>)
^exit:
  func.return %v : tensor<32xf32>
}
