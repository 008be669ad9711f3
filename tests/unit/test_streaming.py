"""Stores past the cache: the same results at every size and from every address."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from differential.harness import Compiled, assert_same, by_oracle, program

import jitdialects as jd
from jitdialects.analysis.schedule_elementwise import STREAM
from jitdialects.bytecode.builder import FunctionBuilder
from jitdialects.bytecode.signature import parse
from jitdialects.lowering.pipelines import lower_program
from jitdialects.runtime.compiler import ENTRY
from jitdialects.runtime.engines.codegen import compile_llvm_module
from jitdialects.runtime.engines.dlopen import DlopenEngine
from jitdialects.runtime.engines.llvm_text import llvm_ir
from jitdialects.runtime.identity import feature_level
from jitdialects.runtime.threads import default_threads

LARGE = STREAM // 4 + 77


def _axpy(main: FunctionBuilder) -> None:
    x, y = main.parameters
    main.returns(main.apply("add", main.apply("multiply", x, x), y))


AXPY = program(2, _axpy)


def _arguments(dtype: str, size: int) -> list[np.ndarray]:
    rng = np.random.default_rng(size)
    return [(rng.standard_normal(size) * 100).astype(dtype) for _ in range(2)]


@pytest.mark.parametrize(
    ("signature", "dtype"),
    [
        ("main(f32[n], f32[n])", "float32"),
        (f"main(f32[{LARGE}], f32[{LARGE}])", "float32"),
        ("main(f64[n], f64[n])", "float64"),
        ("main(i32[n], i32[n])", "int32"),
    ],
)
def test_large_results_are_stored_past_the_cache(signature: str, dtype: str) -> None:
    parsed = parse(signature)
    module, _ = lower_program(AXPY, parsed, feature_level())
    text = llvm_ir(module)
    assert "!nontemporal" in text and "fence seq_cst" in text
    code = Compiled(AXPY, parsed)
    arguments = _arguments(dtype, LARGE)
    want = by_oracle(AXPY, arguments)
    before = jd.config.threads
    try:
        for threads in (1, 2):
            jd.config.threads = threads
            assert_same(code.run(arguments), want, f"{threads} threads")
    finally:
        jd.config.threads = before


@pytest.mark.parametrize("offset", [0, 4, 16, 32, 60])
def test_a_result_at_any_address_is_right(offset: int) -> None:
    """The ABI promises a multiple of 64, others may call."""
    module, _ = lower_program(AXPY, parse("main(f32[n], f32[n])"), feature_level())
    library = DlopenEngine().load(compile_llvm_module(module, feature_level()), "streaming")
    x, y = _arguments("float32", LARGE)
    buffer = np.zeros(4 * LARGE + 256, np.uint8)
    start = -buffer.ctypes.data % 64 + offset
    out = buffer[start : start + 4 * LARGE].view(np.float32)
    words = [w for a in (x, y, out) for w in (a.ctypes.data, LARGE, 1)]
    slots = (ctypes.c_int64 * 11)(*words, 0, default_threads.context())
    entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(library.address(ENTRY))
    assert entry(ctypes.addressof(slots)) == 0
    np.testing.assert_array_equal(out, x * x + y)
    assert not buffer[:start].any() and not buffer[start + 4 * LARGE :].any()
