"""The compile service: messages, one compile per key, failures, forks, statistics, dumps."""

import contextlib
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.dtypes import FLOAT32, WEAK_FLOAT
from jitdialects.config import config
from jitdialects.runtime.cache import CacheKey
from jitdialects.runtime.dump import signature_slug
from jitdialects.runtime.explain import explain
from jitdialects.runtime.indicators import indicators
from jitdialects.runtime.messages import (
    CompileReply,
    CompileRequest,
    ConstantFact,
    MessageError,
    encode_error,
    encode_reply,
)
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.service import CompileService, default_service
from jitdialects.runtime.stats import stats
from jitdialects.runtime.vm import VM
from jitdialects.testing.fake_compiler import FakeCompiler, fake_service

REQUEST = CompileRequest(b"jbc", "main", "main(f32[4])", "x86-64-v3", dump=True)
KEY = CacheKey("abc", "main(f32[4])", "x86-64-v3", "1")


def program_bytes() -> bytes:
    builder = ProgramBuilder()
    main = builder.function("main", 1)
    main.returns(main.apply("negative", *main.parameters))
    return builder.finish().to_bytes()


def request() -> bytes:
    return CompileRequest(program_bytes(), "main", "main(f32[4])", "x86-64-v3").encode()


def four(signature: object) -> list:
    return [(FLOAT32, ["4"])]


# ---- messages ----------------------------------------------------------------------------------


def test_requests_survive_the_way_as_bytes() -> None:
    assert CompileRequest.decode(REQUEST.encode()) == REQUEST


def test_replies_are_read_with_their_expressions() -> None:
    facts = {
        "entry": "jd_entry",
        "arguments": [{"dtype": "float32", "weak": False, "sizes": ["n", "8"]}],
        "constants": [{"index": 3, "tile": 16}],
        "results": [{"dtype": "float64", "weak": True, "sizes": []}],
        "guards": [["<=", "1", "n"]],
        "arena": "4 * n + 64",
        "parallel": True,
        "operators": 3,
        "operators_fused": 2,
        "schedules": [],
        "remarks": [],
        "alternative": 0.0,
        "weighed": False,
        "milliseconds": {"codegen": 2.0},
        "cpu_seconds": 0.002,
        "stages": {},
    }
    reply = CompileReply.decode(encode_reply(facts, b"code"))
    assert (reply.library, reply.error, reply.operators) == (b"code", None, 3)
    assert reply.results[0].dtype == WEAK_FLOAT
    assert str(reply.arena) == "4 * n + 64"
    assert str(reply.arguments[0].shape[0]) == "n"
    assert reply.constants == (ConstantFact(3, 16),)
    assert CompileReply.decode(encode_error("no")).error == "no"
    with pytest.raises(MessageError, match="compile reply: KeyError"):
        CompileReply.decode(encode_reply({"entry": "x"}, b""))


@pytest.mark.parametrize("cut", [0, 3, 11, 20, -1])
def test_cut_messages_are_refused(cut: int) -> None:
    with pytest.raises(MessageError, match="cut off or made by another version"):
        CompileRequest.decode(REQUEST.encode()[:cut])


def test_foreign_messages_are_refused() -> None:
    with pytest.raises(MessageError, match="magic b'JDRP'"):
        CompileRequest.decode(encode_error("x"))


# ---- the service -------------------------------------------------------------------------------


def test_one_compile_per_key_whoever_asks() -> None:
    gate = threading.Event()
    compiler = FakeCompiler(four, gate=gate)
    service = fake_service(compiler)
    for _ in range(5):
        service.submit(KEY, request)
    assert service.is_pending(KEY)
    gate.set()
    service.wait()
    service.submit(KEY, request)
    assert service.cache.find(KEY) is not None
    assert len(compiler.requests) == service.compiles == 1


def test_failures_are_kept_until_they_are_forgotten() -> None:
    compiler = FakeCompiler(four, error="no")
    service = fake_service(compiler)
    for _ in range(2):
        service.submit(KEY, request)
        service.wait()
    assert service.failures == {KEY: "no"}
    assert len(compiler.requests) == 1
    service.forget()
    compiler.error = None
    service.submit(KEY, request)
    service.wait()
    assert service.cache.find(KEY) is not None


def test_a_reply_that_is_no_message_is_a_failure() -> None:
    service = fake_service(FakeCompiler(four))
    service._compile = lambda data: b"garbage"
    service.submit(KEY, request)
    service.wait()
    assert "compile reply" in service.failures[KEY]


def in_a_child(check: Callable[[], bool]) -> bool:
    """What `check` says in a forked child."""
    child = os.fork()
    if not child:
        os._exit(0 if check() else 1)
    return os.waitpid(child, 0)[1] == 0


def test_a_forked_child_compiles_for_itself() -> None:
    service = fake_service(FakeCompiler(four))
    service.submit(KEY, request)
    service.wait()
    other = replace(KEY, compiler="another")

    def check() -> bool:
        service.submit(other, request)
        service.wait()
        return service.cache.find(KEY) is not None and service.cache.find(other) is not None

    assert in_a_child(check)


def test_a_child_forked_in_the_middle_of_a_compile_only_interprets() -> None:
    gate = threading.Event()
    compiler = FakeCompiler(four, gate=gate)
    service = fake_service(compiler)
    service.submit(KEY, request)
    while not compiler.requests:
        time.sleep(0.001)

    def check() -> bool:
        service.submit(KEY, request)
        service.submit(replace(KEY, compiler="another"), request)
        service.wait()
        return service.cache.find(KEY) is None and not service.failures

    assert in_a_child(check)
    gate.set()
    service.wait()
    assert service.cache.find(KEY) is not None


def keys(number: int) -> list[CacheKey]:
    """So many keys that differ."""
    return [replace(KEY, signature=f"main(f32[{n}])") for n in range(11, 11 + number)]


def asking(key: CacheKey) -> Callable[[], bytes]:
    """The request for `key`."""
    return CompileRequest(program_bytes(), "main", key.signature, "x86-64-v3").encode


@contextlib.contextmanager
def at_work() -> Iterator[tuple[CompileService, FakeCompiler]]:
    """A service whose compiler holds its first request, for KEY, until the end of the block."""
    compiler = FakeCompiler(four, gate=threading.Event())
    service = fake_service(compiler)
    service.submit(KEY, request)
    while not compiler.requests:
        time.sleep(0.001)
    yield service, compiler
    assert compiler.gate is not None
    compiler.gate.set()
    service.wait()


def test_those_that_save_most_come_first_and_equals_in_their_order() -> None:
    savings = dict(zip(keys(5), (0, 1, 1, 0, 1), strict=True))
    with at_work() as (service, compiler):
        for key in keys(5):
            service.submit(key, asking(key), saving=lambda key=key: savings[key])
        savings[keys(5)[3]] = 2  # it ran on while it waited
    order = [int(text[9:-2]) for text in compiler.requests[1:]]
    assert order == [14, 12, 13, 15, 11]


def test_a_saving_that_cannot_be_told_is_a_failure_of_its_key() -> None:
    first, second = keys(2)
    with at_work() as (service, _):
        service.submit(first, asking(first), saving=lambda: 1 / 0)
        service.submit(second, asking(second))
    assert service.failures == {first: "ZeroDivisionError: division by zero"}
    assert service.cache.find(second) is not None


class Owner:
    """Somebody who asks."""


def test_what_nobody_waits_for_is_dropped() -> None:
    first, second, third = keys(3)
    here, gone = Owner(), Owner()
    with at_work() as (service, _):
        service.submit(first, asking(first), owner=gone)
        service.submit(second, asking(second), owner=gone)
        service.submit(second, asking(second), owner=here)
        service.submit(third, asking(third))
        del gone
    assert [service.cache.find(key) is not None for key in (first, second, third)] == [
        False,
        True,
        True,
    ]
    assert service.dropped == 1


def test_a_request_can_be_cancelled_by_all_who_asked() -> None:
    (key,) = keys(1)
    one, other = Owner(), Owner()
    with at_work() as (service, compiler):
        service.submit(key, asking(key), owner=one)
        service.submit(key, asking(key), owner=other)
        assert not service.cancel(key, one)
        assert service.is_pending(key)
        assert service.cancel(key, other)
        assert not service.is_pending(key)
        assert not service.cancel(key)
        assert not service.cancel(KEY), "it is being compiled"
        service.submit(key, asking(key))
        assert service.cancel(key), "whoever asked"
    assert len(compiler.requests) == 1
    assert service.cache.find(KEY) is not None


def test_a_request_that_is_cancelled_may_be_made_again() -> None:
    (key,) = keys(1)
    with at_work() as (service, _):
        service.submit(key, asking(key))
        service.cancel(key)
        service.submit(key, asking(key))
    assert service.cache.find(key) is not None


def test_nobody_waits_for_what_is_cancelled() -> None:
    (key,) = keys(1)
    with at_work() as (service, _):
        service.submit(key, asking(key))
        waiter = threading.Thread(target=service.wait, args=(lambda k: k == key,))
        waiter.start()
        service.cancel(key)
        waiter.join(20)
        assert not waiter.is_alive()


def negative(builder: ProgramBuilder) -> VM:
    """A machine that negates, which is hot at once."""
    main = builder.function("main", 1)
    main.returns(main.apply("negative", *main.parameters))
    return VM(builder.finish(), Policy(threshold=1))


def test_general_code_takes_the_place_of_a_special_one_that_waits() -> None:
    with at_work() as (service, compiler):
        vm = negative(ProgramBuilder())
        vm.service = service
        for n in (3, 4, 5):
            vm.run("main", np.zeros(n, np.float32))
        waiting = list(service._waiting)
    assert [key.signature for key in waiting] == ["main(f32[n0])"]
    assert compiler.requests[1:] == ["main(f32[n0])"]
    assert service.dropped == 1


def test_the_code_of_a_machine_that_is_gone_is_not_made() -> None:
    with at_work() as (service, compiler):
        vm = negative(ProgramBuilder())
        vm.service = service
        vm.run("main", np.zeros(3, np.float32))
        assert len(service._waiting) == 1
        del vm
        gc.collect()
    assert (len(compiler.requests), service.dropped) == (1, 1)


def test_sixteen_threads_that_miss_at_once_compile_once() -> None:
    """numba/numba#1791, #2213, #2901: first calls race in the dispatcher's map."""
    compiler = FakeCompiler(lambda s: [(FLOAT32, [str(size) for size in s.arguments[0].shape])])
    vm = negative(ProgramBuilder())
    vm.service = service = fake_service(compiler)
    barrier, wrong = threading.Barrier(16), list[int]()

    def call(number: int) -> None:
        x = np.full(1 + number % 4, number, np.float32)
        y = np.full((2, 1 + number % 4), number, np.float32)
        barrier.wait()
        for _ in range(20):
            if any((vm.run("main", a)[0] != -a).any() for a in (x, y)):
                wrong.append(number)

    threads = [threading.Thread(target=call, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    vm.wait()
    assert not wrong
    assert len(compiler.requests) == len(set(compiler.requests)) == len(service.cache)


def test_no_exception_ends_the_thread() -> None:
    service = fake_service(FakeCompiler(four))
    for number, kind in enumerate((RuntimeError, MemoryError, RecursionError, SystemExit)):
        key = replace(KEY, compiler=f"broken {number}")

        def broken(kind: type[BaseException] = kind) -> bytes:
            raise kind("oh")

        service.submit(key, broken)
        service.wait()
        assert service.failures[key] == f"{kind.__name__}: oh"
    service.submit(KEY, request)
    service.wait()
    assert service.cache.find(KEY) is not None


def test_a_stopped_service_takes_nothing_more() -> None:
    compiler = FakeCompiler(four)
    service = fake_service(compiler)
    service.stop()
    service.submit(KEY, request)
    service.wait()
    assert not compiler.requests


@pytest.mark.parametrize("delay", [0.0, 0.3])
def test_a_process_may_end_while_it_compiles(delay: float) -> None:
    script = (
        "import sys, time, numpy as np\n"
        "from jitdialects.bytecode.program import Program\n"
        "from jitdialects.runtime.policy import Policy\n"
        "from jitdialects.runtime.vm import VM\n"
        "vm = VM(Program.from_bytes(sys.stdin.buffer.read()), Policy(threshold=1))\n"
        "for n in range(1, 9):\n"
        "    vm.run('main', np.ones((n,), np.float32))\n"
        "    vm.run('main', np.ones((n, n), np.float32))\n"
        f"time.sleep({delay})\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, input=program_bytes(), capture_output=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_stages_are_dumped_under_stable_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "dump", tmp_path)
    builder = ProgramBuilder()
    main = builder.function("main", 1)
    main.returns(main.apply("negative", *main.parameters))
    vm = VM(builder.finish(), Policy(threshold=1), service=fake_service(FakeCompiler(four)))
    vm.run("main", np.zeros(4, np.float32))
    vm.wait()
    assert f"stages in {tmp_path}" in explain(vm)
    name = f"main-{vm.functions['main'].fingerprint[:8]}"
    assert (tmp_path / name / "f32-4" / "00-vm.mlir").read_text() == "builtin.module {}"


def test_slugs_of_signatures() -> None:
    assert signature_slug("f32[n,784], f32[784,512]:strided, i64[], float") == (
        "f32-nx784_f32-784x512-strided_i64_float"
    )
    assert signature_slug("") == "none"


# ---- statistics --------------------------------------------------------------------------------


def test_stats_have_the_indicators() -> None:
    default_service.wait()
    indicators.clear()
    builder = ProgramBuilder()
    main = builder.function("main", 1)
    main.returns(main.apply("negative", *main.parameters))
    vm = VM(builder.finish(), Policy(threshold=2), service=fake_service(FakeCompiler(four)))
    for _ in range(6):
        vm.run("main", np.zeros(4, np.float32))
        vm.wait()
    found = stats()
    # the fake kernel interprets in a machine of its own, which is never hot
    assert (found["compiles"], found["cache_hits"], found["cache_misses"]) == (1, 4, 0)
    assert found["hit_rate"] == 1.0
    assert found["fusion_rate"] == pytest.approx(2 / 3)
    assert 0 < found["compile_share"] < 1
    assert found["minute"]["hit_rate"] == 1.0
    assert found["pool"]["requests"] > 0
    row = next(r for r in found["blocks"] if r.get("served") == 4)
    assert (row["function"], row["executions"]) == ("main", 2)


def test_importing_the_vm_imports_no_compiler() -> None:
    script = (
        "import sys, jitdialects.runtime.vm, jitdialects.runtime.explain\n"
        "bad = {m.partition('.')[0] for m in sys.modules} & {'xdsl', 'llvmlite'}\n"
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
