"""How many registers the body of a group would need: vectors for values, general registers for buffers.

The body is taken as it will be emitted: operations in program order, a value loaded where it is read first and
dead after its last reader, results stored together at the end. Values are counted per vector: all lanes of one
value are one register, whatever the width, since the widest element decides how many lanes a loop has.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from jitdialects.analysis.fusion_legality import Candidate
from jitdialects.analysis.machine import STEPS, TEMPORARIES, Core
from jitdialects.dialects.tssa_types import shape_of


@dataclass(frozen=True)
class Pressure:
    """What a body asks of a core: values alive at once, buffers, micro-operations."""

    vectors: int
    buffers: int
    operations: int


def short_name(op: Operation) -> str:
    """The operator's name."""
    return op.name.removeprefix("tssa.")


def pressure_of(group: Candidate) -> Pressure:
    """Estimate a group."""
    ops, results = group.ops, {op.results[0] for op in group.yields}
    reads = [group.graph.inputs(op) for op in ops]
    last: dict[SSAValue, int] = {}
    for number, values in enumerate(reads):
        for value in values:
            last[value] = number
    last.update(dict.fromkeys(results, len(ops)))
    live: set[SSAValue] = set()
    most = 0
    for number, (op, values) in enumerate(zip(ops, reads, strict=True)):
        live.update(values)
        most = max(most, len(live) + TEMPORARIES.get(short_name(op), 0))
        for value in values:
            if last[value] == number:
                live.discard(value)
        if op.results[0] in last:
            live.add(op.results[0])
        most = max(most, len(live))
    buffers = sum(bool(shape_of(v)) for v in group.inputs) + len(results)
    operations = sum(STEPS.get(short_name(op), 1) for op in ops)
    return Pressure(most, buffers, operations)


class PressureJudge:
    """Asks whether groups would fit the registers of a core, and remembers what it was told.

    The body of a union is looked through only where a bound from its parts leaves doubt.
    """

    def __init__(self, core: Core) -> None:
        self.core = core
        self._known: dict[Candidate, Pressure] = {}

    def _pressure(self, group: Candidate) -> Pressure:
        if group not in self._known:
            self._known[group] = pressure_of(group)
        return self._known[group]

    def why_too_much(self, both: Candidate) -> str | None:
        """Why the body of `both` would not fit; None where it does."""
        left, right = both.parts
        buffers = sum(bool(shape_of(v)) for v in both.inputs) + both.exports.bit_count()
        operations = self._pressure(left).operations + self._pressure(right).operations
        need = Pressure(self._most_vectors(both), buffers, operations)
        if need.vectors > self.core.vector_registers:
            need = pressure_of(both)
        self._known[both] = need
        return _why_too_much(need, self.core)

    def _most_vectors(self, both: Candidate) -> int:
        """A bound for the values that both hold together: the sum, or less where one ends before the other
        begins. What they share stays alive between them, unless the second begins with it."""
        left, right = both.parts
        early, late = (self._pressure(group).vectors for group in (left, right))
        if right.members.bit_length() <= _first(left):
            left, right, early, late = right, left, late, early
        elif left.members.bit_length() > _first(right):
            return early + late
        graph = left.graph
        shared = [v for v in right.inputs if v in left.inputs or graph.node_of(v) & left.members]
        begins_with = graph.inputs(graph.ops[_first(right)])
        kept = (both.exports & left.members).bit_count()
        waiting = sum(value not in begins_with for value in shared)
        return max(early + len(shared) + kept, late + waiting + kept)


def _first(group: Candidate) -> int:
    """The position of the first member."""
    return (group.members & -group.members).bit_length() - 1


def _why_too_much(need: Pressure, core: Core) -> str | None:
    if need.vectors > core.vector_registers:
        return (
            f"the body would hold {need.vectors} values at once, "
            f"and there are {core.vector_registers} vector registers"
        )
    if need.buffers > core.addresses:
        return (
            f"the body would go through {need.buffers} buffers, "
            f"and there are registers for {core.addresses} addresses"
        )
    if need.operations > core.decoded:
        return (
            f"the body would be {need.operations} operations long, "
            f"and the core keeps {core.decoded} decoded"
        )
    return None
