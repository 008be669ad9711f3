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
