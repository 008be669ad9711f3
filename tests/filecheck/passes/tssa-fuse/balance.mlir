// RUN: jit-opt %s -p tssa-fuse --remarks 2>&1 | filecheck %s --check-prefixes=ONE
// RUN: jit-opt %s -p 'tssa-fuse{balance=4}' | filecheck %s --check-prefixes=DEAR
// RUN: jit-opt %s -p 'tssa-fuse{balance=0.25}' | filecheck %s --check-prefixes=CHEAP

// One judgement for and one against a group, both by little.
// ONE: remark: @divided: by little, and balance=0.25 would have it otherwise: tssa.divide merged with tssa.max not: 65536 cycles of computation against 52429 of moving 524288 bytes
// ONE: remark: @divided_in_memory: by little, and balance=4 would have it otherwise: tssa.divide merged with tssa.max: 16777216 cycles of computation against 33554432 of moving 134217728 bytes

// ONE-NOT:       remark: {{.*}}by little

// ONE-LABEL:     func.func @divided(
// ONE-COUNT-2:   tssa.group
// DEAR-LABEL:    func.func @divided(
// DEAR-COUNT-2:  tssa.group
// CHEAP-LABEL:   func.func @divided(
// CHEAP-COUNT-1: tssa.group
// CHEAP-NOT:     tssa.group
// CHEAP:         func.return
!x = tensor<256x256xf32>
!r = tensor<256xf32>
func.func @divided(%x: !x, %y: !x) -> (!r, !r) {
  %t = tssa.divide %x, %y : (!x, !x) -> !x
  %a = tssa.min %t {axes = array<i64: 1>} : (!x) -> !r
  %b = tssa.max %t {axes = array<i64: 1>} : (!x) -> !r
  func.return %a, %b : !r, !r
}

// ONE-LABEL:     func.func @divided_in_memory(
// ONE-COUNT-1:   tssa.group
// ONE-NOT:       tssa.group
// ONE:           func.return
// DEAR-LABEL:    func.func @divided_in_memory(
// DEAR-COUNT-2:  tssa.group
// CHEAP-LABEL:   func.func @divided_in_memory(
// CHEAP-COUNT-1: tssa.group
// CHEAP-NOT:     tssa.group
// CHEAP:         func.return
!l = tensor<65536x256xf32>
!s = tensor<65536xf32>
func.func @divided_in_memory(%x: !l, %y: !l) -> (!s, !s) {
  %t = tssa.divide %x, %y : (!l, !l) -> !l
  %a = tssa.min %t {axes = array<i64: 1>} : (!l) -> !s
  %b = tssa.max %t {axes = array<i64: 1>} : (!l) -> !s
  func.return %a, %b : !s, !s
}

// tanh twice is far from paying, and nothing but bytes speaks for or against the others: there is no other choice.
// ONE-LABEL:     func.func @do_not_offer_what_is_far_from_paying
// ONE-COUNT-2:   tssa.group
// ONE:           func.return
func.func @do_not_offer_what_is_far_from_paying(%x: !x, %y: !x) -> (!r, !r) {
  %t = tssa.tanh %x : (!x) -> !x
  %a = tssa.min %t {axes = array<i64: 1>} : (!x) -> !r
  %b = tssa.max %t {axes = array<i64: 1>} : (!x) -> !r
  func.return %a, %b : !r, !r
}

// ONE-LABEL:     func.func @do_not_offer_what_computes_nothing_again
// ONE-COUNT-1:   tssa.group
// ONE:           func.return
func.func @do_not_offer_what_computes_nothing_again(%x: !x, %y: !x) -> !x {
  %t = tssa.tanh %x : (!x) -> !x
  %z = tssa.add %t, %y : (!x, !x) -> !x
  func.return %z : !x
}

// The product takes a thousand times what is at stake.
// ONE-LABEL:     func.func @do_not_offer_what_is_little_beside_the_rest
// ONE-COUNT-3:   tssa.group
// ONE:           func.return
!w = tensor<256x4096xf32>
!v = tensor<4096x4096xf32>
func.func @do_not_offer_what_is_little_beside_the_rest(
    %x: !x, %y: !x, %a: !w, %b: !v) -> (!r, !r, !w) {
  %t = tssa.divide %x, %y : (!x, !x) -> !x
  %l = tssa.min %t {axes = array<i64: 1>} : (!x) -> !r
  %h = tssa.max %t {axes = array<i64: 1>} : (!x) -> !r
  %p = tssa.matmul %a, %b : (!w, !v) -> !w
  func.return %l, %h, %p : !r, !r, !w
}
