"""Fusion that was decided by estimates is decided by measured times, where code is hot enough.

A reply names the `alternative` to its code where fusion was decided by little, and whether it was `weighed` by sizes at
all, which may not be those of the calls any more. Once as much time again in the code would pay for it
(`Policy.tries_alternative`), the other code is made, for the same calls with the same results. Both run on the
arguments of real calls (`trial`), and the faster one stays: in the cache of the process, and on disk. Each piece of code has one
alternative at most, and a function `MOST_TRIED`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from jitdialects.analysis.typical_sizes import TYPICAL, parse_typical, typical_text
from jitdialects.runtime.cache import CacheEntry, CacheKey
from jitdialects.runtime.contest import Contest
from jitdialects.runtime.profile import Shapes

MOST_TRIED = 4
FAR = 16
"""Sizes that differ by this factor from those that were typical are worth another look."""
LOOK_AGAIN = 1.25
PATIENCE = 64
"""Samples of other shapes after which a trial is given up."""


class Stage(Enum):
    """What became of an alternative."""

    ASKED = "asked for"
    TRIAL = "on trial"
    KEPT = "kept"
    SLOWER = "left: not faster"
    FAILED = "left: it cannot be made, or tried"
    ELSEWHERE = "decided by another machine"


@dataclass
class Alternative(Contest):
    """Other code (`own`) for the calls of `first` (`general`)."""

    first: CacheKey
    other: CacheKey
    shapes: Shapes
    """Of the calls that both run."""
    stage: Stage = Stage.ASKED
    missed: int = 0
    """Samples of other shapes since it was there."""
    is_running: bool = False
    """Some thread tries it now."""

    @property
    def is_open(self) -> bool:
        """Whether there is no verdict yet."""
        return self.stage in (Stage.ASKED, Stage.TRIAL)

    @property
    def measured(self) -> str:
        """What was measured, and what is kept, in a sentence."""
        kept = "the latter" if self.stage is Stage.KEPT else "the former"
        return (
            f"measured {self.general * 1e6:.1f} us against {self.own * 1e6:.1f} us with "
            f"{self.difference}; kept {kept}"
        )

    @property
    def difference(self) -> str:
        """What the judges of fusion are told for the other code."""
        if self.other.balance != self.first.balance:
            return f"balance={self.other.balance:g}"
        return f"typical sizes {self.other.typical or 'of 256'}"

    def __str__(self) -> str:
        if self.stage in (Stage.KEPT, Stage.SLOWER):
            return self.measured
        return f"code with {self.difference} for comparison: {self.stage.value}"

    def as_row(self) -> dict[str, Any]:
        """For `jd.stats()`."""
        seconds = (self.general, self.own) if self.rounds else (None, None)
        return {
            "signature": self.first.signature,
            "told": self.difference,
            "stage": self.stage.value,
            "seconds": seconds[0],
            "other_seconds": seconds[1],
        }


@dataclass
class Alternatives:
    """The alternatives of one function of one machine."""

    tried: dict[CacheKey, Alternative] = field(default_factory=dict[CacheKey, Alternative])
    """By the key of the code that calls entered first."""
    _look_at: dict[CacheKey, float] = field(default_factory=dict[CacheKey, float])
    """Calls of code before which it is not looked at again."""

    def is_time(self, entry: CacheEntry) -> bool:
        """Whether to ask if an alternative pays; after `LOOK_AGAIN` times the calls the next time."""
        if entry.hits < self._look_at.get(entry.key, 1):
            return False
        self._look_at[entry.key] = entry.hits * LOOK_AGAIN
        return len(self.tried) < MOST_TRIED

    def of(self, entry: CacheEntry) -> Alternative | None:
        """The alternative of an entry that calls enter. One that took its place and was lost since, counts no more."""
        known = self.tried.get(entry.key)
        if known is not None and known.stage is Stage.KEPT and entry.kernel is not None:
            del self.tried[entry.key]
            return None
        return known

    def add(self, alternative: Alternative) -> None:
        """Remember it."""
        self.tried[alternative.first] = alternative


def other_key(entry: CacheEntry, sizes: Mapping[str, int]) -> CacheKey | None:
    """The code that an entry should be compared with, if its calls now have these sizes; None: with none. Who gives
    schedules speaks of the nests that there are."""
    key, kernel = entry.key, entry.kernel
    if kernel is None or key.balance != 1.0 or key.schedule:
        return None
    if kernel.reply.weighed and _are_far(parse_typical(key.typical), sizes):
        return replace(key, typical=typical_text(sizes))
    balance = kernel.reply.alternative
    return replace(key, balance=balance) if balance > 0 else None


def _are_far(told: Mapping[str, int], now: Mapping[str, int]) -> bool:
    """Whether a size is far from what it was taken to be."""
    coarse = parse_typical(typical_text(now))
    pairs = [(told.get(name, TYPICAL), coarse.get(name, TYPICAL)) for name in now]
    return any(max(pair) >= FAR * min(pair) for pair in pairs)
