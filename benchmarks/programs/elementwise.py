"""Elementwise programs: gelu, Black-Scholes, a chain of cheap operators, a tiny call."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.workload import Arguments, Case, Workload, every

GELU = 0.7978845608028654, 0.044715
"""sqrt(2 / pi), and the factor of the cube."""
RATE, VOLATILITY = 0.03, 0.2
_exact_erf = np.frompyfunc(math.erf, 1, 1)
_SAMPLE = every(100_000)


class _Exact:
    """NumPy with erf in float64, for references."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def erf(x: Any) -> Any:
        return _exact_erf(x).astype(np.float64)


EXACT = _Exact()


# ---- gelu_tanh(x * a + b) ----------------------------------------------------------------------


def _gelu_inputs(rng: np.random.Generator, dtype: np.dtype[Any], n: int) -> Arguments:
    return [rng.standard_normal(n).astype(dtype), 1.5, 0.25]


def gelu(xp: Any, x: Any, a: Any, b: Any) -> Any:
    y = x * a + b
    return 0.5 * y * (1 + xp.tanh(GELU[0] * (y + GELU[1] * y * y * y)))


def _gelu_numba(nb: Any, case: Case) -> Callable[..., Any]:
    one, half, c, d = (case.dtype.type(v) for v in (1, 0.5, *GELU))
    kind = case.dtype.type

    @nb.njit(parallel=case.threads > 1, fastmath=True, error_model="numpy")
    def loops(x, a, b):
        out = np.empty_like(x)
        a, b = kind(a), kind(b)
        for i in nb.prange(x.size):
            y = x[i] * a + b
            out[i] = half * y * (one + math.tanh(c * (y + d * y * y * y)))
        return out

    return loops


def _gelu_numexpr(ne: Any, case: Case) -> Callable[..., Any]:
    c, d = map(case.dtype.type, GELU)
    half, one = case.dtype.type(0.5), case.dtype.type(1)
    text = "half * (x*a+b) * (one + tanh(c * ((x*a+b) + d * (x*a+b) * (x*a+b) * (x*a+b))))"

    def call(x: Any, a: Any, b: Any) -> Any:
        a, b = x.dtype.type(a), x.dtype.type(b)
        return ne.evaluate(text, {"x": x, "a": a, "b": b, "c": c, "d": d, "half": half, "one": one})

    return call


# ---- Black-Scholes, price of a call ------------------------------------------------------------


def _option_inputs(rng: np.random.Generator, dtype: np.dtype[Any], n: int) -> Arguments:
    ranges = ((80, 120), (80, 120), (0.25, 2))
    return [rng.uniform(*r, n).astype(dtype) for r in ranges]


def black_scholes(xp: Any, spot: Any, strike: Any, years: Any) -> Any:
    deviation = VOLATILITY * xp.sqrt(years)
    d1 = (xp.log(spot / strike) + (RATE + 0.5 * VOLATILITY**2) * years) / deviation
    d2 = d1 - deviation
    n1 = 0.5 * (1 + xp.erf(d1 * math.sqrt(0.5)))
    n2 = 0.5 * (1 + xp.erf(d2 * math.sqrt(0.5)))
    return spot * n1 - strike * xp.exp(-RATE * years) * n2


def _option_numba(nb: Any, case: Case) -> Callable[..., Any]:
    values = (VOLATILITY, RATE + 0.5 * VOLATILITY**2, -RATE, math.sqrt(0.5), 0.5, 1)
    vol, drift, minus_rate, root, half, one = map(case.dtype.type, values)

    @nb.njit(parallel=case.threads > 1, fastmath=True, error_model="numpy")
    def loops(spot, strike, years):
        out = np.empty_like(spot)
        for i in nb.prange(spot.size):
            deviation = vol * math.sqrt(years[i])
            d1 = (math.log(spot[i] / strike[i]) + drift * years[i]) / deviation
            d2 = d1 - deviation
            n1 = half * (one + math.erf(d1 * root))
            n2 = half * (one + math.erf(d2 * root))
            out[i] = spot[i] * n1 - strike[i] * math.exp(minus_rate * years[i]) * n2
        return out

    return loops


# ---- ten cheap operators -----------------------------------------------------------------------


def _chain_inputs(rng: np.random.Generator, dtype: np.dtype[Any], n: int) -> Arguments:
    return [rng.standard_normal(n).astype(dtype)]


def chain(xp: Any, x: Any) -> Any:
    y = xp.maximum(x * 1.5 + 0.25, -1.0)
    y = xp.minimum(y * y - x, 4.0)
    return xp.abs(y) * 0.5 + x - 1.0


def _chain_numba(nb: Any, case: Case) -> Callable[..., Any]:
    values = (1.5, 0.25, -1.0, 4.0, 0.5, 1.0)
    scale, shift, low, high, half, one = map(case.dtype.type, values)

    @nb.njit(parallel=case.threads > 1, fastmath=True, error_model="numpy")
    def loops(x):
        out = np.empty_like(x)
        for i in nb.prange(x.size):
            y = max(x[i] * scale + shift, low)
            y = min(y * y - x[i], high)
            out[i] = abs(y) * half + x[i] - one
        return out

    return loops


def _chain_numexpr(ne: Any, case: Case) -> Callable[..., Any]:
    names = dict(zip("abcdef", map(case.dtype.type, (1.5, 0.25, -1, 4, 0.5, 1)), strict=True))
    top = "where(x*a+b > c, x*a+b, c)"
    clipped = f"({top}) * ({top}) - x"
    text = f"abs(where({clipped} < d, {clipped}, d)) * e + x - f"

    def call(x: Any) -> Any:
        return ne.evaluate(text, {"x": x, **names})

    return call


# ---- x * y + x on a few elements ---------------------------------------------------------------


def _small_inputs(rng: np.random.Generator, dtype: np.dtype[Any], n: int) -> Arguments:
    return [rng.standard_normal(n).astype(dtype) for _ in range(2)]


def multiply_add(xp: Any, x: Any, y: Any) -> Any:
    return x * y + x


def _small_numba(nb: Any, case: Case) -> Callable[..., Any]:
    @nb.njit
    def loops(x, y):
        out = np.empty_like(x)
        for i in range(x.size):
            out[i] = x[i] * y[i] + x[i]
        return out

    return loops


def _small_numexpr(ne: Any, case: Case) -> Callable[..., Any]:
    return lambda x, y: ne.evaluate("x * y + x", {"x": x, "y": y})


WORKLOADS = {
    "gelu": Workload(
        _gelu_inputs,
        gelu,
        lambda *a: gelu(EXACT, *a),
        2e-6,
        pick=_SAMPLE,
        special={"numba": _gelu_numba, "numexpr": _gelu_numexpr},
    ),
    "black-scholes": Workload(
        _option_inputs,
        black_scholes,
        lambda *a: black_scholes(EXACT, *a),
        2e-5,
        pick=_SAMPLE,
        special={"numba": _option_numba},
    ),
    "chain": Workload(
        _chain_inputs,
        chain,
        lambda *a: chain(EXACT, *a),
        2e-6,
        pick=_SAMPLE,
        special={"numba": _chain_numba, "numexpr": _chain_numexpr},
    ),
    "multiply-add": Workload(
        _small_inputs,
        multiply_add,
        lambda *a: multiply_add(EXACT, *a),
        1e-6,
        special={"numba": _small_numba, "numexpr": _small_numexpr},
    ),
}
