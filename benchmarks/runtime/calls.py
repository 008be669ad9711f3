"""Calls of small functions: what a call costs, and what NumPy takes for the same.

x*y+x of 8 float32; results that are dropped, so that their memory is recycled.
"""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable

import numpy as np

import jitdialects as jd
from benchmarks.runtime.row import Row


def nanoseconds(call: Callable[[], object], number: int = 20_000, rounds: int = 15) -> float:
    """Median over rounds of the mean time of a call."""
    return statistics.median(timeit.repeat(call, number=number, repeat=rounds)) / number * 1e9


def measure() -> list[Row]:
    """The rows of this topic."""
    x, y = np.arange(8, dtype=np.float32), np.ones(8, np.float32)

    def formula(x: object, y: object) -> object:
        return x * y + x  # pyright: ignore[reportOperatorIssue, reportUnknownVariableType]

    jitted = jd.jit(formula)
    for _ in range(20):
        jitted(x, y)
    jitted.wait()
    for _ in range(20):
        jitted(x, y)
    ours = nanoseconds(lambda: jitted(x, y))
    numpy = nanoseconds(lambda: formula(x, y))
    return [
        Row("x*y+x, 8 elements", ours, "ns"),
        Row("the same, NumPy", numpy, "ns"),
        Row("ratio", ours / numpy, "x NumPy", "<= 0.15"),
    ]
