// RUN: jit-opt %s -t c | filecheck %s
// RUN: jit-opt %s -p 'convert-loop-to-scf,loop-hoist-accumulators' -t c | filecheck %s --check-prefix=HOISTED

// CHECK:      /* dot */
// CHECK-NEXT: int32_t jd_entry(const int64_t *slots) {
// CHECK-NEXT:   float * const x = (float *)slots[0];
// CHECK-NEXT:   float * const y = (float *)slots[3];
// CHECK-NEXT:   int64_t const y_size0 = slots[4];
// CHECK-NEXT:   int64_t const y_stride0 = slots[5];
// CHECK-NEXT:   float * const out = (float *)slots[6];
// CHECK-NEXT:   for (int64_t i = 0; i < 1; i++) /* parallel */ {
// CHECK-NEXT:     float acc[1] = {0};
// CHECK-NEXT:     acc[0] = 0.0f;
// CHECK-NEXT:     for (int64_t k = 0; k < y_size0; k++) /* reduction */ {
// CHECK-NEXT:       const float a = x[k];
// CHECK-NEXT:       const float b = y[k * y_stride0];
// CHECK-NEXT:       const float s = acc[0];
// CHECK-NEXT:       const float t = fmaf(a, b, s);
// CHECK-NEXT:       acc[0] = t;
// CHECK-NEXT:     }
// CHECK-NEXT:     const float r = acc[0];
// CHECK-NEXT:     out[i] = r;
// CHECK-NEXT:   }
// CHECK-NEXT:   return 0;
// CHECK-NEXT: }

// HOISTED:      float s = 0.0f;
// HOISTED-NEXT: for (int64_t k = 0; k < y_size0; k++) {
// HOISTED-NEXT:   const float a = x[k];
// HOISTED-NEXT:   const float b = y[k * y_stride0];
// HOISTED-NEXT:   const float t = fmaf(a, b, s);
// HOISTED-NEXT:   s = t;
// HOISTED-NEXT: }
// HOISTED-NEXT: out[i] = s;
func.func @dot(%x: memref<?xf32>, %y: memref<?xf32, strided<[?], offset: ?>>, %out: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %y, %c0 : memref<?xf32, strided<[?], offset: ?>>
  loop.nest (%i) = (%c0) to (%c1) step (1) kinds [parallel] {
    %acc = memref.alloca() : memref<f32>
    memref.store %zero, %acc[] : memref<f32>
    loop.nest (%k) = (%c0) to (%n) step (1) kinds [reduction] {
      %a = memref.load %x[%k] : memref<?xf32>
      %b = memref.load %y[%k] : memref<?xf32, strided<[?], offset: ?>>
      %s = memref.load %acc[] : memref<f32>
      %t = math.fma %a, %b, %s : f32
      memref.store %t, %acc[] : memref<f32>
    }
    %r = memref.load %acc[] : memref<f32>
    memref.store %r, %out[%i] : memref<1xf32>
  }
  func.return
}
