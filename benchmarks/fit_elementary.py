"""Make jitdialects/bytecode/elementary.json: fit the polynomials, write down the steps.

    python benchmarks/fit_elementary.py                  # all functions, about ten seconds
    python benchmarks/fit_elementary.py --out made.json  # elsewhere, to compare

One function per elementary function writes its steps for any dtype; what differs (degrees, bits) is in
`FORMATS`. Polynomials are minimax in the error that matters for the result: Remez's exchange on a Chebyshev
grid with mpmath, coefficients rounded from the lowest on, the rest fitted again after each.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mpmath
from mpmath import mpf

FILE = Path(__file__).parents[1] / "jitdialects" / "bytecode" / "elementary.json"
Real = Callable[[Any], Any]
mpmath.mp.dps = 50
LN2 = mpmath.log(2)
LONGEST_CHAIN = 7
"""Coefficients of a polynomial that is computed by Horner's scheme."""


# ---- fits ----------------------------------------------------------------------------------------


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


# ---- steps ---------------------------------------------------------------------------------------


@dataclass
class Spec:
    """A function under construction. `step` names a value and returns the name."""

    source: str
    format: Format
    floats: dict[str, float] = field(default_factory=dict[str, float])
    ints: dict[str, int] = field(default_factory=dict[str, int])
    steps: list[list[str]] = field(default_factory=list[list[str]])
    names: set[str] = field(default_factory=set[str])

    def number(self, name: str, value: Any) -> str:
        """A float constant, rounded to the format."""
        finite = mpmath.isfinite(value)
        self.floats[name] = self.format.round(value) if finite else float(value)
        return name

    def integer(self, name: str, value: int) -> str:
        """An integer constant of the width of the format, wrapped."""
        half = 1 << (self.format.width - 1)
        self.ints[name] = (value + half) % (2 * half) - half
        return name

    def step(self, name: str, op: str, *operands: str) -> str:
        """One operation."""
        assert name not in self.names, f"{name} is there already"
        self.names.add(name)
        self.steps.append([name, op, *operands])
        return name

    def at_most(self, name: str, x: str, bound: str) -> str:
        """min(x, bound); NaN passes."""
        above = self.step(f"{name}_above", "greater", x, bound)
        return self.step(name, "select", above, bound, x)

    def at_least(self, name: str, x: str, bound: str) -> str:
        """max(x, bound); NaN passes."""
        below = self.step(f"{name}_below", "less", x, bound)
        return self.step(name, "select", below, bound, x)

    def polynomial(self, letter: str, coefficients: Sequence[float], u: str) -> str:
        """The polynomial in u; constants `letter`0, `letter`1, ..., steps `letter`_0, ...

        Horner's scheme if it is short, else Estrin's: pairs c0 + c1 u, pairs of pairs by u**2, and from
        there Horner by u**4, so that the chain of dependent steps is a third for the price of two
        products.
        """
        parts = [self.number(f"{letter}{k}", c) for k, c in enumerate(coefficients)]
        names = (f"{letter}_{k}" for k in range(len(parts)))
        power = u
        if len(parts) > LONGEST_CHAIN:
            for square in (f"{u}_2", f"{u}_4"):
                parts = self._in_pairs(names, parts, power)
                if square not in self.names:
                    self.step(square, "mul", power, power)
                power = square
        value = parts[-1]
        for part in reversed(parts[:-1]):
            value = self.step(next(names), "fma", value, power, part)
        return value

    def _in_pairs(self, names: Iterator[str], parts: Sequence[str], power: str) -> list[str]:
        """p0 + p1 * power, p2 + p3 * power, ..."""
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        return [
            self.step(next(names), "fma", pair[1], power, pair[0]) if len(pair) == 2 else pair[0]
            for pair in pairs
        ]

    def exponential(self, coefficients: Sequence[float], r: str) -> str:
        """The polynomial in r, where the last two steps are Horner's: they decide its accuracy."""
        zeroth, first, *others = coefficients
        q = self.step("q", "fma", self.polynomial("e", others, r), r, self.number("e_slope", first))
        return self.step("p", "fma", q, r, self.number("e_at_0", zeroth))

    def power_of_two(self, name: str, bits: str) -> str:
        """2**n, where the low bits of `bits` are n + bias: they become the exponent."""
        shift = self.integer("mantissa_bits", self.format.mantissa)
        word = self.step(f"exponent{name}", "shift_left", bits, shift)
        return self.step(f"scale{name}", "from_bits", word)

    def data(self) -> dict[str, Any]:
        """What the file holds."""
        return {
            "source": self.source,
            "floats": {k: _hexadecimal(v) for k, v in self.floats.items()},
            "ints": self.ints,
            "steps": self.steps,
        }


def _hexadecimal(x: float) -> str:
    """C's hexadecimal form without trailing zeros."""
    if not math.isfinite(x):
        return str(x)
    digits, exponent = x.hex().split("p")
    return f"{digits.rstrip('0').rstrip('.')}p{exponent}"


# ---- functions -----------------------------------------------------------------------------------


def _power(format: Format, factor: int, degree: int) -> list[float]:
    """e**(factor * r) where |factor * r| <= ln 2 / 2; the first two coefficients are exact."""
    edge = LN2 / 2 / abs(factor) * mpf("1.0001")
    return format.polynomial(
        lambda r: mpmath.exp(factor * r),
        lambda r: mpmath.exp(-factor * r),
        -edge,
        edge,
        degree,
        (1.0, factor * 1.0),
    )


def exp(format: Format, degree: int) -> Spec:
    """e**x = 2**n * e**r with |r| <= ln 2 / 2. 2**n in two factors, since one power of two reaches neither
    end of the range: the last product alone rounds a subnormal result."""
    s = Spec("range reduction with ln 2 in two parts: FreeBSD msun e_exp.c", format)
    lowest = -LN2 * (format.bias + format.precision) - 1
    x = s.at_least("x1", "x", s.number("smallest", format.round(lowest, 10)))
    y = s.at_most("y", x, s.number("largest", format.round(LN2 * (format.bias + 1) + 1, 10)))
    magic = s.number("rounding", format.rounding + 2 * format.bias)
    shifted = s.step("shifted", "fma", y, s.number("log2e", 1 / LN2), magic)
    n = s.step("n", "sub", shifted, magic)
    high = format.round(LN2, format.precision - (format.width - format.precision))
    r0 = s.step("r0", "fma", n, s.number("minus_ln2_high", -high), y)
    r = s.step("r", "fma", n, s.number("minus_ln2_low", high - LN2), r0)
    p = s.exponential(_power(format, 1, degree), r)
    # the low bits of `shifted` are n + 2 * bias: both halves become exponents
    bits = s.step("bits", "to_bits", shifted)
    half = s.step("half", "shift_right_logical", bits, s.integer("one_bit", 1))
    other = s.step("other_half", "sub_int", bits, half)
    s1, s2 = s.power_of_two("1", half), s.power_of_two("2", other)
    s.step("result", "mul", s.step("scaled", "mul", p, s1), s2)
    return s


def tanh(format: Format, small_degree: int, degree: int) -> Spec:
    """Up to 0.6875 x + x**3 u(x**2); above, 1 - 2 / (e**(2|x|) + 1), clamped where that is 1; the sign last."""
    s = Spec("both branches: Cephes tanhf.c (Moshier)", format)
    border = mpf(11) / 16
    a = s.step("a", "abs", "x")
    z = s.step("z", "mul", a, a)
    u = s.polynomial(
        "t",
        format.polynomial(
            lambda z: (mpmath.tanh(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z,
            lambda z: z * mpmath.sqrt(z) / mpmath.tanh(mpmath.sqrt(z)),
            mpf("1e-12"),
            border**2,
            small_degree,
        ),
        z,
    )
    small = s.step("small", "fma", s.step("az", "mul", a, z), u, a)
    y = s.at_most("y", a, s.number("largest", format.round(LN2 * (format.precision + 3) / 2, 8)))
    magic = s.number("rounding", format.rounding + format.bias)
    shifted = s.step("shifted", "fma", y, s.number("two_log2e", 2 / LN2), magic)
    n = s.step("n", "sub", shifted, magic)
    # ln 2 in one part: what it lacks times n is nothing to 1 - tanh
    r = s.step("r", "fma", n, s.number("minus_half_ln2", -LN2 / 2), y)
    p = s.exponential(_power(format, 2, degree), r)
    one = s.number("one", 1)
    d = s.step("d", "fma", p, s.power_of_two("", s.step("bits", "to_bits", shifted)), one)
    big = s.step("big", "sub", one, s.step("quotient", "div", s.number("two", 2), d))
    is_big = s.step("is_big", "greater", a, s.number("border", border))
    s.step("result", "copysign", s.step("magnitude", "select", is_big, big, small), "x")
    return s


def log(format: Format, degree: int) -> Spec:
    """x = 2**k * (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2); log(1 + f) = f - s (f - s**2 P(s**2)) with
    s = f / (2 + f)."""
    s = Spec("FreeBSD msun e_log.c, with the rounding of k ln 2 + f carried along", format)
    m, bias = format.mantissa, format.bias
    tiny = s.step("tiny", "less", "x", s.number("smallest_normal", mpf(2) ** (1 - bias)))
    upscaled = s.step("upscaled", "mul", "x", s.number("up", mpf(2) ** format.precision))
    x1 = s.step("x1", "select", tiny, upscaled, "x")
    # to_bits(1 + f) stands sqrt(1/2) low in its octave: moved so, the exponent field is k + bias + 1
    root = format.bits(format.round(mpmath.sqrt(mpf(1) / 2)))
    moved = s.step(
        "moved",
        "add_int",
        s.step("bits", "to_bits", x1),
        s.integer("to_octave", ((bias + 1) << m) - root),
    )
    field_ = s.step("field", "shift_right_logical", moved, s.integer("mantissa_bits", m))
    counted = s.step("counted", "or_int", field_, s.integer("count_bits", format.bits(2.0**m)))
    offset = s.step(
        "offset",
        "select",
        tiny,
        s.number("offset_tiny", 2.0**m + bias + 1 + format.precision),
        s.number("offset_normal", 2.0**m + bias + 1),
    )
    k = s.step("k", "sub", s.step("count", "from_bits", counted), offset)
    fraction = s.step("fraction", "and_int", moved, s.integer("mantissa", (1 << m) - 1))
    word = s.step("word", "add_int", fraction, s.integer("root_bits", root))
    f = s.step("f", "sub", s.step("y", "from_bits", word), s.number("one", 1))
    below = s.step("below", "sub", s.number("minus_two", -2), f)
    v = s.step("s", "div", f, below)  # -f / (2 + f)
    z = s.step("z", "mul", v, v)
    # log(1 + f) = 2 a (1 + a**2/3 + a**4/5 ...), a = f / (2 + f); P = 2/3 + 2/5 z + ..., negated
    edge = (mpmath.sqrt(2) - 1) / (mpmath.sqrt(2) + 1)
    p = s.polynomial(
        "p",
        format.polynomial(
            lambda z: (2 - 2 * mpmath.atanh(mpmath.sqrt(z)) / mpmath.sqrt(z)) / z,
            lambda z: z,
            mpf("1e-10"),
            (edge * mpf("1.0001")) ** 2,
            degree,
        ),
        z,
    )
    g = s.step("g", "fma", z, p, f)
    # what is not a positive finite number becomes -inf, NaN or itself by its k
    zero = s.number("zero", 0)
    positive = s.step("positive", "greater", "x", zero)
    k1 = s.step("k1", "select", positive, k, s.number("minus_inf", -mpmath.inf))
    negative = s.step("negative", "less", "x", zero)
    k2 = s.step("k2", "select", negative, s.number("nan", mpmath.nan), k1)
    finite = s.step("finite", "less", "x", s.number("inf", mpmath.inf))
    k3 = s.step("k3", "select", finite, k2, "x")
    if format.precision < 32:  # what one part of ln 2 lacks is below a quarter ulp of k ln 2
        l = s.step("l", "fma", v, g, f)
        s.step("result", "fma", k3, s.number("ln2", LN2), l)
        return s
    # the low part is positive: it keeps the sign of an infinite k
    bits = format.precision - (format.width - format.precision)
    high = format.round(LN2, bits)
    high -= 2.0**-bits if high > LN2 else 0.0
    low = s.step("low", "fma", k3, s.number("ln2_low", LN2 - high), s.step("vg", "mul", v, g))
    s.step("result", "fma", k3, s.number("ln2_high", high), s.step("l", "add", low, f))
    return s


def erf32(format: Format) -> Spec:
    """Up to the border x + x u(x**2); above, 1 - e**h(x) with a polynomial h for log(erfc(x))."""
    s = Spec("both branches: N. Juffa, implementation of erff; own coefficients", format)
    border, last = mpf("0.85"), mpf(4)
    a = s.step("a", "abs", "x")
    z = s.step("z", "mul", a, a)
    u = s.polynomial(
        "u",
        format.polynomial(
            lambda z: mpmath.erf(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1,
            lambda z: mpmath.sqrt(z) / mpmath.erf(mpmath.sqrt(z)),
            mpf("1e-12"),
            border**2,
            5,
        ),
        z,
    )
    small = s.step("small", "fma", a, u, a)
    t = s.at_most("t", a, s.number("largest", last))
    h = s.polynomial(
        "h",
        format.polynomial(
            lambda t: -mpmath.log(mpmath.erfc(t)) / t - 1,
            lambda t: t * mpmath.erfc(t),
            border,
            last,
            6,
        ),
        t,
    )
    w = s.step("w", "fma", h, t, t)
    _erf_end(s, a, w, small, 6, border, None)
    return s


def erf64(format: Format, small_degree: int, degrees: tuple[int, int]) -> Spec:
    """Up to 1 x + x u(x**2); above, 1 - e**(-x**2) * N(x) / D(x), where N / D is e**(x**2) * erfc(x)."""
    s = Spec(
        "W. J. Cody, Rational Chebyshev approximations for the error function, 1969; own coefficients",
        format,
    )
    border, last = mpf(1), mpf(6)
    a = s.step("a", "abs", "x")
    t = s.at_most("t", a, s.number("largest", last))
    z = s.step("z", "mul", t, t)
    u = s.polynomial(
        "u",
        format.polynomial(
            lambda z: mpmath.erf(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1,
            lambda z: mpmath.sqrt(z) / mpmath.erf(mpmath.sqrt(z)),
            mpf("1e-15"),
            border**2,
            small_degree,
        ),
        z,
    )
    small = s.step("small", "fma", a, u, a)
    n, d = rational(
        lambda t: mpmath.exp(t * t) * mpmath.erfc(t),
        lambda t: mpmath.exp(-t * t),
        border,
        last,
        degrees,
    )
    top = s.polynomial("n", n, t)
    ratio = s.step("ratio", "div", top, s.polynomial("d", d, t))
    _erf_end(s, a, z, small, 11, border, ratio)
    return s


def _erf_end(
    s: Spec, a: str, w: str, small: str, degree: int, border: Any, factor: str | None
) -> None:
    """The result from 1 - e**w (times `factor`) above the border."""
    format = s.format
    magic = s.number("rounding", format.rounding + format.bias)
    shifted = s.step("shifted", "fma", w, s.number("minus_log2e", -1 / LN2), magic)
    n = s.step("n", "sub", shifted, magic)
    r = s.step("r", "fma", n, s.number("ln2", LN2), w)
    p = s.exponential([-c for c in _power(format, -1, degree)], r)
    if factor is not None:
        p = s.step("ep", "mul", p, factor)
    big = s.step(
        "big", "fma", p, s.power_of_two("", s.step("bits", "to_bits", shifted)), s.number("one", 1)
    )
    is_big = s.step("is_big", "greater", a, s.number("border", border))
    s.step("result", "copysign", s.step("magnitude", "select", is_big, big, small), "x")


F32, F64 = Format("float32", 24, 32), Format("float64", 53, 64)
FUNCTIONS: dict[str, dict[str, Callable[[], Spec]]] = {
    "float32": {
        "exp": lambda: exp(F32, 6),
        "tanh": lambda: tanh(F32, 4, 6),
        "log": lambda: log(F32, 2),
        "erf": lambda: erf32(F32),
    },
    "float64": {
        "exp": lambda: exp(F64, 11),
        "tanh": lambda: tanh(F64, 11, 11),
        "log": lambda: log(F64, 6),
        "erf": lambda: erf64(F64, 11, (5, 6)),
    },
}


def as_text(functions: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """The file: JSON with a constant or a step to a line."""
    text = json.dumps({"format": 2, "functions": functions}, indent=1)
    return re.sub(r"\[[^\[\]]*\]", lambda m: re.sub(r"\s*\n\s*", " ", m[0]), text) + "\n"


def main() -> None:
    """Write the file, or another one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=FILE, help="default: the committed file")
    out = parser.parse_args().out
    out.write_text(
        as_text(
            {
                dtype: {name: make().data() for name, make in made.items()}
                for dtype, made in FUNCTIONS.items()
            }
        )
    )


if __name__ == "__main__":
    main()
