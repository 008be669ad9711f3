"""Forks while other threads are in the middle of something: the child waits for none of them."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.frontends import control
from jitdialects.frontends.recorder import lazy_recorder
from jitdialects.runtime import function_code
from jitdialects.runtime.callables import environment
from jitdialects.runtime.compile_server import CompileServer
from jitdialects.runtime.function_code import FunctionCode
from jitdialects.runtime.once import once

X = np.arange(6, dtype=np.float32)


def succeeds_in_a_child(check: Callable[[], bool]) -> bool:
    """Whether `check` says so in a forked process, within ten seconds."""
    child = os.fork()
    if not child:
        signal.alarm(10)
        good = False
        try:
            good = check()
        finally:
            os._exit(0 if good else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@contextlib.contextmanager
def held_elsewhere(*locks: Any) -> Iterator[None]:
    """Another thread holds these locks."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with contextlib.ExitStack() as stack:
            for lock in locks:
                stack.enter_context(lock)
            held.set()
            done.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_child_calls_functions_that_other_threads_were_calling() -> None:
    f = jd.jit(lambda x: x + x)
    f(X)

    def check() -> bool:
        looped = jd.fori_loop(0, 3, lambda i, v: v + v, X)
        jd.profiler.start()
        jd.profiler.stop()
        again = f(X.reshape(2, 3))  # is captured
        return bool((f(X) == 2 * X).all() and again.shape == (2, 3) and (looped == 8 * X).all())

    with held_elsewhere(f._lock, control._lock, jd.profiler._lock):
        assert succeeds_in_a_child(check)


def test_calls_in_flight_stay_with_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread was computing, with temporaries: in the child these are free, and the code can go."""
    monkeypatch.setattr(jd.config, "threshold", 2)
    f, x = jd.jit(lambda x: (x @ x) @ x), np.ones((20, 20), np.float32)
    for _ in range(20):
        f(x)
        f.wait()
    (stub,) = f._stubs.values()
    flying, calls = stub.layout.IN_FLIGHT, stub.layout.CALLS
    assert stub.words[calls] > 0

    def check() -> bool:
        before = stub.words[calls]
        f(x)
        served = stub.words[calls] == before + 1
        jd.clear_cache()
        return served and stub.kernel is None

    environment().set("arena_busy", 1)
    stub.words[flying] += 1
    try:
        assert succeeds_in_a_child(check)
    finally:
        environment().set("arena_busy", 0)
        stub.words[flying] -= 1


def test_a_child_has_the_arrays_that_another_thread_was_computing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lazy: list[jd.Array] = []
    begun, done = threading.Event(), threading.Event()
    run = jd.VM.run

    def waits(self: jd.VM, *arguments: object) -> object:
        if threading.current_thread() is thread and not done.is_set():
            begun.set()
            done.wait(20)
        return run(self, *arguments)

    def compute() -> None:
        lazy.append(jnp.asarray(X) + 1.0)
        jd.sync()

    monkeypatch.setattr(jd.VM, "run", waits)
    thread = threading.Thread(target=compute)
    thread.start()
    begun.wait(20)
    try:
        assert succeeds_in_a_child(lambda: bool((np.asarray(lazy[0]) == X + 1).all()))
    finally:
        done.set()
        thread.join()
    assert (np.asarray(lazy[0]) == X + 1).all()
    assert lazy_recorder() is not None


def test_no_object_waits_for_what_is_computed_once_of_another() -> None:
    """As they do with `functools.cached_property` of Python 3.11, also across a fork."""
    begun, done = threading.Event(), threading.Event()

    class Lazy:
        waits = False

        @once
        def value(self) -> int:
            """Some number."""
            if self.waits:
                begun.set()
                done.wait(20)
            return 7

    slow, quick = Lazy(), Lazy()
    slow.waits = True
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    begun.wait(20)
    try:
        assert quick.value == 7
        assert succeeds_in_a_child(lambda: quick.value == Lazy().value)
    finally:
        done.set()
        thread.join()
    assert vars(slow)["value"] == 7
    assert isinstance(vars(FunctionCode)["fingerprint"], once)
    assert not hasattr(function_code, "cached_property")


def test_a_child_lets_the_server_go_whose_last_words_are_being_read() -> None:
    """A file with a buffer has a lock of its own, in C."""
    server = CompileServer()
    server.prepare()
    process = server._process
    assert process is not None
    try:
        assert not hasattr(process.log, "peek"), "the log has a buffer"
    finally:
        server.close()
