"""Whoever looks does so while other threads compute, make functions and drop them."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import jitdialects as jd
from jitdialects.runtime.snapshot import snapshot
from jitdialects.runtime.vm import machines
from jitdialects.tools.metrics import COUNTERS


def test_a_look_at_any_moment() -> None:
    done = threading.Event()

    def work(number: int) -> None:
        k = 0
        while not done.is_set():
            k += 1
            f = jd.jit(lambda x, k=k: x * k + number, shapes="exact")
            for n in range(12):
                f(np.ones(n, np.float32))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    with ThreadPoolExecutor(3) as workers:
        running = [workers.submit(work, number) for number in range(3)]
        try:
            before = snapshot()["start"]
            for _ in range(40):
                after = snapshot()["start"]
                assert all(after[name] >= before[name] for name in COUNTERS), (before, after)
                before = after
                jd.explain()
                jd.stats()
        finally:
            done.set()
            sys.setswitchinterval(interval)
        for each in running:
            each.result()
    jd.clear_cache()


def test_machines_are_listed_while_some_are_made() -> None:
    """A weak set refuses to be walked while it grows."""
    program = jd.jit(lambda x: x + x)
    program(np.ones(3))
    done = threading.Event()
    kept: list[jd.VM] = []

    def make() -> None:
        while not done.is_set():
            kept.append(jd.VM(program.program))
            if len(kept) > 300:
                del kept[:100]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    makers = [threading.Thread(target=make) for _ in range(2)]
    for maker in makers:
        maker.start()
    try:
        for _ in range(5_000):
            machines()
    finally:
        done.set()
        sys.setswitchinterval(interval)
        for maker in makers:
            maker.join()
