"""Faults in numbers and orders that users of other compilers reported, each with the right value.

The reference in a docstring says which report. `everywhere` runs the VM, machine code (fused or not) and
the oracle.
"""

from __future__ import annotations

import numpy as np
import pytest
from differential.harness import Body, assert_same, everywhere, for_all

from jitdialects.bytecode.builder import FunctionBuilder

F32 = np.float32


def f32(*values: float) -> np.ndarray:
    return np.array(values, F32)


def test_case_16_no_contraction_across_operators() -> None:
    """jax-ml/jax#26147: x2 * x2 - x1 * x1 is 0 where x2 == x1; an FMA across the two gives less."""

    def body(main: FunctionBuilder) -> None:
        x1, s = main.parameters
        x2 = main.apply("multiply", x1, main.apply("add", s, main.constant(1.0)))
        squares = main.apply("multiply", x2, x2), main.apply("multiply", x1, x1)
        main.returns(main.apply("subtract", *squares))

    (d,) = everywhere([f32(0.1, 1e-3, 7.7), f32(0, 0, 0)], "f32[n], f32[n]", body)
    assert d.tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_case_19_nan_propagates_from_either_operand(name: str) -> None:
    """pytorch/pytorch#93784: NaN survives max, min, relu and clamp; dtypes promote."""

    def body(main: FunctionBuilder) -> None:
        x, y = main.parameters
        relu = main.apply("maximum", x, main.constant(0.0))
        clamp = main.apply("minimum", relu, main.constant(6.0))
        main.returns(main.apply(name, x, y), main.apply(name, y, x), relu, clamp)

    results = everywhere([f32(np.nan, 1), f32(1, 2)], "f32[n], f32[n]", body)
    assert all(np.isnan(r[0]) for r in results)
    assert not any(np.isnan(r[1]) for r in results)


def test_case_19_a_nan_anywhere_is_the_maximum() -> None:
    """pytorch/pytorch#93784: in whole vectors, in the rest, alone; each row has it at another place."""

    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        main.returns(main.apply("max", x, axis=-1), main.apply("max", x))

    calls: list[list[object]] = []
    for n in (1, 4, 17, 40):
        x = np.where(np.eye(n, dtype=bool), F32(np.nan), F32(n))
        calls += [[x], [np.negative(x)], [np.full((2, n), -np.inf, F32)]]
    for (x,), (rows, total) in zip(calls, for_all(calls, "f32[m,n]", body), strict=True):
        assert np.isnan(rows).all() == np.isnan(total) == np.isnan(x).any()


def test_case_20_no_identity_of_maximum_is_folded() -> None:
    """llvm/llvm-project#114594: max(-inf, x) is not x for a NaN, max(NaN, x) is NaN."""

    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        bounds = (main.constant(b) for b in (-np.inf, np.inf, np.nan))
        low, high, nan = bounds
        main.returns(
            main.apply("maximum", low, x),
            main.apply("minimum", x, high),
            main.apply("maximum", nan, x),
        )

    low, high, nan = everywhere([f32(np.nan, -1, -np.inf, np.inf)], "f32[n]", body)
    assert np.isnan(low[0]) and np.isnan(high[0]) and np.isnan(nan).all()
    assert low[1:].tolist() == [-1, -np.inf, np.inf] == high[1:].tolist()


def test_case_22_signed_zeros_survive_simplification() -> None:
    """llvm/llvm-project PR 212751: x + 0.0 is not x for -0.0; 0.0 - x is not a negation."""

    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        plus, minus = main.constant(0.0), main.constant(-0.0)
        main.returns(
            main.apply("add", x, plus),
            main.apply("add", x, minus),
            main.apply("subtract", x, plus),
            main.apply("subtract", plus, x),
            main.apply("negative", x),
        )

    results = everywhere([f32(-0.0, 0.0)], "f32[n]", body)
    signs = [np.signbit(r).tolist() for r in results]
    assert signs == [[False, False], [True, False], [True, False], [False, False], [False, True]]


SPECIAL = (0.0, -0.0, 1.0, -np.inf, np.nan)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "minimum"])
def test_case_22_no_operator_forgets_a_special_value(name: str) -> None:
    """llvm/llvm-project PR 212751, #114594: each constant on either side, and x with itself."""

    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        constants = [main.constant(c) for c in SPECIAL]
        main.returns(
            main.apply(name, x, x),
            *(main.apply(name, x, c) for c in constants),
            *(main.apply(name, c, x) for c in constants),
        )

    everywhere([f32(*SPECIAL, -1, np.inf, 1e-42, 3e38)], "f32[n]", body)


def test_case_25_nan_times_false_is_nan() -> None:
    """jax-ml/jax#12233: a product with a cast bool is no select."""

    def body(main: FunctionBuilder) -> None:
        x, c = main.parameters
        cast = main.apply("cast", c, dtype="float32")
        main.returns(main.apply("multiply", x, c), main.apply("multiply", x, cast))

    arguments = [f32(np.nan, np.inf, -2), np.array([False, False, False])]
    for result in everywhere(list(arguments), "f32[n], bool[n]", body):
        assert np.isnan(result[:2]).all()
        assert np.signbit(result[2]) and result[2] == 0


def test_case_26_small_scores_survive_a_large_mask() -> None:
    """jax-ml/jax#6566: scores + (-1 * 1e30 * (1 - mask)) is not reassociated."""

    def body(main: FunctionBuilder) -> None:
        scores, mask = main.parameters
        off = main.apply("subtract", main.constant(1.0), mask)
        large = main.apply("multiply", main.constant(-1.0), main.constant(1e30))
        masked = main.apply("add", scores, main.apply("multiply", large, off))
        largest = main.apply("max", masked, axis=-1, keepdims=True)
        main.returns(main.apply("subtract", masked, largest))

    (result,) = everywhere([f32(0.7, 0.5), f32(1, 1)], "f32[n], f32[n]", body)
    assert result.tolist() == [0, float(F32(0.5) - F32(0.7))]


def test_case_31_a_further_output_changes_no_other() -> None:
    """pytorch/pytorch#114229: the same value alone and beside its operand."""

    def body(keep: bool) -> Body:
        def emit(main: FunctionBuilder) -> None:
            a, b = main.parameters
            m = main.apply("multiply", main.apply("divide", a, b), main.apply("tanh", a))
            difference = main.apply("subtract", m, m)
            largest = main.apply("max", difference)
            main.returns(largest, difference, *([m] if keep else []))

        return emit

    arguments: list[object] = [f32(1, -3, 0, 1e-42, 2), f32(0, 7, 0, 3, 2)]
    alone = everywhere(arguments, "f32[n], f32[n]", body(False))
    beside = everywhere(arguments, "f32[n], f32[n]", body(True))
    assert_same(alone, beside[:2], "with a further output")


def test_case_44_shifts_past_the_width() -> None:
    """pytorch/pytorch#143555: 1000 >> 64 is 0, constant or not."""
    counts = np.array([31, 32, 63, 64, 65, 100, -1])

    def body(main: FunctionBuilder) -> None:
        x, y = main.parameters
        constant = main.constant(64)
        main.returns(
            main.apply("right_shift", x, y),
            main.apply("left_shift", x, y),
            main.apply("right_shift", x, constant),
            main.apply("left_shift", x, constant),
        )

    types = "i64[n], i64[n]"
    right, left, right64, left64 = everywhere([np.full(7, 1000), counts], types, body)
    assert right.tolist() == [0] * 7
    assert left.tolist() == [1000 << 31, 1000 << 32, 0, 0, 0, 0, 0]
    assert right64.tolist() == left64.tolist() == [0] * 7
    right, _, right64, _ = everywhere([np.full(7, -1000), counts], types, body)
    assert right.tolist() == right64.tolist() == [-1] * 7


def test_case_44_shifts_by_and_of_constants() -> None:
    """pytorch/pytorch#143566: every count as a constant, and as what is shifted, by Python's rules."""
    counts = (0, 31, 63, 64, 65, 100, -1)

    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        for_each = [main.constant(c) for c in counts]
        main.returns(
            *(main.apply("left_shift", x, c) for c in for_each),
            *(main.apply("right_shift", x, c) for c in for_each),
            *(main.apply("right_shift", c, x) for c in for_each),
        )

    x = np.array([1000, -1000, 1, -1, 0, 64, 2**63 - 1, -(2**63)])
    results = everywhere([x], "i64[n]", body)
    for count, left, right in zip(counts, results, results[len(counts) :], strict=False):
        wide = min(count, 64) if count >= 0 else 64
        wrapped = [((int(v) << wide) + 2**63) % 2**64 - 2**63 for v in x]
        assert left.tolist() == wrapped
        assert right.tolist() == [int(v) >> wide for v in x]


def test_case_47_a_fused_shift_is_arithmetic() -> None:
    """pytorch/pytorch#127310: -1 made in the same kernel, shifted right by 31, stays -1."""

    def body(main: FunctionBuilder) -> None:
        x, y = main.parameters
        made = main.apply("subtract", x, main.constant(1))
        main.returns(main.apply("right_shift", made, y))

    (result,) = everywhere([np.zeros(5, np.int64), np.full(5, 31)], "i64[n], i64[n]", body)
    assert result.tolist() == [-1] * 5


@pytest.mark.parametrize("element", ["f64", "i32"])
def test_case_25_false_times_what_is_wider(element: str) -> None:
    """jax-ml/jax#12233: bool is cast to what it meets, so NaN * False is NaN; 5 * False is 0."""

    def body(main: FunctionBuilder) -> None:
        main.returns(main.apply("multiply", *main.parameters))

    x = np.array([np.nan, 1.5, np.inf]) if element == "f64" else np.array([5, -1, 7], np.int32)
    flags = np.array([False, True, False])
    (result,) = everywhere([x, flags], f"{element}[n], bool[n]", body)
    assert result.dtype == x.dtype
    want = [np.nan, 1.5, np.nan] if element == "f64" else [0, -1, 0]
    np.testing.assert_array_equal(result, want)


def test_case_44_shifts_past_the_width_of_int32() -> None:
    """pytorch/pytorch#143555: 1000 >> 32 is 0 in int32, constant or not."""
    counts = (31, 32, 63, 64, 65, 100, -1)

    def body(main: FunctionBuilder) -> None:
        x, y = main.parameters
        constants = [main.constant(c) for c in counts]
        main.returns(
            main.apply("right_shift", x, y),
            main.apply("left_shift", x, y),
            *(main.apply("right_shift", x, c) for c in constants),
            *(main.apply("left_shift", x, c) for c in constants),
        )

    for number, sign in ((1001, 0), (-1000, -1)):
        x = np.full(7, number, np.int32)
        results = everywhere([x, np.array(counts, np.int32)], "i32[n], i32[n]", body)
        assert all(r.dtype == np.int32 for r in results)
        right, left, *by_constants = results
        assert right.tolist() == [sign] * 7
        smallest = -(2**31) if number % 2 else 0
        assert left.tolist() == [smallest, *[0] * 6]
        assert [r[0] for r in by_constants] == [*right, *left]


def test_case_46_shifts_of_int64_into_int32() -> None:
    """pytorch/pytorch#118265: the shift is that of int64, whatever becomes of its result."""

    def body(main: FunctionBuilder) -> None:
        shifted = main.apply("right_shift", *main.parameters)
        main.returns(main.apply("cast", shifted, dtype="int32"))

    x = np.array([2**40 + 7, -(2**40), -1, 2**63 - 1, -(2**63), 5, -9])
    counts = np.array([3, 35, 63, 2**40, -(2**63), -1, 2], np.int64)
    (result,) = everywhere([x, counts], "i64[n], i64[n]", body)
    wide = [int(v) >> (int(c) if 0 <= c < 64 else 63) for v, c in zip(x, counts, strict=True)]
    assert result.tolist() == [(v + 2**31) % 2**32 - 2**31 for v in wide]


def test_case_49_int32_wraps_at_each_operator() -> None:
    """pytorch/pytorch#105264: what is cast to int64 afterwards has wrapped before."""

    def body(main: FunctionBuilder) -> None:
        x, y = main.parameters
        made = [main.apply(o, x, y) for o in ("add", "subtract", "multiply", "left_shift")]
        made += [main.apply(o, x) for o in ("negative", "abs")]
        main.returns(*(main.apply("cast", v, dtype="int64") for v in made))

    x = np.array([2**31 - 1, -(2**31), -(2**31), 2**16, -7], np.int32)
    y = np.array([1, 1, -1, 2**16, 30], np.int32)
    results = everywhere([x, y], "i32[n], i32[n]", body)
    pairs = list(zip(map(int, x), map(int, y), strict=True))
    exact = (
        [a + b for a, b in pairs],
        [a - b for a, b in pairs],
        [a * b for a, b in pairs],
        [a << b if 0 <= b < 32 else 0 for a, b in pairs],
        [-a for a, _ in pairs],
        [abs(a) for a, _ in pairs],
    )
    for result, numbers in zip(results, exact, strict=True):
        assert result.tolist() == [(v + 2**31) % 2**32 - 2**31 for v in numbers]


def test_case_50_what_is_compared_is_what_is_returned() -> None:
    """pytorch/pytorch#93829: the negated smallest int32 is itself, and below 4."""

    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        negated = main.apply("negative", x)
        main.returns(negated, main.apply("less", negated, main.constant(4)))

    x = np.array([-(2**31), 6, -6], np.int32)
    negated, below = everywhere([x], "i32[n]", body)
    assert negated.tolist() == [-(2**31), -6, 6]
    assert below.tolist() == [True, True, False]


@pytest.mark.parametrize("element", ["bool", "i32"])
def test_case_52_a_sum_has_one_dtype(element: str) -> None:
    """pytorch/pytorch#198081: sums of bool and int32 are int64, so that what follows does not wrap."""

    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        total = main.apply("sum", x)
        main.returns(main.apply("multiply", total, main.constant(2**31)), main.apply("max", x))

    x = np.ones(40, np.bool_ if element == "bool" else np.int32)
    scaled, largest = everywhere([x], f"{element}[n]", body)
    assert scaled.dtype == np.int64 and int(scaled) == 40 * 2**31
    assert largest.dtype == x.dtype


@pytest.mark.parametrize("target", ["int32", "int64"])
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_case_53_one_rule_for_floats_that_are_no_integer(element: str, target: str) -> None:
    """pytorch/pytorch#156788: truncation; NaN, infinities and what is out of range: the smallest."""

    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        main.returns(main.apply("cast", x, dtype=target))

    info = np.iinfo(target)
    inside = [-2.18, 2.9, -0.0, float(info.min), 2.0**30]
    outside = [np.nan, np.inf, -np.inf, -float(info.min), 1.5 * info.min, 1e30]
    kind = np.float32 if element == "f32" else np.float64
    if (element, target) == ("f64", "int32"):
        inside += [2147483647.5, -2147483648.9]
    x = np.array(inside + outside, kind)
    (result,) = everywhere([x], f"{element}[n]", body)
    assert result.tolist() == [int(v) for v in inside] + [info.min] * len(outside)


_SCALARS = {
    "f32": np.float32,
    "f64": np.float64,
    "i32": np.int32,
    "i64": np.int64,
    "bool": np.bool_,
}
_PYTHON = {"float": 2.5, "int": 3, "pybool": True}


@pytest.mark.parametrize("left", _SCALARS)
def test_case_55_one_table_of_promotion(left: str) -> None:
    """pytorch/pytorch#58489: arrays, arrays of rank 0 and Python scalars promote as in NumPy 2, in every
    tier."""

    def body(main: FunctionBuilder) -> None:
        names = ("add", "multiply", "divide", "maximum", "equal")
        main.returns(*(main.apply(n, *main.parameters) for n in names))

    x = np.array([3, 0, 1], _SCALARS[left])
    others = {f"{t}[n]": np.array([1, 2, 1], kind) for t, kind in _SCALARS.items()}
    others |= {f"{t}[]": np.array(1, kind) for t, kind in _SCALARS.items()}
    for types, y in (others | _PYTHON).items():
        results = everywhere([x, y], f"{left}[n], {types}", body)
        with np.errstate(all="ignore"):
            wanted = [f(x, y) for f in (np.add, np.multiply, np.divide, np.maximum, np.equal)]
        for result, want in zip(results, wanted, strict=True):
            assert result.dtype == want.dtype, (left, types)
            np.testing.assert_array_equal(result, want)


def test_case_70_a_counter_that_would_pass_the_largest_int32() -> None:
    """llvm/llvm-project#64575: `for (i = 0; i < 1; i += x)` runs once, for x up to the largest number."""

    def body(main: FunctionBuilder) -> None:
        x, start = main.parameters
        i, trips = main.move(start), main.move(start)
        head, inside, done = (main.block(name) for name in ("head", "inside", "done"))
        main.branch(head)
        main.enter(head)
        one = main.constant(np.array(1, np.int32))
        main.branch_if(main.apply("less", i, one), inside, done)
        main.enter(inside)
        main.apply("add", i, x, into=i)
        main.apply("add", trips, one, into=trips)
        main.branch(head)
        main.enter(done)
        main.returns(trips, i)

    for step in (1, 2, 2**31 - 1):
        arguments = [np.array(step, np.int32), np.array(0, np.int32)]
        trips, last = everywhere(arguments, "i32[], i32[]", body)
        assert (int(trips), int(last)) == (1, step)


def test_case_68_a_sum_of_sums_still_reads_the_inputs() -> None:
    """spcl/dace#1561: T = X * Y with three axes, summed twice, is the total of the matrix product."""

    def body(main: FunctionBuilder) -> None:
        x, y = main.parameters  # (i, 1, k) and (j, k)
        rows = main.apply("sum", main.apply("multiply", x, y), axis=-1, keepdims=False)
        main.returns(rows, main.apply("sum", rows))

    x, y = np.arange(6, dtype=F32).reshape(2, 3), np.arange(12, dtype=F32).reshape(4, 3)
    rows, total = everywhere([x[:, None, :].copy(), y], "f32[i,1,k], f32[j,k]", body)
    assert rows.tolist() == (x @ y.T).tolist()
    assert float(total) == float((x @ y.T).sum())
