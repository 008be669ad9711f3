"""Shapes that have most of the calls of general code get code of their own, which must prove faster.

Every call that general code serves through Python is a sample; stubs let one in so many calls through for that
(`native/call_stub.py`). Where one shape has more than half of the last `WINDOW` samples, its sizes are compiled. That
code is *on trial* first: at further samples of the shape both run, and it takes the shape's calls only if it is faster.
At most `MOST_SPECIAL` shapes have such code at a time; what was tried is not tried again, and `MOST_TRIED` bounds that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from jitdialects.bytecode.signature import Signature
from jitdialects.runtime.cache import CacheEntry
from jitdialects.runtime.contest import Contest
from jitdialects.runtime.profile import Shapes

WINDOW = 32
"""Samples by which a shape is judged to be hot."""
SHARE = 0.5
"""Of them, what a hot shape has more than."""
MOST_SPECIAL = 4
MOST_TRIED = 16


class Stage(Enum):
    """What became of the code for a hot shape."""

    ASKED = "asked for"
    TRIAL = "on trial"
    SPECIAL = "specialised"
    SLOWER = "left: not faster than general code"
    RETIRED = "left: other shapes are hotter"
    FAILED = "left: its trial failed"


@dataclass
class Special(Contest):
    """A hot shape and its code: `own`, compared with `general` code."""

    signature: Signature
    share: float
    """Of the samples, when it was found."""
    stage: Stage = Stage.ASKED
    hits: int = 0
    """Calls of its own code when another shape became special last."""

    def __str__(self) -> str:
        text = f"{self.stage.value}; {self.share:.0%} of the calls of general code"
        if self.rounds:
            text += f"; {self.own * 1e6:.1f} us, general code {self.general * 1e6:.1f} us"
        return text


@dataclass
class HotShapes:
    """The hot shapes of one function of one machine."""

    special: dict[str, Special] = field(default_factory=dict[str, Special])
    """By signature."""
    _windows: dict[tuple[int, Shapes], int] = field(default_factory=dict[tuple[int, Shapes], int])
    _samples: int = 0

    def sample(self, at: tuple[int, Shapes], signature: Signature) -> Special | None:
        """Count a call of general code, `at` a class of arguments and the shapes, of this exact `signature`. Gives
        what is to be compiled, if that made its shape a hot one."""
        windows = self._windows
        windows[at] = windows.get(at, 0) + 1
        self._samples = samples = self._samples + 1
        if samples < WINDOW:
            return None
        share = windows[at] / samples
        hot = share > SHARE
        self._windows, self._samples = {}, 0
        if not hot or len(self.special) >= MOST_TRIED:
            return None
        if str(signature) in self.special:
            return None
        special = self.special[str(signature)] = Special(signature, share)
        return special

    def ordered(self, entries: Sequence[CacheEntry]) -> list[CacheEntry]:
        """The entries that calls may enter, in the order in which they are tried."""
        stages = {
            e: self.special[e.key.signature].stage
            for e in entries
            if e.key.signature in self.special
        }
        first = [e for e in entries if stages.get(e) is Stage.SPECIAL]
        return first + [e for e in entries if e not in stages]

    def judge(self, special: Special, entry: CacheEntry, entries: Sequence[CacheEntry]) -> None:
        """Decide about code that ran often enough."""
        if not special.is_faster:
            special.stage = Stage.SLOWER
            return
        special.stage, special.hits = Stage.SPECIAL, entry.hits
        others = [
            (e.hits - self.special[e.key.signature].hits, e)
            for e in entries
            if e is not entry and self.is_special(e)
        ]
        if len(others) >= MOST_SPECIAL:
            _, least = min(others, key=lambda pair: pair[0])
            self.special[least.key.signature].stage = Stage.RETIRED
        for _, other in others:
            self.special[other.key.signature].hits = other.hits

    def is_special(self, entry: CacheEntry) -> bool:
        """Whether this is code for a hot shape that calls enter."""
        special = self.special.get(entry.key.signature)
        return special is not None and special.stage is Stage.SPECIAL
