"""Liveness of SSA values over a control-flow graph: live-in and live-out per block, ranges per value.

Backward dataflow to a fixpoint, as in any text on compilers (Appel, "Modern Compiler Implementation",
chapter 10). Operations of the region's blocks have consecutive positions: a block begins at a position of
its own, where its arguments are defined, and ends at its terminator's. A value's range in a block is closed
at both ends: it begins where the value is defined (or with the block) and ends at its last reader (or
with the block). What an operation's regions read from outside counts as read by the operation.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Generic, TypeAlias, TypeVar

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsolatedFromAbove

from jitdialects.dialects.interfaces import has_trait

Range: TypeAlias = tuple[int, int]
"""First and last position, both included."""


def reads_of(op: Operation) -> Iterable[SSAValue]:
    """The values that `op` or its regions read; values of the regions themselves included."""
    if not op.regions or has_trait(op, IsolatedFromAbove):
        return op.operands
    return (value for inner in op.walk() for value in inner.operands)


class Liveness:
    """Where the values of the blocks of `region` are alive; a snapshot of the region as it is now."""

    def __init__(self, region: Region) -> None:
        self.position: dict[Operation, int] = {}
        self.begin: dict[Block, int] = {}
        self.end: dict[Block, int] = {}
        self.live_in: dict[Block, set[SSAValue]] = {}
        self.live_out: dict[Block, set[SSAValue]] = {}
        self._last_read: dict[Block, dict[SSAValue, int]] = {}
        self._defined: dict[Block, dict[SSAValue, int]] = {}
        self._number(region)
        self._solve(region)
        self._blocks_of: dict[SSAValue, list[Block]] = {}
        for block in self.begin:
            for value in (*self._defined[block], *self.live_in[block]):
                self._blocks_of.setdefault(value, []).append(block)

    def _number(self, region: Region) -> None:
        position = 0
        for block in region.blocks:
            self.begin[block] = position
            defined: dict[SSAValue, int] = {argument: position for argument in block.args}
            last: dict[SSAValue, int] = {}
            for op in block.ops:
                position += 1
                self.position[op] = position
                last.update(dict.fromkeys(reads_of(op), position))
                defined.update({result: position for result in op.results})
            self.end[block] = position
            self._last_read[block], self._defined[block] = last, defined
            position += 1

    def _solve(self, region: Region) -> None:
        blocks = list(region.blocks)
        exposed = {b: self._last_read[b].keys() - self._defined[b].keys() for b in blocks}
        self.live_in = {b: set(exposed[b]) for b in blocks}
        self.live_out = {b: set() for b in blocks}
        changed = True
        while changed:
            changed = False
            for block in reversed(blocks):
                successors = block.last_op.successors if block.last_op is not None else ()
                out = set[SSAValue]().union(*(self.live_in[s] for s in successors))
                if out != self.live_out[block]:
                    self.live_out[block] = out
                    self.live_in[block] = exposed[block] | (out - self._defined[block].keys())
                    changed = True

    def ranges(self, value: SSAValue) -> Iterator[Range]:
        """One closed range for each block in which `value` is alive, in the order of the blocks."""
        for block in self._blocks_of.get(value, ()):
            start = self._defined[block].get(value, self.begin[block])
            if value in self.live_out[block]:
                yield start, self.end[block]
            else:
                yield start, self._last_read[block].get(value, start)


def joined(ranges: Iterable[Range]) -> Iterator[Range]:
    """The same positions in order, with one range for those that share a position."""
    first = last = -1
    for begin, end in sorted(ranges):
        if begin > last:
            if first >= 0:
                yield first, last
            first = begin
        last = max(last, end)
    if first >= 0:
        yield first, last


T = TypeVar("T")


class Occupied(Generic[T]):
    """Ranges with owners, in order. Any two of them share one position at most, the end of one of them; so they end
    in the order in which they begin, and those that meet a range are found by bisection."""

    def __init__(self) -> None:
        self.ranges: list[Range] = []
        self._ends: list[int] = []
        self._owners: list[T] = []

    def __iter__(self) -> Iterator[tuple[Range, T]]:
        return zip(self.ranges, self._owners, strict=True)

    def add(self, range: Range, owner: T) -> None:
        """Put a range where it belongs."""
        at = bisect_right(self.ranges, range)
        self.ranges.insert(at, range)
        self._ends.insert(at, range[1])
        self._owners.insert(at, owner)

    def meeting(self, range: Range) -> Iterator[tuple[Range, T]]:
        """What a range has in common with each that it meets, and the owner of that."""
        first, last = range
        for at in count(bisect_left(self._ends, first)):
            if at == len(self.ranges) or self.ranges[at][0] > last:
                return
            begin, end = self.ranges[at]
            yield (max(first, begin), min(last, end)), self._owners[at]
