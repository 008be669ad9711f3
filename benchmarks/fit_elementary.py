"""Make jitdialects/bytecode/elementary.json: fit the polynomials, write down the steps.

    python -m benchmarks.fit_elementary                  # all functions, half a minute
    python -m benchmarks.fit_elementary --out made.json  # elsewhere, to compare

One function per elementary function writes its steps for any dtype; what differs (degrees, bits) is in
`FUNCTIONS`.
"""

# pyright: basic
# mpmath has no types
from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath
from mpmath import mpf

from benchmarks.elementary_steps import Spec
from benchmarks.minimax import Format, Real, minimax, rational

FILE = Path(__file__).parents[1] / "jitdialects" / "bytecode" / "elementary.json"
LN2 = mpmath.log(2)


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
    edge = (mpmath.sqrt(2) - 1) / (mpmath.sqrt(2) + 1)
    g = _log_sum(s, f, z, degree, (edge * mpf("1.0001")) ** 2)
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


def _log_sum(s: Spec, f: str, z: str, degree: int, end: Any) -> str:
    """f - s**2 P(s**2), z = s**2: log(1 + f) = 2 s (1 + s**2/3 + s**4/5 ...), s = f / (2 + f); P = 2/3 + 2/5 z + ...,
    negated."""
    p = s.polynomial(
        "p",
        s.format.polynomial(
            lambda z: (2 - 2 * mpmath.atanh(mpmath.sqrt(z)) / mpmath.sqrt(z)) / z,
            lambda z: z,
            mpf("1e-10"),
            end,
            degree,
        ),
        z,
    )
    return s.step("g", "fma", z, p, f)


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


# ---- functions that are small far from zero ------------------------------------------------------


@dataclass(frozen=True)
class _Power:
    """e**w = (1 + r q) * `scale` * `down`, where `scale` is normal also where e**w is not; `down` is a power of 2."""

    r: str
    q: str
    scale: str
    down: str


def _power_below(s: Spec, w: str, low: str | None, degree: int) -> _Power:
    """e**(`w` - `low`) for `w` <= 0; `low` is what rounding added to `w`. Without it e**w is off by as much as w is."""
    format = s.format
    offset = (format.bias + 1) // 2
    magic = s.number("rounding", format.rounding + format.bias + offset)
    shifted = s.step("shifted", "fma", w, s.number("log2e", 1 / LN2), magic)
    n = s.step("n", "sub", shifted, magic)
    high = format.round(LN2, format.precision - (format.width - format.precision))
    r = s.step("r0", "fma", n, s.number("minus_ln2_high", -high), w)
    r = s.step("r1", "fma", n, s.number("minus_ln2_low", high - LN2), r)
    if low is not None:
        r = s.step("r", "sub", r, low)
    _, slope, *others = _power(format, 1, degree)
    q = s.step("q", "fma", s.polynomial("e", others, r), r, s.number("one", slope))
    scale = s.power_of_two("", s.step("bits", "to_bits", shifted))
    return _Power(r, q, scale, s.number("down", mpf(2) ** -offset))


def _magnitude(s: Spec, log: Real) -> tuple[str, str, Any]:
    """|x| up to where e**log(|x|) is below the smallest subnormal number, minus that, and the bound."""
    format = s.format
    least = -LN2 * (format.bias + format.precision + 1)
    low, high = mpf(1), mpf(1024)
    while high - low > mpf("1e-6"):
        middle = (low + high) / 2
        low, high = (middle, high) if log(middle) > least else (low, middle)
    last = format.round(high, 12)
    a = s.at_most("a", s.step("magnitude", "abs", "x"), s.number("largest", last))
    return a, s.step("b", "mul", a, s.number("minus_one", -1)), last


def silu(format: Format, degree: int) -> Spec:
    """x / (1 + e**-x)."""
    s = Spec("x (1 - h) with h = e**-x / (1 + e**-x); below zero x e**x (1 - h), h by e**x", format)
    a, b, _ = _magnitude(s, lambda a: mpmath.log(a) - a)
    _times_logistic(s, a, b, _power_below(s, b, None, degree))
    return s


def gelu_tanh(format: Format, degree: int) -> Spec:
    """x (1 + tanh(v / 2)) / 2 = x / (1 + e**-v) with v = x (c0 + c1 x**2), as silu."""
    s = Spec("silu with v = x (c0 + c1 x**2) in two parts in the exponent", format)
    c0 = 2 * mpmath.sqrt(2 / mpmath.pi)
    c1 = mpf("0.044715") * c0
    a, b, _ = _magnitude(s, lambda a: mpmath.log(a) - a * (c0 + c1 * a * a))
    # c0 + c1 a**2 in two parts; c0_high is short, so that c0_high - k is exact
    c0_high, c1_high = format.round(c0, format.precision - 5), format.round(c1)
    first, slope = s.number("c0_high", c0_high), s.number("minus_c1_high", -c1_high)
    square = s.step("minus_square", "mul", a, b)
    square_low = s.step("square_low", "fma", a, a, square)
    k = s.step("k", "fma", square, slope, first)
    k_low = s.step("k_low0", "fma", square, slope, s.step("k_rest", "sub", first, k))
    rest = s.step(
        "rest",
        "fma",
        square,
        s.number("minus_c1_low", c1_high - c1),
        s.number("c0_low", c0 - c0_high),
    )
    rest = s.step("rest1", "fma", square_low, s.number("c1_high", c1_high), rest)
    k_low = s.step("k_low", "add", k_low, rest)
    w = s.step("w", "mul", b, k)
    low = s.step("w_low", "fma", a, k_low, s.step("w_low0", "fma", a, k, w))
    _times_logistic(s, a, b, _power_below(s, w, low, degree))
    return s


def _times_logistic(s: Spec, a: str, b: str, power: _Power) -> None:
    """x - x h, or below zero (b - b h) e**w, with h = e**w / (1 + e**w): h is less than a half, its error less than it
    was of the quotient 1 / (1 + e**w)."""
    one = s.number("one", 1)
    p = s.step("p", "fma", power.q, power.r, one)
    t = s.step("minus_t", "mul", s.step("scaled", "mul", p, power.scale), _negated(s, power.down))
    h = s.step("minus_h", "div", t, s.step("d", "sub", one, t))
    # b p, rounded once
    product = s.step("product", "fma", s.step("bq", "mul", b, power.q), power.r, b)
    u = s.step("u", "mul", product, power.scale)
    small = s.step("small", "mul", s.step("u_less", "fma", u, h, u), power.down)
    big = s.step("big", "fma", a, h, "x")
    below = s.step("below", "less", "x", s.number("zero", 0))
    s.step("result", "select", below, small, big)


def _negated(s: Spec, name: str) -> str:
    return s.number(f"minus_{name}", -s.floats[name])


def gelu(format: Format, degree: int, tail_degree: int, k: Any) -> Spec:
    """x Phi(x) = max(x, 0) - |x| Phi(-|x|), where |x| Phi(-|x|) = e**(-x**2 / 2) h S, h = |x| / (|x| + k), and S is
    1 - h / 2 + Q(2 h - 1)."""
    s = Spec(
        "x**2 / 2 in two parts; M. M. Shepherd, J. G. Laframboise, 1981, for the variable", format
    )
    ratio = lambda a: mpmath.exp(a * a / 2) * mpmath.erfc(a / mpmath.sqrt(2)) / 2
    a, b, last = _magnitude(s, lambda a: mpmath.log(a * ratio(a)) - a * a / 2)
    half = s.step("half", "mul", a, s.number("minus_half", mpf(-1) / 2))
    w = s.step("w", "mul", a, half)
    power = _power_below(s, w, s.step("w_low", "fma", b, half, w), degree)
    # -h in two parts; 1 / (a + k) = (1 - h) / k
    d, d_low = _sum(s, a, s.number("k", k))
    h = s.step("minus_h", "div", b, d)
    rest = s.step("rest", "fma", h, d_low, s.step("rest0", "fma", h, d, a))
    minus = s.number("minus_reciprocal", -1 / mpf(k))
    h_low = s.step("minus_h_low", "mul", rest, s.step("minus_g", "fma", h, minus, minus))
    tail = _tail(s, ratio, 1, k, last, tail_degree)
    u = _times_tail(s, power, (h, h_low), (-1, -2), (1, mpf(1) / 2), tail)
    big = s.step("big", "fma", u, power.down, "x")
    below = s.step("below", "less", "x", s.number("zero", 0))
    s.step("result", "select", below, s.step("small", "mul", u, power.down), big)
    return s


def erfc(format: Format, degree: int, tail_degree: int, k: Any) -> Spec:
    """e**(-x**2) g S above zero, g = 1 / (|x| + k) and, with h = 1 - k g, S = 3/2 (1 - h / 2) + Q(2 h - 1); 2 -
    erfc(-x) below."""
    s = Spec("x**2 in two parts; M. M. Shepherd, J. G. Laframboise, 1981, for the variable", format)
    ratio = lambda a: mpmath.exp(a * a) * mpmath.erfc(a)
    a, b, last = _magnitude(s, lambda a: mpmath.log(ratio(a)) - a * a)
    w = s.step("w", "mul", a, b)
    power = _power_below(s, w, s.step("w_low", "fma", a, a, w), degree)
    # -g in two parts
    d, d_low = _sum(s, a, s.number("k", k))
    g = s.step("minus_g", "div", s.number("minus_one", -1), d)
    rest = s.step("rest", "fma", g, d_low, s.step("rest0", "fma", g, d, "one"))
    g_low = s.step("minus_g_low", "mul", rest, g)
    line = mpf(3) / 4, -mpf(3) / 4 * k
    tail = _tail(s, ratio, mpf(3) / 2, k, last, tail_degree)
    u = _times_tail(s, power, (g, g_low), (1, 2 * k), line, tail)
    big = s.step("big", "fma", u, power.down, s.number("two", 2))
    below = s.step("below", "less", "x", s.number("zero", 0))
    s.step("result", "select", below, big, s.step("small", "mul", u, _negated(s, power.down)))
    return s


def _sum(s: Spec, a: str, k: str) -> tuple[str, str]:
    """a + k in two parts, where k is a multiple of what a + k is rounded to."""
    d = s.step("d", "add", a, k)
    return d, s.step("d_low", "sub", a, s.step("d_less_k", "sub", d, k))


def _tail(s: Spec, ratio: Real, factor: Any, k: Any, last: Any, degree: int) -> list[float]:
    """Q of (a + k) ratio(a) = factor * (1 - h / 2) + Q(v), h = a / (a + k), v = 2 h - 1."""

    def f(v: Any) -> Any:
        a = k * (1 + v) / (1 - v)
        return (a + k) * ratio(a)

    end = (mpf(last) - k) / (mpf(last) + k)
    rest = lambda v: f(v) - factor * (mpf(3) - v) / 4
    return [s.format.round(c) for c in minimax(rest, lambda v: 1 / f(v), mpf(-1), end, degree)]


def _times_tail(
    s: Spec,
    power: _Power,
    parts: tuple[str, str],
    variable: tuple[Any, Any],
    line: tuple[Any, Any],
    coefficients: Sequence[float],
) -> str:
    """-S (1 + r q) scale times the sum of `parts`, where S = L + Q(v), and L and v are linear in the sum of `parts`. L at one end of its range
    is half of what it is at the other, so that its error is known exactly. The first factor is summed as
    L + (error of L + Q + S q r), and its last rounding is known: those of large numbers are in the last product only."""
    high, low = parts
    start, slope = s.number("l0", line[0]), s.number("l1", line[1])
    l = s.step("l", "fma", high, slope, start)
    l_low = s.step("l_low0", "fma", high, slope, s.step("l_rest", "sub", start, l))
    l_low = s.step("l_low", "fma", low, slope, l_low)
    factor = s.number("v1", variable[1])
    v = s.step("v0", "fma", high, factor, s.number("v0_at_0", variable[0]))
    v = s.step("v", "fma", low, factor, v)
    part = s.step("part", "add", s.polynomial("m", coefficients, v), l_low)
    product = s.step("product", "mul", s.step("about", "add", l, part), power.q)
    tail = s.step("tail", "fma", product, power.r, part)
    sum_ = s.step("sum", "add", l, tail)
    sum_low = s.step("sum_low", "add", tail, s.step("sum_rest", "sub", l, sum_))
    t = s.step("t", "mul", sum_, power.scale)
    t_low = s.step("t_low", "mul", sum_low, power.scale)
    u = s.step("u0", "fma", t, low, s.step("u_low", "mul", t_low, high))
    return s.step("u", "fma", t, high, u)


def softplus(format: Format, degree: int, log_degree: int) -> Spec:
    """max(x, 0) + log(1 + t), t = e**-|x|; log(1 + t) = t - s (t - s**2 P(s**2)) with s = t / (2 + t)."""
    s = Spec("max(x, 0) + log(1 + e**-|x|)", format)
    _, b, _ = _magnitude(s, lambda a: -a)
    power = _power_below(s, b, None, degree)
    p = s.step("p", "fma", power.q, power.r, "one")
    t = s.step("t", "mul", s.step("scaled", "mul", p, power.scale), power.down)
    v = s.step("s", "div", t, s.step("bottom", "sub", s.number("minus_two", -2), t))
    z = s.step("z", "mul", v, v)
    log1p = s.step("log1p", "fma", v, _log_sum(s, t, z, log_degree, mpf(1) / 9), t)
    zero = s.number("zero", 0)
    above = s.step("above", "greater", "x", zero)
    s.step("result", "add", s.step("x_above", "select", above, "x", zero), log1p)
    return s


def rsqrt(format: Format) -> Spec:
    """y - y / 2 (x y**2 - 1), with y = 1 / r, r = sqrt(x). x y**2 - 1 = y (x y - r) + (r y - 1), whose differences
    cancel so far that they are exact, and do not underflow. Where the sum is NaN, y is inf, 0 or NaN already."""
    s = Spec("Newton's iteration on 1 / sqrt(x)", format)
    r = s.step("r", "sqrt", "x")
    y = s.step("y", "div", s.number("one", 1), r)
    minus_one = s.number("minus_one", -1)
    r_off = s.step("r_off", "fma", "x", y, s.step("minus_r", "mul", r, minus_one))
    y_off = s.step("y_off", "fma", r, y, minus_one)
    off = s.step("off", "fma", r_off, y, y_off)
    half = s.step("minus_half_y", "mul", y, s.number("minus_half", -0.5))
    near = s.step("near", "fma", half, off, y)
    finite = s.step("finite", "greater", near, s.number("zero", 0))
    s.step("result", "select", finite, near, y)
    return s


F32, F64 = Format("float32", 24, 32), Format("float64", 53, 64)
FUNCTIONS: dict[str, dict[str, Callable[[], Spec]]] = {
    "float32": {
        "exp": lambda: exp(F32, 6),
        "rsqrt": lambda: rsqrt(F32),
        "tanh": lambda: tanh(F32, 4, 6),
        "log": lambda: log(F32, 2),
        "erf": lambda: erf32(F32),
        "erfc": lambda: erfc(F32, 6, 10, 1.75),
        "softplus": lambda: softplus(F32, 6, 4),
        "silu": lambda: silu(F32, 6),
        "gelu": lambda: gelu(F32, 6, 10, 2.5),
        "gelu_tanh": lambda: gelu_tanh(F32, 6),
    },
    "float64": {
        "exp": lambda: exp(F64, 11),
        "rsqrt": lambda: rsqrt(F64),
        "tanh": lambda: tanh(F64, 11, 11),
        "log": lambda: log(F64, 6),
        "erf": lambda: erf64(F64, 11, (5, 6)),
        "erfc": lambda: erfc(F64, 11, 25, 2),
        "softplus": lambda: softplus(F64, 11, 12),
        "silu": lambda: silu(F64, 11),
        "gelu": lambda: gelu(F64, 11, 25, 2.75),
        "gelu_tanh": lambda: gelu_tanh(F64, 11),
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
