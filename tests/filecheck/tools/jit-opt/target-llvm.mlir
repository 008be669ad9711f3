// RUN: jit-opt %s -t llvm | filecheck %s

// CHECK:      define float @doubled(float [[X:%[a-z0-9]+]])
// CHECK:        [[Y:%[a-z0-9]+]] = fadd float [[X]], [[X]]
// CHECK-NEXT:   ret float [[Y]]
llvm.func @doubled(%x : f32) -> f32 {
  %y = llvm.fadd %x, %x : f32
  llvm.return %y : f32
}
