"""The feature level that machine code needs: never said to be lower than it is."""

from __future__ import annotations

import re

import pytest
from cache_helpers import plus

from jitdialects.config import FEATURE_LEVELS
from jitdialects.runtime.engines.codegen import emit_assembly, emit_object
from jitdialects.runtime.engines.elf_link import code_sections
from jitdialects.runtime.engines.instruction_level import lowest_level
from jitdialects.runtime.messages import CompileReply, CompileRequest

V1, V2, V3, V4 = FEATURE_LEVELS
NEW = re.compile(r"zmm|%k[0-7]|[xy]mm(1[6-9]|2[0-9]|3[01])|bcast|\{1to|vcvtusi|vcvttps2u")
"""What of AVX-512 can be told from its text; not all of it."""

KERNELS = {
    "scalar": "define double @f(double %x, double %y) { %z = fmul double %x, %y ret double %z }",
    "sum": """
define float @f(ptr %p, i64 %n) {
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%j, %next]
  %s = phi <8 x float> [zeroinitializer, %entry], [%t, %next]
  %at = getelementptr float, ptr %p, i64 %i
  %x = load <8 x float>, ptr %at, align 4
  %t = fadd <8 x float> %s, %x
  %j = add i64 %i, 8
  %more = icmp ult i64 %j, %n
  br i1 %more, label %next, label %done
done:
  %r = extractelement <8 x float> %t, i64 3
  ret float %r
}""",
    "mask": """
declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
define <16 x float> @f(ptr %p, <16 x i1> %m) {
  %x = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %p, i32 4, <16 x i1> %m, <16 x float> zeroinitializer)
  ret <16 x float> %x
}""",
    "bits": """
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.cttz.i64(i64, i1)
define i64 @f(i64 %x) {
  %a = call i64 @llvm.ctpop.i64(i64 %x)
  %b = call i64 @llvm.cttz.i64(i64 %a, i1 false)
  ret i64 %b
}""",
    "integers": """
define i64 @f(i64 %x, i64 %y, ptr %p) {
  %a = sdiv i64 %x, %y
  %b = mul i64 %a, 123456789012345
  %c = xor i64 %b, -559038737
  %w = load i16, ptr %p
  %v = or i16 %w, 4660
  store i16 %v, ptr %p
  ret i64 %c
}""",
}


def level_of(text: str, features: str) -> str:
    return lowest_level(code_sections(emit_object(text, features)), features)


@pytest.mark.parametrize("name", KERNELS)
def test_code_needs_no_more_than_it_was_compiled_for(name: str) -> None:
    for features in FEATURE_LEVELS:
        assert level_of(KERNELS[name], features) <= features
    assert level_of(KERNELS[name], V2) == V2


@pytest.mark.parametrize("name", KERNELS)
def test_what_uses_new_registers_or_masks_needs_the_highest_level(name: str) -> None:
    level = level_of(KERNELS[name], V4)
    assert level == V4 or not NEW.search(emit_assembly(KERNELS[name], V4))


@pytest.mark.parametrize(
    ("name", "level"), [("scalar", V3), ("sum", V3), ("mask", V4), ("bits", V3), ("integers", V2)]
)
def test_levels_of_kernels_compiled_for_the_highest(name: str, level: str) -> None:
    assert level_of(KERNELS[name], V4) == level


def test_what_v3_adds_is_seen() -> None:
    assert level_of(KERNELS["bits"], V3) == V3  # tzcnt, which older CPUs take for bsf
    assert level_of(KERNELS["scalar"], V3) == V3


@pytest.mark.parametrize("code", ["62f17c48100f", "c5fc41c8", "0f05", "c4e2", "d9e8ff06ff", "8fe9"])
def test_unknown_code_counts_as_what_it_was_compiled_for(code: str) -> None:
    """EVEX, a mask in VEX, a system call, an instruction that is cut off, the x87, XOP."""
    assert lowest_level([bytes.fromhex(code)], V4) == V4


def test_replies_say_what_their_code_needs() -> None:
    from jitdialects.runtime.compiler import compile_request

    def level(signature: str, features: str) -> str:
        request = CompileRequest(plus().to_bytes(), "main", signature, features)
        return CompileReply.decode(compile_request(request.encode())).level

    assert level("main(f64[])", V4) == V3
    assert level("main(f32[64])", V4) == V4
    assert [level("main(f32[n])", features) for features in (V1, V2, V3)] == [V1, V2, V3]
