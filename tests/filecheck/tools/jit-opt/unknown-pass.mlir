// RUN: not jit-opt %s -p canonicalise 2>&1 | filecheck %s
// RUN: not jit-opt %s -p 'apply-pdl{pdl_fil="x"}' 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not jit-opt %s --print-ir-after-al1 2>&1 | filecheck %s --check-prefix=FLAG

// CHECK: jit-opt: error: unknown pass 'canonicalise'; did you mean 'canonicalize'?
// OPTION: jit-opt: error: pass 'apply-pdl' has no option 'pdl_fil'; did you mean 'pdl-file'?
// FLAG: jit-opt: error: unknown option '--print-ir-after-al1'; did you mean '--print-ir-after-all'?
