"""What a virtual machine has seen of one function: counts and times of blocks, and the shapes of its calls.

A profile belongs to a machine, not to the bytecode, so that two call sites that run equal programs on
different sizes do not push each other to general code. Counts and times are kept per block, because what is
compiled together need not be a whole function.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from jitdialects.bytecode.signature import ArgumentType, Signature
from jitdialects.runtime.indicators import indicators
from jitdialects.runtime.padded_calls import PolicyState
from jitdialects.runtime.values import Value, as_integer, shape_of

Shapes: TypeAlias = tuple[tuple[int, ...], ...]
"""The shapes of all arguments of a call."""
MAX_SHAPES = 256
"""Distinct calls remembered per class of arguments; later ones are counted only."""
RECENT = 9
"""Times remembered beside the sum."""
TIMED_FIRST, TIMED_EVERY = 16, 32
"""A block is timed in its first executions, and then in one of so many (a power of two)."""


class Times:
    """Seconds of runs: their number, their sum and the last few.

    `typical` is the median of these: the first run of anything brings caches and pages along, and a run that
    lost its core says nothing.
    """

    __slots__ = ("count", "recent", "seconds")

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.recent = deque[float](maxlen=RECENT)

    def __repr__(self) -> str:
        return f"<{self.count} times, typically {self.typical * 1e6:.1f} us>"

    def add(self, seconds: float) -> None:
        """Count one run."""
        self.recent.append(seconds)
        self.count += 1
        self.seconds += seconds

    @property
    def mean(self) -> float:
        """Of all runs; 0 without any."""
        return self.seconds / self.count if self.count else 0.0

    @property
    def typical(self) -> float:
        """Median of the last runs; 0 without any."""
        return statistics.median(list(self.recent)) if self.recent else 0.0


@dataclass
class ShapeHistory:
    """The interpreted calls of one class (dtypes, ranks, layouts). `types` are those of one of its calls."""

    types: tuple[ArgumentType, ...]
    seen: dict[Shapes, Times] = field(default_factory=dict[Shapes, Times])
    """The histogram: shapes of all arguments -> the calls."""
    rest: Times = field(default_factory=Times)
    """The calls of shapes for which there was no place."""
    missed: dict[Shapes, int] = field(default_factory=dict[Shapes, int])
    """Shapes of all arguments -> number of hot calls that found no code."""
    asked: Signature | None = None
    """What was last to be compiled for such calls."""
    policy: PolicyState = field(default_factory=PolicyState)
    """What the shape policy decided."""

    def distinct(self) -> list[Shapes]:
        """The shapes seen so far; a copy, since other threads may add to them."""
        return list(self.seen)

    def counts(self) -> dict[Shapes, int]:
        """How many calls had which shapes; a copy."""
        return {shapes: times.count for shapes, times in list(self.seen.items())}

    @property
    def others(self) -> int:
        """How many calls these were."""
        return self.rest.count

    def all(self) -> Times:
        """The calls of any shapes, as they are now."""
        together = Times()
        together.recent = deque[float]()
        for times in self._times():
            together.count += times.count
            together.seconds += times.seconds
            together.recent.extend(
                list(times.recent)[-1:] if len(self.seen) > RECENT else times.recent
            )
        return together

    def _times(self) -> list[Times]:
        return [*self.seen.copy().values(), self.rest]

    @property
    def runs(self) -> int:
        """How many calls there were."""
        return sum(times.count for times in self._times())

    @property
    def seconds(self) -> float:
        """What they took."""
        return sum(times.seconds for times in self._times())

    def add(self, shapes: Shapes, seconds: float) -> None:
        """Count one call."""
        times = self.seen.get(shapes)
        if times is None:
            times = self.rest
            if len(self.seen) < MAX_SHAPES:
                times = self.seen[shapes] = Times()
        # Times.add, written out: it is done at every call
        times.recent.append(seconds)
        times.count += 1
        times.seconds += seconds

    def note(self, shapes: Shapes) -> None:
        """Remember shapes whose calls are not interpreted here, or not timed."""
        if len(self.seen) < MAX_SHAPES:
            self.seen.setdefault(shapes, Times())

    def add_miss(self, shapes: Shapes) -> None:
        """Count one hot call that found no code."""
        if shapes in self.missed or len(self.missed) < MAX_SHAPES:
            self.missed[shapes] = self.missed.get(shapes, 0) + 1


@dataclass(frozen=True)
class Miss:
    """A hot call that found no code: its argument types with exact sizes, its integer scalars."""

    types: tuple[ArgumentType, ...]
    values: tuple[int | None, ...]

    @staticmethod
    def of(types: Sequence[ArgumentType], arguments: Sequence[Value]) -> Miss:
        """Describe a call."""
        exact = tuple(
            ArgumentType(t.dtype, shape_of(a), t.strided)
            for t, a in zip(types, arguments, strict=True)
        )
        return Miss(exact, tuple(map(as_integer, arguments)))


@dataclass
class Profile:
    """Counters of one function."""

    counts: list[int]
    """Interpreted executions per block."""
    times: list[Times] = field(init=False)
    """Seconds per block, of a sample of these executions; with what they call."""
    histories: dict[object, ShapeHistory] = field(default_factory=dict[object, ShapeHistory])
    hot: bool = False
    """Whether code was asked for: calls are hits or misses from then on."""
    missed: int = 0
    """Calls that were interpreted after that."""
    last_miss: Miss | None = None

    counted: int = 0
    """Calls served by compiled code, as far as they were collected."""
    compiled_seconds: float = 0.0
    """That these took, by samples."""

    def __post_init__(self) -> None:
        self.times = [Times() for _ in self.counts]

    def count_served(self, calls: int, seconds: float) -> None:
        """Compiled code has served some more calls, which took so long."""
        self.counted += calls
        self.compiled_seconds += seconds

    @property
    def served(self) -> int:
        """Calls served by compiled code."""
        indicators.collect()
        return self.counted

    @property
    def hottest(self) -> int:
        """Executions of the block that ran most often."""
        return max(self.counts)

    @property
    def runs(self) -> int:
        """Calls that were interpreted to their end."""
        return sum(history.runs for history in list(self.histories.values()))

    @property
    def seconds(self) -> float:
        """That these took."""
        return sum(history.seconds for history in list(self.histories.values()))
