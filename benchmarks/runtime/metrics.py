"""Looking at a process: what the counters, the open endpoint, and one who scrapes it every second cost.

Rounds without a server, with one that nobody asks, with a scrape a second and with a page that streams alternate in
one process; who asks is another. Compared is the CPU time of the whole process per call, the threads of the server
included, so that other load on the machine says little: the least over rounds of a kind. A round is a second or more,
so that each has its scrape. How long a look holds the interpreter's lock, and so may delay a call, is the time of an
overview or a snapshot.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import numpy as np

import jitdialects as jd
from benchmarks.runtime.row import Row
from jitdialects.runtime.indicators import Indicators
from jitdialects.runtime.snapshot import overview, snapshot

ROUNDS = 4
SECONDS = 1.2
BATCH = 64
"""Calls between two looks at the clock."""


def nanoseconds(call: Callable[[], object], seconds: float = SECONDS) -> float:
    """CPU time of this process per call, over `seconds`: what happens now and then has to count."""
    calls = 0
    before, until = time.process_time(), time.perf_counter() + seconds
    while time.perf_counter() < until:
        for _ in range(BATCH):
            call()
        calls += BATCH
    return (time.process_time() - before) / calls * 1e9


ASK = """
import sys, time, urllib.request
while True:
    with urllib.request.urlopen(sys.argv[1], timeout=5) as answer:
        while answer.readline():
            pass
    time.sleep(1)
"""


@contextlib.contextmanager
def asked(path: str) -> Generator[None]:
    """While another process asks for `path` every second, or reads it for as long as it comes."""
    url = jd.dashboard.start() + path
    asker = subprocess.Popen([sys.executable, "-c", ASK, url], stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.3)  # until it asks
        yield
    finally:
        asker.kill()
        asker.wait()
        jd.dashboard.stop()


@contextlib.contextmanager
def unasked() -> Generator[None]:
    """While the endpoint is open."""
    jd.dashboard.start()
    try:
        yield
    finally:
        jd.dashboard.stop()


WAYS: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    "no server": contextlib.nullcontext,
    "endpoint open": unasked,
    "scraped every second": lambda: asked("metrics"),
    "page open": lambda: asked("events"),
}


def compared(call: Callable[[], object]) -> dict[str, float]:
    """Least nanoseconds of a call, one way after the other, several times."""
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way, look in WAYS.items():
            with look():
                found[way].append(nanoseconds(call))
    return {way: min(times) for way, times in found.items()}


def milliseconds(work: Callable[[], object], rounds: int = 9) -> float:
    """Median time of one run."""
    times: list[float] = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e3


def formula(x: Any, y: Any) -> Any:
    """What is called."""
    return x * y + x


def measure() -> list[Row]:
    """The rows of this topic."""
    x, y = np.arange(8, dtype=np.float32), np.ones(8, np.float32)
    jitted = jd.jit(formula)
    for _ in range(20):
        jitted(x, y)
    jitted.wait()
    for _ in range(20):
        jitted(x, y)
    interpreted = jd.VM(jitted.program, jd.Policy(threshold=10**9))
    rows: list[Row] = []
    calls: dict[str, Callable[[], object]] = {
        "x*y+x, 8 elements, compiled": lambda: jitted(x, y),
        "the same, interpreted": lambda: interpreted.run("main", x, y),
    }
    for name, call in calls.items():
        times = compared(call)
        off = times.pop("no server")
        rows.append(Row(f"{name}, no server", off, "ns"))
        for way, on in times.items():
            aim = "<= 1.02" if way == "endpoint open" else ""
            rows.append(Row(f"{name}, {way}", on / off, "x no server", aim))
    counters = Indicators()
    counting = nanoseconds(lambda: counters.add_run(time.monotonic(), 1e-6), 0.2)
    empty = nanoseconds(lambda: None, 0.2)
    interpreted_off = next(
        row.value for row in rows if row.name == "the same, interpreted, no server"
    )
    rows += [
        Row(
            "counting a call that goes through Python",
            (counting - empty) / interpreted_off * 100,
            "%",
            "<= 2",
            "of the interpreted call above; calls of stubs are counted in machine code",
        ),
        Row("one scrape's overview", milliseconds(overview), "ms"),
        Row("one snapshot of this process", milliseconds(snapshot), "ms"),
    ]
    kept = [jd.jit(partial(formula, number)) for number in range(200)]
    for function in kept:
        for n in range(1, 6):
            function(np.ones(n, np.float32))
    rows.append(Row("one snapshot with 200 functions more", milliseconds(snapshot), "ms", "<= 50"))
    return rows
