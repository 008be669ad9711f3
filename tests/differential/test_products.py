"""Products under every schedule that the policy chooses, against the definition: equal bits.

Rows in tiles of two sizes and the rest of both, one row, panels of several tiles, a ragged last tile, more than one
block along k, right operands that are arguments (copied, or read once) or constants (packed by the caller), fused
epilogues, one of them in place.
"""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from differential.harness import Compiled, assert_same, by_oracle, program

from jitdialects.bytecode.builder import FunctionBuilder
from jitdialects.bytecode.signature import parse
from jitdialects.passes.loop_pack import UNKNOWN_PANEL_BYTES

DEPTH, COLUMNS = 530, 150
"""Two blocks along k; several panels, the last of fewer tiles, and a ragged tile."""
DTYPES = {"f32": np.float32, "f64": np.float64}


def numbers(dtype: str, *shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(DTYPES[dtype])


def product(dtype: str, depth: int, columns: int, constant: bool, bias: bool = False):
    """x @ w, with w a constant or the second argument; with `bias`, relu(x @ w + b)."""
    w, b = numbers(dtype, depth, columns), numbers(dtype, columns)

    def body(f: FunctionBuilder) -> None:
        y = f.apply("matmul", f.parameters[0], f.constant(w) if constant else f.parameters[1])
        if bias:
            y = f.apply("maximum", f.apply("add", y, f.constant(b)), f.constant(0))
        f.returns(y)

    def want(x: np.ndarray) -> np.ndarray:
        y = oracle.matmul(x, w)
        return np.maximum(y + b, 0) if bias else y

    return program(1 if constant else 2, body), (() if constant else (w,)), want


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("schedule", ["x86-64-v3", "x86-64-v4"])
def test_any_number_of_rows(schedule: str, dtype: str, constant: bool) -> None:
    columns, most = (COLUMNS, 21) if dtype == "f32" else (85, 13)  # the oracle is exact, not fast
    made, others, want = product(dtype, DEPTH, columns, constant, bias=True)
    second = "" if constant else f", {dtype}[{DEPTH},{columns}]"
    compiled = Compiled(made, parse(f"main({dtype}[m,{DEPTH}]{second})"), schedule)
    rows = numbers(dtype, most, DEPTH)
    expected = want(rows)
    for m in (*range(min(15, most)), most):
        assert_same(compiled.run([rows[:m], *others]), [expected[:m]], f"{m} rows")


@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(1, 530, 150), (1, 3, 70), (4, 7, 80), (8, 40, 64), (16, 513, 65), (16, 12, 128), (64, 5, 16)],
)
@pytest.mark.parametrize("constant", [False, True])
def test_static_sizes(m: int, k: int, n: int, constant: bool) -> None:
    made, others, want = product("f32", k, n, constant)
    second = "" if constant else f", f32[{k},{n}]"
    x = numbers("f32", m, k)
    for schedule in ("x86-64-v3", "x86-64-v4"):
        compiled = Compiled(made, parse(f"main(f32[{m},{k}]{second})"), schedule)
        assert_same(compiled.run([x, *others]), [want(x)], schedule)


def test_all_sizes_symbolic() -> None:
    made, _, _ = product("f32", 1, 1, constant=False)
    compiled = Compiled(made, parse("main(f32[m,k], f32[k,n])"))
    for m, k, n in ((1, 1, 1), (7, 0, 5), (9, 515, 77), (3, 4, 16), (13, 2, 200), (9, 0, 40)):
        x, w = numbers("f32", m, k), numbers("f32", k, n)
        assert_same(compiled.run([x, w]), [oracle.matmul(x, w)], f"{m}, {k}, {n}")


def test_panels_as_long_as_there_is_room_for() -> None:
    """More than the copy of a panel holds is read where it is: the same rows, as part of longer ones."""
    made, _, _ = product("f32", 1, 1, constant=False)
    compiled = Compiled(made, parse("main(f32[m,k], f32[k,n])"), "x86-64-v4")
    m, n, depth = 9, 70, UNKNOWN_PANEL_BYTES // (64 * 4)
    for k in (depth, depth + 1, 2 * depth + 5):
        x, w = numbers("f32", m, k), numbers("f32", k, n)
        one = [compiled.run([x[i : i + 1], w])[0] for i in range(m)]  # never copied
        assert_same(compiled.run([x, w]), [np.concatenate(one)], f"{k} rows")


def test_a_residual_in_place() -> None:
    """z @ w - x may be stored over -x, which it reads: no row may be done twice."""
    w = numbers("f32", 70, 70)

    def body(f: FunctionBuilder) -> None:
        y = f.apply("negative", f.parameters[0])
        f.returns(f.apply("add", f.apply("matmul", f.parameters[1], f.constant(w)), y))

    compiled = Compiled(program(2, body), parse("main(f32[m,70], f32[m,70])"))
    for m in range(15):
        x, z = numbers("f32", m, 70), numbers("f32", m + 1, 70)[:m]
        assert_same(compiled.run([x, z]), [oracle.matmul(z, w) + -x], f"{m} rows")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("schedule", ["x86-64-v1", "x86-64-v3", "x86-64-v4"])
def test_rows_times_a_vector_abreast(schedule: str, dtype: str) -> None:
    """tanh(w @ h + x): a last tile of fewer rows, a ragged chunk of lanes, more than one block."""
    deep = 4096 + 37

    def body(f: FunctionBuilder) -> None:
        w, h, x = f.parameters
        f.returns(f.apply("tanh", f.apply("add", f.apply("matmul", w, h), x)))

    made = program(3, body)
    for depth in (deep, 37):
        compiled = Compiled(
            made, parse(f"main({dtype}[m,{depth}], {dtype}[{depth}], {dtype}[m])"), schedule
        )
        w, h, x = numbers(dtype, 7, depth), numbers(dtype, depth), numbers(dtype, 7)
        for m in (1, 2, 5, 7):
            arguments = [w[:m], h, x[:m]]
            assert_same(compiled.run(arguments), by_oracle(made, arguments), f"{m} rows")
