"""The elementary functions in as many digits as mpmath works with, and how far from them a result may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mpmath

Real = Any


def _gelu_tanh(x: Real) -> Real:
    """x (1 + tanh(v / 2)) / 2, as x / (1 + e**-v), in which nothing cancels."""
    v = 2 * mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)
    return x / (1 + mpmath.exp(-v))


EXACT: Mapping[str, Callable[[Real], Real]] = {
    "exp": mpmath.exp,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "tanh": mpmath.tanh,
    "log": mpmath.log,
    "erf": mpmath.erf,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "erfc": mpmath.erfc,
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
    "gelu": lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "gelu_tanh": _gelu_tanh,
}

BOUNDS: Mapping[str, float] = {
    "exp": 1.0,
    "rsqrt": 0.501,
    "tanh": 1.5,
    "log": 1.0,
    "erf": 1.5,
    "sigmoid": 2.5,
    "erfc": 2.5,
    "softplus": 2.5,
    "silu": 2.5,
    "gelu": 2.5,
    "gelu_tanh": 2.5,
}
"""The promise: units in the last place of the correctly rounded result."""
