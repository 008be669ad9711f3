"""Groups of several results and over rows: fused, unfused, interpreted and by the definitions, the same bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from differential.harness import Compiled, Results, assert_same, by_oracle, for_all, program

from jitdialects.analysis.fusion_recompute import Recomputation
from jitdialects.bytecode.attributes import Ints
from jitdialects.bytecode.builder import FunctionBuilder
from jitdialects.bytecode.signature import parse

RNG = np.random.default_rng(5)
F32 = np.float32


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(F32)


def softmax(main: FunctionBuilder, x: int, axis: int = -1) -> list[int]:
    """Registers of the maximum, the exponentials, their sum, the quotients."""
    top = main.apply("max", x, axis=axis, keepdims=True)
    e = main.apply("exp", main.apply("subtract", x, top))
    total = main.apply("sum", e, axis=axis, keepdims=True)
    return [top, e, total, main.apply("divide", e, total)]


def layer_norm(main: FunctionBuilder, x: int, g: int, b: int) -> list[int]:
    """Registers of the mean, the variance, the result."""
    mean = main.apply("mean", x, axis=-1, keepdims=True)
    centred = main.apply("subtract", x, mean)
    square = main.apply("multiply", centred, centred)
    var = main.apply("mean", square, axis=-1, keepdims=True)
    root = main.apply("sqrt", main.apply("add", var, main.constant(1e-5)))
    scaled = main.apply("multiply", main.apply("divide", centred, root), g)
    return [mean, var, main.apply("add", scaled, b)]


def groups_of(types: str, count: int, body: Callable[[FunctionBuilder], object]) -> str:
    """The tensor function after fusion, as text."""
    stages: dict[str, str] = {}
    from jitdialects.lowering.pipelines import lower_program

    lower_program(
        program(count, body),
        parse(f"main({types})"),
        "x86-64-v3",
        observe=lambda name, module: stages.update({name: str(module)}),
    )
    return stages["tssa-fuse"]


def test_softmax_and_layer_norm_are_one_group() -> None:
    text = groups_of("f32[n,m]", 1, lambda m: m.returns(softmax(m, *m.parameters)[-1]))
    assert text.count("tssa.group") == 1
    types = "f32[n,64], f32[64], f32[64]"
    text = groups_of(types, 3, lambda m: m.returns(layer_norm(m, *m.parameters)[-1]))
    assert text.count("tssa.group") == 1


LENGTHS = (1, 2, 7, 31, 32, 33, 64, 100, 4096, 5000)


@pytest.mark.parametrize("types", ["f32[n,m]", "f32[n,m]:strided", "f64[n,m]"])
def test_softmax_of_rows_of_any_length(types: str) -> None:
    calls: list[Sequence[object]] = []
    for length in LENGTHS:
        x = (normal(3, length) * 10).astype(np.float64 if "64" in types else F32)
        x[1, length // 2] = np.inf
        x[2, 0] = np.nan if length % 2 else -np.inf
        calls.append([np.repeat(x, 2, axis=1)[:, ::2] if "strided" in types else x])
    if "strided" in types:
        calls = [c for c in calls if not np.asarray(c[0]).flags.c_contiguous]
    for_all(calls, types, lambda m: m.returns(softmax(m, *m.parameters)[-1]))


def test_softmax_of_a_vector_and_of_three_axes() -> None:
    def body(main: FunctionBuilder) -> None:
        main.returns(softmax(main, *main.parameters)[-1])

    for_all([[normal(n)] for n in LENGTHS], "f32[n]", body)
    for_all([[normal(2, 3, n)] for n in (1, 5, 33)], "f32[a,b,n]", body)


def test_layer_norm_of_rows_of_any_length() -> None:
    def body(main: FunctionBuilder) -> None:
        main.returns(*layer_norm(main, *main.parameters))

    for_all(
        [[normal(4, n), normal(n), normal(n)] for n in LENGTHS], "f32[k,n], f32[n], f32[n]", body
    )


def test_everything_on_the_way_may_be_a_result_too() -> None:
    """Whatever else is an output, in whatever order, each has the bits that it has alone."""

    def body(*chosen: int) -> Callable[[FunctionBuilder], object]:
        return lambda m: m.returns(*(softmax(m, *m.parameters)[k] for k in chosen))

    x = normal(5, 70)
    alone = [for_all([[x]], "f32[n,m]", body(k))[0][0] for k in range(4)]
    for chosen in ((0, 3), (3, 1), (2, 1, 3, 0), (1, 2)):
        got = for_all([[x]], "f32[n,m]", body(*chosen))[0]
        assert_same(got, [alone[k] for k in chosen], str(chosen))


def test_log_sum_exp_and_a_second_use_of_the_exponentials() -> None:
    def body(main: FunctionBuilder) -> None:
        x, y = main.parameters
        top, e, total, _ = softmax(main, x)
        result = main.apply("add", main.apply("log", total), top)
        weighted = main.apply("sum", main.apply("multiply", e, y), axis=-1, keepdims=True)
        main.returns(result, main.apply("divide", weighted, total), main.apply("tanh", x))

    for_all([[normal(3, n), normal(3, n)] for n in (1, 40, 4100)], "f32[k,n], f32[k,n]", body)


def test_prologue_and_epilogue_of_sums_of_all_axes() -> None:
    def body(main: FunctionBuilder) -> None:
        x, y = main.parameters
        dot = main.apply("sum", main.apply("multiply", x, y))
        distance = main.apply("subtract", x, y)
        squares = main.apply("sum", main.apply("multiply", distance, distance))
        main.returns(main.apply("sqrt", squares), main.apply("negative", dot))

    for_all([[normal(n, 9), normal(n, 9)] for n in (0, 1, 5, 500)], "f32[n,9], f32[n,9]", body)
    wide = normal(6, 18)
    for_all([[wide[:, ::2], normal(6, 9)]], "f32[n,9]:strided, f32[n,9]", body)


def test_integers_and_bools_over_rows() -> None:
    def body(main: FunctionBuilder) -> None:
        x, k = main.parameters
        positive = main.apply("greater", x, main.constant(0.0))
        some = main.apply("max", positive, axis=-1, keepdims=True)
        total = main.apply("sum", main.apply("multiply", k, k), axis=-1, keepdims=True)
        both = main.apply("logical_and", positive, some)
        main.returns(both, main.apply("logical_not", some), main.apply("add", k, total))

    calls = [[normal(3, n), RNG.integers(-9, 9, (3, n))] for n in (1, 8, 70)]
    for_all(calls, "f32[k,n], i64[k,n]", body)


def test_a_product_with_bias_activation_residual_and_a_second_result() -> None:
    def body(main: FunctionBuilder) -> None:
        x, w, b, r = main.parameters
        before = main.apply("add", main.apply("matmul", x, w), b)
        after = main.apply("add", main.apply("maximum", before, main.constant(0.0)), r)
        main.returns(before, after, main.apply("multiply", after, x))

    calls = [[normal(n, 40), normal(40, 40), normal(40), normal(n, 40)] for n in (1, 3, 9)]
    for_all(calls, "f32[n,40], f32[40,40], f32[40], f32[n,40]", body)


def test_rows_are_overwritten_only_where_nobody_reads_them_again() -> None:
    """Two row-wise steps one behind the other: the second may run in the place of the first."""

    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        first = softmax(main, x)[-1]
        turned = main.apply("transpose", first, axes=None)
        second = softmax(main, main.apply("matmul", first, turned))
        main.returns(second[-1], main.apply("multiply", second[-1], second[1]))

    for_all([[normal(n, 33)] for n in (1, 4, 40)], "f32[n,33]", body)


def test_case_145_a_value_that_is_fused_and_returned_is_returned() -> None:
    """microsoft/onnxruntime#4110: a value disappeared into the operation that it was fused with."""

    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        a = main.apply("exp", x)
        b = main.apply("add", a, a)
        s = main.apply("sum", b, axis=-1)
        main.returns(s, a, b, a)

    x = normal(3, 50)
    results: Results = for_all([[x]], "f32[n,m]", body)[0]
    assert_same([results[1]], [results[3]], "twice returned")
    assert_same([results[2]], [results[1] + results[1]], "doubled")


def test_case_77_fused_chains_over_nothing() -> None:
    """tracel-ai/burn#5310: chains that end in a sum, of length 0."""

    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        y = main.apply("multiply", main.apply("exp", x), x)
        total = main.apply("sum", y, axis=-1, keepdims=True)
        main.returns(main.apply("divide", y, total), total)

    shapes = ((0, 3), (3, 0), (0, 0), (2, 3))
    results = for_all([[normal(*shape)] for shape in shapes], "f32[n,m]", body)
    assert results[1][1].tolist() == [[0], [0], [0]]


def test_a_chain_deeper_than_python_recurses() -> None:
    def body(main: FunctionBuilder) -> None:
        x, y = main.parameters
        for _ in range(250):
            x = main.apply("add", main.apply("multiply", x, y), y)
        main.returns(x)

    x, y = normal(9), normal(9) / F32(4)
    want = x
    for _ in range(250):
        want = want * y + y
    assert_same(Compiled(program(2, body), parse("main(f32[9], f32[9])")).run([x, y]), [want], "")


def assert_computed_again(
    monkeypatch: pytest.MonkeyPatch,
    types: str,
    count: int,
    body: Callable[[FunctionBuilder], object],
) -> None:
    """The groups of a program are others than if each value were written once and read."""
    groups = groups_of(types, count, body)
    with monkeypatch.context() as patch:
        patch.setattr(Recomputation, "offer", lambda *_: None)
        assert groups_of(types, count, body) != groups


def test_sums_over_different_axes_of_a_value_that_each_computes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        y = main.apply("multiply", x, x)
        rows = main.apply("sum", y, axis=-1)
        main.returns(rows, main.apply("sum", y, axis=Ints((1, 2))), main.apply("sum", y))

    calls = [[normal(*shape)] for shape in ((3, 4, 5), (2, 1, 70), (0, 3, 2), (5, 9, 16))]
    assert_computed_again(monkeypatch, "f32[a,b,n]", 1, body)
    for_all(calls, "f32[a,b,n]", body)


def test_a_gate_around_products_computes_its_value_on_both_sides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Squeeze and excite: what is weighted is read before and after the weights are known."""

    def body(main: FunctionBuilder) -> None:
        x, w = main.parameters
        top = main.apply("max", x, axis=-1, keepdims=True)
        centred = main.apply("subtract", x, top)
        gate = main.apply("matmul", main.apply("abs", centred), w)
        main.returns(main.apply("multiply", centred, main.apply("tanh", gate)), gate)

    for types in ("f32[n,40], f32[40,40]", "f32[n,40]:strided, f32[40,40]"):
        calls = [
            [
                normal(n, 80)[:, ::2] if "strided" in types else normal(n, 40),
                normal(40, 40),
            ]
            for n in (2, 3, 17, 64)
        ]
        assert_computed_again(monkeypatch, types, 2, body)
        for_all(calls, types, body)


@pytest.mark.parametrize("types", ["f32[k,n]", "f64[k,n]:strided", "i64[k,n]", "f32[n]"])
def test_reductions_in_one_sweep_have_the_bits_of_each_alone(types: str) -> None:
    """NaN and infinities, rows of one element, of less than a lane each, and of several blocks."""

    def body(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        total, top = main.apply("sum", x, axis=-1), main.apply("max", x, axis=-1, keepdims=True)
        squares = main.apply("sum", main.apply("multiply", x, x), axis=-1, keepdims=True)
        centred = main.apply("sum", main.apply("subtract", x, top), axis=-1)
        main.returns(total, top, squares, main.apply("min", x, axis=-1), centred)

    calls: list[Sequence[object]] = []
    for n in (1, 70, 9000):
        x = RNG.integers(-9, 9, (3, n)) if "i64" in types else normal(3, n) * F32(3)
        if "f" in types and n > 2:
            x[1, n // 2], x[2, 0] = np.nan, -np.inf
        if "f64" in types:
            x = np.repeat(x.astype(np.float64), 2, axis=1)[:, ::2]
        calls += [[x[k]] for k in range(3)] if types == "f32[n]" else [[x]]
    if "strided" in types:
        calls = calls[1:]
    for_all(calls, types, body)


def test_what_judges_are_told_changes_groups_and_no_bits() -> None:
    """Sizes that are expected, right or wrong, and judges of any balance."""

    def body(main: FunctionBuilder) -> None:
        x, y = main.parameters
        t = main.apply("divide", x, y)
        main.returns(*(main.apply(name, t, axis=-1) for name in ("min", "max")))

    signature = parse("main(f32[m,n], f32[m,n])")
    made = program(2, body)
    told = [{"typical": "m=4, n=4"}, {"typical": "m=1048576, n=4096"}, {"typical": "m=0"}]
    told += [{"balance": 1e6}, {"balance": 1e-6}]
    codes = [Compiled(made, signature, **each) for each in ({}, *told)]
    assert len({len(code.facts.schedules) for code in codes}) > 1
    for m, n in ((2, 2), (3, 40), (70, 17)):
        arguments = [normal(m, n), normal(m, n)]
        want = by_oracle(made, arguments)
        for code in codes:
            assert_same(code.run(arguments), want, str(code.facts.remarks))
