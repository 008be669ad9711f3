"""The native thread pool: every index once, one region at a time, forks, exits, the same bits."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from differential.harness import Compiled, assert_same, by_oracle, program

import jitdialects as jd
from jitdialects.bytecode.builder import FunctionBuilder
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
