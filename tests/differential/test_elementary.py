"""The elementary functions on dense samples: interpreter, compiled code and oracle give the same bits, which
are near the exact value; and every special value is right."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from differential.harness import assert_same, everywhere

from jitdialects.bytecode.builder import FunctionBuilder

F32 = np.float32
INF, NAN = math.inf, math.nan
TINY = 2.0**-149
NAMES = ("exp", "tanh", "log", "erf", "sigmoid")
BOUNDS = {"exp": 1.0, "tanh": 1.5, "log": 1.0, "erf": 1.5, "sigmoid": 2.5}
SPECIAL = {
    "exp": ([0.0, -0.0, INF, -INF, NAN, TINY, 89.0, -104.0], [1, 1, INF, 0, NAN, 1, INF, 0]),
    "tanh": (
        [0.0, -0.0, INF, -INF, NAN, TINY, -TINY, 9.1],
        [0.0, -0.0, 1, -1, NAN, TINY, -TINY, 1],
    ),
    "log": (
        [1.0, 0.0, -0.0, INF, -INF, NAN, -TINY, -1.0],
        [0.0, -INF, -INF, INF, NAN, NAN, NAN, NAN],
    ),
    "erf": ([0.0, -0.0, INF, -INF, NAN, TINY, 4.0, -3e38], [0.0, -0.0, 1, -1, NAN, TINY, 1, -1]),
    "sigmoid": ([0.0, -0.0, INF, -INF, NAN, TINY, 20.0, -104.0], [0.5, 0.5, 1, 0, NAN, 0.5, 1, 0]),
}


def computed(name: str, x: np.ndarray) -> np.ndarray:
    """The function of `x`, after checking that everybody agrees."""

    def body(main: FunctionBuilder) -> None:
        main.returns(main.apply(name, main.parameters[0]))

    (result,) = everywhere([x], "f32[n]", body)
    return result


@pytest.mark.parametrize("name", NAMES)
def test_bits_agree_on_any_pattern(name: str) -> None:
    patterns = np.arange(0, 2**32, 2**20 + 77, dtype=np.uint64).astype(np.uint32).view(F32)
    x = np.random.default_rng(3).normal(0, 2, 2000).astype(F32)
    computed(name, np.concatenate([patterns, x]))


@pytest.mark.parametrize("name", NAMES)
def test_special_values(name: str) -> None:
    x, want = (np.array(values, F32) for values in SPECIAL[name])
    assert_same([computed(name, x)], [want], name)


@pytest.mark.parametrize("name", NAMES)
def test_results_are_near_the_exact_value(name: str) -> None:
    rng = np.random.default_rng(7)
    spread = np.ldexp(F32(1.3), np.arange(-148, 127, 5)).astype(F32)
    x = np.concatenate([rng.uniform(a, b, 700) for a, b in ((-104, 88.7), (-12, 12), (-1, 1))])
    x = np.concatenate([x.astype(F32), spread, -spread, np.nextafter(F32(1), F32([0, 2]))])
    x = x[x > 0] if name == "log" else x[np.abs(x) < 88.7]
    got = computed(name, x)
    with mpmath.workprec(200):
        for argument, result in zip(x.tolist(), got.tolist(), strict=True):
            exact = exactly(name, mpmath.mpf(argument))
            unit = max(float(np.spacing(abs(F32(float(exact))))), TINY)
            assert abs(mpmath.mpf(result) - exact) <= BOUNDS[name] * unit, (argument, result)


def exactly(name: str, x: mpmath.mpf) -> mpmath.mpf:
    """The function in many digits."""
    return 1 / (1 + mpmath.exp(-x)) if name == "sigmoid" else getattr(mpmath, name)(x)
