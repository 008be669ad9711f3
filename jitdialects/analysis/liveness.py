"""Liveness of SSA values over a control-flow graph: live-in and live-out per block, ranges per value.

Backward dataflow to a fixpoint, as in any text on compilers (Appel, "Modern Compiler Implementation",
chapter 10). Operations of the region's blocks have consecutive positions: a block begins at a position of
its own, where its arguments are defined, and ends at its terminator's. A value's range in a block is closed
at both ends: it begins where the value is defined (or with the block) and ends at its last reader (or
with the block). What an operation's regions read from outside counts as read by the operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

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


def overlaps(left: Iterable[Range], right: Iterable[Range]) -> Iterator[Range]:
    """The stretches that a range of `left` and one of `right` have in common."""
    others = list(right)
    for first, last in left:
        for other_first, other_last in others:
            begin, end = max(first, other_first), min(last, other_last)
            if begin <= end:
                yield begin, end
