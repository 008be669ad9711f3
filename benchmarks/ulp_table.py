"""Measure how far the elementary functions are from the exact value.

    python benchmarks/ulp_table.py --step 1021                 # float32, minutes
    python benchmarks/ulp_table.py --float64 --points 5000     # float64, a minute

float32: every `step`-th pattern of all 2**32 is taken (an odd step visits all significands), plus every
pattern near the places where a branch or a clamp changes. The reference is the float64 function of
NumPy or libm: its own error is below 2**-27 units in the last place of float32. float64: `points` random
points in each of the ranges that matter, and as many bit patterns; the reference is mpmath. Prints a
Markdown table.
"""

# pyright: basic, reportMissingImports=false
# mpmath has no types; the oracle is found by its folder
from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import mpmath
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import oracle
from exact import EXACT

CHUNK = 1 << 18
EDGES = {
    "exp": (-104.5, -103.97208, -87.33655, -0.3465736, 0.3465736, 88.72284, 89.0),
    "rsqrt": (1.1754944e-38, 1.0, 2.0, 4.0, 3.4e38),
    "tanh": (0.17328679, 0.6875, 8.6643397, 9.010914, 10.0),
    "log": (1.1754944e-38, 0.5, 0.70710677, 1.0, 1.4142135, 2.0),
    "erf": (0.85, 1.0, 3.8, 4.0),
    "sigmoid": (-103.97208, -87.33655, -0.3465736, 0.3465736, 17.0),
    "erfc": (-4.0, -1e-8, 1e-8, 0.5, 9.194, 10.054),
    "softplus": (-104.0, -87.33655, -0.3465736, 0.3465736, 17.0),
    "silu": (-108.6, -91.9, -1.278, -1e-8, 1e-8, 17.0),
    "gelu": (-14.19, -12.95, -0.7518, -1e-8, 1e-8, 5.5),
    "gelu_tanh": (-10.15, -9.36, -0.7524, -1e-8, 1e-8, 5.5),
}
RANGES: Mapping[str, tuple[tuple[float, float], ...]] = {
    "exp": ((-746, 710), (-1, 1), (-746, -705)),
    "rsqrt": ((1, 4), (0, 1e-307), (0, 1e6)),
    "tanh": ((-1, 1), (0.6, 0.8), (0, 20)),
    "log": ((0.5, 2), (0.3, 3), (0, 1e6), (0, 1e-307)),
    "erf": ((-1, 1), (1, 1.2), (1, 6)),
    "sigmoid": ((-746, 40), (-1, 1)),
    "erfc": ((-6, 27.3), (-1, 1), (25, 27.3)),
    "softplus": ((-746, 40), (-1, 1), (-746, -700)),
    "silu": ((-752, 40), (-1, 1), (-752, -700)),
    "gelu": ((-38.6, 9), (-1, 1), (-38.6, -35)),
    "gelu_tanh": ((-21.8, 9), (-1, 1), (-21.8, -20)),
}
_ERFC = np.vectorize(math.erfc, otypes=[np.float64])


def _logistic(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """x / (1 + e**-v); 0 where v is -inf."""
    return np.where(v == -np.inf, -0.0, x / (1 + np.exp(-v)))


REFERENCES: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": np.exp,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh,
    "log": np.log,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erfc": _ERFC,
    "softplus": lambda x: np.logaddexp(0, x),
    "silu": lambda x: _logistic(x, x),
    "gelu": lambda x: np.where(x == -np.inf, -0.0, 0.5 * x * _ERFC(-math.sqrt(0.5) * x)),
    "gelu_tanh": lambda x: _logistic(x, math.sqrt(8 / math.pi) * (x + 0.044715 * x**3)),
}


def patterns(name: str, step: int) -> Iterator[np.ndarray]:
    """Chunks of float32 arguments."""
    for start in range(0, 2**32, step * CHUNK):
        stop = min(2**32, start + step * CHUNK)
        yield np.arange(start, stop, step, dtype=np.uint64).astype(np.uint32).view(np.float32)
    for edge in EDGES[name]:
        middle = int(np.float32(edge).view(np.uint32))
        yield np.arange(middle - 4096, middle + 4096, dtype=np.uint32).view(np.float32)


def errors(name: str, x: np.ndarray) -> np.ndarray:
    """Distance from the exact value in units of the last place of the correctly rounded one."""
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](x.astype(np.float64))
        rounded = exact.astype(np.float32)
        got = oracle.ELEMENTWISE[name](x)
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        unit = np.maximum(np.spacing(np.abs(rounded)).astype(np.float64), 2.0**-149)
        distance = np.abs(got.astype(np.float64) - exact) / unit
    return np.where(same & ~np.isfinite(rounded), 0.0, distance)


def wide_errors(name: str, x: np.ndarray) -> np.ndarray:
    """`errors` for finite float64 arguments, where the result is finite."""
    got = oracle.ELEMENTWISE[name](x)
    found: list[float] = []
    with mpmath.workprec(160):
        for argument, result in zip(x.tolist(), got.tolist(), strict=True):
            exact = EXACT[name](mpmath.mpf(argument))
            unit = np.spacing(abs(float(exact)))
            found.append(float(abs(mpmath.mpf(result) - exact) / mpmath.mpf(float(unit))))
    return np.array(found)


def wide_points(name: str, count: int) -> Iterator[np.ndarray]:
    """float64 arguments whose result is finite."""
    rng = np.random.default_rng(1)
    for low, high in RANGES[name]:
        yield rng.uniform(low, high, count)
    any_bits = rng.integers(-(2**63), 2**63, 4 * count).view(np.float64)
    with np.errstate(all="ignore"):
        kept = any_bits[np.isfinite(REFERENCES[name](any_bits) + any_bits)]
    yield kept[np.abs(kept) < 700][:count]


def main() -> None:
    """Print one row per function."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--step", type=int, default=1021, help="take every step-th bit pattern")
    parser.add_argument("--float64", action="store_true", help="measure float64 instead")
    parser.add_argument("--points", type=int, default=5000, help="float64: points per range")
    options = parser.parse_args()
    print("| function | patterns | largest error, ulp | at x | not correctly rounded |")
    print("| --- | --- | --- | --- | --- |")
    for name in EDGES:
        count, worst, where, wrong = 0, 0.0, 0.0, 0
        wide = options.float64
        chunks = wide_points(name, options.points) if wide else patterns(name, options.step)
        for x in chunks:
            found = wide_errors(name, x) if wide else errors(name, x)
            at = int(np.argmax(found))
            if found[at] > worst or np.isnan(found[at]):
                worst, where = float(found[at]), float(x[at])
            count, wrong = count + x.size, wrong + int(np.count_nonzero(found > 0.5))
        print(f"| {name} | {count:,} | {worst:.3f} | {where!r} | {100 * wrong / count:.2f} % |")


if __name__ == "__main__":
    main()
