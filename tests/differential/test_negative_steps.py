"""Negative steps and strides are data layout, not meaning: every engine and NumPy agree."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from differential.harness import Compiled, assert_same, by_oracle, interpreted, program

from jitdialects.bytecode.attributes import IndexSpec, Ints, OperandRef, Slice
from jitdialects.bytecode.builder import FunctionBuilder
from jitdialects.bytecode.signature import parse

BOUNDS = (None, 0, 1, 3, 9, -1, -2, -9)
STEPS = (-1, -2, -3, 2)


def take(entry: Slice):
    def body(main: FunctionBuilder) -> None:
        x = main.parameters[0]
        part = main.apply("getitem", x, index=IndexSpec((entry,)))
        main.returns(part, main.apply("negative", part), main.apply("sum", part))

    return body


def put(entry: Slice):
    def body(main: FunctionBuilder) -> None:
        x = main.parameters[0]
        part = main.apply("getitem", x, index=IndexSpec((entry,)))
        main.returns(main.apply("setitem", x, main.apply("abs", part), index=IndexSpec((entry,))))

    return body


@pytest.mark.parametrize("step", STEPS)
def test_the_interpreter_follows_python(step: int) -> None:
    for start, stop, n in product(BOUNDS, BOUNDS, (0, 1, 2, 5, 8)):
        x = np.arange(n, dtype=np.float32) - 3
        want = x[start:stop:step]
        made = program(1, take(Slice(start, stop, step)))
        got = interpreted(made, [x])
        np.testing.assert_array_equal(got[0], want)
        assert_same(by_oracle(made, [x]), got, f"[{start}:{stop}:{step}] of {n}")


@pytest.mark.parametrize("body", [take, put])
@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [
        (None, None, -1),
        (5, 1, -2),
        (-1, None, -3),
        (None, -4, -1),
        (2, 9, -1),
        (9, 0, -1),
        (0, None, -1),
    ],
)
@pytest.mark.parametrize("types", ["f32[n]", "f32[n]:strided"])
def test_compiled_code_follows_the_interpreter(body, start, stop, step, types) -> None:
    made = program(1, body(Slice(start, stop, step)))
    code = Compiled(made, parse(f"main({types})"))
    for n in (0, 1, 2, 5, 8, 33, 70):
        x = (
            np.arange(2 * n, dtype=np.float32)[::2] - 3
            if "strided" in types
            else np.arange(n, dtype=np.float32) - 3
        )
        if x.flags.c_contiguous is ("strided" in types):
            continue
        assert_same(code.run([x]), interpreted(made, [x]), f"{types} of {n}")


def test_bounds_that_are_arguments() -> None:
    def body(main: FunctionBuilder) -> None:
        x, start, stop = main.parameters
        entry = Slice(OperandRef(1), OperandRef(2), -2)
        main.returns(main.apply("getitem", x, start, stop, index=IndexSpec((entry,))))

    made = program(3, body)
    code = Compiled(made, parse("main(f32[n], int, int)"))
    for n, start, stop in product((0, 1, 5, 8), (-9, -3, 0, 4, 7), (-9, -2, 0, 3, 9)):
        given = [np.arange(n, dtype=np.float32), start, stop]
        np.testing.assert_array_equal(code.run(given)[0], given[0][start:stop:-2])
        assert_same(code.run(given), interpreted(made, given), f"[{start}:{stop}:-2] of {n}")


def matrix(main: FunctionBuilder) -> None:
    x, y = main.parameters
    both = main.apply("getitem", x, index=IndexSpec((Slice(step=-1), Slice(step=-2))))
    turned = main.apply("transpose", both, axes=Ints((1, 0)))
    product_ = main.apply(
        "matmul", turned, main.apply("getitem", y, index=IndexSpec((Slice(step=-1),)))
    )
    main.returns(both, main.apply("add", product_, product_), main.apply("max", turned, axis=-1))


@pytest.mark.parametrize("types", ["f32[m,n], f32[m,k]", "f32[m,n]:strided, f32[m,k]:strided"])
def test_views_of_views_and_products(types: str) -> None:
    made = program(2, matrix)
    code = Compiled(made, parse(f"main({types})"))
    rng = np.random.default_rng(0)
    for m, n, k in [(1, 4, 4), (5, 7, 3), (33, 18, 9)]:
        x = rng.standard_normal((m, n)).astype(np.float32)
        y = rng.standard_normal((m, k)).astype(np.float32)
        given = [x[:, ::-1], y[:, ::-1]] if "strided" in types else [x, y]
        assert_same(code.run(given), interpreted(made, given), f"{types} {m} {n} {k}")
        assert_same(by_oracle(made, given), interpreted(made, given), f"oracle {m} {n} {k}")


@pytest.mark.parametrize("n", [1, 2, 31, 70])
def test_arrays_that_run_backwards_as_arguments(n: int) -> None:
    def body(main: FunctionBuilder) -> None:
        x, y = main.parameters
        total = main.apply("add", x, y)
        main.returns(total, main.apply("sum", total), main.apply("matmul", x, y))

    made = program(2, body)
    code = Compiled(made, parse("main(f32[n]:strided, f32[n]:strided)"))
    rng = np.random.default_rng(n)
    x, y = (rng.standard_normal(2 * n).astype(np.float32) for _ in range(2))
    for given in ([x[::-2], y[1::2]], [x[::2], y[::-2]]):
        if n > 1:
            assert_same(code.run(given), interpreted(made, given), str(n))
        assert_same(by_oracle(made, given), interpreted(made, given), str(n))
