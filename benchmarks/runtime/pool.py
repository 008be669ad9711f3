"""The memory pool: what a block and an array cost, how much is recycled, how much is reserved.

NumPy's own allocator is asked in the same run. Traces are those of `testing/pool_traces.py`, replayed without memory.
"""

from __future__ import annotations

import tempfile
import time
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import jitdialects as jd
import jitdialects.numpy as jnp
from benchmarks.programs.products import mlp
from benchmarks.rows import WORKLOADS
from benchmarks.runtime.row import Row
from benchmarks.workload import make_case
from jitdialects.runtime.pool import default_pool
from jitdialects.runtime.pool.system import CountedMemory
from jitdialects.runtime.pool.trace import Event, replay
from jitdialects.testing.pool_traces import cleared_each_step, many_shapes, traces

BATCHES, CALLS = 64, 400
STUBS = "what call stubs recycle themselves asks for nothing"
SIZES = {"4 KB": 1000, "1 MiB": 1 << 18, "3 MB, exact": 750_000}
"""Elements of float32."""


def nanoseconds(call: Callable[[], object], number: int = 500, rounds: int = 41) -> float:
    """Least over rounds of the mean time of a call: what else runs here only adds."""
    return min(timeit.repeat(call, number=number, repeat=rounds)) / number * 1e9


def _dropped(pool: jd.MemoryPool, elements: int, value: float | None = None) -> Callable[[], None]:
    shape, dtype = (elements,), np.dtype(np.float32)

    def call() -> None:
        array = pool.empty(shape, dtype)
        if value is not None:
            array.fill(value)
        del array
        pool.safe_point()

    return call


def _numpy(elements: int, value: float | None = None) -> Callable[[], None]:
    shape, dtype = (elements,), np.dtype(np.float32)

    def call() -> None:
        array = np.empty(shape, dtype)
        if value is not None:
            array.fill(value)

    return call


def _costs() -> list[Row]:
    rows: list[Row] = []
    pool = jd.MemoryPool()
    for name, elements in SIZES.items():
        size = 4 * elements
        block = nanoseconds(lambda size=size: pool.recycle(pool.allocate(size)))
        array = nanoseconds(_dropped(pool, elements))
        theirs = nanoseconds(_numpy(elements))
        rows.append(Row(f"block of {name}: allocate, recycle", block, "ns"))
        rows.append(Row(f"array of {name}: empty, drop", array, "ns", note="safe point included"))
        rows.append(Row("the same, NumPy", theirs, "ns"))
    ours = nanoseconds(_dropped(pool, 10**7, 1.0), 3, 9)
    theirs = nanoseconds(_numpy(10**7, 1.0), 3, 9)
    rows.append(
        Row("array of 40 MB: empty, fill, drop", ours / theirs, "x NumPy", "< 1", "no fresh pages")
    )
    plain = nanoseconds(_dropped(pool, 1000))
    with tempfile.TemporaryDirectory() as folder:
        pool.record(Path(folder) / "a.trace")
        recorded = nanoseconds(_dropped(pool, 1000))
        pool.stop_recording()
    pool.debug = True
    debugged = nanoseconds(_dropped(pool, 1000))
    pool.debug = False
    again = nanoseconds(_dropped(pool, 1000))
    rows.append(Row("array of 4 KB while recorded", recorded / plain, "x without"))
    rows.append(Row("array of 4 KB in debug mode", debugged / plain, "x without"))
    rows.append(Row("array of 4 KB after both", again / plain, "x without", "1"))
    return rows


def _stream() -> list[Row]:
    """A served network of three layers, batch drawn from 1 to 64."""
    case = make_case(WORKLOADS["mlp"], "float32", (BATCHES,), 1)
    (data,), weights = case.inputs, case.weights
    batches = np.random.default_rng(1).integers(1, BATCHES + 1, CALLS)

    def network(x: Any, *weights: Any) -> Any:
        return mlp(jnp, x, *weights)

    function = jd.jit(network)
    rates: list[float] = []
    asked = 0
    before = default_pool.statistics()
    for passes in (1, 2, 3):
        for _ in range(passes):
            for batch in batches:
                function(np.ascontiguousarray(data[:batch]), *weights)
            function.wait()
        now = default_pool.statistics()
        asked = now.requests - before.requests
        rates.append(100 * (1 - (now.fresh_requests - before.fresh_requests) / max(1, asked)))
        before = now
    return [
        Row(f"MLP stream, batch 1 to {BATCHES}: recycled, cold", rates[0], "%"),
        Row("the same, passes 4 to 6", rates[2], "%", ">= 99", f"of {asked} requests; {STUBS}"),
    ]


def _replayed() -> list[Row]:
    rows: list[Row] = []
    for trace in traces():
        events = trace.events()
        for classes in ("fine", "coarse"):
            pool = jd.MemoryPool(trace.limit, classes, memory=CountedMemory())
            found = replay(events, pool)
            end = pool.statistics()
            note = f"{end.reuse_rate:.0%} of {found.requests} requests recycled, {len(found.failures)} failed"
            name = f"{trace.name} ({trace.case}), {classes}: reserved / live, at their peaks"
            rows.append(Row(name, found.overhead, "", "<= 1.5", note))
    return rows


def _written(
    events: Sequence[Event], make: Callable[[int], Any], point: Callable[[], None]
) -> float:
    """CPU seconds of a trace of arrays, every page of which is written to."""
    live: dict[int, Any] = {}
    started = time.process_time()
    for kind, name, size in events:
        if kind == "+":
            live[name] = make(size)
            live[name][::4096] = 1
        else:
            del live[name]
            point()
    return time.process_time() - started


def _fresh_pages() -> list[Row]:
    """What the bound on reserved memory costs, and recycling saves, beside an allocator without either."""
    rows: list[Row] = []
    for name, events in (
        ("2,000 shapes", many_shapes()[:8000]),
        ("caches cleared each step", cleared_each_step(50)),
    ):
        pool, dtype = jd.MemoryPool(), np.dtype(np.uint8)
        ours = _written(events, lambda n, p=pool, t=dtype: p.empty((n,), t), pool.safe_point)
        theirs = _written(events, lambda n, t=dtype: np.empty((n,), t), lambda: None)
        note = (
            f"{pool.statistics().reserved_bytes >> 20} MiB reserved; fresh pages are what it costs"
        )
        rows.append(Row(f"{name}, pages written to", ours / theirs, "x NumPy", "", note))
    return rows


def measure() -> list[Row]:
    """The rows of this topic."""
    return [*_costs(), *_stream(), *_fresh_pages(), *_replayed()]
