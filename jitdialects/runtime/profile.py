"""What a virtual machine has seen of one function: block counts and the shapes of its calls.

A profile belongs to a machine, not to the bytecode, so that two call sites that run equal programs on
different sizes do not push each other to general code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jitdialects.bytecode.signature import ArgumentType, Signature
from jitdialects.runtime.indicators import indicators
from jitdialects.runtime.values import Value, as_integer, shape_of

MAX_SHAPES = 256
"""Distinct calls remembered per class of arguments; later ones are counted only."""


@dataclass
class ShapeHistory:
    """The calls of one class (dtypes, ranks, layouts). `types` are those of one of its calls."""

    types: tuple[ArgumentType, ...]
    seen: dict[tuple[tuple[int, ...], ...], int] = field(
        default_factory=dict[tuple[tuple[int, ...], ...], int]
    )
    """Shapes of all arguments -> number of interpreted calls."""
    others: int = 0
    missed: dict[tuple[tuple[int, ...], ...], int] = field(
        default_factory=dict[tuple[tuple[int, ...], ...], int]
    )
    """Shapes of all arguments -> number of hot calls that found no code."""
    asked: Signature | None = None
    """What was last to be compiled for such calls."""

    def distinct(self) -> list[tuple[tuple[int, ...], ...]]:
        """The shapes seen so far; a copy, since other threads may add to them."""
        return list(self.seen)

    def add(self, arguments: Sequence[Value]) -> None:
        """Count one call."""
        if not _count(self.seen, tuple(map(shape_of, arguments))):
            self.others += 1

    def add_miss(self, arguments: Sequence[Value]) -> None:
        """Count one hot call that found no code."""
        _count(self.missed, tuple(map(shape_of, arguments)))


def _count(
    counts: dict[tuple[tuple[int, ...], ...], int], shapes: tuple[tuple[int, ...], ...]
) -> bool:
    """Whether there was room for these shapes."""
    if shapes not in counts and len(counts) >= MAX_SHAPES:
        return False
    counts[shapes] = counts.get(shapes, 0) + 1
    return True


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
    histories: dict[object, ShapeHistory] = field(default_factory=dict[object, ShapeHistory])
    missed: int = 0
    """Calls past the threshold that were interpreted."""
    last_miss: Miss | None = None

    counted: int = 0
    """Calls served by compiled code, as far as they were collected."""

    @property
    def served(self) -> int:
        """Calls served by compiled code."""
        indicators.collect()
        return self.counted

    @property
    def hottest(self) -> int:
        """Executions of the block that ran most often."""
        return max(self.counts)
