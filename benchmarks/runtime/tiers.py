"""Tiers: what profiling costs the interpreter, how good the cost model's priors are, what the default policy decides.

Decisions are those of the simulator on the traces in `tests/data`, which were recorded on a busy machine, beside a policy that
only counts to ten.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np

import jitdialects as jd
from benchmarks.machine import ROOT
from benchmarks.runtime.row import Row
from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.runtime.cost_model import CostModel, work_of
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.policy_simulator import Outcome, simulate
from jitdialects.runtime.policy_trace import read
from jitdialects.runtime.profile import ShapeHistory, Times
from jitdialects.runtime.tiers import Tiers

TRACES = {
    "mlp_stream": "1,000 batches through a classifier",
    "shape_storm": "1,000 shapes",
    "one_shot": "a script that runs all once or twice",
    "one_row_server": "1,500 requests, most of one row",
}
SHORT = "of a second or less of calls; the first second of compiling in a minute is free"
STARTING = "0.35 s until the compile server answers included"
INTERPRET = Policy(threshold=2**60)
ROUNDS, ROUND_SECONDS = 300, 1e-3
"""Short rounds: some of them are not disturbed by others."""
LOOP = """\
#0 = int 0
#1 = int 1

func @main(%0, %1) -> 1 {
^entry:
  %2 = const #0
  br ^header
^header:
  %3 = less %2, %1
  cond_br %3, ^body, ^done
^body:
  %4 = const #1
  %2 = add %2, %4
  %0 = add %0, %4
  br ^header
^done:
  return %0
}
"""


def chain(opcode: str, length: int) -> jd.Program:
    """So many operators one after another, of two arguments."""
    builder = ProgramBuilder()
    main = builder.function("main", 2)
    value, other = main.parameters
    for _ in range(length):
        value = main.apply(opcode, value, other)
    main.returns(value)
    return builder.finish()


def _nothing(*_: object) -> bool:
    return False


@contextmanager
def unprofiled() -> Generator[None]:
    """Nothing is timed, remembered or asked; counters go on."""
    with (
        mock.patch("time.perf_counter", float),
        mock.patch.object(Times, "add", _nothing),
        mock.patch.object(ShapeHistory, "add", _nothing),
        mock.patch.object(Tiers, "is_time", _nothing),
    ):
        yield


def profiling_ratio(program: jd.Program, *arguments: object) -> float:
    """Interpreted calls with profiling / without, the least of many short rounds of either."""
    vm = jd.VM(program, INTERPRET)
    clock = time.perf_counter

    def seconds(calls: int) -> float:
        started = clock()
        for _ in range(calls):
            vm.run("main", *arguments)
        return clock() - started

    seconds(20)
    calls = max(1, int(ROUND_SECONDS / min(seconds(1) for _ in range(20))))
    on: list[float] = []
    off: list[float] = []
    for _ in range(ROUNDS):
        on.append(seconds(calls))
        with unprofiled():
            off.append(seconds(calls))
    return min(on) / min(off)


def compiling(program: jd.Program, *arguments: np.ndarray) -> tuple[float, float]:
    """Seconds that compiling takes, and what the prior says."""
    vm = jd.VM(program, Policy(threshold=1, shapes="exact"))
    vm.run("main", *arguments)
    vm.wait()
    vm.run("main", *arguments)
    (entry,) = vm.functions["main"].entries
    assert entry.kernel is not None
    work = work_of(program, program.functions[0].blocks)
    return entry.kernel.reply.seconds, CostModel().compile_seconds(work)


def decisions(name: str) -> list[Row]:
    """The default policy and counting to ten on one trace."""
    events = read(ROOT / "tests" / "data" / f"{name}.trace")
    model, count = (simulate(events, replace(Policy(), threshold=t)) for t in (None, 10))
    title = TRACES[name]
    note = (
        f"counting to ten: {count.compiles} compile(s), compile share "
        f"{count.totals.rates()['compile_share']:.0%}, hit rate {count.totals.rates()['hit_rate']:.0%}, "
        f"{count.seconds * 1e3:.0f} ms of calls; recorded {model.recorded_seconds * 1e3:.0f} ms"
    )
    rates = model.totals.rates()
    return [
        Row(f"{title}: compiles", model.compiles, "", "", note),
        Row(f"{title}: compile share", 100 * rates["compile_share"], "%", "", SHORT),
        Row(
            f"{title}: hit rate",
            100 * rates["hit_rate"],
            "%",
            "",
            STARTING if model.compiles else "",
        ),
        Row(f"{title}: time of calls", model.seconds * 1e3, "ms"),
        Row(
            f"{title}: compiling and calls together",
            _total(model) / _total(count),
            "x counting to ten",
            "<= 2",
        ),
    ]


def _total(outcome: Outcome) -> float:
    return outcome.totals.run_seconds + outcome.totals.compile_cpu_seconds


def measure() -> list[Row]:
    """The rows of this topic."""
    x, square = np.ones(8, np.float32), np.ones((64, 64), np.float32)
    jd.VM(chain("matmul", 1), INTERPRET).run("main", square, square)  # its kernel is made
    ratios = {
        "2 operators, 8 elements": profiling_ratio(chain("add", 2), x, x),
        "a loop of 20 steps": profiling_ratio(jd.Program.from_text(LOOP), x, 20),
        "3 products of 64 x 64": profiling_ratio(chain("matmul", 3), square, square),
    }
    rows = [
        Row(
            f"profiling: {name}",
            value,
            "x without",
            "<= 1.02",
            "least of 300 rounds of 1 ms of either, in turn",
        )
        for name, value in ratios.items()
    ]
    compiling(chain("multiply", 1), x, x)  # the server starts
    errors: list[float] = []
    for name, program, argument in (
        ("one addition", chain("add", 1), x),
        ("20 additions", chain("add", 20), x),
        ("one product", chain("matmul", 1), square),
        ("three products", chain("matmul", 3), square),
    ):
        seconds, prior = compiling(program, argument, argument)
        errors.append(max(seconds / prior, prior / seconds))
        rows.append(
            Row(f"compiling {name}", seconds * 1e3, "ms", "", f"prior: {prior * 1e3:.1f} ms")
        )
    rows.append(
        Row("compile time / its prior, or the reverse: median", statistics.median(errors), "x")
    )
    for name in TRACES:
        rows += decisions(name)
    return rows
