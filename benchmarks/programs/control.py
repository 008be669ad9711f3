"""Programs whose loops are part of them: Newton's square root, a recurrence over time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.workload import Arguments, Case, Workload

TOLERANCE = 1e-3
"""Newton stops when no element moves further: the next step would move at the rounding error."""


def _newton_inputs(rng: np.random.Generator, dtype: np.dtype[Any], n: int) -> Arguments:
    return [rng.uniform(1, 100, n).astype(dtype)]


def newton(xp: Any, x: Any) -> Any:
    def moves(state: Any) -> Any:
        return state[1] > TOLERANCE

    def step(state: Any) -> Any:
        y = 0.5 * (state[0] + x / state[0])
        return y, xp.max(xp.abs(y - state[0]))

    return xp.while_loop(moves, step, (x, xp.max(x)))[0]


def _newton_numba(nb: Any, case: Case) -> Callable[..., Any]:
    half, zero, tolerance = map(case.dtype.type, (0.5, 0, TOLERANCE))

    @nb.njit(parallel=case.threads > 1, fastmath=True, error_model="numpy")
    def loops(x):
        y = x.copy()
        moved = tolerance + tolerance
        while moved > tolerance:
            moved = zero
            for i in nb.prange(x.size):
                new = half * (y[i] + x[i] / y[i])
                moved = max(moved, abs(new - y[i]))
                y[i] = new
        return y

    return loops


def _recurrence_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], steps: int, size: int
) -> Arguments:
    x = rng.standard_normal((steps, size)).astype(dtype)
    w = (rng.standard_normal((size, size)) * 0.5 / math.sqrt(size)).astype(dtype)
    return [x, np.zeros(size, dtype), w]


def recurrence(xp: Any, x: Any, h: Any, w: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = xp.tanh(w @ h + row)
        return h, h

    return xp.scan(step, h, x)[1]


def _recurrence_exact(x: Any, h: Any, w: Any) -> Any:
    rows = []
    for row in x:
        h = np.tanh(w @ h + row)
        rows.append(h)
    return np.array(rows)


def _recurrence_numba(nb: Any, case: Case) -> Callable[..., Any]:
    @nb.njit
    def loops(x, h, w):
        out = np.empty_like(x)
        for i in range(x.shape[0]):
            h = np.tanh(np.dot(w, h) + x[i])
            out[i] = h
        return out

    return loops


WORKLOADS = {
    "newton": Workload(
        _newton_inputs, newton, np.sqrt, 1e-5, loops=True, special={"numba": _newton_numba}
    ),
    "recurrence": Workload(
        _recurrence_inputs,
        recurrence,
        _recurrence_exact,
        1e-5,
        loops=True,
        special={"numba": _recurrence_numba},
    ),
}
