"""Alarms over the indicators: when each begins and ends, and what to do then.

An alarm speaks of the last minute and needs enough evidence, so that the start of a process raises none. It begins
beyond its limit and ends only at a second, better value (hysteresis). While it is on it is in `jd.stats()["alarms"]`;
one that does not pass within seconds, as what is caused by code on its way does, is one warning of the logger
`jitdialects`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from jitdialects.config import config
from jitdialects.runtime.pool import PoolStatistics, default_pool
from jitdialects.runtime.totals import Totals

logger = logging.getLogger("jitdialects")
MIB = 1 << 20
PASSES_WITHIN = 8.0
"""Seconds after which an alarm is logged."""
SHOWN, LOGGED = 5, 2
"""Signatures in an alarm, and in its warning."""


@dataclass(frozen=True)
class Alarm:
    """An alarm that is on."""

    name: str
    """The indicator; `fragmentation` for largest free block / total free."""
    value: float
    limit: float
    since: float
    """Seconds since the epoch."""
    text: str
    """What is wrong, in one sentence."""
    advice: str
    """What would help."""
    signatures: tuple[tuple[str, int], ...] = ()
    """The signatures that most calls without code had, with how many."""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self) | {"signatures": [list(pair) for pair in self.signatures]}


@dataclass(frozen=True)
class Rule:
    """When an alarm begins (`limit`) and ends (`relief`), and its words. `measure` gives None where there is
    not enough to judge."""

    name: str
    limit: float
    relief: float
    measure: Callable[[Totals, PoolStatistics], float | None]
    text: str
    advice: Callable[[], str]
    signatures: bool = False

    def holds(self, value: float | None, was_on: bool) -> bool:
        """Whether the alarm is on, given whether it was."""
        if value is None:
            return False
        bound = self.relief if was_on else self.limit
        return value > bound if self.relief < self.limit else value < bound

    def alarm(self, value: float, since: float) -> Alarm:
        """The alarm with its words."""
        text = self.text.format(value=value, limit=self.limit)
        found = tuple(_missed_signatures()) if self.signatures else ()
        return Alarm(self.name, value, self.limit, since, text, self.advice(), found)


# ---- what is measured --------------------------------------------------------------------------

LEAST_COMPILE_SECONDS = 1.0
LEAST_CALLS = 100
LEAST_FREE_BYTES = 64 * MIB


def _compile_share(minute: Totals, pool: PoolStatistics) -> float | None:
    enough = minute.compile_cpu_seconds >= LEAST_COMPILE_SECONDS
    return minute.rates()["compile_share"] if enough else None


def _hit_rate(minute: Totals, pool: PoolStatistics) -> float | None:
    return minute.rates()["hit_rate"] if minute.hits + minute.misses >= LEAST_CALLS else None


def _fragmentation(minute: Totals, pool: PoolStatistics) -> float | None:
    """Free memory that is a small part of all there is troubles nobody."""
    enough = max(LEAST_FREE_BYTES, pool.reserved_bytes // 4)
    return pool.fragmentation if pool.free_bytes >= enough else None


# ---- what would help ---------------------------------------------------------------------------


def _compile_less() -> str:
    now = "" if config.threshold is None else f", now {config.threshold}"
    return (
        f"raise the threshold (jd.config.threshold{now}) so that less is compiled, or let one kernel serve "
        'many sizes (jd.jit(f, shapes="symbolic")); jd.explain() says what was compiled'
    )


def _hit_more() -> str:
    from jitdialects.runtime.snapshot import services

    waiting = sum(len(service.waiting()) for service in services())
    failed = sum(len(service.failures) for service in services())
    parts: list[str] = []
    if waiting:
        parts.append(f"{waiting} signature(s) wait for the compiler: this may pass")
    if failed:
        parts.append(f"{failed} signature(s) cannot be compiled: jd.explain() says why")
    parts.append(
        "where sizes change from call to call, one kernel for many sizes helps: "
        'jd.jit(f, shapes="symbolic")'
    )
    return "; ".join(parts)


def _less_fragments() -> str:
    return "; ".join(default_pool.advice()) or "less of it is in pieces than was: wait"


def _missed_signatures() -> list[tuple[str, int]]:
    from jitdialects.runtime.snapshot import missed_signatures

    return missed_signatures()[:SHOWN]


RULES = (
    Rule(
        "compile_share",
        0.20,
        0.15,
        _compile_share,
        "compiling took {value:.0%} of the CPU time of the last minute (limit {limit:.0%})",
        _compile_less,
    ),
    Rule(
        "hit_rate",
        0.50,
        0.60,
        _hit_rate,
        "code was ready for {value:.0%} of the hot calls of the last minute (limit {limit:.0%})",
        _hit_more,
        signatures=True,
    ),
    Rule(
        "fragmentation",
        0.50,
        0.60,
        _fragmentation,
        "the largest free block is {value:.0%} of the free memory of the pool (limit {limit:.0%})",
        _less_fragments,
    ),
)


class Alarms:
    """Which alarms are on. `rules` are tried in order."""

    def __init__(self, rules: tuple[Rule, ...] = RULES) -> None:
        self.rules = rules
        self._on: dict[str, Alarm] = {}
        self._said: set[str] = set()
        self._lock = threading.Lock()

    def check(self, minute: Totals, pool: PoolStatistics) -> list[Alarm]:
        """The alarms that are on; those that stay are logged."""
        stayed: list[Alarm] = []
        with self._lock:
            for rule in self.rules:
                before = self._on.get(rule.name)
                value = rule.measure(minute, pool)
                if value is None or not rule.holds(value, before is not None):
                    self._on.pop(rule.name, None)
                    self._said.discard(rule.name)
                    continue
                alarm = rule.alarm(value, time.time() if before is None else before.since)
                self._on[rule.name] = alarm
                if rule.name not in self._said and time.time() - alarm.since >= PASSES_WITHIN:
                    self._said.add(rule.name)
                    stayed.append(alarm)
            found = list(self._on.values())
        for alarm in stayed:
            logger.warning("%s: %s; %s", alarm.name, alarm.text, _sentence(alarm))
        return found

    def after_fork(self) -> None:
        """Another thread of the parent may have held the lock."""
        self._lock = threading.Lock()


def _sentence(alarm: Alarm) -> str:
    if not alarm.signatures:
        return alarm.advice
    most = ", ".join(f"{signature} {count}" for signature, count in alarm.signatures[:LOGGED])
    return f"{alarm.advice} (calls without code: {most})"
