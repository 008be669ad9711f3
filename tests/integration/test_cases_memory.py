"""Faults in aliasing, stores and buffer reuse that users of other compilers reported.

The reference in a docstring says which report. Each test ends with calls that must run compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from differential.harness import everywhere, for_all, program

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.bytecode.attributes import IndexSpec, ShapeSpec, Slice
from jitdialects.bytecode.builder import FunctionBuilder

F32 = np.float32


@pytest.fixture(autouse=True)
def nothing_compiled() -> None:
    jd.wait()
    jd.clear_cache()


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(F32)


def f32(*values: float) -> np.ndarray:
    return np.array(values, F32)


def same(got: object, want: object) -> None:
    """Equal dtype, shape and bits."""
    x, y = np.asarray(got), np.asarray(want)
    assert (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())


def both_ways(function: Callable[..., object], check: Callable[[object], None]) -> None:
    """`check` what `jit` makes of `function` while it is interpreted, and once all its calls are compiled."""
    jitted = jd.jit(function)
    for _ in range(12):
        check(jitted)
        jitted.wait()
    (vm,) = jitted.machines()
    profile = vm.functions["main"].profile
    served, missed = profile.served, profile.missed
    check(jitted)
    assert profile.served > served and profile.missed == missed, jd.explain(jitted)


def test_case_64_a_shifted_store_comes_before_what_reads_it() -> None:
    """inducer/loopy#600: written at 1..16, read at 0..15, both ways round."""

    def body(main: FunctionBuilder) -> None:
        a, x = main.parameters
        here, there = IndexSpec((Slice(0, -1),)), IndexSpec((Slice(1, None),))
        for store, load in ((there, here), (here, there)):
            main.apply("setitem", a, main.apply("exp", x), index=store, into=a)
            read = main.apply("getitem", a, index=load)
            main.apply("multiply", read, main.constant(2.0), into=x)
        main.returns(a, x)

    for_all([[floats(n + 1), floats(n)] for n in (16, 1, 0, 37)], "f32[m], f32[n]", body)


def test_case_67_a_store_comes_before_the_use_of_its_value() -> None:
    """spcl/dace#1642: s[s <= 0.1] = 1, then s is used; and a slice set between two uses."""

    def body(main: FunctionBuilder) -> None:
        s, y = main.parameters
        small = main.apply("less_equal", s, main.constant(0.1))
        before = main.apply("multiply", s, y)
        s = main.apply("where", small, main.constant(1.0), s)
        after = main.apply("multiply", s, y)
        stored = main.apply("setitem", s, main.constant(9.0), index=IndexSpec((Slice(0, 2),)))
        main.returns(before, after, main.apply("add", stored, y), s)

    arguments: list[object] = [f32(0.05, 0.5, -1), f32(2, 2, 2)]
    before, after, added, s = everywhere(arguments, "f32[n], f32[n]", body)
    assert before.tolist() == [float(F32(0.05) * 2), 1, -2]
    assert after.tolist() == [2, 1, 2]
    assert added.tolist() == [11, 11, 3]
    assert s.tolist() == [1, 0.5, 1]


def test_case_79_the_output_takes_the_place_of_its_own_input() -> None:
    """pydata/numexpr#93: x = x - x * 0.001 is 0.999, in one kernel, in two, and around a loop."""
    want = F32(1) - F32(1) * F32(0.001)

    def once(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        small = main.apply("multiply", x, main.constant(0.001))
        main.apply("subtract", x, small, into=x)
        main.returns(x)

    def with_a_use_between(main: FunctionBuilder) -> None:
        (x,) = main.parameters
        small = main.apply("multiply", x, main.constant(0.001))
        total = main.apply("sum", small)  # keeps the product a kernel of its own
        main.apply("subtract", x, small, into=x)
        main.returns(x, main.apply("multiply", total, main.constant(0.0)))

    sizes = (1, 5, 40, 1000)
    for body in (once, with_a_use_between):
        results = for_all([[np.ones(n, F32)] for n in sizes], "f32[n]", body)
        for n, (x, *_) in zip(sizes, results, strict=True):
            same(x, np.full(n, want))

    def check(f: Callable[..., object]) -> None:
        x = np.ones(40, F32)
        same(f(x), np.full(40, F32(want - want * F32(0.001))))
        same(x, np.ones(40, F32))

    def loop(x: object) -> object:
        return jd.while_loop(lambda s: s[1] < 2, lambda s: (s[0] - s[0] * 0.001, s[1] + 1), (x, 0))[
            0
        ]

    both_ways(loop, check)


def test_case_79_the_input_of_a_lazy_block_takes_its_result() -> None:
    """pydata/numexpr#93: the same by item assignment, in a loop that gets compiled."""
    jd.wait()
    before = jd.stats()["cache_hits"]
    for _ in range(14):
        x = jnp.asarray(np.ones(70, F32))
        x[...] = x - x * 0.001
        x[1:] = x[:-1] * 2
        want = np.full(70, F32(1) - F32(0.001))
        want[1:] *= F32(2)
        same(x, want)
        jd.wait()
    assert jd.stats()["cache_hits"] - before >= 3


def test_case_79_operands_read_at_another_index_than_the_one_written() -> None:
    """pydata/numexpr#93: no buffer is shared where a row, a shift or a transposition reads it."""

    def body(main: FunctionBuilder) -> None:
        x, y = main.parameters
        a = main.apply("add", x, y)
        row = main.apply("max", a, axis=-1, keepdims=True)
        main.apply("subtract", a, row, into=a)
        main.apply("add", a, main.apply("transpose", a, axes=None), into=a)
        head = main.apply("getitem", a, index=IndexSpec((Slice(None, -1),)))
        main.apply("setitem", a, head, index=IndexSpec((Slice(1, None),)), into=a)
        main.returns(a)

    calls = [(floats(n, n), floats(n)) for n in (1, 3, 8, 17)]
    for (x, y), (got,) in zip(calls, for_all(calls, "f32[n,n], f32[n]", body), strict=True):
        a = x + y
        a = a - a.max(axis=-1, keepdims=True)
        a = a + a.T
        a[1:] = a[:-1].copy()
        same(got, a)


def lerp(x, y, t):
    """Updates x in place twice; what each step reads and gives stays as it is."""
    x[...] = x + (y - x) * t
    first = jnp.sqrt(jnp.abs(x))
    fresh = jnp.zeros_like(x) + t
    x[...] = x + (fresh - x) * t
    second = x * y
    return x, first, second, fresh


def test_case_91_an_update_outlives_later_memory_of_the_same_size() -> None:
    """pytorch/pytorch#183575: an in-place lerp, read by the next kernel, then values of equal size."""

    def check(f: Callable[..., object]) -> None:
        for n in (3, 64, 4096):
            x, y, t = floats(n), floats(n, 1)[:, 0].copy(), F32(0.3)
            kept = x.copy()
            u = x + (y - x) * t
            v = u + (np.full(n, t) - u) * t
            got = f(x, y, 0.3)
            other = [np.full(n, 9, F32) for _ in range(4)]  # takes what was freed too early
            for have, want in zip(got, (v, np.sqrt(np.abs(u)), v * y, np.full(n, t)), strict=True):
                same(have, want)
            same(x, kept)
            del other

    both_ways(lerp, check)


def test_case_91_values_of_earlier_steps_outlive_the_loop() -> None:
    """pytorch/pytorch#183575: carried values that change places while another is updated."""

    def f(x, y):
        def step(s):
            a, b, total, i = s
            total = total + (a - b) * 0.5
            return b, a + total, total, i + 1

        return jd.while_loop(lambda s: s[3] < 5, step, (x, y, x * 0.0, 0))[:3]

    def check(g: Callable[..., object]) -> None:
        x, y = floats(33), floats(32, 1).reshape(-1)
        y = np.resize(y, 33).astype(F32)
        a, b, total = x, y, x * F32(0)
        for _ in range(5):
            total = total + (a - b) * F32(0.5)
            a, b = b, a + total
        for have, want in zip(g(x, y), (a, b, total), strict=True):
            same(have, want)

    both_ways(f, check)


LAYOUTS: dict[str, Callable[[int], np.ndarray]] = {
    "contiguous": lambda n: floats(n, 4),
    "transposed": lambda n: floats(4, n).T,
    "columns apart": lambda n: floats(n, 8)[:, ::2],
    "backwards": lambda n: floats(2 * n, 8)[::-2, ::-2],
    "one row for all": lambda n: np.broadcast_to(floats(4), (n, 4)),
}


def views(x):
    y = x.at[::2].set(x[::2] * 2)
    return y, y[:, 1:2], y.T, y[::2], y[1], y.reshape(-1), x[:, 1:2], x.T, x[::2, 1:], x


def numpy_views(x: np.ndarray) -> Sequence[np.ndarray]:
    y = x.copy()
    y[::2] *= 2
    return y, y[:, 1:2], y.T, y[::2], y[1], y.reshape(-1), x[:, 1:2], x.T, x[::2, 1:], x


@pytest.mark.parametrize("layout", LAYOUTS)
def test_case_95_results_that_are_views_have_values_and_strides_of_their_own(layout: str) -> None:
    """pytorch/pytorch#104505: a slice of an updated input, transposed or not, whatever its strides are:
    in every tier contiguous, writable, and no memory of the caller's or of another result."""

    def check(f: Callable[..., object]) -> None:
        for n in (3, 5, 9):
            x = LAYOUTS[layout](n)
            kept = x.copy()
            got = f(x)
            for have, want in zip(got, numpy_views(x), strict=True):
                same(have, want)
                assert have.flags.c_contiguous and have.flags.writeable
            for result in got:
                result[...] = 77  # seen by nobody else
                assert all((other != 77).all() for other in got if other is not result)
                result[...] = 0
            same(x, kept)

    both_ways(views, check)


def chain(main: FunctionBuilder, binary: str, unary: str) -> int:
    """Temporaries, and views of them."""
    x, y, _ = main.parameters
    flat = main.apply("reshape", main.apply(binary, x, y), shape=ShapeSpec((-1,)))
    shifted = main.apply("subtract", flat, main.apply("max", flat))
    return main.apply("add", main.apply(unary, shifted), flat)


@pytest.mark.parametrize("kind", ["bool[]", "pybool"])
def test_case_98_each_branch_has_its_own_temporaries(kind: str) -> None:
    """apache/tvm#20191: a reshape chain in either branch; memory of one is not that of the other."""

    def body(main: FunctionBuilder) -> None:
        _, y, c = main.parameters
        result = main.register()
        then, otherwise, done = (main.block(n) for n in ("then", "otherwise", "done"))
        main.branch_if(c, then, otherwise)
        for block, operators in ((then, ("multiply", "exp")), (otherwise, ("subtract", "tanh"))):
            main.enter(block)
            main.move(chain(main, *operators), into=result)
            main.branch(done)
        main.enter(done)
        main.returns(result, main.apply("add", result, main.apply("max", y)))

    sizes, truth = ((5, 3), (1, 1), (9, 33)), np.array if kind == "bool[]" else bool
    calls = [[floats(n, m), floats(m), truth(c)] for n, m in sizes for c in (True, False)]
    for_all(calls, f"f32[n,m], f32[m], {kind}", body)


def test_case_98_branches_of_other_sizes_inside_a_loop_and_a_switch() -> None:
    """apache/tvm#20191: three ways, chosen anew in each round, with temporaries of different sizes."""

    def body(main: FunctionBuilder) -> None:
        x, y, rounds = main.parameters
        i = main.move(main.constant(0))
        head, work, join, done = (main.block(n) for n in ("head", "work", "join", "done"))
        ways = [main.block(f"way{k}") for k in range(3)]
        main.branch(head)
        main.enter(head)
        main.branch_if(main.apply("less", i, rounds), work, done)
        main.enter(work)
        main.switch(i, {1: ways[0], 3: ways[1]}, ways[2])
        main.enter(ways[0])
        column = main.apply("max", x, axis=-1, keepdims=True)  # n
        main.apply("subtract", x, column, into=x)
        main.branch(join)
        main.enter(ways[1])
        flat = main.apply("reshape", main.apply("tanh", x), shape=ShapeSpec((-1,)))  # n * m
        main.apply("add", x, main.apply("sum", main.apply("exp", flat)), into=x)
        main.branch(join)
        main.enter(ways[2])
        main.apply("multiply", x, main.apply("add", y, main.constant(1.0)), into=x)  # m
        main.branch(join)
        main.enter(join)
        main.apply("add", i, main.constant(1), into=i)
        main.branch(head)
        main.enter(done)
        main.returns(x, i)

    calls = [
        [floats(n, m), floats(m), rounds] for n, m, rounds in ((5, 3, 6), (1, 1, 2), (9, 33, 4))
    ]
    for_all(calls, "f32[n,m], f32[m], int", body)


@pytest.mark.parametrize("nested", [False, True])
def test_case_98_a_value_of_one_branch_only_is_refused(nested: bool) -> None:
    """apache/tvm#20191: used after the join, also where the same condition guards the use."""

    def body(main: FunctionBuilder) -> None:
        x, c = main.parameters
        result = main.register()
        then, join, use, done = (main.block(n) for n in ("then", "join", "use", "done"))
        main.branch_if(c, then, join)
        main.enter(then)
        main.apply("exp", x, into=result)
        main.branch(join)
        main.enter(join)
        main.branch_if(c, use, done) if nested else main.branch(use)
        main.enter(use)
        main.returns(main.apply("add", x, result))
        main.enter(done)
        main.returns(x)

    with pytest.raises(jd.BytecodeError, match="%2 is not defined on every path to here"):
        jd.VM(program(2, body))


def test_case_98_branches_that_disagree_about_the_shape_are_interpreted() -> None:
    """apache/tvm#20191: no storage fits both; the VM goes on, and says why."""

    def body(main: FunctionBuilder) -> None:
        x, c = main.parameters
        result = main.register()
        then, other, done = main.block("then"), main.block("other"), main.block("done")
        main.branch_if(c, then, other)
        main.enter(then)
        main.apply("exp", x, into=result)
        main.branch(done)
        main.enter(other)
        main.apply("getitem", x, index=IndexSpec((Slice(1, None),)), into=result)
        main.branch(done)
        main.enter(done)
        main.returns(main.apply("add", result, main.constant(1.0)))

    vm = jd.VM(program(2, body), jd.Policy(threshold=2))
    x = floats(6)
    for _ in range(4):
        assert vm.run("main", x, True)[0].shape == (6,)
        same(vm.run("main", x, False)[0], x[1:] + F32(1))
        vm.wait()
    assert "not compiled: main(f32[6], pybool)" in jd.explain(vm)


@pytest.mark.parametrize("n", [4, 4096])
def test_case_101_writing_to_an_argument_after_the_call_is_not_seen(n: int) -> None:
    """jax-ml/jax#37830: small and large arrays alike, while code is being made, and compiled."""

    def check(f: Callable[..., object]) -> None:
        x = np.zeros(n, F32)
        doubled, itself, part = f(x)
        x[0] = 7  # no wait before: the compiler may be at work
        for result, want in ((doubled, 1), (itself, 0), (part, 0)):
            assert (result == want).all()
        itself[0] = 5
        part[0] = 6
        assert x[0] == 7 and doubled[0] == 1

    both_ways(lambda x: (x * 2 + 1, x, x[: x.shape[0] - 1]), check)


@pytest.mark.parametrize("n", [4, 4096])
def test_case_101_writing_to_the_source_of_a_lazy_array_is_not_seen(n: int) -> None:
    """jax-ml/jax#37830: between recording and running, interpreted and compiled."""
    jd.wait()
    before = jd.stats()["cache_hits"]
    for step in range(14):
        a = np.full(n, step, F32)
        x = jnp.asarray(a)
        y = x * 3.0 + a
        a[0] = -1
        same(y, np.full(n, step * 4, F32))
        same(x, np.full(n, step, F32))
        jd.wait()
    assert jd.stats()["cache_hits"] - before >= 3


def test_case_101_results_of_earlier_calls_stay() -> None:
    """jax-ml/jax#37830: memory of a result that the caller holds, or a view of it, is not used again."""
    f = jd.jit(lambda x, s: (x * s, x + s))
    kept: list[tuple[np.ndarray, float]] = []
    for step in range(40):
        product, total = f(np.ones(4096, F32), float(step))
        kept.append((product[5:9] if step % 2 else total, float(step) + (not step % 2)))
        f.wait()
    assert f.machines()[0].functions["main"].profile.served >= 29
    for array, value in kept:
        assert (array == F32(value)).all()
