"""The counters of the process: since start, over the last minute, and ten minutes of history.

Calls add to the counts of the present second and do nothing else. What is counted elsewhere (in machine code, in
the pool's state) is gathered when a second ends in Python, or when someone looks; it is spread evenly over the
time since it was gathered last, so that an hour without a look does not pass for a minute.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable

from jitdialects.runtime.alarms import Alarm, Alarms
from jitdialects.runtime.pool import PoolStatistics, default_pool
from jitdialects.runtime.totals import Totals

logger = logging.getLogger("jitdialects")
MINUTE = 60
HISTORY = 600
"""Seconds that are kept one by one."""
CHECK_SECONDS = 5
"""How often alarms are looked at while nobody looks at them."""
MOST_RECORDS = 10_000
"""Statistics of a pool with more blocks take too long for the thread of a call."""
_POOL = ("requests", "fresh_requests", "requested_bytes", "fresh_bytes")


class Indicators:
    """Collects events. Additions race between threads by design: a lost count is better than a lock
    in every call."""

    def __init__(self) -> None:
        self.sources: list[Callable[[Totals], None]] = []
        """Who counts elsewhere; each adds what it counted since it was asked last."""
        self.alarms = Alarms()
        self._lock = threading.Lock()
        self._pool = (0, 0, 0, 0)
        self.clear()

    def clear(self) -> None:
        """Start counting anew; what others have counted so far belongs to the past."""
        with self._lock:
            self._gather(Totals())
            self._second = self._gathered = self._checked = int(time.monotonic())
            self._closed = Totals()
            """The counts of all seconds before the present one."""
            self.now = Totals()
            """The counts of the present second."""
            self._seconds = {self._second: self.now}

    # ---- events --------------------------------------------------------------------------------

    def add_run(self, ended: float, seconds: float) -> None:
        """A call from outside ended at `ended` (`time.monotonic`) after `seconds`."""
        second = int(ended)
        if second > self._second:
            self._turn(second)
        self.now.run_seconds += seconds

    def add_compile(self, seconds: float, cpu_seconds: float, failed: bool = False) -> None:
        """A compile took `seconds` of wall time and `cpu_seconds` of CPU time."""
        self.add_run(time.monotonic(), 0.0)
        now = self.now
        now.compiles += not failed
        now.compile_failures += failed
        now.compile_seconds += seconds
        now.compile_cpu_seconds += cpu_seconds

    def _turn(self, second: int) -> None:
        """A new second begins. Where another thread is at it, this one counts on in the old one."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if second <= self._second:
                return
            self._collect(second)
        finally:
            self._lock.release()
        if second - self._checked >= CHECK_SECONDS:
            self._checked = second
            self._look()

    def _look(self) -> None:
        """At the alarms, in the thread of a call, which must neither wait long nor fail for it."""
        if default_pool.state.records > MOST_RECORDS:
            return
        try:
            self.check()
        except Exception:
            logger.exception("alarms cannot be looked at, and are not any more while nobody asks")
            self._checked = sys.maxsize

    # ---- what others count ---------------------------------------------------------------------

    def collect(self) -> None:
        """Have everything that was counted elsewhere."""
        with self._lock:
            self._collect(max(int(time.monotonic()), self._second))

    def _collect(self, second: int) -> None:
        """With the lock held: go on to `second`, gather, and forget single seconds that are old."""
        if second > self._second:
            self._closed.add(self.now)
            self.now = self._seconds[second] = Totals()
            self._second = second
            for old in [s for s in self._seconds if s <= second - HISTORY]:
                del self._seconds[old]
        gathered = Totals()
        self._gather(gathered)
        first, self._gathered = self._gathered, second
        parts = second - first + 1
        self.now.add(gathered.portion(parts - 1, parts, parts))
        self._closed.add(gathered.portion(0, parts - 1, parts))
        for part in range(max(parts - HISTORY, 0), parts - 1):
            share = gathered.portion(part, part + 1, parts)
            self._seconds.setdefault(first + part, Totals()).add(share)

    def _gather(self, into: Totals) -> None:
        for source in self.sources:
            source(into)
        found = default_pool.counts()
        for name, value, before in zip(_POOL, found, self._pool, strict=True):
            setattr(into, name, getattr(into, name) + value - before)
        self._pool = found

    # ---- looking -------------------------------------------------------------------------------

    def last_minute(self) -> Totals:
        """Counts of the last 60 seconds."""
        self.collect()
        return self._sum(self._second - MINUTE, self._second)

    def since_start(self) -> Totals:
        """All counts."""
        self.collect()
        total = Totals()
        total.add(self._closed)
        total.add(self.now)
        return total

    def history(self, step: int = 10) -> list[Totals]:
        """Counts of the last ten minutes in stretches of `step` seconds, the oldest first."""
        self.collect()
        parts = [Totals() for _ in range(HISTORY // step)]
        for second, counts in list(self._seconds.items()):
            back = (self._second - second) // step
            if 0 <= back < len(parts):
                parts[-1 - back].add(counts)
        return parts

    def check(self, pool: PoolStatistics | None = None) -> list[Alarm]:
        """The alarms that are on; `pool` for who has the statistics of the process's pool at hand."""
        return self.alarms.check(self.last_minute(), pool or default_pool.statistics())

    def _sum(self, after: int, until: int) -> Totals:
        total = Totals()
        for second, part in list(self._seconds.items()):
            if after < second <= until:
                total.add(part)
        return total

    def after_fork(self) -> None:
        """Another thread of the parent may have held a lock."""
        self._lock = threading.Lock()
        self.alarms.after_fork()


indicators = Indicators()
"""The counters of the process."""
os.register_at_fork(after_in_child=indicators.after_fork)
