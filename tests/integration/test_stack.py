"""Compiled code of many layers fits on the stack of an ordinary thread."""

from __future__ import annotations

import threading

import numpy as np

import jitdialects as jd
from jitdialects.bytecode.builder import ProgramBuilder

LAYERS = 24
WIDE, NARROW = 784, 512  # a packed panel of either takes 128 to 196 KiB


def network() -> jd.Program:
    """Products with matrices that are arguments, so that each packs its panels at every call."""
    builder = ProgramBuilder()
    f = builder.function("main", LAYERS + 1)
    x, *weights = f.parameters
    for w in weights:
        x = f.apply("matmul", x, w)
    f.returns(x)
    return builder.finish()


def test_many_products_run_on_a_small_stack() -> None:
    vm = jd.VM(network(), policy=jd.Policy(threshold=1))
    even, odd = np.eye(WIDE, NARROW, dtype=np.float32), np.eye(NARROW, WIDE, dtype=np.float32)
    weights = [odd if layer % 2 else even for layer in range(LAYERS)]
    x = np.arange(20 * WIDE, dtype=np.float32).reshape(20, WIDE)
    for rows in (7, 9):
        vm.run("main", x[:rows], *weights)
        vm.wait()
    results: list[np.ndarray] = []
    before = threading.stack_size(2 * 1024 * 1024)
    try:
        thread = threading.Thread(target=lambda: results.extend(vm.run("main", x, *weights)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    expected = x.copy()
    expected[:, NARROW:] = 0
    assert vm.functions["main"].profile.served
    assert results[0].tobytes() == expected.tobytes()
    assert "would fill the stack" in jd.explain(vm)
