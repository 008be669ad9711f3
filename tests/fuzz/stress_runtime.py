"""Everything at once: threads call compiled functions of every kind while the runtime is disturbed at random.

    python -X faulthandler tests/fuzz/stress_runtime.py --seconds 60 --seed 3

Each result is compared bit by bit with what the interpreter computed before, when it comes and again when it is
dropped. One more thread clears, evicts, kills, deletes, forks, looks and trims. Ends with status 1 where a result
was wrong, a call raised, a child failed, nothing moved for `STUCK` seconds (all stacks are shown), or
something grew that should not: descriptors, threads, memory.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import faulthandler
import gc
import itertools
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.frontends.jit import capture
from jitdialects.frontends.structure import flatten
from jitdialects.runtime.compile_server import default_server
from jitdialects.runtime.pool import MemoryPool, default_pool
from jitdialects.runtime.snapshot import snapshot
from jitdialects.tools.metrics import exposition

STUCK = 60.0
"""Seconds without a finished call, or for one disturbance, after which the run is given up."""
INTERPRETED = jd.Policy(threshold=10**9, loop_seconds=1e9)
SIZES = (1, 2, 3, 7, 8, 16, 31, 64, 100, 257)
LARGE = (70_000, 300_000)
KEPT = 24
"""Results that a thread holds on to."""
F32 = np.float32

RECURSIVE = """
#0 = int 1
#1 = int 0
func @main(%0, %1) -> 1 {
^entry:
  %2 = const #1
  %3 = greater %1, %2
  cond_br %3, ^more, ^done
^more:
  %4 = negative %0
  %5 = multiply %4, %0
  %6 = add %5, %4
  %7 = const #0
  %8 = subtract %1, %7
  %9 = call @main(%6, %8)
  %10 = add %9, %0
  %11 = multiply %10, %10
  %12 = subtract %11, %4
  return %12
^done:
  return %0
}
"""
COUNT = """
#0 = int 1
#1 = float 0.999
func @main(%0, %1, %2) -> 2 {
^entry:
  %3 = const #0
  %4 = subtract %2, %2
  br ^head
^head:
  %5 = less %4, %2
  cond_br %5, ^body, ^done
^body:
  %6 = multiply %0, %1
  %7 = const #1
  %8 = multiply %6, %7
  %0 = add %8, %1
  %4 = add %4, %3
  br ^head
^done:
  %10 = sum %0
  return %0, %10
}
"""


@dataclass
class Case:
    """A way of calling something, with arguments and what the interpreter made of them."""

    name: str
    call: Callable[..., object]
    known: Sequence[tuple[tuple[Any, ...], list[Any]]]


def arrays_of(result: object) -> list[Any]:
    """The leaves of a result as NumPy sees them."""
    leaves: list[object] = []
    flatten(result, leaves)
    return [np.asarray(leaf) for leaf in leaves]


def same(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether the results have the same bits."""
    return len(found) == len(wanted) and all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
        for x, y in zip(found, wanted, strict=True)
    )


class Maker:
    """Makes cases from a source of random numbers."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.numbers = np.random.default_rng(seed)

    def floats(self, *sizes: int) -> Any:
        return self.numbers.standard_normal(sizes).astype(F32)

    def sizes(self, count: int, large: bool = False) -> Iterator[int]:
        yield from self.choose.choices(SIZES, k=count)
        if large:
            yield from LARGE

    def known(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The calls with what an interpreting machine gives for them."""
        out: list[Any] = []
        for arguments in calls:
            leaves: list[Any] = []
            structure = flatten((arguments, {}), leaves)
            captured = capture(function, "expected", structure, leaves)
            results = captured.run(jd.VM(captured.program, INTERPRETED), leaves, as_arrays=False)
            out.append((arguments, [np.array(r) for r in arrays_of(results)]))
        return out

    def jitted(
        self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], **options: Any
    ) -> Case:
        """A jitted function and calls of it."""
        name = getattr(function, "__name__", "?")
        return Case(name, jd.jit(function, **options), self.known(function, calls))

    def machine(self, name: str, text: str, calls: Sequence[tuple[Any, ...]]) -> Case:
        """A program and calls of its first function."""
        program = jd.Program.from_text(text)
        vm, slow = jd.VM(program, jd.Policy(loop_seconds=1e-4)), jd.VM(program, INTERPRETED)
        known = [(c, [np.array(r) for r in slow.run("main", *c)]) for c in calls]
        return Case(name, lambda *arguments: vm.run("main", *arguments), known)


def gate(x: Any, y: Any) -> Any:
    return jnp.exp(jnp.tanh(x)) * y + x


def several(x: Any, y: Any, scale: float) -> Any:
    z = x * scale
    return jnp.tanh(z) - y, jnp.sum(z * y), z


def layer(x: Any, w: Any, b: Any) -> Any:
    return jnp.maximum(x @ w + b, 0.0)


def softmax(x: Any) -> Any:
    e = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
    return e / jnp.sum(e, axis=-1, keepdims=True)


def looped(x: Any, n: int) -> Any:
    return jd.fori_loop(0, n, lambda i, v: v * 0.5 + x, x)


def structured(point: dict[str, Any], pair: tuple[Any, Any]) -> Any:
    return {"sum": point["x"] + pair[0], "twice": [pair[1] * 2.0, point["y"] - 1.0]}


class Model:
    """With a method that is jitted."""

    def __init__(self, weights: Any) -> None:
        self.weights = weights

    @jd.jit
    def apply(self, x: Any, *, shift: Any) -> Any:
        return jnp.tanh(x * self.weights) + shift


def make_cases(seed: int) -> list[Case]:
    """Cases of every kind."""
    m = Maker(seed)
    floats, sizes = m.floats, m.sizes
    pairs = [(floats(n), floats(n)) for n in sizes(12, large=True)]
    rows = [(floats(n, 16), floats(n, 16)) for n in sizes(8)]
    cases = [
        m.jitted(gate, pairs + rows),
        m.jitted(several, [(x, y, m.choose.choice((0.5, 2.0, -1.5))) for x, y in pairs + rows]),
        m.jitted(softmax, [(floats(n, k),) for n, k in itertools.product(sizes(5), sizes(3))]),
        m.jitted(looped, [(floats(n), k) for n, k in zip(sizes(8), sizes(8), strict=True)]),
        m.machine("recursive", RECURSIVE, [(floats(n), m.choose.randrange(6)) for n in sizes(6)]),
        m.machine(
            "loops", COUNT, [(floats(n), floats(n), m.choose.randrange(400)) for n in sizes(6)]
        ),
    ]
    w, b = floats(64, 32), floats(32)
    products = [(floats(n, 64), w, b) for n in sizes(8)] + [(floats(300, 64), w, b)]
    cases.append(m.jitted(layer, products))

    def padded(x: Any) -> Any:
        return softmax(x) * 2.0

    cases.append(m.jitted(padded, [(floats(n, 12),) for n in sizes(10)], shapes="bucketed"))

    def constants(x: Any) -> Any:
        return x @ w + b

    cases.append(m.jitted(constants, [(floats(n, 64),) for n in sizes(8)]))
    nested = [({"x": x, "y": y}, (y, x)) for x, y in rows]
    cases.append(m.jitted(structured, nested))
    cases.append(_keywords(m, pairs))
    cases.append(_methods(m))
    cases.append(_lazy(m, pairs[:6] + rows))
    cases.append(_fresh(m, pairs[:6]))
    cases.append(_views(m))
    return cases


def _keywords(m: Maker, pairs: Sequence[tuple[Any, ...]]) -> Case:
    def named(x: Any, y: Any, scale: float = 1.0) -> Any:
        return (x - y) * scale + y

    function = jd.jit(named)

    def call(x: Any, y: Any, scale: float) -> object:
        return (function(x, y=y, scale=scale), function(scale=scale, y=y, x=x))[len(x) % 2]

    return Case("named", call, m.known(named, [(x, y, 0.25) for x, y in pairs]))


def _methods(m: Maker) -> Case:
    """Objects come and go."""
    known = []
    for n in m.sizes(8):
        w, x, shift = m.floats(n), m.floats(n), m.floats(n)
        expected = m.known(lambda w, x, s: jnp.tanh(x * w) + s, [(w, x, shift)])[0][1]
        known.append(((Model(w), w, x, shift), expected))

    def call(model: Model, w: Any, x: Any, shift: Any) -> object:
        if int(x[0] * 1e6) % 3 == 0 and random.random() < 0.1:
            model = Model(w)
        return model.apply(x, shift=shift)

    return Case("method", call, known)


def _lazy(m: Maker, pairs: Sequence[tuple[Any, ...]]) -> Case:
    def call(x: Any, y: Any) -> object:
        a, b = jnp.asarray(x), jnp.asarray(y)
        c = a * b + 1.0
        return np.asarray(jnp.exp(c - jnp.max(c)) + a), np.asarray(c)

    def expected(x: Any, y: Any) -> Any:
        c = x * y + 1.0
        return jnp.exp(c - jnp.max(c)) + x, c

    return Case("lazy", call, m.known(expected, pairs))


def _fresh(m: Maker, pairs: Sequence[tuple[Any, ...]]) -> Case:
    """Functions that are made, used and forgotten."""

    def fresh(x: Any, y: Any) -> Any:
        return jnp.where(x > y, x, y * 3.0)

    kept: list[Callable[..., object]] = [jd.jit(fresh)]

    def call(x: Any, y: Any) -> object:
        if random.random() < 0.02:
            kept[0] = jd.jit(fresh)
        return kept[0](x, y)

    return Case("fresh", call, m.known(fresh, pairs))


def _views(m: Maker) -> Case:
    """Arguments that are views."""

    def strided(x: Any, y: Any) -> Any:
        return x * y - x

    known = [(m.floats(2 * n, 6)[::2, 1:4], m.floats(3, n).T) for n in m.sizes(8)]
    return m.jitted(strided, known)


# ---- threads ------------------------------------------------------------------------------------


@dataclass
class Run:
    """What the threads of one run share."""

    cases: Sequence[Case]
    folder: Path
    seed: int
    stop: threading.Event = field(default_factory=threading.Event)
    failures: list[str] = field(default_factory=list[str])
    calls: collections.Counter[str] = field(default_factory=collections.Counter[str])
    disturbances: collections.Counter[str] = field(default_factory=collections.Counter[str])
    moved: list[float] = field(default_factory=list[float])
    doing: str = ""

    def fail(self, text: str) -> None:
        """Note a failure and end the run."""
        self.failures.append(text)
        self.stop.set()


def one_call(case: Case, choose: random.Random) -> tuple[list[Any], list[Any]]:
    """The result of a random call of a case, and the expected one. Raises `AssertionError` if they differ."""
    arguments, expected = choose.choice(case.known)
    result = arrays_of(case.call(*arguments))
    if not same(result, expected):
        shapes = [getattr(a, "shape", a) for a in arguments]
        raise AssertionError(f"{case.name}: wrong bits for {shapes}")
    return result, expected


def work(run: Run, number: int) -> None:
    """Call things until the run ends."""
    choose = random.Random(run.seed * 1000 + number)
    held: collections.deque[tuple[str, list[Any], list[Any]]] = collections.deque()
    try:
        while not run.stop.is_set():
            case = choose.choice(run.cases)
            for _ in range(choose.choice((1, 3, 50))):
                result, expected = one_call(case, choose)
                run.calls[case.name] += 1
                if choose.random() < 0.1:
                    held.append((case.name, result, expected))
                if len(held) > KEPT:
                    name, result, expected = held.popleft()
                    if not same(result, expected):
                        raise AssertionError(f"{name}: a result changed while it was held")
                result = None
                if run.stop.is_set():
                    return
            run.moved[number] = time.monotonic()
    except Exception:  # noqa: BLE001
        run.fail(f"thread {number}: {traceback.format_exc()}")


# ---- disturbances -------------------------------------------------------------------------------


class Chaos:
    """Disturbs at random; each public method is a way of doing that."""

    def __init__(self, run: Run, without: Sequence[str] = ()) -> None:
        self.run = run
        self.choose = random.Random(run.seed)
        self.without = without
        self.private = MemoryPool(limit=1 << 16)
        self.recording = False

    def work(self) -> None:
        """Disturb until the run ends."""
        ways = [name for name in vars(Chaos) if name[0] != "_" and name != "work"]
        ways = [name for name in ways if name not in self.without]
        try:
            while not self.run.stop.is_set():
                way = self.choose.choice(ways)
                self.run.doing = way
                getattr(self, way)()
                self.run.disturbances[way] += 1
                self.run.moved[-1] = time.monotonic()
                self.run.doing = ""
                time.sleep(self.choose.choice((0.0, 0.01, 0.1)))
        except Exception:  # noqa: BLE001
            self.run.fail(f"disturbance: {traceback.format_exc()}")
        finally:
            if self.recording:
                jd.profiler.stop()

    def clear(self) -> None:
        jd.clear_cache()

    def shrink_code(self) -> None:
        jd.config.code_cap = self.choose.choice((1 << 14, 1 << 16, 1 << 18))

    def grow_code(self) -> None:
        jd.config.code_cap = 1 << 28

    def kill_server(self) -> None:
        pid = default_server.pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, self.choose.choice((signal.SIGKILL, signal.SIGABRT)))

    def remove_folder(self) -> None:
        shutil.rmtree(self.run.folder / "kernels", ignore_errors=True)

    def cut_files(self) -> None:
        found = list(self.run.folder.rglob("*.jdk"))
        for path in self.choose.sample(found, len(found) // 2):
            with contextlib.suppress(OSError):
                # never in place: code in use is mapped from these files, as from any shared library
                damaged = path.with_suffix(".damaged")
                damaged.write_bytes(path.read_bytes()[: self.choose.randrange(5000)])
                damaged.replace(path)

    def threads(self) -> None:
        jd.config.threads = self.choose.choice((1, 2, 4, None))

    def profile(self) -> None:
        if self.recording:
            jd.profiler.stop(self.run.folder / "trace.json")
        else:
            jd.profiler.start()
        self.recording = not self.recording

    def trim(self) -> None:
        default_pool.trim()

    def check_pool(self) -> None:
        default_pool.check()

    def debug_pool(self) -> None:
        jd.config.pool_debug = not jd.config.pool_debug

    def coarse_pool(self) -> None:
        jd.config.pool_classes = self.choose.choice(("fine", "coarse"))

    def engine(self) -> None:
        jd.config.engine = self.choose.choice(("auto", "file", "memory", "mapped"))

    def record_pool(self) -> None:
        jd.config.pool_trace = self.choose.choice((None, self.run.folder / "pool.trace"))

    def record_calls(self) -> None:
        """Of machines that are made from now on."""
        jd.config.policy_trace = self.choose.choice((None, self.run.folder / "calls.trace"))

    def dump(self) -> None:
        jd.config.dump = self.choose.choice((None, None, self.run.folder / "dump"))

    def limit_pool(self) -> None:
        jd.config.pool_limit = self.choose.choice((None, 1 << 28))

    def share(self) -> None:
        shared = f"file://{self.run.folder}/shared"
        jd.config.shared_cache_secret = "the same everywhere"
        jd.config.shared_cache = self.choose.choice((None, shared))

    def small_pool(self) -> None:
        """A machine whose pool has too little: it refuses or is right."""
        vm = jd.VM(jd.Program.from_text(COUNT), pool=self.private)
        x = np.ones(self.choose.choice((8, 100, 10_000)), F32)
        expected = jd.VM(jd.Program.from_text(COUNT), INTERPRETED).run("main", x, x, 20)
        for _ in range(5):
            with contextlib.suppress(jd.PoolError):
                if not same(vm.run("main", x, x, 20), expected):
                    raise AssertionError("wrong bits from a small pool")
        self.private.check()

    def collect(self) -> None:
        gc.collect()

    def look(self) -> None:
        jd.stats()
        json.dumps(snapshot())
        exposition()

    def explain(self) -> None:
        for case in self.run.cases:
            if hasattr(case.call, "wait"):
                str(jd.explain(case.call))

    def wait_for_code(self) -> None:
        jd.wait()

    def switch_interval(self) -> None:
        sys.setswitchinterval(self.choose.choice((1e-6, 1e-4, 5e-3)))

    def fork(self) -> None:
        pid = os.fork()
        if not pid:
            _child(self.run, self.choose.random())
        end = time.monotonic() + STUCK
        while time.monotonic() < end:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                if status:
                    raise AssertionError(f"a child ended with {os.waitstatus_to_exitcode(status)}")
                return
            time.sleep(0.01)
        os.kill(pid, signal.SIGABRT)
        os.waitpid(pid, 0)
        raise AssertionError("a child did not end")


def _child(run: Run, seed: float) -> None:
    """Some calls in a forked process, in two threads."""
    status = 1
    faulthandler.dump_traceback_later(STUCK - 5, exit=True)
    choose = random.Random(seed)

    def calls() -> None:
        for case in run.cases:
            for _ in range(3):
                one_call(case, choose)

    failed: list[BaseException] = []

    def other() -> None:
        try:
            calls()
        except Exception as error:  # noqa: BLE001
            failed.append(error)

    try:
        thread = threading.Thread(target=other)
        thread.start()
        calls()
        thread.join()
        if choose.random() < 0.3:
            jd.clear_cache()
            calls()
        if choose.random() < 0.2:
            jd.wait()
            calls()
        status = int(bool(failed))
        for error in failed:
            traceback.print_exception(error)
    except Exception:  # noqa: BLE001
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


# ---- the whole ----------------------------------------------------------------------------------


def resources() -> dict[str, int]:
    """What must not grow."""
    status = Path("/proc/self/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": int(fields["Threads"]),
        "megabytes": int(fields["VmRSS"].split()[0]) >> 10,
        "mappings": Path("/proc/self/maps").read_text().count("\n"),
    }


def stress(seconds: float, seed: int, threads: int, without: Sequence[str] = ()) -> list[str]:
    """Run for so long, `without` some disturbances; the failures."""
    found = dict(vars(jd.config))
    interval = sys.getswitchinterval()
    with tempfile.TemporaryDirectory(prefix="stress-") as name:
        jd.config.cache_dir, jd.config.disk_cap = Path(name), 1 << 26
        jd.config.threshold = 3
        run = Run(make_cases(seed), Path(name), seed)
        run.moved = [time.monotonic()] * (threads + 1)
        chaos = Chaos(run, without)
        workers = [
            threading.Thread(target=work, args=(run, number), daemon=True)
            for number in range(threads)
        ]
        workers.append(threading.Thread(target=chaos.work, daemon=True))
        for worker in workers:
            worker.start()
        try:
            _watch(run, seconds)
            run.stop.set()
            for worker in workers:
                worker.join(STUCK)
                if worker.is_alive():
                    faulthandler.dump_traceback(all_threads=True)
                    run.failures.append("a thread did not end")
                    break
            default_pool.check()
        finally:
            sys.setswitchinterval(interval)
            for option, value in found.items():
                setattr(jd.config, option, value)
    print(f"calls {run.calls.total()}: {dict(run.calls)}")
    print(f"disturbances {run.disturbances.total()}: {dict(run.disturbances)}")
    return run.failures


def _watch(run: Run, seconds: float) -> None:
    started = time.monotonic()
    shown = 0
    while not run.stop.wait(0.5):
        now = time.monotonic()
        if now - started > seconds:
            return
        if now - min(run.moved) > STUCK:
            faulthandler.dump_traceback(all_threads=True)
            run.fail(f"a thread has not moved for {STUCK:g} s; disturbance: {run.doing}")
        if now - started > 15 * shown:
            shown += 1
            print(f"{now - started:5.0f} s, {run.calls.total()} calls, {resources()}", flush=True)


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--without", default="", help="disturbances, separated by commas")
    options = parser.parse_args()
    without = options.without.split(",")
    failures = stress(options.seconds, options.seed, options.threads, without)
    for failure in failures:
        print(failure)
    print("failed" if failures else "all results equal")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
