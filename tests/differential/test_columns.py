"""Groups over columns: what is computed for a reduction over leading axes, and what follows it, fused or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from differential.harness import Compiled, assert_same, by_oracle, for_all, program
from differential.test_fusion import groups_of

import jitdialects as jd
from jitdialects.bytecode.attributes import Attribute, IndexSpec, Ints, Slice
from jitdialects.bytecode.builder import FunctionBuilder
from jitdialects.bytecode.signature import parse
from jitdialects.runtime.identity import feature_level
from jitdialects.runtime.native import native_library
from jitdialects.runtime.threads import default_threads

RNG = np.random.default_rng(7)
ROWS = (1, 2, 5, 31, 33, 129, 300, 4097)
LEVELS = (("x86-64-v1", "x86-64-v1"), ("x86-64-v3", None), ("x86-64-v4", None))
Body = Callable[[FunctionBuilder], object]


def floats(*shape: int) -> np.ndarray:
    """Numbers of different sizes, so that another order of additions has other bits."""
    return (RNG.standard_normal(shape) * 2.0 ** RNG.integers(-8, 8, shape)).astype(np.float32)


def distance(axis: Attribute = 0) -> Body:
    """The root of a sum of squares, and the greatest distance."""

    def body(main: FunctionBuilder) -> None:
        x, y = main.parameters
        d = main.apply("subtract", x, y)
        total = main.apply("sum", main.apply("multiply", d, d), axis=axis)
        main.returns(main.apply("sqrt", total), main.apply("max", d, axis=axis))

    return body


def batch_norm(main: FunctionBuilder) -> None:
    x, scale, shift = main.parameters
    mean = main.apply("mean", x, axis=0, keepdims=True)
    var = main.apply("var", x, axis=0, keepdims=True, correction=0)
    root = main.apply("sqrt", main.apply("add", var, main.constant(1e-5)))
    z = main.apply("divide", main.apply("subtract", x, mean), root)
    main.returns(main.apply("add", main.apply("multiply", z, scale), shift), mean, var)


@pytest.mark.parametrize("columns", [1, 3, 70])
def test_columns_of_any_length(columns: int) -> None:
    calls = [[floats(n, columns), floats(n, columns)] for n in ROWS]
    for_all(calls, f"f32[n,{columns}], f32[n,{columns}]", distance())


@pytest.mark.parametrize("other", ["f32[m]", "f32[n,1]", "f32[1,1]", "f32[]", "f64[n,m]"])
def test_numbers_per_column_and_per_row(other: str) -> None:
    calls: list[Sequence[object]] = []
    for n, m in ((1, 1), (5, 7), (40, 33), (300, 1), (9, 5000)):
        shapes = {"f32[m]": (m,), "f32[n,1]": (n, 1), "f32[1,1]": (1, 1), "f32[]": ()}
        y = floats(*shapes.get(other, (n, m))).astype(np.float64 if "f64" in other else np.float32)
        calls.append([floats(n, m), y])
    for_all(calls, f"f32[n,m], {other}", distance())


@pytest.mark.parametrize("rows", [1, 3, 16, 17, 4097])
def test_static_shapes(rows: int) -> None:
    for m in (1, 40):
        x, y = floats(rows, m), floats(m)
        for_all([[x, y]], f"f32[{rows},{m}], f32[{m}]", distance())


@pytest.mark.parametrize("schedule, target", LEVELS)
def test_levels_and_threads_have_the_same_bits(schedule: str, target: str | None) -> None:
    before = jd.config.threads
    default_threads.load(native_library("thread_pool", feature_level()))
    made = program(2, distance())
    x, y = floats(70, 9001), floats(9001)
    want = by_oracle(made, [x, y])
    try:
        for types in ("f32[n,m], f32[m]", "f32[70,9001], f32[9001]"):
            code = Compiled(made, parse(f"main({types})"), schedule, target)
            for jd.config.threads in (1, 2):
                assert_same(code.run([x, y]), want, f"{types}, {jd.config.threads} threads")
    finally:
        jd.config.threads = before


@pytest.mark.parametrize("rows", [1024, 1100, 4231])
def test_threads_share_the_rows_of_long_columns(rows: int) -> None:
    """Lanes of a sum, runs of a maximum; with rows that are left over."""
    before = jd.config.threads
    default_threads.load(native_library("thread_pool", feature_level()))
    made = program(2, distance())
    x, y = floats(rows, 1024), floats(1024)
    x[rows - 3, 5], x[7, 6], x[7, 7] = np.nan, -np.inf, -0.0
    want = by_oracle(made, [x, y])
    code = Compiled(made, parse(f"main(f32[{rows},1024], f32[1024])"))
    assert code.facts.parallel
    try:
        for jd.config.threads in (1, 2, 3):
            assert_same(code.run([x, y]), want, f"{rows} rows, {jd.config.threads} threads")
    finally:
        jd.config.threads = before


@pytest.mark.parametrize("axis", [0, 1, Ints((0, 1)), Ints((0, 2)), Ints((1, 2))], ids=str)
def test_axes_elsewhere(axis: Attribute) -> None:
    x, y = floats(3, 35, 4, 9), floats(3, 35, 4, 9)
    wide = np.repeat(x, 2, axis=3)[..., ::2]
    for_all([[x, y]], "f32[a,b,c,d], f32[a,b,c,d]", distance(axis))
    for_all([[x, y[0, 0]]], "f32[a,b,c,d], f32[c,d]", distance(axis))
    for_all([[wide, y[0, 0, 0]]], "f32[a,b,c,d]:strided, f32[d]", distance(axis))


def test_a_kept_shape_that_fits_at_two_places() -> None:
    """[a, c] is what is kept of [a, b, c], and what it is repeated to, where a is b."""

    def body(main: FunctionBuilder) -> None:
        x, y = main.parameters
        total = main.apply("sum", main.apply("multiply", x, y), axis=1)
        main.returns(main.apply("add", total, y))

    for n in (1, 5):
        x, y = floats(n, n, 6), floats(n, 6)
        for_all([[x, y]], f"f32[{n},{n},6], f32[{n},6]", body)
        for_all([[floats(n, n, 2, 3), floats(n, 2, 3)]], f"f32[{n},{n},2,3], f32[{n},2,3]", body)


@pytest.mark.parametrize("axis", [Ints((0, 1)), Ints((1, 2))], ids=str)
def test_axes_of_what_begins_inside_an_array(axis: Attribute) -> None:
    """In C order, but not from the first element on."""

    def body(main: FunctionBuilder) -> None:
        part = main.apply("getitem", main.parameters[0], index=IndexSpec((Slice(1),)))
        main.returns(main.apply("sum", main.apply("abs", part), axis=axis))

    def alone(main: FunctionBuilder) -> None:
        part = main.apply("getitem", main.parameters[0], index=IndexSpec((Slice(1),)))
        main.returns(main.apply("sum", part, axis=axis))

    for each in (body, alone):
        for_all([[floats(3, 5, 6)]], "f32[a,b,c]", each)


def test_one_number_that_is_summed_again() -> None:
    """A mean with axes of size 1: what is reduced is a reshape of a number of the same group."""

    def body(main: FunctionBuilder) -> None:
        mean = main.apply("mean", main.parameters[0], axis=Ints((0, 1)), keepdims=True)
        main.returns(main.apply("sum", main.apply("negative", mean), axis=Ints((0, 1))), mean)

    for_all([[floats(5, 7)], [floats(1, 1)]], "f32[n,m]", body)


def test_batch_norm_is_three_loops_over_its_input() -> None:
    types = "f32[n,m], f32[m], f32[m]"
    calls = [
        [floats(n, m), floats(m), floats(m)] for n, m in ((1, 1), (2, 5), (300, 33), (5000, 2))
    ]
    for_all(calls, types, batch_norm)
    text = groups_of("f32[256,512], f32[512], f32[512]", 3, batch_norm)
    results = [line for line in text.splitlines() if line.lstrip().startswith("} ->")]
    assert len(results) == 3
    assert sum("256x512" in line for line in results) == 1  # the result, and nothing between


def test_integers_and_bools_of_columns() -> None:
    def body(main: FunctionBuilder) -> None:
        x, k = main.parameters
        positive = main.apply("greater", x, main.constant(0.0))
        some = main.apply("any", positive, axis=0)
        total = main.apply("sum", main.apply("multiply", k, k), axis=0)
        least = main.apply("min", main.apply("where", positive, k, main.constant(7)), axis=0)
        main.returns(main.apply("logical_not", some), total, least, positive)

    calls = [[floats(n, 9), RNG.integers(-9, 9, (n, 9))] for n in (1, 8, 70)]
    for_all(calls, "f32[n,m], i64[n,m]", body)


def test_what_is_summed_takes_the_place_of_what_it_is_made_of() -> None:
    """The gradient of a layer: a temporary, its sums, and a product that needs it as a whole."""

    def body(main: FunctionBuilder) -> None:
        x, g, w = main.parameters
        h = main.apply("matmul", x, w)
        d = main.apply("multiply", main.apply("tanh", h), g)
        turned = main.apply("transpose", x, axes=None)
        main.returns(main.apply("matmul", turned, d), main.apply("sum", d, axis=0))

    calls = [[floats(n, 8), floats(n, 24), floats(8, 24)] for n in (1, 6, 50)]
    for_all(calls, "f32[n,8], f32[n,24], f32[8,24]", body)


@pytest.fixture(autouse=True, scope="module")
def quietly() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield
