"""The process of one peer and one row: reads a request a line, answers a line of JSON.

{"do": "prepare", "row": KEY, "tiny": false}   data, function, check against float64, steady state
{"do": "round", "seconds": 0.05}               one sample of each figure, in seconds
{"do": "facts"}                                what the library tells about compilation
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
import timeit
from collections.abc import Callable
from typing import Any

from benchmarks import peers
from benchmarks.one_shot import first_call, stream
from benchmarks.peers.peer import Peer
from benchmarks.rows import WORKLOADS, Row, row_named
from benchmarks.workload import Array, Case, Unsupported, make_case

BLOCK = 2e-4
"""Seconds that one measured block of calls takes at least."""
SWEEP = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)


class Measured:
    """One call whose time is a figure."""

    def __init__(self, peer: Peer, function: Callable[..., Any], case: Case, door: bool) -> None:
        self.function = function
        self.case = case
        statement = peer.statement
        arguments = case.inputs if door else [peer.array(a) for a in case.inputs]
        if door:
            statement, function = "f({})", _through_numpy(peer, function)
        names = [f"a{i}" for i in range(len(arguments))]
        text = statement.format(", ".join(names))
        variables = {"f": function, **dict(zip(names, arguments, strict=True))}
        self.timer = timeit.Timer(text, globals=variables)
        self._code = compile(text, "call", "eval")
        self._variables = variables
        self._back = (lambda r: r) if door else peer.back
        self.count = 1

    def call(self) -> object:
        """One call."""
        return eval(self._code, self._variables)

    def result(self) -> Array:
        """The result of one call."""
        return self._back(self.call())

    def calibrate(self) -> None:
        """Choose how many calls a block has."""
        best = min(self.timer.repeat(3, 1))
        self.count = max(1, int(BLOCK / best)) if best < BLOCK else 1
        if self.count > 1:
            self.count = max(1, int(BLOCK * self.count / self.timer.timeit(self.count)))

    def sample(self, seconds: float) -> float:
        """The median time of a call over blocks that take `seconds` together."""
        blocks: list[float] = []
        ends = time.perf_counter() + seconds
        while not blocks or time.perf_counter() < ends:
            blocks.append(self.timer.timeit(self.count) / self.count)
        return sorted(blocks)[len(blocks) // 2]


def _through_numpy(peer: Peer, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with NumPy arrays in and out; itself where it takes and returns them anyway."""
    if peer.statement == "f({})" and type(peer).array is Peer.array:
        return function
    return lambda *arguments: peer.back(function(*map(peer.array, arguments)))


class Worker:
    """Answers requests about one row."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.measured: dict[str, Measured] = {}

    def prepare(self, row: Row) -> dict[str, Any]:
        """Make, check and warm up; the error of the result and a remark."""
        workload = WORKLOADS[row.workload]
        batches: tuple[int, ...] = SWEEP if row.kind == "sweep" else ()
        cases = {
            f"batch {b}": make_case(workload, row.dtype, (b,), row.threads)
            for b in batches
            if b <= row.sizes[0]
        } or {"call": make_case(workload, row.dtype, row.sizes, row.threads)}
        function = self.peer.make(next(iter(cases.values())))
        remarks: list[str] = []
        worst = 0.0
        for name, case in cases.items():
            measured = Measured(self.peer, function, case, row.numpy_door)
            worst = max(worst, case.error(measured.result()))
            remark = self.peer.settle(function, measured.call)
            worst = max(worst, case.error(measured.result()))
            if remark is not None and remark not in remarks:
                remarks.append(remark)
            self.measured[name] = measured
        for measured in self.measured.values():
            measured.calibrate()
        if not worst <= workload.tolerance:
            remarks.append(f"WRONG: off by {worst:.1e}, allowed are {workload.tolerance:.0e}")
        return {"error": worst, "remarks": remarks}

    def round(self, seconds: float) -> dict[str, float]:
        """One sample of each figure."""
        each = seconds / max(1, len(self.measured) / 4)
        return {name: measured.sample(each) for name, measured in self.measured.items()}

    def facts(self) -> dict[str, Any]:
        """What the library tells about its compilation."""
        return self.peer.facts(next(iter(self.measured.values())).function)


def answer(request: dict[str, Any], worker: Worker) -> dict[str, Any]:
    """The answer to one request."""
    if request["do"] == "round":
        return worker.round(request["seconds"])
    if request["do"] == "facts":
        return worker.facts()
    row = row_named(request["row"])
    if request["tiny"]:
        row = row.tiny()
    if row.kind == "stream":
        return stream(worker.peer, row, 20 if request["tiny"] else 1000)
    if row.kind == "first":
        return first_call(worker.peer, row)
    return worker.prepare(row)


def main() -> None:
    """Arguments: peer, threads, CPU numbers."""
    name, threads, cpus = sys.argv[1:]
    os.sched_setaffinity(0, {int(c) for c in cpus.split(",")})
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print must not come between answers
    worker = None
    for request in itertools.chain([{}], map(json.loads, sys.stdin)):
        try:
            if worker is None:
                worker = Worker(peers.make(name, int(threads)))
                reply = {"ready": name}
            else:
                reply = answer(request, worker)
        except Unsupported as error:
            reply = {"unsupported": str(error)}
        except Exception as error:  # noqa: BLE001 (any failure of a library is a cell of the table)
            reply = {"unsupported": f"not supported: {_sentence(error)}"}
        print(json.dumps(reply), file=replies)


def _sentence(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0].split("; ")[0] if lines else type(error).__name__)[:200]


if __name__ == "__main__":
    main()
