"""The native thread pool: every index once, one region at a time, forks, exits, the same bits."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from differential.harness import Body, Compiled, assert_same, by_oracle, program

import jitdialects as jd
from jitdialects.bytecode.builder import FunctionBuilder
from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import parse
from jitdialects.errors import ConfigError
from jitdialects.runtime import float_environment
from jitdialects.runtime.identity import feature_level
from jitdialects.runtime.native import native_library
from jitdialects.runtime.threads import ThreadPool, available, default_threads

BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
PARALLEL_FOR = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, BODY, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
)


@pytest.fixture(autouse=True)
def threads_as_they_were() -> Iterator[None]:
    before = jd.config.threads
    default_threads.load(native_library("thread_pool", feature_level()))
    yield
    jd.config.threads = before


def parallel_for(
    body: Callable[[int, int], None], lower: int, upper: int, chunk: int, pool: ThreadPool
) -> None:
    """Run `body` as compiled code would."""
    context = pool.context()
    function = PARALLEL_FOR(ctypes.c_int64.from_address(context + 8).value)
    function(context, BODY(lambda _, begin, end: body(begin, end)), None, lower, upper, chunk)


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("lower", "upper", "chunk"),
    [
        (0, 100, 7),
        (5, 5, 3),
        (9, 2, 3),
        (0, 1, 1),
        (3, 1003, 1),
        (-8, 8, 2),
        (0, 2**40, 2**36),
        (0, 1000, 10**6),
    ],
)
def test_every_index_is_visited_once(threads: int, lower: int, upper: int, chunk: int) -> None:
    jd.config.threads = threads
    ranges: list[tuple[int, int]] = []
    parallel_for(lambda b, e: ranges.append((b, e)), lower, upper, chunk, default_threads)
    ranges = [r for r in ranges if r[0] < r[1]]
    at = lower
    for begin, end in sorted(ranges):
        assert begin == at and (begin - lower) % chunk == 0
        at = end
    assert at == max(lower, upper)


def test_threads_take_part_and_only_as_many_as_allowed() -> None:
    jd.config.threads = 3
    seen: set[int] = set()

    def body(begin: int, end: int) -> None:
        seen.add(threading.get_native_id())
        time.sleep(0.002)  # gives up the core and the GIL

    deadline = time.monotonic() + 20
    while len(seen) < 3 and time.monotonic() < deadline:
        parallel_for(body, 0, 30, 1, default_threads)
    assert len(seen) == 3 and threading.get_native_id() in seen
    assert default_threads.helpers >= 2
    jd.config.threads = 1
    seen.clear()
    parallel_for(body, 0, 10, 1, default_threads)
    assert seen == {threading.get_native_id()}


def test_helpers_are_woken_before_the_first_chunk_of_what_took_long() -> None:
    jd.config.threads = 2
    caller, met, arrived = threading.get_native_id(), threading.Event(), threading.Event()

    @BODY
    def body(_: int, begin: int, end: int) -> None:
        if threading.get_native_id() != caller:
            arrived.set()
        elif begin == 0 and arrived.wait(0.2):
            met.set()

    function = PARALLEL_FOR(ctypes.c_int64.from_address(default_threads.context() + 8).value)
    deadline, started = time.monotonic() + 20, False
    while not met.is_set() and time.monotonic() < deadline:
        function(default_threads.context(), body, None, 0, 8, 1)
        time.sleep(0.3)  # helpers sleep again
        if not started:  # a thread that is new finds work before it sleeps
            met.clear()
        arrived.clear()
        started = True
    assert met.is_set()


def test_a_region_in_a_region_runs_in_its_thread() -> None:
    jd.config.threads = 2
    wrong: list[int] = []

    def outer(begin: int, end: int) -> None:
        here = threading.get_native_id()

        def inner(b: int, e: int) -> None:
            if threading.get_native_id() != here:
                wrong.append(b)

        parallel_for(inner, 0, 8, 1, default_threads)
        time.sleep(0.001)

    for _ in range(5):
        parallel_for(outer, 0, 8, 1, default_threads)
    assert wrong == []


def test_helpers_compute_in_the_default_floating_point_environment() -> None:
    jd.config.threads = 2
    found: dict[int, bool] = {}

    def body(begin: int, end: int) -> None:
        found[threading.get_native_id()] = float_environment.enter() is None
        time.sleep(0.002)

    deadline = time.monotonic() + 20
    while len(found) < 2 and time.monotonic() < deadline:
        parallel_for(body, 0, 8, 1, default_threads)
    assert len(found) == 2 and all(found.values())


# ---- the same bits


def _chain(main: FunctionBuilder) -> None:
    x, y = main.parameters
    t = main.apply("tanh", main.apply("multiply", x, y))
    main.returns(main.apply("add", main.apply("maximum", t, x), y))


SIZES = (0, 1, 7, 32767, 32768, 32769, 50003, 200001)


@pytest.mark.parametrize("signature", ["main(f32[n], f32[n])", "main(f32[200001], f32[200001])"])
def test_results_do_not_depend_on_the_threads(signature: str) -> None:
    made = program(2, _chain)
    code = Compiled(made, parse(signature))
    assert code.facts.parallel
    rng = np.random.default_rng(1)
    for size in SIZES if "n]" in signature else (200001,):
        arguments = [rng.standard_normal(size).astype(np.float32) for _ in range(2)]
        want = by_oracle(made, arguments)
        for threads in (1, 2, 3, 4):
            jd.config.threads = threads
            assert_same(code.run(arguments), want, f"{size} elements, {threads} threads")


def _rows(main: FunctionBuilder) -> None:
    x, bias = main.parameters
    main.returns(main.apply("multiply", main.apply("add", x, bias), x))


def test_rows_are_shared_out_where_elements_cannot_be() -> None:
    made = program(2, _rows)
    code = Compiled(made, parse("main(f32[m,n], f32[n])"))
    assert code.facts.parallel
    rng = np.random.default_rng(2)
    for rows, columns in ((0, 5), (3, 0), (1, 70000), (2001, 33), (70001, 1)):
        arguments = [rng.standard_normal(s).astype(np.float32) for s in ((rows, columns), columns)]
        want = by_oracle(made, arguments)
        for threads in (1, 2, 4):
            jd.config.threads = threads
            assert_same(code.run(arguments), want, f"{rows}x{columns}, {threads} threads")


def test_short_static_loops_have_no_chunks() -> None:
    assert not Compiled(program(2, _chain), parse("main(f32[1000], f32[1000])")).facts.parallel


# ---- products, rows, columns


def _product(main: FunctionBuilder) -> None:
    main.returns(main.apply("matmul", *main.parameters))


def _by_constant(weights: np.ndarray) -> Body:
    def body(main: FunctionBuilder) -> None:
        main.returns(main.apply("matmul", main.parameters[0], main.constant(weights)))

    return body


def _normal(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


def _same_bits(made: Program, types: str, calls: Sequence[Sequence[np.ndarray]]) -> None:
    """What one thread computes (that is compared with the oracle elsewhere), on two to four threads."""
    code = Compiled(made, parse(f"main({types})"))
    assert code.facts.parallel
    for arguments in calls:
        jd.config.threads = 1
        want = [x.copy() for x in code.run(arguments)]
        for threads in (2, 3, 4):
            jd.config.threads = threads
            where = f"{[a.shape for a in arguments]}, {threads} threads"
            assert_same(code.run(arguments), want, where)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products(dtype: str) -> None:
    short = {"float32": "f32", "float64": "f64"}[dtype]
    made = program(2, _product)
    sizes = ((130, 300, 70), (3, 5, 7), (7, 600, 1000), (64, 0, 200), (65, 513, 129), (0, 9, 300))
    calls = [(_normal((m, k), dtype), _normal((k, n), dtype)) for m, k, n in sizes]
    _same_bits(made, f"{short}[m,k], {short}[k,n]", calls)
    for m, k, n in ((64, 300, 200), (203, 130, 100), (1, 700, 3000), (2500, 70, 32)):
        types = f"{short}[{m},{k}], {short}[{k},{n}]"
        _same_bits(made, types, [(_normal((m, k), dtype), _normal((k, n), dtype))])
    weights = program(1, _by_constant(_normal((300, 210), dtype)))
    _same_bits(weights, f"{short}[m,300]", [(_normal((m, 300), dtype),) for m in (1, 9, 64)])
    _same_bits(weights, f"{short}[67,300]", [(_normal((67, 300), dtype),)])


def test_short_static_products_have_no_chunks() -> None:
    for types in ("f32[64,64], f32[64,64]", "f32[2,300], f32[300,300]"):
        assert not Compiled(program(2, _product), parse(f"main({types})")).facts.parallel


def _softmax(main: FunctionBuilder) -> None:
    (x,) = main.parameters
    shifted = main.apply("subtract", x, main.apply("max", x, axis=-1, keepdims=True))
    e = main.apply("exp", shifted)
    main.returns(main.apply("divide", e, main.apply("sum", e, axis=-1, keepdims=True)))


def _layer_norm(main: FunctionBuilder) -> None:
    (x,) = main.parameters
    centred = main.apply("subtract", x, main.apply("mean", x, axis=-1, keepdims=True))
    variance = main.apply("var", x, axis=-1, keepdims=True)
    main.returns(main.apply("divide", centred, main.apply("sqrt", variance)))


def _reduced(name: str, axis: int) -> Body:
    def body(main: FunctionBuilder) -> None:
        main.returns(main.apply(name, main.parameters[0], axis=axis))

    return body


ROWS = ((0, 5), (3, 20000), (11, 5000), (203, 300), (2050, 17), (40000, 1))


@pytest.mark.parametrize(
    "body", [_softmax, _layer_norm, _reduced("sum", 1), _reduced("max", 1), _reduced("min", -1)]
)
def test_rows(body: Body) -> None:
    made = program(1, body)
    for dtype, short in (("float32", "f32"), ("float64", "f64")):
        _same_bits(made, f"{short}[m,n]", [(_normal(shape, dtype),) for shape in ROWS])
        _same_bits(made, f"{short}[203,300]", [(_normal((203, 300), dtype),)])


COLUMNS = ((5, 0), (40, 9001), (4200, 33), (7, 70000))


@pytest.mark.parametrize("name", ["sum", "max"])
def test_columns(name: str) -> None:
    made = program(1, _reduced(name, 0))
    for dtype, short in (("float32", "f32"), ("float64", "f64")):
        shapes = COLUMNS if name == "sum" else COLUMNS[1:]
        _same_bits(made, f"{short}[m,n]", [(_normal(shape, dtype),) for shape in shapes])
        _same_bits(made, f"{short}[40,9001]", [(_normal((40, 9001), dtype),)])


# ---- stress


def _calls(code: Compiled, arguments: list[np.ndarray], want: np.ndarray, count: int) -> bool:
    return all(np.array_equal(code.run(arguments)[0], want) for _ in range(count))


def _code() -> tuple[Compiled, list[np.ndarray], np.ndarray]:
    code = Compiled(program(2, _chain), parse("main(f32[n], f32[n])"))
    arguments = [np.linspace(-3, 3, 70000, dtype=np.float32) for _ in range(2)]
    jd.config.threads = 1
    return code, arguments, code.run(arguments)[0].copy()


def test_two_python_threads_and_forks_in_between() -> None:
    code, arguments, want = _code()
    jd.config.threads = 3
    outcomes: list[bool] = []
    workers = [
        threading.Thread(target=lambda: outcomes.append(_calls(code, arguments, want, 150)))
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    children: list[int] = []
    for _ in range(4):
        time.sleep(0.01)
        child = os.fork()
        if child == 0:  # in a child: the pool is its own
            ok = default_threads.helpers == 0 and _calls(code, arguments, want, 20)
            os._exit(0 if ok and default_threads.helpers == 2 else 1)
        children.append(child)
    for worker in workers:
        worker.join()
    assert outcomes == [True, True]
    assert [os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) for c in children] == [0] * 4


def test_a_change_of_the_option_reaches_calls_that_no_python_code_prepares() -> None:
    double = jd.jit(lambda x: x + x)
    x = np.ones(200_000, np.float32)
    for _ in range(12):
        double(x)
    double.wait()
    double(x)
    word = ctypes.c_int64.from_address(default_threads.context())
    for threads in (3, 1, 2):
        jd.config.threads = threads
        assert word.value == threads
        np.testing.assert_array_equal(double(x), x + x)


SCRIPT = """
import numpy as np, jitdialects as jd, sys
from jitdialects.runtime.threads import default_threads
f = jd.jit(lambda x: x * x + x)
x = np.ones(100_000, np.float32)
for _ in range(12): f(x)
f.wait()
for _ in range(50): f(x)
assert default_threads.helpers == 3, default_threads.helpers
"""


def test_a_process_ends_while_helpers_are_idle() -> None:
    env = {**os.environ, "JITDIALECTS_THREADS": "4"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, timeout=120, check=False)
    assert done.returncode == 0


# ---- options


def test_the_number_of_threads_is_an_option() -> None:
    jd.config.threads = None
    default_threads.context()
    assert available() == len(os.sched_getaffinity(0))
    for wrong in (0, -1, "two", 1.5, 100000):
        with pytest.raises(ConfigError, match="threads"):
            jd.config.threads = wrong  # type: ignore[assignment]
