"""Calls that enter machine code: served by stubs, with the same results, errors and lifetimes as through Python."""

import ctypes
import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.frontends.jit import Jitted
from jitdialects.runtime import callables
from jitdialects.runtime.call_tables import MOST_TRIED
from jitdialects.runtime.callables import StubCallable, environment
from jitdialects.runtime.indicators import indicators
from jitdialects.runtime.native import objects
from jitdialects.runtime.native.call_stub import KEEP_BYTES, RING, TURN_BYTES
from jitdialects.runtime.pool import default_pool
from jitdialects.runtime.tiers import TIMED_FIRST

F32 = np.float32


@pytest.fixture(autouse=True)
def low_threshold(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(jd.config, "threshold", 2)
    yield


def hot(function: Callable[..., Any], *calls: tuple[Any, ...]) -> Jitted[..., Any]:
    """`function`, jitted, with stubs for these calls."""
    jitted = jd.jit(function)
    for _ in range(2):
        for arguments in calls:
            for _ in range(3):
                jitted(*arguments)
            jitted.wait()
            jitted(*arguments)
    return jitted


def served(function: Jitted[..., Any]) -> int:
    """Calls that stubs of `function` have served."""
    indicators.collect()
    bound = (served(method) for _, method in function._bound.values())
    return sum(stub.words[2] for stub in function._stubs.values()) + sum(bound)


def expect_served(function: Jitted[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """The result of a call that a stub serves."""
    before = served(function)
    result = function(*arguments, **keywords)
    assert served(function) == before + 1, jd.explain(function)
    return result


def expect_python(function: Jitted[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """The result of a call that no stub takes."""
    before = served(function)
    result = function(*arguments, **keywords)
    assert served(function) == before, jd.explain(function)
    return result


def ramp(*shape: int, dtype: Any = F32) -> Any:
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


def test_the_layout_of_objects_is_known_here() -> None:
    assert objects.unknown_layout() == "" and jd.stats()["calls"] == "in machine code"
    assert issubclass(Jitted, StubCallable)


def test_a_hot_function_is_served_with_equal_results() -> None:
    f = hot(lambda x, y: x * y + x, (ramp(8), ramp(8)))
    for k in range(20):
        x, y = ramp(8) + k, ramp(8) * k
        assert (expect_served(f, x, y) == x * y + x).all()


def test_sizes_vary_and_each_result_has_its_own() -> None:
    f = hot(lambda x: x + x, (ramp(2, 3),), (ramp(4, 3),), (ramp(4, 5),))
    for shape in ((1, 1), (7, 1), (1, 9), (6, 4), (0, 3), (3, 0), (2, 2)):
        x = ramp(*shape)
        result = expect_served(f, x)
        fresh = np.empty(shape, F32)
        assert result.shape == shape and (not result.size or result.strides == fresh.strides)
        for flag in ("C_CONTIGUOUS", "F_CONTIGUOUS", "ALIGNED", "WRITEABLE"):
            assert result.flags[flag] == fresh.flags[flag], (shape, flag)
        assert (result == x + x).all()


def test_a_result_that_someone_holds_is_never_used_again() -> None:
    f = hot(lambda x: x + 1, (ramp(16),))
    kept = [expect_served(f, ramp(16) + k) for k in range(4 * RING)]
    views = [expect_served(f, ramp(16) - k)[2:5] for k in range(4 * RING)]
    seen = [memoryview(expect_served(f, ramp(16) * k)) for k in range(4 * RING)]
    for k in range(4 * RING):
        assert (kept[k] == ramp(16) + k + 1).all()
        assert (views[k] == ramp(16)[2:5] - k + 1).all()
        assert (np.asarray(seen[k]) == ramp(16) * k + 1).all()


def test_a_result_that_nobody_holds_is_used_again() -> None:
    f = hot(lambda x: x + 1, (ramp(16),))
    x = ramp(16)
    assert len({id(expect_served(f, x)) for _ in range(10 * RING)}) <= RING
    assert len({expect_served(f, x).ctypes.data for _ in range(10 * RING)}) <= RING


def test_a_caller_that_lets_large_results_go_meets_one_block_again_and_again() -> None:
    """It is in the cache. Who holds the last result meets two."""
    n = TURN_BYTES
    f = hot(lambda x: x + 1, (ramp(n),))
    x, last = ramp(n), None
    together = [expect_served(f, x) for _ in range(2 * RING)]
    del together
    assert len({expect_served(f, x).ctypes.data for _ in range(10)}) == 1
    places = set[int]()
    for _ in range(10):
        last = expect_served(f, x)
        places.add(last.ctypes.data)
    assert len(places) == 2


def test_a_result_with_a_weak_reference_is_left_alone() -> None:
    f = hot(lambda x: x + 1, (ramp(16),))
    references = [weakref.ref(f(ramp(16))) for _ in range(2 * RING)]
    f(ramp(16))
    for _ in range(2 * RING):
        f(ramp(16))
    assert all(reference() is None for reference in references)


def test_a_result_that_was_changed_in_place_is_whole_again() -> None:
    f = hot(lambda x: x + 1, (ramp(4, 6),), (ramp(2, 6),))
    x = ramp(4, 6)
    for _ in range(RING):
        f(x).flags.writeable = False
        f(x).shape = (6, 4)
        f(x).shape = (24,)
        f(x).dtype = np.int32
    for _ in range(3 * RING):
        result = expect_served(f, x)
        assert result.flags.writeable and result.dtype == F32 and result.shape == (4, 6)
        assert (result == x + 1).all()


def test_large_results_are_not_kept() -> None:
    f = hot(lambda x: x + 1, (ramp(KEEP_BYTES // 4 + 1),))
    x = ramp(KEEP_BYTES // 4 + 1)
    expect_served(f, x)
    default_pool.safe_point()
    before = default_pool.statistics().live_bytes
    for _ in range(2 * RING):
        assert expect_served(f, x)[-1] == x[-1] + 1
    default_pool.safe_point()
    assert default_pool.statistics().live_bytes == before


def test_calls_leak_nothing() -> None:
    f = hot(lambda x, y: (x + y, x * 2), (ramp(8), ramp(8)))
    x, y = ramp(8), ramp(8)
    objects_before = [sys.getrefcount(o) for o in (x, y, x.dtype, f, 1.5)]
    for _ in range(1000):
        f(x, y)
    after = [sys.getrefcount(o) for o in (x, y, x.dtype, f, 1.5)]
    assert [abs(a - b) <= 4 * RING for a, b in zip(after, objects_before, strict=True)] == [
        True
    ] * 5
    gc.collect()
    default_pool.safe_point()
    before = default_pool.statistics().live_blocks
    for _ in range(1000):
        f(x, y)
    default_pool.safe_point()
    assert default_pool.statistics().live_blocks <= before


def test_several_results_come_in_a_tuple() -> None:
    f = hot(lambda x: (x + 1, x * 2), (ramp(5),))
    result = expect_served(f, ramp(5))
    assert type(result) is tuple
    assert (result[0] == ramp(5) + 1).all() and (result[1] == ramp(5) * 2).all()
    alone = hot(lambda x: (x + 1,), (ramp(5),))
    assert type(expect_served(alone, ramp(5))) is tuple


def test_other_structures_go_through_python() -> None:
    f = hot(lambda x: {"a": x + 1}, (ramp(5),))
    assert not f._stubs
    assert (f(ramp(5))["a"] == ramp(5) + 1).all()
    g = hot(lambda pair: pair[0] + pair[1], ((ramp(5), ramp(5)),))
    assert (expect_python(g, (ramp(5), ramp(5))) == 2 * ramp(5)).all()


def test_python_scalars_are_arguments() -> None:
    f = hot(lambda x, a, n: x * a + n, (ramp(6), 0.5, 2))
    for a, n in ((1.5, 3), (-0.0, -1), (2.25, 10**15)):
        assert (expect_served(f, ramp(6), a, n) == (ramp(6) * F32(a) + F32(n))).all()
    with pytest.raises(jd.errors.Error):
        f(ramp(6), 0.5, 10**30)
    g = hot(lambda x, flag: jnp.where(flag, x, -x), (ramp(6), True))
    assert (expect_served(g, ramp(6), False) == -ramp(6)).all()
    assert (expect_served(g, ramp(6), True) == ramp(6)).all()


def test_arrays_of_other_kinds_go_through_python() -> None:
    f = hot(lambda x: x + 1, (ramp(6),))
    for other in (ramp(6, dtype=np.int64), ramp(6).astype(">f4"), ramp(2, 3)):
        try:
            result = expect_python(f, other)
        except jd.errors.Error:
            continue
        assert (result == other + 1).all()
    strange = np.zeros(25, np.uint8)[1:].view(F32)
    assert not strange.flags.aligned
    assert (expect_python(f, strange) == 1).all()
    assert (expect_python(f, np.matrix([[1.0]], F32)) == 2).all()


class Tagged(np.ndarray):
    """Another class of arrays."""


def test_an_argument_that_changes_its_class_is_served_right() -> None:
    f = hot(lambda x, y: x * 2 + y, (ramp(3, 4), ramp(3, 4)))
    x = ramp(3, 4)
    strange = np.zeros(49, np.uint8)[1:].view(F32).reshape(3, 4)
    strange[...] = x
    kinds: list[Any] = [
        np.asfortranarray(x),
        x.view(Tagged),
        strange,
        ramp(4, 3).T,
        x[::-1],
        np.float32(2),
        np.array(3, F32),
        5,
        2.5,
        True,
    ]
    for _ in range(3):
        for other in (*kinds, *reversed(kinds)):
            for left, right in ((x, other), (other, x)):
                got, want = f(left, right), np.asarray(left) * F32(2) + np.asarray(right)
                assert type(got) is np.ndarray and (got == want).all(), type(other)
            expect_served(f, x, x)
    for wrong in (x.astype(">f4"), x.astype(np.float16), np.ma.masked_array(x), "text", None):
        with pytest.raises(jd.errors.Error):
            f(x, wrong)
    assert (expect_served(f, x, x) == x * 3).all()


def test_strided_arrays_have_stubs_of_their_own() -> None:
    f = hot(lambda x: x + 1, (ramp(12)[::2],), (ramp(10)[::2],))
    for x in (ramp(12)[::2], ramp(40)[3::5]):
        assert (expect_served(f, x) == x + 1).all()
    assert (expect_python(f, ramp(6)) == ramp(6) + 1).all()


def test_keywords_and_defaults() -> None:
    def f(x: Any, scale: Any = 3.0) -> Any:
        return x * scale

    jitted = hot(f, (ramp(4),))
    assert (expect_served(jitted, ramp(4)) == ramp(4) * 3).all()
    assert (expect_python(jitted, ramp(4), scale=2.0) == ramp(4) * 2).all()
    assert (expect_python(jitted, x=ramp(4)) == ramp(4) * 3).all()  # a way that is new
    assert (expect_served(jitted, x=ramp(4)) == ramp(4) * 3).all()
    assert (jitted(*[ramp(4)], scale=2.0) == ramp(4) * 2).all()
    with pytest.raises(jd.errors.ArgumentError, match="too many positional"):
        jitted(ramp(4), 1.0, 2.0)


def test_keywords_enter_stubs_in_any_order() -> None:
    def f(x: Any, other: Any, z: Any = 1.0, *, a: Any = 2.0, b: Any = 3.0) -> Any:
        return (x - other) * a + b * z

    x, y = ramp(4), ramp(4) * 3
    ways: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((x,), {"other": y}),
        ((), {"other": y, "x": x}),
        ((x, y), {"a": 2.5}),
        ((x,), {"b": 1.5, "other": y, "a": 2.5}),
        ((x,), {"a": 2.5, "b": 1.5, "other": y}),
        ((x,), {"a": 2.5, "b": 1.5, "other": y, "z": 0.5}),
    ]
    jitted = jd.jit(f)
    for _ in range(3):
        for arguments, keywords in ways:
            for _ in range(2):
                jitted(*arguments, **keywords)
            jitted.wait()
    for arguments, keywords in ways:
        want = f(*arguments, **keywords)
        assert (expect_served(jitted, *arguments, **keywords) == want.astype(F32)).all()
    for _ in range(2):
        with pytest.raises(jd.errors.ArgumentError, match="unexpected keyword argument 'c'"):
            jitted(x, y, c=1.0)
    name = b"other".decode()  # a name that code made is the same text, perhaps another object
    assert (jitted(x, **{name: y}) == f(x, y)).all()


def test_methods_enter_stubs() -> None:
    class Model:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        @jd.jit
        def forward(self, x: Any, shift: Any = 0.5) -> Any:
            return x * self.scale + shift

    models = [Model(float(k)) for k in range(6)]
    forward, x = Model.forward, ramp(6)
    for _ in range(2):
        for model in models:
            for _ in range(3):
                model.forward(x)
                model.forward(x, shift=1.5)
            jd.wait()
    for k, model in enumerate(models):
        assert (expect_served(forward, model, x) == x * F32(k) + F32(0.5)).all()
        assert (expect_served(model.forward, x, shift=2.5) == x * F32(k) + F32(2.5)).all()
    del model
    while models:  # others may come to lie where these were
        models.pop()
        late = Model(-1.0)
        assert (late.forward(x) == x * F32(-1) + F32(0.5)).all()
    assert (expect_python(forward, Model(-2.0), x) == x * F32(-2) + F32(0.5)).all()


def test_objects_of_methods_may_die_anywhere() -> None:
    class Node:
        def __init__(self, scale: float) -> None:
            self.scale = scale
            self.me = self  # only the garbage collector finds it

        @jd.jit
        def scaled(self, x: Any) -> Any:
            return x * self.scale

    x = ramp(4)
    for scale in (2.0, 3.0):
        node = Node(scale)
        for _ in range(4):
            node.scaled(x)
            jd.wait()
        assert (expect_served(Node.scaled, node, x) == x * F32(scale)).all()
    wrong: list[float] = []

    def work(first: int) -> None:
        for k in range(first, first + 60):
            other = Node(float(k))
            for _ in range(2):
                if not (other.scaled(x) == x * F32(k)).all():
                    wrong.append(k)
            if k % 7 == 0:
                gc.collect()

    threads = [threading.Thread(target=work, args=(1000 * n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and (node.scaled(x) == x * 3).all()
    del node, thread
    gc.collect()
    assert len(Node.scaled._bound) == 0


def test_a_function_of_many_signatures_has_a_stub_for_each() -> None:
    f = jd.jit(lambda x: x * 2 + 1, shapes="exact")
    sizes = range(1, 4 * MOST_TRIED)
    for _ in range(3):
        for size in sizes:
            f(ramp(size))
        f.wait()
    for size in (*sizes, *reversed(sizes)):
        assert (expect_served(f, ramp(size)) == ramp(size) * 2 + 1).all()
    for other in (ramp(99), ramp(3, 3), ramp(8).astype(np.float64), ramp(8)[::2], 3.0):
        assert (np.asarray(expect_python(f, other)) == np.asarray(other) * 2 + 1).all()


def entered(machine: jd.VM) -> int:
    """Calls of `run` that stubs have served."""
    return sum(stub.words[2] for stub in machine.functions["main"].stubs_served)


def test_runs_of_a_machine_enter_stubs() -> None:
    f = jd.jit(lambda x, a: (x * a, x + a))
    x = ramp(5)
    f(x, 2.0)
    machine = jd.VM(f.program)
    for size in (5, 6, 7):
        for _ in range(4):
            machine.run("main", ramp(size), 2.0)
            machine.wait()
    for _ in range(TIMED_FIRST):
        machine.run("main", x, 2.0)
    before, served = entered(machine), machine.functions["main"].profile.served
    first, second = machine.run("main", x, 3.0)
    assert (first == x * 3).all() and (second == x + 3).all()
    assert entered(machine) == before + 1
    assert machine.functions["main"].profile.served == served + 1
    for wrong in ((x,), (x, 2.0, 3.0), (x, "text"), (x.astype(np.float16), 2.0)):
        with pytest.raises(jd.errors.Error):
            machine.run("main", *wrong)
    with pytest.raises(jd.errors.ArgumentError, match="no function"):
        machine.run("other", x, 2.0)
    assert (machine.run("main", x.astype(np.float64), 3.0)[0] == x * 3.0).all()
    jd.clear_cache()
    assert (machine.run("main", x, 3.0)[1] == x + 3).all()


def test_results_that_stand_for_python_scalars_come_as_before() -> None:
    f = hot(lambda a, b: (a + b, a < b), (2, 3.5))
    machine = jd.VM(f.program, jd.Policy(threshold=10**9))
    for got, want in zip(expect_served(f, 4, 3.5), machine.run("main", 4, 3.5), strict=True):
        assert type(got) is type(want) and got.dtype == want.dtype and got == want


def test_lazy_arrays_reach_compiled_code() -> None:
    f = hot(lambda x, y: x * y + 1, (ramp(4), ramp(4)))
    x = jnp.asarray(ramp(4))
    before = served(f)
    for other in (x, x + 1, ramp(4)):
        result = f(x, y=other)
        assert isinstance(result, jd.Array)
        assert (np.asarray(result) == ramp(4) * np.asarray(other) + 1).all()
    assert served(f) == before + 3
    with pytest.raises(jd.errors.TraceError):
        kept: list[Any] = []
        jd.jit(lambda x: kept.append(x))(ramp(4))
        f(x, kept[0])


def test_lazy_arrays_keep_the_structure_of_results() -> None:
    x = jnp.asarray(ramp(4))
    f = jd.jit(lambda x, n: {"sum": x + n, "n": n} if x.ndim == 1 else (x + n, n))
    for _ in range(6):
        flat, pair = f(x, 2), f(x.reshape(2, 2), 2)
        f.wait()
        assert list(flat) == ["sum", "n"] and isinstance(flat["sum"], jd.Array)
        assert (np.asarray(flat["sum"]) == ramp(4) + 2).all() and isinstance(flat["n"], jd.Array)
        assert type(pair) is tuple and (np.asarray(pair[0]).reshape(-1) == ramp(4) + 2).all()
        # a result that stands for a Python scalar does not make float64 of float32
        assert (x * flat["n"]).dtype == F32 and (x * pair[1]).dtype == F32
    g = jd.jit(lambda x: (x + 1, x * 2))
    for _ in range(6):
        both = g(x)
        g.wait()
        assert type(both) is tuple and (np.asarray(both[1]) == ramp(4) * 2).all()


def test_calls_go_on_while_stubs_are_replaced() -> None:
    f = jd.jit(lambda x, y: x * 2 + y, shapes="exact")
    stop = threading.Event()
    wrong: list[object] = []

    def work() -> None:
        kept: list[Any] = []
        while not stop.is_set():
            for size in range(1, 12):
                x = ramp(size)
                got = f(x, y=x) if size % 2 else f(x, x)
                kept.append(got)
                if not (got == x * 3).all():
                    wrong.append((size, got))
            del kept[: len(kept) // 2]

    threads = [threading.Thread(target=work) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for _ in range(5):
            f.wait()
            jd.clear_cache()
    finally:
        stop.set()
        sys.setswitchinterval(interval)
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_fails_inside_goes_through_python() -> None:
    f = hot(lambda x, i: x[i] + 1, (ramp(5), 2))
    assert expect_served(f, ramp(5), 4) == 5
    for _ in range(3):
        with pytest.raises(jd.errors.OutOfBoundsError):
            f(ramp(5), 5)  # the code sees it, the interpreter says it
    try:
        raise KeyError("first")
    except KeyError:
        assert expect_served(f, ramp(5), 1) == 2
        with pytest.raises(jd.errors.OutOfBoundsError) as caught:
            f(ramp(5), 7)
        assert isinstance(caught.value.__context__, KeyError) or caught.value.__suppress_context__
    assert expect_served(f, ramp(5), 0) == 1


def test_an_interrupt_while_a_result_is_made_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    f = hot(lambda x: x + 1, (ramp(KEEP_BYTES // 4 + 1),))  # such a result is asked of Python
    x = ramp(KEEP_BYTES // 4 + 1)
    make, interrupts = default_pool.stock, [KeyboardInterrupt("by the user")]

    def interrupted(size: int) -> None:
        if interrupts:
            raise interrupts.pop()
        make(size)

    monkeypatch.setattr(default_pool, "stock", interrupted)
    with pytest.raises(KeyboardInterrupt, match="by the user"):
        f(x)
    assert expect_served(f, x)[1] == 2


def test_the_arena_is_left_to_who_took_it_while_a_result_was_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def layers(x: Any) -> Any:
        return jnp.tanh(jnp.tanh(x @ x) @ x)

    f, x = hot(layers, (ramp(520, 520),)), ramp(520, 520) / 1e6
    here = callables.environment()
    make = default_pool.stock

    def taken(size: int) -> None:  # as another thread would, whose turn it is
        here.set("arena_busy", 1)
        make(size)

    expected = expect_served(f, x)
    monkeypatch.setattr(default_pool, "stock", taken)
    try:
        assert expect_python(f, x).tobytes() == expected.tobytes()
        before = here.get("arena")
        here.set("arena_wanted", here.get("arena_bytes") + 1)
        here.grow_arena()
        assert here.get("arena") == before and here.get("arena_bytes") > 0
    finally:
        here.set("arena_busy", 0)


def test_an_arena_that_the_pool_does_not_have_breaks_no_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    f = hot(lambda x: x + 1, (ramp(4),))
    here = callables.environment()
    before = here.get("arena_bytes")
    here.set("arena_wanted", before + 1)

    def refuse(size: int) -> int:
        raise jd.errors.PoolError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(default_pool, "allocate", refuse)
        here.grow_arena()
    assert here.get("arena_bytes") == before
    assert expect_served(f, ramp(4))[1] == 2


def test_a_sample_goes_to_python_past_general_code() -> None:
    f = hot(lambda x: x * 2 + 1, (ramp(8),), (ramp(12),))
    exact, general = f._stubs.values()
    assert (str(exact.entry.key.signature), str(general.entry.key.signature)) == (
        "main(f32[8])",
        "main(f32[n0])",
    )
    expect_served(f, ramp(8))
    before = general.words[2]
    exact.let_through()
    f(ramp(8))
    assert general.words[2] == before


def test_a_call_with_very_many_arguments_is_an_error_on_a_small_stack() -> None:
    f = hot(lambda x: x + 1, (ramp(2),))
    caught: list[BaseException] = []

    def call() -> None:
        try:
            f(*[1.0] * 100_000)
        except jd.errors.ArgumentError as error:
            caught.append(error)

    before = threading.stack_size(1 << 18)
    try:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert "too many positional arguments" in str(caught[0])


def test_errors_are_those_of_the_interpreter() -> None:
    f = hot(lambda x, y: x + y, (ramp(4), ramp(4)), (ramp(5), ramp(5)))
    with pytest.raises(jd.errors.ShapeError, match="do not broadcast"):
        f(ramp(4), ramp(3))
    with pytest.raises(jd.errors.ArgumentError, match="takes arrays and numbers"):
        f(ramp(4), "text")
    assert (expect_served(f, ramp(5), ramp(5)) == 2 * ramp(5)).all()


def test_closures_and_temporaries() -> None:
    weights = ramp(40, 40) / 100
    bias = ramp(40)

    def layers(x: Any) -> Any:
        h = jnp.maximum(x @ weights + bias, 0)
        return jnp.tanh(h @ weights - bias)

    f = hot(layers, (ramp(3, 40),), (ramp(4, 40),))
    reference = jd.VM(f.program, jd.Policy(threshold=10**9))
    for rows in (2, 3, 9, 65):  # the last needs more temporary memory than there is at first
        x = ramp(rows, 40) / 7
        f(x)
        result = expect_served(f, x)
        assert result.tobytes() == reference.run("main", x)[0].tobytes()


def test_two_dtypes_of_one_function() -> None:
    f = hot(lambda x: x + x, (ramp(4),), (ramp(4, dtype=np.int64),))
    assert expect_served(f, ramp(4)).dtype == F32
    assert expect_served(f, ramp(4, dtype=np.int64)).dtype == np.int64


def test_inside_a_capture_calls_are_recorded() -> None:
    inner = hot(lambda x: x * 2, (ramp(4),))
    outer = jd.jit(lambda y: y + inner(ramp(4)))
    before = served(inner)
    assert (outer(ramp(4)) == 3 * ramp(4)).all()
    assert served(inner) == before
    assert (expect_served(inner, ramp(4)) == 2 * ramp(4)).all()


def test_clearing_the_cache_lets_the_code_go() -> None:
    f = hot(lambda x: x + 41, (ramp(4),))
    (stub,) = f._stubs.values()
    kernel = weakref.ref(stub.entry.kernel)
    del stub
    jd.clear_cache()
    assert (f(ramp(4)) == ramp(4) + 41).all()
    gc.collect()
    assert kernel() is None
    f.wait()
    f(ramp(4))
    f.wait()
    f(ramp(4))
    assert (expect_served(f, ramp(4)) == ramp(4) + 41).all()


def test_code_stays_while_a_call_drops_an_old_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """The destructor is Python, so that another thread may come first and let the code go."""
    f = hot(lambda x: x + 42, (ramp(4),), (ramp(5),))
    (stub,) = (s for s in f._stubs.values() if not s.kernel.signature.is_exact)
    kernel, seen = weakref.ref(stub.kernel), list[bool]()
    del stub
    default_pool.shelf.watch(True)  # results are made by Python, and are what Python destroys
    try:
        for _ in range(2 * RING):
            f(ramp(6))

        def leave(block: int) -> None:
            jd.clear_cache()
            seen.append(kernel() is not None)
            default_pool.mailbox.append(block)

        x = ramp(6000)
        monkeypatch.setattr(default_pool, "leave", leave)
        assert (f(x) == x + 42).all()
    finally:
        default_pool.shelf.watch(False)
    monkeypatch.undo()
    assert seen
    assert all(seen)
    f(ramp(6))
    gc.collect()
    assert kernel() is None


def test_temporaries_may_be_replaced_while_a_result_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The allocator is Python, so that another thread may come first and need more of them, or be computing there."""
    x = ramp(50, 50) / 2500
    f = hot(lambda x: (x @ x) @ x, (x,), (x[:40, :40].copy(),))
    expected, kept = f(x).tobytes(), [f(x) for _ in range(2 * RING)]
    here, array, held = environment(), default_pool.array, list[Any]()

    def replaced(shape: Any, dtype: Any, size: int) -> Any:
        monkeypatch.undo()
        before = here.get("arena_bytes")
        here.set("arena_wanted", 2 * before)
        here.grow_arena()
        default_pool.safe_point()
        held.append(default_pool.empty((before,), np.uint8))
        held[0][:] = 7
        return array(shape, dtype, size)

    def busy(shape: Any, dtype: Any, size: int) -> Any:
        here.set("arena_busy", 1)
        return array(shape, dtype, size)

    default_pool.shelf.watch(True)
    try:
        monkeypatch.setattr(default_pool, "array", replaced)
        kept.append(f(x))
        assert held
        assert (held[0] == 7).all()
        monkeypatch.setattr(default_pool, "array", busy)
        before = served(f)
        kept.append(f(x))
        assert served(f) == before
    finally:
        here.set("arena_busy", 0)
        default_pool.shelf.watch(False)
    assert all(result.tobytes() == expected for result in kept)


def test_code_stays_while_threads_compute_in_it() -> None:
    x = ramp(200_000)
    f = hot(lambda x: jnp.tanh(jnp.exp(-x * x) + x), (x,))
    expected = f(x)
    stop = threading.Event()
    wrong: list[int] = []

    def work() -> None:
        while not stop.is_set():
            if not (f(x) == expected).all():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        jd.clear_cache()
        f(x)
        f.wait()
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_results_outlive_their_function() -> None:
    f = hot(lambda x: x + 1, (ramp(8),))
    results = [f(ramp(8) + k) for k in range(3)]
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None
    for k, result in enumerate(results):
        assert (result == ramp(8) + k + 1).all()


def test_calls_go_on_in_a_forked_child() -> None:
    f = hot(lambda x: x + 1, (ramp(8),))
    child = os.fork()
    if not child:
        good = all((f(ramp(8) + k) == ramp(8) + k + 1).all() for k in range(10))
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_the_default_floating_point_environment_holds() -> None:
    script = """
import ctypes, numpy as np, jitdialects as jd
jd.config.threshold = 2
f = jd.jit(lambda x: x * 0.5)
x = np.full(4, 1.5e-38, np.float32)
for _ in range(4): f(x); f.wait()
libm = ctypes.CDLL("libm.so.6")
environment = ctypes.create_string_buffer(32)
libm.fegetenv(environment)
word = ctypes.c_uint32.from_buffer(environment, 28)
word.value |= 0x8040  # subnormals are zero
libm.fesetenv(environment)
result = f(x)
libm.fegetenv(environment)
kept = ctypes.c_uint32.from_buffer(environment, 28).value & 0x8040
libm.fesetenv(ctypes.c_void_p(-1))
assert kept == 0x8040 and (result == np.float32(0.75e-38)).all(), (kept, result)
assert sum(s.words[2] for s in f._stubs.values()) >= 1
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_the_indicators_count_what_stubs_serve() -> None:
    f = hot(lambda x: x * x + x, (ramp(8),))
    jd.stats()
    before = jd.stats()
    for _ in range(100):
        f(ramp(8))
    after = jd.stats()
    assert after["cache_hits"] == before["cache_hits"] + 100
    assert "100 compiled" not in jd.explain(f)  # with those that warmed it up there are more
    (row,) = [r for r in after["blocks"] if r.get("served", 0) >= 100 and r["function"] == "main"][
        :1
    ]
    assert row["served"] >= 100


OTHER_LAYOUTS = [
    ("FLAGS", 8, "lays out arrays otherwise"),
    ("WEAK", -8, "lays out weak references otherwise"),
    ("VALUE", 8, "lays out floats otherwise"),
    ("HEAD", 16, "free-threaded builds"),
]


@pytest.mark.parametrize(("name", "change", "reason"), OTHER_LAYOUTS)
def test_other_layouts_are_seen(
    name: str, change: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, name, getattr(objects, name) + change)
    assert reason in objects.unknown_layout.__wrapped__()


def test_a_build_with_other_layouts_says_so_once_and_has_no_stubs() -> None:
    script = """
import warnings
import numpy as np
from jitdialects.runtime.native import objects
objects.HEAD += 16
import jitdialects as jd
jd.config.threshold = 2
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    f = jd.jit(lambda x, y=1.0: x + y)
    for _ in range(5): r = f(np.ones(3, np.float32)); f(np.ones(3, np.float32), y=2.0); f.wait()
    class Model:
        @jd.jit
        def double(self, x): return x + x
    assert (Model().double(r) == 4).all()
    assert jd.VM(f.program).run("main", r, 2.0)[0].tolist() == [4, 4, 4]
(warning,) = [w for w in caught if issubclass(w.category, RuntimeWarning)]
assert "free-threaded builds" in str(warning.message), warning.message
assert "free-threaded builds" in jd.stats()["calls"]
assert (r == 2).all() and jd.stats()["cache_hits"] >= 2
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_an_object_without_stubs_is_called_by_its_class() -> None:
    assert (jd.jit(lambda x: x + 1)(ramp(3)) == ramp(3) + 1).all()
    assert ctypes.c_int64.from_address(id(jd.jit(lambda x: x)) + objects.HEAD).value == 0


def test_scalars_of_numpy_enter_stubs_as_arrays_of_rank_0() -> None:
    f = jd.jit(lambda x, s: x / s)
    x = ramp(8)
    for _ in range(40):
        f(x, np.float32(3))
        f.wait()
    got = expect_served(f, x, np.float32(5))
    assert got.tobytes() == (x / np.float32(5)).tobytes()
    assert f(x, np.float64(3)).dtype == np.float64
