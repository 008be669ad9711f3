"""Compile server and kernel pack: what they cost, and how little calls notice of them.

Each scenario runs in a fresh process, with a cache folder of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import numpy as np

from benchmarks.machine import ROOT
from benchmarks.runtime.row import Row
from jitdialects.runtime.compile_server import CompileServer
from jitdialects.runtime.messages import CompileReply, CompileRequest
from jitdialects.runtime.pack import KERNELS

RESTARTS = 200
CALLS = 1000
NEVER = "1000000000"
"""A threshold that no function meets."""
Figures = dict[str, float]


def measure() -> list[Row]:
    """The rows of this topic."""
    return [*_server(), *_engines(), *_pack(), *_beside(), *_stream()]


# ---- the server itself -------------------------------------------------------------------------


def _median(values: list[float]) -> float:
    return float(np.median(values))


def _milliseconds(server: CompileServer, request: bytes) -> float:
    started = time.perf_counter()
    server(request)
    return (time.perf_counter() - started) * 1e3


def _server() -> list[Row]:
    null = b"no request at all"
    specs = [KERNELS["float32", name] for name in ("maximum", "tanh", "sum", "matmul")]
    requests = [CompileRequest(s.program(), "main", s.signature, "x86-64-v3") for s in specs]
    starts: list[float] = []
    for _ in range(3):
        server = CompileServer()
        starts.append(_milliseconds(server, null))
        server.close()
    server = CompileServer()
    first = _milliseconds(server, requests[0].encode())
    nulls = [_milliseconds(server, null) for _ in range(500)]
    compiles = [_milliseconds(server, r.encode()) for _ in range(5) for r in requests]
    reply = CompileReply.decode(server(requests[0].encode()))
    before = _left()
    for number in range(RESTARTS // 10):
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        server(null + b"%d" % number)
    after = _left()
    server.close()
    return [
        Row("server: spawn to ready", _median(starts), "ms", "<= 250", "Popen to the first reply"),
        Row("server: null round trip", _median(nulls) * 1e3, "us", "<= 100"),
        Row("server: first compile", first, "ms", note="maximum, with the start"),
        Row("server: round trip of one-operator kernels", _median(compiles), "ms", "<= 10"),
        Row("the same, CPU time of the compiler", reply.cpu_seconds * 1e3, "ms", note="maximum"),
        Row(
            f"descriptors and processes left by {RESTARTS // 10} restarts",
            sum(after) - sum(before),
            "",
            "<= 0",
            f"python -m benchmarks.runtime.server {RESTARTS} tries more",
        ),
    ]


def _left() -> tuple[int, int]:
    """Open descriptors, and processes that this one started."""
    mine, found = f"\nPPid:\t{os.getpid()}\n", 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            found += mine in status.read_text()
        except OSError:
            continue
    return len(os.listdir("/proc/self/fd")), found


def restart(count: int) -> None:
    """Kill the real server `count` times; says what is left."""
    server = CompileServer()
    server(b"start")
    before = _left()
    for number in range(count):
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        server(b"%d" % number)
    print(f"{server.starts} servers; descriptors and processes: {before} before, {_left()} after")


# ---- engines -----------------------------------------------------------------------------------


def _engines() -> list[Row]:
    from jitdialects.runtime.engines import Engine, LoadedLibrary
    from jitdialects.runtime.engines.dlopen import DlopenEngine, MemoryEngine
    from jitdialects.runtime.engines.mapped import MappedEngine

    spec = KERNELS["float32", "tanh"]
    request = CompileRequest(spec.program(), "main", spec.signature, "x86-64-v3")
    server = CompileServer()
    library = CompileReply.decode(server(request.encode())).library
    server.close()
    engines: dict[str, Engine] = {
        "mapped": MappedEngine(),
        "memory": MemoryEngine(),
        "file": DlopenEngine(),
    }
    rows: list[Row] = []
    for name, engine in engines.items():
        loaded, times = list[LoadedLibrary](), list[float]()
        for number in range(2000):
            data = library + number.to_bytes(8, "little")
            started = time.perf_counter()
            loaded.append(engine.load(data, "kernel"))
            times.append((time.perf_counter() - started) * 1e6)
        for each in loaded:
            each.close()
        few, many = _median(times[50:100]), _median(times[-50:])
        rows.append(Row(f"loading a kernel, {name}: 100th", few, "us"))
        rows.append(Row(f"loading a kernel, {name}: 2,000th", many, "us"))
    return rows


# ---- fresh processes ---------------------------------------------------------------------------


def _fresh(scenario: str, folder: str, **environment: str) -> Figures:
    """The figures of a scenario of this module in a process of its own."""
    script = (
        f"import json; from benchmarks.runtime import server; print(json.dumps(server.{scenario}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=os.environ
        | {"JITDIALECTS_CACHE_DIR": folder, "JITDIALECTS_DISK_CAP": "0"}
        | environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return cast(Figures, json.loads(result.stdout.splitlines()[-1]))


def first_result(operator: str) -> Figures:
    """Milliseconds to the first result of an operator on 8 numbers, imports before; then of another."""
    import jitdialects as jd
    from jitdialects.runtime.vm import VM

    x = np.linspace(-1, 1, 8, dtype=np.float32)
    times: list[float] = []
    for name in (operator, "exp"):
        text = f"func @main(%0) -> 1 {{\n^entry:\n  %1 = {name} %0\n  return %1\n}}"
        vm = VM(jd.Program.from_text(text))
        started = time.perf_counter()
        vm.run("main", x)
        times.append((time.perf_counter() - started) * 1e3)
    return {"first": times[0], "second": times[1]}


def _pack() -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        empty = [_fresh("first_result('tanh')", f"{folder}/{n}")["first"] for n in range(3)]
        command = [sys.executable, "-m", "jitdialects.runtime.pack", "--every-level"]
        environment = os.environ | {"JITDIALECTS_CACHE_DIR": f"{folder}/pack"}
        made = subprocess.run(
            command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True
        )
        there = [_fresh("first_result('tanh')", f"{folder}/pack") for _ in range(3)]
        rows += [
            Row(
                "first tanh of a fresh process, empty cache",
                _median(empty),
                "ms",
                note="start of the server, one kernel, the library of the thread pool",
            ),
            Row(
                "the same where the pack is there",
                _median([each["first"] for each in there]),
                "ms",
                "<= 5",
                "open the library, generate the call of one kernel",
            ),
            Row(
                "another operator then",
                _median([each["second"] for each in there]),
                "ms",
                "<= 1",
            ),
        ]
        for line in made.stdout.splitlines():
            # .../pack-x86-64-v4-0123.so: 34 kernels, 123077 bytes, made in 1.0 s
            path, said = line.rsplit(": ", 1)
            level = Path(path).name[len("pack-") :].rsplit("-", 1)[0]
            kernels, size, seconds = (text.split() for text in said.split(", "))
            rows.append(Row(f"pack of {kernels[0]} kernels, {level}", float(seconds[2]), "s"))
            rows.append(Row(f"its size, {level}", int(size[0]) / 1e6, "MB"))
    return rows


# ---- calls beside the compiler -----------------------------------------------------------------


def small_calls(compiling: bool, seconds: float = 3.0) -> Figures:
    """How long calls of x*y+x on 8 elements take, in microseconds, while a queue of kernels is compiled or not."""
    import jitdialects as jd
    from jitdialects.runtime.service import default_service
    from jitdialects.runtime.vm import VM

    def formula(x: Any, y: Any) -> Any:
        return x * y + x

    f = jd.jit(formula)
    x = np.ones(8, np.float32)
    for _ in range(40):
        f(x, x)
    f.wait()
    text = "\n".join(
        f"  %{k + 1} = {('tanh', 'exp', 'add')[k % 3]} %{k}{', %0' * (k % 3 == 2)}"
        for k in range(30)
    )
    program = jd.Program.from_text(f"func @main(%0) -> 1 {{\n^entry:\n{text}\n  return %30\n}}")
    vm = VM(program, jd.Policy(threshold=1, shapes="exact"))
    for size in range(1, 400 * compiling):
        vm.run("main", np.ones(size, np.float32))
    before = default_service.compiles
    times: list[int] = []
    clock = time.perf_counter_ns
    end = clock() + int(seconds * 1e9)
    last = clock()
    while last < end:
        f(x, x)
        now = clock()
        times.append(now - last)
        last = now
    found = np.array(times) / 1e3
    p50, p99, p999 = np.percentile(found, [50, 99, 99.9])
    done = default_service.compiles - before
    return {
        "p50": p50,
        "p99": p99,
        "p999": p999,
        "worst": float(found.max()),
        "compiles": done / seconds,
    }


def _beside() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        off = _fresh("small_calls(False)", folder)
        on = _fresh("small_calls(True)", folder)
    rows = [Row("compiles a second beside the calls below", on["compiles"], "")]
    for figure in ("p50", "p99", "p999", "worst"):
        name = f"calls of 8 elements, {figure.replace('999', '99.9')}"
        rows.append(Row(f"{name}, compiler at rest", off[figure], "us"))
        rows.append(Row(f"{name}, compiler busy", on[figure], "us"))
    return rows


# ---- a stream ----------------------------------------------------------------------------------


def stream() -> Figures:
    """`CALLS` calls of the MLP with batches of 1 to 64, as the process begins, and once more."""
    from benchmarks.peers.ours import Ours
    from benchmarks.rows import WORKLOADS
    from benchmarks.workload import make_case

    case = make_case(WORKLOADS["mlp"], "float32", (64,), 1)
    peer = Ours(1)
    data = case.inputs[0]
    batches = np.random.default_rng(1).integers(1, 65, CALLS)
    inputs = [np.ascontiguousarray(data[:n]) for n in batches]
    function = peer.make_dynamic(case)
    figures: Figures = {}
    for turn in ("cold", "warm"):
        times: list[float] = []
        for x in inputs:
            started = time.perf_counter()
            function(x)
            times.append((time.perf_counter() - started) * 1e6)
        peer.rest(function)
        p50, p99, p999 = np.percentile(times, [50, 99, 99.9])
        figures |= {
            f"{turn} total": sum(times) / 1e3,
            f"{turn} p50": p50,
            f"{turn} p99": p99,
            f"{turn} p99.9": p999,
            f"{turn} worst": max(times),
        }
    return figures


def _stream() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        _fresh("stream()", folder)  # makes what tier 0 needs of the pack
        on = _fresh("stream()", folder)
        off = _fresh("stream()", folder, JITDIALECTS_THRESHOLD=NEVER)
    rows = [
        Row(f"MLP stream, {CALLS} calls, cold total", on["cold total"], "ms"),
        Row("the same, second pass", on["warm total"], "ms"),
        Row("the same, never compiled", off["cold total"], "ms"),
        Row("second pass, never compiled", off["warm total"], "ms"),
    ]
    for figure in ("p50", "p99", "p99.9", "worst"):
        rows += [
            Row(f"single calls, {figure}, cold", on[f"cold {figure}"], "us"),
            Row(f"single calls, {figure}, never compiled", off[f"cold {figure}"], "us"),
        ]
    return rows


if __name__ == "__main__":
    restart(int(sys.argv[1]) if sys.argv[1:] else RESTARTS)
