"""`loop-divide-by-invariant`: the same bits as division, for all numbers of small formats and the hard ones of real ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from differential.harness import everywhere
from unit.test_llvm_level import loaded, lowered, same
from unit.test_loop_passes_keep_meaning import check as check_meaning
from unit.test_loop_passes_keep_meaning import numbers, pipeline
from xdsl.dialects.builtin import f32, f64
from xdsl.parser import Parser

from jitdialects.bytecode.builder import FunctionBuilder
from jitdialects.dialects.context import make_context
from jitdialects.passes.loop_divide_by_invariant import FORMATS, LoopDivideByInvariantPass

Array = np.ndarray

# ---- the theorem, in formats of few bits and all exponents


def rounded(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """The nearest number of `bits` bits, ties to even, as (a, e) for a * 2**e; the denominator is positive."""
    if numerator == 0:
        return 0, 0
    sign, numerator = (-1, -numerator) if numerator < 0 else (1, numerator)
    e = numerator.bit_length() - denominator.bit_length() - bits
    while True:
        n, d = (numerator << -e, denominator) if e < 0 else (numerator, denominator << e)
        whole, rest = divmod(n, d)
        if whole < 1 << bits:
            break
        e += 1
    whole += 2 * rest > d or (2 * rest == d and whole % 2 == 1)
    while whole % 2 == 0:
        whole, e = whole // 2, e + 1
    return sign * whole, e


def fused(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int], bits: int) -> tuple[int, int]:
    """a * b + c, rounded once."""
    product, e = a[0] * b[0], a[1] + b[1]
    low = min(e, c[1])
    total = (product << (e - low)) + (c[0] << (c[1] - low))
    n, e = rounded(total, 1, bits)
    return n, e + low if n else 0


@pytest.mark.parametrize("bits", range(2, 9))
def test_one_product_and_two_fused_steps_are_division_in_every_small_format(bits: int) -> None:
    mantissas = range(1 << (bits - 1), 1 << bits)
    for s in mantissas:
        y = rounded(1, s, bits)
        for x in mantissas:
            estimate = fused((x, 0), y, (0, 0), bits)
            excess = fused(estimate, (s, 0), (-x, 0), bits)
            quotient = fused(excess, (-y[0], y[1]), estimate, bits)
            assert quotient == rounded(x, s, bits), (x, s)


# ---- the rewrite, on this machine

LOOP = """
func.func @main(%x: memref<?x{t}>, %divisor: memref<1x{t}>, %out: memref<?x{t}>) attributes {{loop.noalias}} {{
  %c0 = arith.constant 0 : index
  %step = arith.constant {lanes} : index
  %n = memref.dim %x, %c0 : memref<?x{t}>
  %one = memref.load %divisor[%c0] : memref<1x{t}>
  %s = vector.broadcast %one : {t} to vector<{lanes}x{t}>
  scf.for %i = %c0 to %n step %step {{
    %v = vector.load %x[%i] : memref<?x{t}>, vector<{lanes}x{t}>
    %q = arith.divf %v, %s : vector<{lanes}x{t}>
    vector.store %q, %out[%i] : memref<?x{t}>, vector<{lanes}x{t}>
  }}
  func.return
}}
"""
LANES = 16


DTYPES = {"f32": np.float32, "f64": np.float64}
BITS = {"f32": (np.uint32, 24), "f64": (np.uint64, 53)}
TYPES = {"f32": f32, "f64": f64}
TINY = {"f32": 2.0**-63, "f64": 2.0**-511}


@cache
def division(type: str, features: str) -> Callable[[Array, Array], Array]:
    """The loop compiled for this machine, rewritten as for a machine of `features`; of whole vectors."""
    context = make_context()
    module = Parser(context, LOOP.format(t=type, lanes=LANES)).parse_module()
    LoopDivideByInvariantPass(features).apply(context, module)
    assert "vector.reduction" in str(module)
    run = loaded(lowered(str(module)))

    def divided(x: Array, s: Array) -> Array:
        out = np.empty_like(x)
        run(x, s, out)
        return out

    return divided


def check(type: str, x: Array, s: float) -> None:
    """Both levels' forms of x / s, against NumPy."""
    x = np.resize(x, -(-x.size // LANES) * LANES)
    divisor = np.array([s], x.dtype)
    with np.errstate(all="ignore"):
        want = x / divisor
    for features in ("x86-64-v3", "x86-64-v4"):
        got = division(type, features)(x, divisor)
        if not same(got, want):
            wrong = np.flatnonzero((got != want) & ~(np.isnan(got) & np.isnan(want)))
            raise AssertionError(f"{features}: {x[wrong][:3]} / {s!r}: {got[wrong][:3]}")


def near_midpoints(type: str, s: int) -> Array:
    """Dividends, as integers, whose quotients by the odd s come as near as any to the middle m of two numbers:
    x * 2**p = m * s - c with a small c, where m and s are odd."""
    _, p = BITS[type]
    inverse = pow(s, -1, 1 << p)
    middles = {c: (1 << p) + c * inverse % (1 << p) for c in (*range(1, 24, 2), *range(-23, 0, 2))}
    exact = [m * s - c >> p for c, m in middles.items()]
    return np.array([x for x in exact if x < 1 << p], DTYPES[type])


def of_all_kinds(type: str, rng: np.random.Generator) -> Array:
    """Any bits; signed zeros, infinities, NaN and subnormals; numbers near where tiny ends."""
    word, precision = BITS[type]
    dtype = DTYPES[type]
    info = np.finfo(dtype)
    words = rng.integers(0, 2 ** (np.dtype(word).itemsize * 8), 800, dtype=word)
    subnormal = rng.integers(0, 2 ** (precision - 1), 100, dtype=word)
    special = [0, np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, 1, 3]
    around = TINY[type] * rng.uniform(0.25, 4, 200)
    parts = [
        words.view(dtype),
        subnormal.view(dtype),
        np.array(special, dtype),
        around.astype(dtype),
    ]
    half = np.concatenate(parts)
    return np.concatenate([half, -half])


def divisors(type: str, rng: np.random.Generator) -> list[float]:
    """The ends of what is safe and what lies beyond, mantissas of all ones, one bit and any bits."""
    dtype, form = DTYPES[type], FORMATS[TYPES[type]]
    one = dtype(1)
    ends = np.array([form.smallest, form.largest], dtype)
    beyond = np.concatenate([np.nextafter(ends, 0), np.nextafter(ends, dtype(np.inf))])
    simple = [1, np.nextafter(one, 2), np.nextafter(one, 0), 3, 7, 1000, np.nextafter(dtype(2), 1)]
    special = [
        0.0,
        -0.0,
        np.inf,
        np.nan,
        -3,
        np.finfo(dtype).smallest_subnormal,
        np.finfo(dtype).max,
    ]
    any_size = np.ldexp(rng.uniform(1, 2, 20), rng.integers(-100, 30, 20))
    usual = rng.uniform(1, 2000, 20)
    return [dtype(s) for s in (*ends, *beyond, *simple, *special, *any_size, *usual)]


@pytest.mark.parametrize("type", DTYPES)
def test_quotients_of_all_kinds_have_the_bits_of_division(type: str) -> None:
    rng = np.random.default_rng(11)
    for s in divisors(type, rng):
        check(type, of_all_kinds(type, rng), s)


@pytest.mark.parametrize("type", DTYPES)
def test_quotients_near_midpoints_are_rounded_to_the_right_side(type: str) -> None:
    """Of all sizes, and where dividends begin to be tiny and divisors to be too large."""
    rng = np.random.default_rng(12)
    _, p = BITS[type]
    tiny, largest = (int(np.log2(n)) for n in (TINY[type], FORMATS[TYPES[type]].largest))
    for s in 2 * rng.integers(1 << (p - 2), 1 << (p - 1), 60) + 1:
        x = np.ldexp(near_midpoints(type, int(s)), -p)
        spread = np.concatenate([np.ldexp(x, k) for k in range(-32, 3)])
        for of_x, of_s in ((0, 0), (tiny, 0), (tiny, largest - 2), (tiny, largest + 9)):
            check(type, np.ldexp(spread, of_x), np.ldexp(DTYPES[type](s), of_s - p))


@pytest.mark.parametrize("type", DTYPES)
def test_subnormal_quotients_that_are_midpoints_go_to_the_even_side(type: str) -> None:
    """s * (2 k + 1) half units by s: there are such among subnormals only, where the theorem says nothing.
    Sorted, since one tiny lane has all of a vector divided."""
    dtype, largest = DTYPES[type], int(np.log2(FORMATS[TYPES[type]].largest))
    half_unit = int(np.log2(np.finfo(dtype).smallest_subnormal)) - 1
    most = 1 << (BITS[type][1] - 11)
    odd = 2 * np.sort(np.random.default_rng(14).integers(most, size=2000)) + 1
    for s in (3, 5, 7, 501):
        for e in (0, largest - 9, largest + 12):
            check(
                type, np.ldexp(odd.astype(dtype) * dtype(s), half_unit + e), np.ldexp(dtype(s), e)
            )


@pytest.mark.parametrize("type", DTYPES)
def test_all_neighbours_of_a_divisor_and_of_one(type: str) -> None:
    rng = np.random.default_rng(13)
    word, _ = BITS[type]
    steps = np.arange(-300, 300).astype(word)
    for s in divisors(type, rng):
        near = np.array([s, 1], DTYPES[type]).view(word)
        check(type, (near[:, None] + steps).reshape(-1).view(DTYPES[type]), s)


# ---- among other passes


QUOTIENTS = """
func.func @f(%x: memref<?xf32>, %s: f32, %y: memref<?xf32>) attributes {loop.noalias} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  loop.nest (%i) = (%c0) to (%n) step (1) kinds [parallel] {
    %v = memref.load %x[%i] : memref<?xf32>
    %q = arith.divf %v, %s : f32
    memref.store %q, %y[%i] : memref<?xf32>
  }
  func.return
}
"""


@pytest.mark.parametrize("features", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("divisor", [3.7, -2.5, 0.0, 1e-40, 2.0**31, np.nan])
def test_the_rewrite_keeps_the_meaning_of_its_input(features: str, divisor: float) -> None:
    """With numbers of every kind in their vectors, and none."""
    x = numbers(130)
    x[40:44] = [np.inf, 1e-30, 0.0, -0.0]
    x[90:94] = [0.0, -0.0, 3e38, -3e38]
    passes = [*pipeline(features), LoopDivideByInvariantPass(features)]
    arguments = [x, np.float32(divisor), np.zeros_like(x)]
    changed = check_meaning(QUOTIENTS, passes, lambda: [a.copy() for a in arguments])
    assert "vector.reduction" in str(changed)


@pytest.mark.parametrize("types", ["f32[m,n]", "f64[m,n]", "f32[6,200]"])
def test_softmax_of_masked_rows_and_of_weights_of_every_size(types: str) -> None:
    """Weights that are 0, subnormal and tiny, where quotients are not made from reciprocals; and rows without sum."""

    def softmax(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        top = main.apply("max", x, axis=-1, keepdims=True)
        e = main.apply("exp", main.apply("subtract", x, top))
        main.returns(main.apply("divide", e, main.apply("sum", e, axis=-1, keepdims=True)))

    x = np.zeros((6, 200), np.float64 if "f64" in types else np.float32)
    deepest = -750 if "f64" in types else -105
    x[0] = np.linspace(0, deepest, 200)
    x[1, 3:190] = -np.inf
    x[2, ::3] = -np.inf
    x[2, 1::3] = deepest * np.arange(67) / 67
    x[3] = -np.inf
    x[4, 7] = np.inf
    x[5, 100] = np.nan
    everywhere([x], types, softmax)
