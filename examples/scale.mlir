// m[i] = a * m[i], as any compiler that uses `scf` would write it: nothing here is ours.
func.func @scale(%m: memref<?xf32>, %a: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %m[%i] : memref<?xf32>
    %y = arith.mulf %a, %x : f32
    memref.store %y, %m[%i] : memref<?xf32>
  }
  func.return
}
