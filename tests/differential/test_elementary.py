"""The elementary functions on dense samples: interpreter, compiled code and oracle give the same bits, which
are near the exact value; and every special value is right."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import mpmath
import numpy as np
import pytest
from differential.harness import assert_same, everywhere
from exact import BOUNDS, EXACT

from jitdialects.bytecode.builder import FunctionBuilder

F32 = np.float32
INF, NAN = math.inf, math.nan
TINY = 2.0**-149
NAMES = tuple(EXACT)
ENDS = {"erfc": 10.05, "gelu": 14.2, "gelu_tanh": 10.7, "silu": 108.6}
"""|x| from which results are 0 on one side, where it is not about 104."""
HARD: Mapping[str, Sequence[float]] = {
    "rsqrt": (2.1552867889, 2.9077687650, 3.9999995232, 1.0119158030, 1.0062246323, 4.2038954e-45),
    "gelu": (-2.200037956237793, -3.0305385589599609, -9.61344051, -12.9878645, -0.000905982452),
    "gelu_tanh": (-0.28216999769210815, -0.000892466516, -2.75028706, 0.0592889674),
    "silu": (-0.29168909788131714, -0.680301964, -5.09215736, 0.0603781901),
    "erfc": (6.8412833213806152, 8.0847654342651367, 3.84862971, 9.02435875),
    "softplus": (0.31013169884681702, -0.540399373, -1.26873922),
}
"""Arguments whose results are the farthest from exact in a dense sweep; of rsqrt also where 1 / sqrt(x) is."""
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
    "rsqrt": (
        [0.0, -0.0, INF, -INF, NAN, -TINY, 2.0**-126, 2.0**-148, 4.0, 2.0**126],
        [INF, -INF, 0.0, NAN, NAN, NAN, 2.0**63, 2.0**74, 0.5, 2.0**-63],
    ),
    "erfc": ([0.0, -0.0, INF, -INF, NAN, TINY, 10.1, -4.0], [1, 1, 0.0, 2, NAN, 1, 0.0, 2]),
    "softplus": (
        [INF, -INF, NAN, 104.0, -104.0, 3e38, -3e38],
        [INF, 0.0, NAN, 104, 0.0, 3e38, 0.0],
    ),
    "silu": (
        [0.0, -0.0, INF, -INF, NAN, -TINY, 3e38, -109.0],
        [0.0, -0.0, INF, -0.0, NAN, -0.0, 3e38, -0.0],
    ),
    "gelu": (
        [0.0, -0.0, INF, -INF, NAN, 2 * TINY, 3e38, -14.5],
        [0.0, -0.0, INF, -0.0, NAN, TINY, 3e38, -0.0],
    ),
    "gelu_tanh": (
        [0.0, -0.0, INF, -INF, NAN, 2 * TINY, 3e38, -10.8],
        [0.0, -0.0, INF, -0.0, NAN, TINY, 3e38, -0.0],
    ),
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
    end = ENDS.get(name, 104)
    ranges = ((-end, min(end, 88.7)), (-12, 12), (-1, 1), (0.9 * end, end), (-end, -0.9 * end))
    x = np.concatenate([rng.uniform(a, b, 500) for a, b in ranges])
    x = np.concatenate([x.astype(F32), spread, -spread, np.nextafter(F32(1), F32([0, 2]))])
    x = np.concatenate([x, HARD.get(name, ())]).astype(F32)
    x = x[x > 0] if name in ("log", "rsqrt") else x[x < 88.7]
    got = computed(name, x)
    with mpmath.workprec(200):
        for argument, result in zip(x.tolist(), got.tolist(), strict=True):
            exact = EXACT[name](mpmath.mpf(argument))
            unit = max(float(np.spacing(abs(F32(float(exact))))), TINY)
            assert abs(mpmath.mpf(result) - exact) <= BOUNDS[name] * unit, (argument, result)
