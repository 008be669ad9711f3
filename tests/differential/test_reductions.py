"""Reductions over every set of axes: interpreter, compiled code and oracle give the same bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np
import pytest
from differential.harness import Compiled, assert_same, by_oracle, everywhere, for_all, program

import jitdialects as jd
from jitdialects.analysis import schedule_reduction
from jitdialects.analysis.schedule_reduction import CHUNK_OF_ROW
from jitdialects.bytecode.attributes import Attribute, Ints, OperandRef, ShapeSpec
from jitdialects.bytecode.builder import FunctionBuilder
from jitdialects.bytecode.signature import parse
from jitdialects.lowering import loop_reduction
from jitdialects.lowering.loop_reduction import BLOCK
from jitdialects.runtime.identity import feature_level
from jitdialects.runtime.native import native_library
from jitdialects.runtime.threads import default_threads

EDGES = (1, 2, 31, 32, 33, 63, 65, 4095, 4096, 4097, 3 * 4096 + 5)
FOLDS = ("sum", "prod", "max", "min")


def floats(*shape: int) -> np.ndarray:
    """Numbers of different sizes, so that another order of additions has other bits."""
    rng = np.random.default_rng(sum(shape))
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-8, 8, shape)).astype(np.float32)


def reduced(names: Sequence[str], axis: Attribute, keepdims: bool = False):
    """A body that applies each of the operators."""

    def body(main: FunctionBuilder) -> None:
        more = [{"correction": 1} if name == "var" else {} for name in names]
        main.returns(
            *(
                main.apply(name, main.parameters[0], axis=axis, keepdims=keepdims, **each)
                for name, each in zip(names, more, strict=True)
            )
        )

    return body


def subsets(rank: int) -> list[Ints]:
    axes = range(rank)
    return [Ints(chosen) for count in range(rank + 1) for chosen in combinations(axes, count)]


@pytest.mark.parametrize("axis", subsets(4), ids=str)
def test_every_set_of_axes(axis: Ints) -> None:
    x = floats(3, 5, 4, 7)
    got = everywhere([x], "f32[a,b,c,d]", reduced(("sum", "mean", "max"), axis, True))
    np.testing.assert_allclose(got[0], x.sum(axis=axis.values, keepdims=True), 1e-4, 1e-4)
    assert_same(got[2:], [x.max(axis=axis.values, keepdims=True)], "max")


@pytest.mark.parametrize("axis", subsets(3), ids=str)
def test_every_set_of_axes_of_what_is_repeated_along_one(axis: Ints) -> None:
    """Nothing else is reduced than the repetition."""

    def body(main: FunctionBuilder) -> None:
        repeated = main.apply("broadcast_to", main.parameters[0], shape=ShapeSpec((2, 9, 5)))
        main.returns(*(main.apply(name, repeated, axis=axis) for name in ("sum", "max")))

    for columns in (5, 1):
        everywhere([floats(9, columns)], f"f32[9,{columns}]", body)


def test_rows_of_one_number_that_is_in_memory() -> None:
    """It is loaded once per row, from the same place for all, and read by several loops along the row."""

    def body(main: FunctionBuilder) -> None:
        x, y = main.parameters
        least = main.apply("min", x, axis=None, keepdims=True)
        size = main.apply("size", y, axis=0)
        rows = main.apply("broadcast_to", least, size, shape=ShapeSpec((2, OperandRef(1))))
        positive = main.apply("greater", rows, main.constant(-9.0))
        main.returns(main.apply("sum", rows, axis=-1), main.apply("all", positive, axis=-1))

    for_all([[floats(5), floats(n)] for n in (1, 40, 4097)], "f32[n], f32[m]", body)


@pytest.mark.parametrize("axis", subsets(3), ids=str)
def test_every_set_of_axes_of_a_view(axis: Ints) -> None:
    x = floats(7, 6, 9)[1::2, :, ::2].transpose(1, 0, 2)
    everywhere([x], "f32[a,b,c]:strided", reduced(("sum", "min", "var"), axis))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ["f32", "i64", "bool"])
def test_every_dtype(kind: str, axis: int) -> None:
    x = floats(37, 35)
    x[3, 4], x[:, 7] = np.nan, -0.0
    data = {"f32": x, "i64": np.nan_to_num(x * 100).astype(np.int64), "bool": x > 1}[kind]
    names = ("any", "all", "max", "min", *(() if kind == "bool" else ("sum", "prod")))
    everywhere([data], f"{kind}[n,m]", reduced(names, axis))


@pytest.mark.parametrize("inner", [1, 3, 8, 70])
def test_lengths_of_the_first_axis(inner: int) -> None:
    calls = [[floats(n, inner)] for n in EDGES]
    for_all(calls, f"f32[n,{inner}]", reduced(("sum", "max"), 0))


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_lengths_of_the_last_axis(rows: int) -> None:
    calls = [[floats(rows, n)] for n in EDGES]
    for_all(calls, f"f32[{rows},n]", reduced(("sum", "max"), 1))


@pytest.mark.parametrize("length", EDGES)
@pytest.mark.parametrize("axis", [0, 1])
def test_static_lengths(length: int, axis: int) -> None:
    x = floats(length, 9) if axis == 0 else floats(9, length)
    shape = ",".join(map(str, x.shape))
    everywhere([x], f"f32[{shape}]", reduced(("sum", "max"), axis))


@pytest.mark.parametrize("length", [3, 8, 15, 16, 17])
def test_columns_of_a_few_elements(length: int) -> None:
    made = program(1, reduced(("sum", "prod", "max", "min"), 0))
    x = floats(length, 70)
    x[:, 3] = -0.0
    x[1, 5] = np.nan
    want = by_oracle(made, [x])
    assert_same(Compiled(made, parse(f"main(f32[{length},70])")).run([x]), want, "static")
    assert_same(Compiled(made, parse(f"main(f32[{length},n])")).run([x]), want, "any columns")


_SPECIAL = (0.0, -0.0, 1.5, -1.5, 1e-45, -1e-45, np.inf, -np.inf, np.nan, -np.nan)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [2, 5, 70, 5000])
def test_signs_of_zeros_and_of_nans(dtype: type, length: int) -> None:
    """The maximum of two zeros is the positive one; every NaN wins, whichever its sign and place."""
    rng = np.random.default_rng(length)
    rare = rng.random((100, length)) < 2 / length
    pairs = np.array([(a, b) for a in _SPECIAL for b in _SPECIAL])
    others = np.where(rng.random((100, 1)) < 0.5, -1, 1) * np.abs(floats(100, length))
    two = np.where(rare, pairs[:, :1], pairs[:, 1:])
    one = np.where(rare, pairs[:, :1], others)
    kind = "f32" if dtype is np.float32 else "f64"
    for axis in (0, 1):
        made = program(1, reduced(("max", "min"), axis))
        compiled = Compiled(made, parse(f"main({kind}[n,m])"))
        for x in (two, one):
            data = np.ascontiguousarray((x if axis else x.T).astype(dtype))
            assert_same(compiled.run([data]), by_oracle(made, [data]), f"axis {axis}")


@pytest.fixture
def threads_as_they_were() -> Iterator[None]:
    before = jd.config.threads
    default_threads.load(native_library("thread_pool", feature_level()))
    yield
    jd.config.threads = before


_BODIES = {
    **{name: reduced((name,), 0) for name in (*FOLDS, "var")},
    "dot": lambda main: main.returns(main.apply("matmul", *main.parameters * 2)),
    "two": reduced(("sum", "max", "min"), 0),
    "kept": lambda main: main.returns(
        total := main.apply("sum", root := main.apply("abs", *main.parameters), axis=0),
        main.apply("divide", root, total),
    ),
}


@pytest.mark.usefixtures("threads_as_they_were")
@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, "f32") for name in _BODIES), *product(("sum", "max"), ("f64", "i64"))],
)
def test_blocks_of_one_row(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight blocks together, not 1024, in chunks of one: on any number of threads."""
    monkeypatch.setattr(loop_reduction, "TOGETHER", 8)
    monkeypatch.setattr(schedule_reduction, "CHUNK_OF_ROW", BLOCK)
    made = program(1, _BODIES[name])
    types = {"f32": np.float32, "f64": np.float64, "i64": np.int64}
    general = Compiled(made, parse(f"main({kind}[n])"))
    exact = Compiled(made, parse(f"main({kind}[{18 * BLOCK + 77}])"))
    for code in (general, exact):
        assert any(line.endswith("(blocks)") for line in code.facts.schedules)
        assert code.facts.parallel
    lengths = (0, 1, 4096, 4097, 7 * BLOCK, 8 * BLOCK, 13 * BLOCK + 1, 18 * BLOCK + 77)
    for n in lengths[name in ("max", "min", "var", "two", "kept") :]:
        x = (floats(n) * 100).astype(types[kind])
        want = by_oracle(made, [x])
        codes = (general, exact) if n == lengths[-1] else (general,)
        for code, threads in product(codes, (1, 2, 3, 4)):
            jd.config.threads = threads
            assert_same(code.run([x]), want, f"n={n}, {threads} threads")


@pytest.mark.parametrize("chunks", [1, 2])
def test_a_row_that_is_no_two_chunks_stays_in_one_thread(chunks: int) -> None:
    length = chunks * CHUNK_OF_ROW
    made = program(1, reduced(("sum",), 0))
    compiled = Compiled(made, parse(f"main(f32[{length}])"))
    assert compiled.facts.parallel == (chunks > 1)
    x = floats(length)
    assert_same(compiled.run([x]), by_oracle(made, [x]), f"n={length}")


@pytest.mark.parametrize("columns", [1, 7, 4095, 4097, 5000])
@pytest.mark.parametrize("rows", [1, 37, 300])
def test_segments_of_rows(rows: int, columns: int) -> None:
    """Tiles of columns, static and not."""
    made = program(1, reduced(("sum", "max"), 0))
    x = floats(rows, columns)
    want = by_oracle(made, [x])
    for types in (f"f32[{rows},{columns}]", "f32[n,m]"):
        assert_same(Compiled(made, parse(f"main({types})")).run([x]), want, types)


def test_a_sum_does_not_depend_on_the_layout() -> None:
    """Over axis 0, over axis 1 of the transpose, strided and copied, row by row: one set of bits."""
    x = floats(3 * 4096 + 5, 21)
    first = Compiled(program(1, reduced(("sum",), 0)), parse("main(f32[n,m])"))
    last = Compiled(program(1, reduced(("sum",), 1)), parse("main(f32[n,m])"))
    view = Compiled(program(1, reduced(("sum",), 1)), parse("main(f32[n,m]:strided)"))
    want = first.run([x])
    assert_same(last.run([np.ascontiguousarray(x.T)]), want, "rows")
    assert_same(view.run([x.T]), want, "a view of rows")
    column = last.run([np.ascontiguousarray(x[:, 4:5].T)])
    assert_same(column, [want[0][4:5]], "one row")


@pytest.mark.parametrize("correction", [0, 1, 7, 8])
def test_variance_with_fewer_degrees_of_freedom(correction: int) -> None:
    """NumPy's meaning where n - correction is not positive: a division by zero."""
    made = program(
        1,
        lambda main: main.returns(
            main.apply("var", *main.parameters, axis=1, keepdims=False, correction=correction)
        ),
    )
    x = floats(3, 7)
    got = Compiled(made, parse("main(f32[n,m])")).run([x])
    assert_same(got, by_oracle(made, [x]), "compiled")
    with np.errstate(all="ignore"):
        spread = x.astype(np.float64).var(axis=1) * 7 / np.float64(max(7 - correction, 0))
    np.testing.assert_allclose(got[0], spread, 1e-4)
