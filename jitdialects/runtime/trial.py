"""Two pieces of code on the arguments of a call: which is faster, entered as calls enter it?

Where the build has stubs, a round is as many calls of either stub as take about `ROUND_SECONDS`: what Python adds to a
call is many times what such code differs in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from jitdialects.runtime.cache import CacheEntry, KernelCache
from jitdialects.runtime.callables import stub_of
from jitdialects.runtime.contest import TRIAL_SECONDS, Contest
from jitdialects.runtime.function_code import Entrance
from jitdialects.runtime.pool import MemoryPool

ROUND_SECONDS = 20e-6
MOST_CALLS = 64
"""Calls of a round."""


class _Runner:
    """Runs some entries on the same arguments."""

    def __init__(
        self,
        entries: Sequence[CacheEntry],
        arguments: Sequence[object],
        pool: MemoryPool,
        cache: KernelCache,
    ) -> None:
        self._entries, self._arguments, self._pool, self._cache = entries, arguments, pool, cache
        made = [stub_of(e, lambda calls, seconds: None, True, pool) for e in entries]
        self._stubs = [stub for stub in made if stub is not None]
        for stub in self._stubs:
            stub.never_let_through()  # the round would count it, and general code lets more calls through
        self._entrance = Entrance()
        self._entrance.serve({(): self._stubs}, (), cache)
        self._has_stubs = self._entrance(*arguments) is not None

    def run(self) -> object:
        """One call; None if nothing takes it."""
        if self._has_stubs:
            return self._entrance(*self._arguments)
        for entry in self._entries:
            kernel = entry.kernel
            results = None if kernel is None else kernel.invoke(self._arguments, self._pool)
            if results is not None:
                return results
        return None

    def close(self) -> None:
        """Let the stubs go; their calls were nobody's."""
        for stub in self._stubs:
            hits = stub.entry.hits
            stub.drain()
            stub.entry.hits = hits
        self._entrance.serve({}, (), self._cache)


def _seconds(run: Callable[[], object], calls: int) -> float:
    """Of one call, by the mean of some."""
    started = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - started) / calls


def race(
    contest: Contest,
    own: CacheEntry,
    general: Sequence[CacheEntry],
    arguments: Sequence[object],
    pool: MemoryPool,
    cache: KernelCache,
) -> None:
    """Run rounds until there are enough or the time for this call is used up."""
    runners = [_Runner([own], arguments, pool, cache), _Runner(general, arguments, pool, cache)]
    try:
        mine, others = runners
        until = time.perf_counter() + TRIAL_SECONDS
        once = _seconds(others.run, 1)
        calls = max(1, min(MOST_CALLS, int(ROUND_SECONDS / max(once, 1e-9))))
        while not contest.is_over and mine.run() is not None and others.run() is not None:
            contest.general = min(contest.general, _seconds(others.run, calls))
            contest.own = min(contest.own, _seconds(mine.run, calls))
            contest.rounds += 1
            if time.perf_counter() > until:
                break
    finally:
        for runner in runners:
            runner.close()
