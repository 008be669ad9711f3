"""Thresholds that rise while a process compiles too much, and fall again.

The measure is the compile share of the last minute. The first second of compiling in a minute is free: a young
process has run next to nothing, so its share says nothing, and what is hot at once is to be compiled at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from jitdialects.runtime.indicators import indicators
from jitdialects.runtime.totals import Totals

STEP = 5
"""10 -> 50 -> 250."""
MOST_STEPS = 4
RISE, FALL = 0.20, 0.10
"""Compile shares: above the one thresholds rise, below the other they fall."""
FREE_SECONDS = 1.0
"""Of compiling in a minute, which do not count."""
RISE_AFTER, FALL_AFTER = 1.0, 5.0
"""Seconds after the last change."""
LOOK_EVERY = 0.25
"""Seconds."""


def compile_share(totals: Totals, free: float = FREE_SECONDS) -> float:
    """Of the counted seconds; `free` seconds of compiling left out."""
    compiling = max(0.0, totals.compile_cpu_seconds - free)
    return compiling / (compiling + totals.run_seconds) if compiling else 0.0


@dataclass(frozen=True)
class Spent:
    """What a process has spent: in the last minute, and since it started."""

    minute: Totals
    start: Totals


def _spent() -> Spent:
    return Spent(indicators.last_minute(), indicators.since_start())


class Thresholds:
    """The factor for a process. `spent` and `clock` (seconds) are those of this process unless given."""

    def __init__(
        self, spent: Callable[[], Spent] = _spent, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._spent = spent
        self.clock = clock
        self.steps = 0
        self._changed = self._looked = clock()
        self._before = Totals()
        """What was spent up to the last change."""

    @property
    def factor(self) -> int:
        """By which thresholds are multiplied now."""
        now = self.clock()
        if now - self._looked >= LOOK_EVERY:
            self._looked = now
            self._look(now, self._spent())
        return STEP**self.steps

    @property
    def run_seconds(self) -> float:
        """What the process has spent running functions."""
        return self._spent().start.run_seconds

    def _look(self, now: float, spent: Spent) -> None:
        share = compile_share(spent.minute)
        quiet = now - self._changed
        if share > RISE and quiet >= RISE_AFTER and self.steps < MOST_STEPS:
            # the minute remembers what was compiled before the last rise: that it did not help yet is no reason
            if not self.steps or compile_share(self._since(spent.start), 0.0) > RISE:
                self._change(now, self.steps + 1, spent)
        elif share < FALL and quiet >= FALL_AFTER and self.steps:
            self._change(now, self.steps - 1, spent)

    def _since(self, start: Totals) -> Totals:
        return Totals(
            compile_cpu_seconds=start.compile_cpu_seconds - self._before.compile_cpu_seconds,
            run_seconds=start.run_seconds - self._before.run_seconds,
        )

    def _change(self, now: float, steps: int, spent: Spent) -> None:
        self.steps, self._changed = steps, now
        self._before = Totals()
        self._before.add(spent.start)
