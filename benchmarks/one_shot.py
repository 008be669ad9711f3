"""What happens only once in a process: the first call, and a stream of calls that begins cold."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.peer import Peer
from benchmarks.rows import WORKLOADS, Row
from benchmarks.workload import Case, Workload, make_case


def stream(peer: Peer, row: Row, calls: int) -> dict[str, Any]:
    """`calls` calls with batches drawn from 1 to `row.sizes[0]`, and the same calls once more.

    Arrays come and go as NumPy arrays: a stream arrives from outside. What is compiled beside the calls
    takes part in the time of the first pass; it may end before the second.
    """
    largest = row.sizes[0]
    case = make_case(WORKLOADS[row.workload], row.dtype, (largest,), row.threads)
    data = case.inputs[0]
    batches = np.random.default_rng(1).integers(1, largest + 1, calls)
    inputs = [np.ascontiguousarray(data[:n]) for n in batches]
    started = time.perf_counter()
    function = peer.make_dynamic(case)
    first_pass = _pass(peer, function, inputs)
    made = time.perf_counter() - started - sum(first_pass)
    peer.rest(function)
    second_pass = _pass(peer, function, inputs)
    worst = case.error(peer.back(function(peer.array(data))))
    return {
        "figures": {
            "cold total": made + sum(first_pass),
            "first call": made + first_pass[0],
            "second pass": sum(second_pass),
            "slowest after the first": max(first_pass[1:]),
        },
        "error": worst,
        "remarks": _wrong(case, worst),
    }


def _pass(peer: Peer, function: Callable[..., Any], inputs: list[Any]) -> list[float]:
    times: list[float] = []
    for x in inputs:
        started = time.perf_counter()
        peer.back(function(peer.array(x)))
        times.append(time.perf_counter() - started)
    return times


def first_call(peer: Peer, row: Row) -> dict[str, Any]:
    """Seconds to the first result and to the end of compilation; then the same for an equal program in
    this process, which is warm by then. Importing the library came before."""
    workload = WORKLOADS[row.workload]
    case = make_case(workload, row.dtype, row.sizes, row.threads)
    first, ready, worst, facts = _first(peer, case)
    warm = make_case(_renamed(workload), row.dtype, row.sizes, row.threads)
    warm_first, warm_ready, _, _ = _first(peer, warm)
    figures = {"first result, cold": first, "first result, warm": warm_first}
    if peer.compiles:
        figures |= {"compiled, cold": ready, "compiled, warm": warm_ready}
    return {"figures": figures, "error": worst, "remarks": _wrong(case, worst), "facts": facts}


def _first(peer: Peer, case: Case) -> tuple[float, float, float, dict[str, Any]]:
    inputs = [peer.array(x) for x in case.inputs]
    started = time.perf_counter()
    function = peer.make(case)
    result = peer.back(function(*inputs))
    first = time.perf_counter() - started
    compiled = peer.compile_time(function, lambda: function(*inputs))
    facts = peer.facts(function)
    return first, first if compiled is None else compiled, case.error(result), facts


def _renamed(workload: Workload) -> Workload:
    """The program with one more operation, so that no library finds it compiled already."""

    def program(xp: Any, *arguments: Any) -> Any:
        return workload.program(xp, arguments[0] * 1.0, *arguments[1:])

    return Workload(**{**workload.__dict__, "program": program})


def _wrong(case: Case, worst: float) -> list[str]:
    allowed = case.workload.tolerance
    return [] if worst <= allowed else [f"WRONG: off by {worst:.1e}, allowed are {allowed:.0e}"]
