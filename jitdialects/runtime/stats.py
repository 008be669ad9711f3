"""The four indicators, since start and over the last minute.

- *compile share*: CPU time of compiling / (that + time of running functions).
- *hit rate*: calls of functions past their threshold that compiled code served / all such calls. (A
  call counts as one execution of the function's entry block; the function is the unit of compilation.)
- *fusion rate*: operators executed inside a group of two or more / all operators in compiled code.
- *reuse rate*: pool requests served from recycled blocks / all requests.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from jitdialects.runtime.pool import PoolStatistics, default_pool

MINUTE = 60


@dataclass
class Totals:
    """What the indicators are computed from; times in seconds."""

    compiles: int = 0
    compile_seconds: float = 0.0
    compile_cpu_seconds: float = 0.0
    run_seconds: float = 0.0
    hits: int = 0
    misses: int = 0
    operators: int = 0
    operators_fused: int = 0

    def add(self, other: Totals) -> None:
        """Add every count of `other`."""
        for each in fields(Totals):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def rates(self) -> dict[str, float]:
        """The indicators of compiling; 0 where nothing was counted."""
        return {
            "compile_share": _ratio(
                self.compile_cpu_seconds, self.compile_cpu_seconds + self.run_seconds
            ),
            "hit_rate": _ratio(self.hits, self.hits + self.misses),
            "fusion_rate": _ratio(self.operators_fused, self.operators),
        }


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


class Indicators:
    """Collects events. Additions race between threads by design: a lost count is better than a lock
    in every call."""

    def __init__(self) -> None:
        self.sources: list[Callable[[], None]] = []
        """Called before counts are read: those who count elsewhere add to `now` then."""
        self.clear()

    def clear(self) -> None:
        """Start counting anew; what others have counted so far belongs to the past."""
        self.collect()
        self._past = Totals()
        self._minute: deque[tuple[int, Totals, int, int]] = deque()
        self._second = int(time.monotonic())
        self.now = Totals()
        """The counts of the present second."""

    def _turn(self, second: int) -> None:
        pool = default_pool.state
        self._minute.append((self._second, self.now, pool.requests, pool.fresh_requests))
        while self._minute and self._minute[0][0] <= second - MINUTE:
            self._past.add(self._minute.popleft()[1])
        self.now = Totals()
        self._second = second

    def add_run(self, ended: float, seconds: float) -> None:
        """A call from outside ended at `ended` (`time.monotonic`) after `seconds`."""
        second = int(ended)
        if second != self._second:
            self._turn(second)
        self.now.run_seconds += seconds

    def add_compile(self, seconds: float, cpu_seconds: float) -> None:
        """A compile took `seconds` of wall time and `cpu_seconds` of CPU time."""
        self.add_run(time.monotonic(), 0.0)
        self.now.compiles += 1
        self.now.compile_seconds += seconds
        self.now.compile_cpu_seconds += cpu_seconds

    def collect(self) -> None:
        """Have everything that was counted elsewhere."""
        for source in self.sources:
            source()

    def last_minute(self) -> Totals:
        """Counts of the last 60 seconds; what was collected late counts as of now."""
        self.collect()
        self.add_run(time.monotonic(), 0.0)
        total = Totals()
        for _, part, _, _ in list(self._minute):
            total.add(part)
        total.add(self.now)
        return total

    def since_start(self) -> Totals:
        """All counts."""
        total = self.last_minute()
        total.add(self._past)
        return total

    def recent_reuse(self) -> float:
        """Reuse rate of the default pool over the last 60 seconds."""
        state = default_pool.state
        _, _, requests, fresh = self._minute[0] if self._minute else (0, Totals(), 0, 0)
        asked = state.requests - requests
        return _ratio(asked - (state.fresh_requests - fresh), asked)


indicators = Indicators()
"""The counters of the process."""


def stats() -> dict[str, Any]:
    """The state of the runtime as plain data; `minute` has the indicators of the last 60 seconds."""
    from jitdialects.runtime.vm import machines

    total, minute = indicators.since_start(), indicators.last_minute()
    pool: PoolStatistics = default_pool.statistics()
    return {
        "compiles": total.compiles,
        "compile_seconds": total.compile_seconds,
        "compile_cpu_seconds": total.compile_cpu_seconds,
        "cache_hits": total.hits,
        "cache_misses": total.misses,
        **total.rates(),
        "reuse_rate": pool.reuse_rate,
        "minute": minute.rates() | {"reuse_rate": indicators.recent_reuse()},
        "pool": {f.name: getattr(pool, f.name) for f in fields(PoolStatistics)}
        | {"fragmentation": pool.fragmentation},
        "blocks": [row for vm in machines() for row in vm.block_counts()],
    }
