"""Fits of polynomials and rational functions: minimax in a weighted error, coefficients of a format.

Remez's exchange on a Chebyshev grid with mpmath; coefficients are rounded from the lowest on, the rest fitted again
after each.
"""

# pyright: basic
# mpmath has no types
from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
from mpmath import mpf

Real = Callable[[Any], Any]
mpmath.mp.dps = 50


def minimax(f: Real, weight: Real, low: Any, high: Any, degree: int) -> list[Any]:
    """Coefficients c0, c1, ... of the polynomial whose largest |weight * (f - p)| on the interval is least."""
    count = 24 * (degree + 2)
    grid = _grid(low, high, count)
    values, weights = [f(u) for u in grid], [weight(u) for u in grid]
    chosen = [(count - 1) * i // (degree + 1) for i in range(degree + 2)]
    for _ in range(30):
        rows = [
            [grid[i] ** k for k in range(degree + 1)] + [(-1) ** n / weights[i]]
            for n, i in enumerate(chosen)
        ]
        *c, level = mpmath.lu_solve(mpmath.matrix(rows), mpmath.matrix([values[i] for i in chosen]))
        errors = [
            w * (v - mpmath.polyval(c[::-1], u))
            for w, v, u in zip(weights, values, grid, strict=True)
        ]
        chosen = _extrema(errors, degree + 2)
        if max(map(abs, errors)) <= abs(level) * mpf("1.001"):
            break
    return list(c)


def rational(
    f: Real, weight: Real, low: Any, high: Any, degrees: tuple[int, int]
) -> tuple[Any, Any]:
    """Coefficients of N and D, d0 = 1, whose largest |weight * (f - N / D)| on the interval is nearly least.

    Least squares of (N - f D) / D of the round before (Sanathanan and Koerner), where points weigh
    more the larger their error has been (Lawson).
    """
    top, bottom = degrees
    grid = _grid(low, high, 6 * (top + bottom + 2))
    values, weights = [f(u) for u in grid], [weight(u) for u in grid]
    d: list[Any] = [mpf(1)]
    emphasis = [mpf(1)] * len(grid)
    best: tuple[Any, Any, Any] | None = None
    for count in range(60):
        scales = [
            mpmath.sqrt(e) * w / mpmath.polyval(d[::-1], u)
            for e, w, u in zip(emphasis, weights, grid, strict=True)
        ]
        rows = [
            [s * u**k for k in range(top + 1)] + [-s * v * u**k for k in range(1, bottom + 1)]
            for s, v, u in zip(scales, values, grid, strict=True)
        ]
        right = [s * v for s, v in zip(scales, values, strict=True)]
        found = list(mpmath.lu_solve(mpmath.matrix(rows), mpmath.matrix(right)))
        n, d = found[: top + 1], [mpf(1), *found[top + 1 :]]
        errors = [
            abs(w * (v - mpmath.polyval(n[::-1], u) / mpmath.polyval(d[::-1], u)))
            for w, v, u in zip(weights, values, grid, strict=True)
        ]
        if best is None or max(errors) < best[0]:
            best = max(errors), n, d
        if count >= 5:
            emphasis = [e * error / max(errors) for e, error in zip(emphasis, errors, strict=True)]
    assert best is not None
    return best[1], best[2]


def _grid(low: Any, high: Any, count: int) -> list[Any]:
    """Chebyshev's points of the interval, its ends not among them."""
    middle, radius = (mpf(low) + high) / 2, (mpf(high) - low) / 2
    return [
        middle - radius * mpmath.cos((i + mpf(1) / 2) * mpmath.pi / count) for i in range(count)
    ]


def _extrema(errors: Sequence[Any], count: int) -> list[int]:
    """Where the error is largest in each run of one sign; the `count` neighbours with the largest ends."""
    runs: list[int] = []
    for i, e in enumerate(errors):
        if runs and (e > 0) == (errors[runs[-1]] > 0):
            if abs(e) > abs(errors[runs[-1]]):
                runs[-1] = i
        else:
            runs.append(i)
    while len(runs) > count:
        runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
    return runs


@dataclass(frozen=True)
class Format:
    """A dtype: its name, bits of the significand (the hidden one too) and of the whole."""

    name: str
    precision: int
    width: int

    def round(self, x: Any, bits: int | None = None) -> float:
        """To nearest; with `bits`, to fewer bits, so that products with small integers are exact."""
        bits = bits or self.precision
        if x == 0:
            return 0.0
        exponent = int(mpmath.floor(mpmath.log(abs(x), 2))) + 1 - bits
        return float(mpmath.nint(mpf(x) / mpf(2) ** exponent) * mpf(2) ** exponent)

    def bits(self, x: float) -> int:
        """The pattern of `x` as an integer."""
        kind = "<f<i" if self.width == 32 else "<d<q"
        return struct.unpack(kind[2:], struct.pack(kind[:2], x))[0]

    @property
    def mantissa(self) -> int:
        """Stored bits of the significand."""
        return self.precision - 1

    @property
    def bias(self) -> int:
        """Of the exponent."""
        return 2 ** (self.width - self.precision - 1) - 1

    @property
    def rounding(self) -> float:
        """Added to a number and subtracted again, rounds it to an integer n; the low bits of the sum are n."""
        return 1.5 * 2.0**self.mantissa

    def polynomial(
        self, f: Real, weight: Real, low: Any, high: Any, degree: int, exact: Sequence[float] = ()
    ) -> list[float]:
        """`minimax` with coefficients of this format, of which the first are given.

        In float32 the rest is fitted again after each is rounded. In float64 the roundings are far
        below what the evaluation adds, and too coarse beside the fit for Remez's exchange.
        """
        if exact:
            first, *others = exact
            known = [first]
        else:
            fitted = minimax(f, weight, low, high, degree)
            if self.precision > 32 or degree == 0:
                return [self.round(c) for c in fitted]
            known, others = [self.round(fitted[0])], ()
        rest = self.polynomial(
            lambda u: (f(u) - known[0]) / u, lambda u: weight(u) * u, low, high, degree - 1, others
        )
        return [*known, *rest]
