"""The oracle itself, against exact rationals, NumPy and mpmath on small cases."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import oracle
import pytest
from exact import BOUNDS, EXACT

from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.dtypes import DType

F32 = np.float32
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 1e-45, -1e-45, 1.1754944e-38, 3.4028235e38, np.inf, -np.inf, np.nan],
    F32,
)


def floats(seed: int, count: int) -> np.ndarray:
    """Random bit patterns: every exponent, subnormals, NaN and inf."""
    bits = np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint32)
    return bits.view(F32)


def bits(x: np.ndarray) -> np.ndarray:
    """float32 as integers, all NaN alike."""
    return np.where(np.isnan(x), F32(np.nan), x).astype(F32).view(np.uint32)


def rounded(x: Fraction) -> np.float32:
    """The float32 nearest to an exact value, ties to even, subnormals kept; finite results only."""
    if x == 0:
        return F32(0)
    # 2**24 units or fewer; one binade too many is put right below
    exponent = max(-149, x.numerator.bit_length() - x.denominator.bit_length() - 24)
    while abs(x) / Fraction(2) ** exponent >= 2**24:
        exponent += 1
    units = x / Fraction(2) ** exponent
    return F32(float(round(units)) * 2.0**exponent)  # round() of a Fraction is half to even


def test_fma_rounds_the_exact_value_once() -> None:
    # exponents chosen so that the terms overlap, cancel, or fall below each other's last bit
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal(3000).astype(F32) for _ in "xy")
    z = (-x * y * (1 + rng.integers(-3, 4, 3000) * 2.0**-24)).astype(F32)
    z[::3] *= F32(2.0**-24)
    x[::7] *= F32(2.0**-120)
    z[::7] *= F32(2.0**-122)
    got = oracle.fma(x, y, z)
    for a, b, c, r in zip(x, y, z, got, strict=True):
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        assert r == rounded(exact), (a, b, c)


def test_fma_special_values_follow_ieee() -> None:
    assert np.signbit(oracle.fma(F32(-0.0), F32(1), F32(-0.0)))
    assert not np.signbit(oracle.fma(F32(-0.0), F32(1), F32(0.0)))
    assert np.isnan(oracle.fma(F32(np.inf), F32(0), F32(1)))
    assert oracle.fma(F32(3e38), F32(10), F32(-np.inf)) == -np.inf
    assert oracle.fma(F32(3e38), F32(2), F32(-3e38)) == F32(3e38)


def test_minimum_and_maximum_order_zeros_and_keep_nan() -> None:
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    low, high = oracle.lesser(x, y), oracle.greater(x, y)
    np.testing.assert_array_equal(low, np.minimum(x, y))
    np.testing.assert_array_equal(high, np.maximum(x, y))
    assert np.signbit(oracle.lesser(F32(0.0), F32(-0.0)))
    assert np.signbit(oracle.lesser(F32(-0.0), F32(0.0)))
    assert not np.signbit(oracle.greater(F32(-0.0), F32(0.0)))


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 70, 4095, 4096, 4097, 3 * 4096 + 5])
def test_ordered_sum_against_the_definition_in_words(n: int) -> None:
    x = floats(n, n)
    x = np.where(np.isfinite(x), x, F32(1))
    x = np.ldexp(np.frexp(x)[0], 3)  # moderate size, so that rounding and not overflow is tested
    blocks = []
    for block in (x[i : i + 4096] for i in range(0, n, 4096)):
        lanes = [F32(-0.0)] * 32
        for i, value in enumerate(block):
            lanes[i % 32] = F32(lanes[i % 32] + value)
        for half in (16, 8, 4, 2, 1):
            lanes = [F32(lanes[i] + lanes[i + half]) for i in range(half)]
        blocks.append(lanes[0])

    def tree(low: int, size: int) -> np.float32 | None:
        if low >= len(blocks):
            return None
        if size == 1:
            return blocks[low]
        left, right = tree(low, size // 2), tree(low + size // 2, size // 2)
        return left if right is None else F32(left + right)

    want = F32((F32(-0.0) if n == 0 else tree(0, 4)) + F32(0.0))
    assert bits(oracle.ordered_sum(x[None])) == bits(want)


def test_sum_of_negative_zeros_is_positive_zero() -> None:
    assert not np.signbit(oracle.ordered_sum(np.full((1, 5), -0.0, F32)))[0]


@pytest.mark.parametrize("k", [0, 1, 511, 512, 513, 1030])
def test_ordered_matmul_against_the_definition_in_words(k: int) -> None:
    rng = np.random.default_rng(k)
    x, y = rng.standard_normal((2, k)).astype(F32), rng.standard_normal((k, 3)).astype(F32)
    got = oracle.ordered_matmul(x, y)
    for i in range(2):
        for j in range(3):
            total = None
            for start in range(0, max(k, 1), 512):
                chain = F32(0)
                for p in range(start, min(start + 512, k)):
                    chain = oracle.fma(x[i, p], y[p, j], chain)
                total = chain if total is None else F32(total + chain)
            assert bits(got[i, j]) == bits(total)
    np.testing.assert_allclose(got, x.astype(float) @ y.astype(float), rtol=1e-4, atol=1e-4)


def test_a_block_result_of_negative_zero_stays() -> None:
    tiny = F32(1e-45)
    assert np.signbit(oracle.ordered_matmul(np.array([[-tiny]]), np.array([[tiny]])))[0, 0]


def wide_points(name: str) -> np.ndarray:
    """float64 arguments all over the range where the result is neither 0 nor inf nor 1."""
    rng = np.random.default_rng(7)
    ranges = {"exp": (-745, 709), "tanh": (-19, 19), "log": (0, 10), "erf": (-6, 6)}
    ranges |= {"rsqrt": (0, 1e-307)}
    ranges |= {"sigmoid": (-745, 37), "softplus": (-745, 37), "silu": (-752, 37)}
    ranges |= {"erfc": (-6, 27.2), "gelu": (-38.6, 9), "gelu_tanh": (-21.9, 9)}
    spread = np.ldexp(1.3, np.arange(-1000, 2, 40))
    x = np.concatenate([rng.uniform(*ranges[name], 300), rng.uniform(-1, 1.3, 300), spread])
    return x[x > 0] if name in ("log", "rsqrt") else x


@pytest.mark.parametrize("name", EXACT)
def test_elementary_functions_of_float64_are_accurate(name: str) -> None:
    points = wide_points(name)
    got = oracle.ELEMENTWISE[name](points)
    with mpmath.workprec(200):
        for x, y in zip(points.tolist(), got.tolist(), strict=True):
            exact = EXACT[name](mpmath.mpf(x))
            unit = mpmath.mpf(float(np.spacing(abs(float(exact)))))
            assert abs(mpmath.mpf(y) - exact) <= BOUNDS[name] * unit, (x, y)


def test_special_values_of_float64() -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e308, -1e308])
    want = {
        "exp": [1, 1, np.inf, 0, np.nan, 1, 1, np.inf, 0],
        "rsqrt": [
            np.inf,
            -np.inf,
            0.0,
            np.nan,
            np.nan,
            4.4989137945431964e161,
            np.nan,
            1e-154,
            np.nan,
        ],
        "tanh": [0.0, -0.0, 1, -1, np.nan, 5e-324, -5e-324, 1, -1],
        "log": [
            -np.inf,
            -np.inf,
            np.inf,
            np.nan,
            np.nan,
            -744.4400719213812,
            np.nan,
            709.1962086421661,
            np.nan,
        ],
        "erf": [0.0, -0.0, 1, -1, np.nan, 5e-324, -5e-324, 1, -1],
        "erfc": [1, 1, 0.0, 2, np.nan, 1, 1, 0.0, 2],
        "silu": [0.0, -0.0, np.inf, -0.0, np.nan, 0.0, -0.0, 1e308, -0.0],
        "gelu": [0.0, -0.0, np.inf, -0.0, np.nan, 5e-324, -0.0, 1e308, -0.0],
        "gelu_tanh": [0.0, -0.0, np.inf, -0.0, np.nan, 0.0, -0.0, 1e308, -0.0],
        "softplus": [
            math.log(2),
            math.log(2),
            np.inf,
            0.0,
            np.nan,
            math.log(2),
            math.log(2),
            1e308,
            0.0,
        ],
    }
    for name, values in want.items():
        got = oracle.elementary(name, x)
        np.testing.assert_array_equal(got, values)
        known = ~np.isnan(got)
        np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(np.array(values)[known]))


def test_fma_of_float64_rounds_once() -> None:
    x = np.array([1 + 2.0**-30, 1e300, -1e300, 0.0, -0.0, 5e-324, np.inf])
    y = np.array([1 - 2.0**-30, 1e10, 1e10, -1.0, 1.0, 0.5, 0.0])
    z = np.array([-1.0, -np.inf, 0.0, 0.0, -0.0, 5e-324, 1.0])
    want = np.array([-(2.0**-60), -np.inf, -np.inf, 0.0, -0.0, 1e-323, np.nan])
    got = oracle.fma(x, y, z)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[:-1]), np.signbit(want[:-1]))


def test_casts_have_one_answer_for_every_input() -> None:
    x = np.array([1.9, -1.9, np.nan, np.inf, -np.inf, 2.0**63, -(2.0**63), 3e38], F32)
    low = np.iinfo(np.int64).min
    assert oracle.convert(x, "int64").tolist() == [1, -1, low, low, low, low, low, low]
    assert oracle.convert(x[:3], "bool").tolist() == [True, True, True]
    assert oracle.convert(np.array([2**24 + 1, 2**63 - 1]), "float32").tolist() == [2**24, 2.0**63]


def test_shifts_past_the_width() -> None:
    def shift(name: str, x: int, y: int) -> int:
        values = [oracle.Value(DType("int64"), np.asarray(v, np.int64)) for v in (x, y)]
        return int(oracle.apply(name, values, {}).array)

    assert [shift("right_shift", 1000, k) for k in (63, 64, 100, -1)] == [0, 0, 0, 0]
    assert [shift("right_shift", -1000, k) for k in (63, 64, 100, -1)] == [-1, -1, -1, -1]
    assert [shift("left_shift", 1, k) for k in (62, 63, 64, -1)] == [1 << 62, -(1 << 63), 0, 0]


def test_programs_run_with_branches_and_weak_scalars() -> None:
    builder = ProgramBuilder()
    main = builder.function("main", parameters=2)
    x, count = main.parameters
    head, body, exit = (main.block(n) for n in ("head", "body", "exit"))
    i = main.constant(0)
    main.branch(head)
    main.enter(head)
    main.branch_if(main.apply("less", i, count), body, exit)
    main.enter(body)
    main.apply("multiply", x, main.constant(2.0), into=x)
    main.apply("add", i, main.constant(1), into=i)
    main.branch(head)
    main.enter(exit)
    main.returns(x, i)
    program = builder.finish()
    doubled, rounds = oracle.run_program(program, [np.array([1, 2], F32), 3])
    assert doubled.array.tolist() == [8, 16] and doubled.dtype == DType("float32")
    assert int(rounds.array) == 3
