"""How a group with reductions goes over one row: sweeps along it, and what is kept from one for the next.

A *sweep* is one pass over the elements of a row: for reductions, ordered by what they depend on, and a last one that
writes elementwise results. Reductions of one type that do not depend on each other share a sweep, as long as their
accumulators fit the registers: a sum and a maximum read the row once. Values per row (the reductions, and arithmetic on them) are computed between
sweeps. An element that several sweeps need is computed again in each, unless it is

- a result of the group: then the first sweep that computes it stores it, and later ones load it;
- dear, and there is a result of the same type that the last sweep overwrites: then it is kept there
  (softmax keeps exp(x - max) where the quotient will be).

Operations are given in program order with what each of them reads, so that the fusion judgements ask the same
question (over operations without copies) as the lowering and the storage plan (over the body of a group).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import AnyFloat, FixedBitwidthType
from xdsl.ir import Block, Operation, SSAValue

from jitdialects.analysis.fusion_graph import is_dear
from jitdialects.bytecode.dims import Shape
from jitdialects.dialects.interfaces import Reduction, has_trait
from jitdialects.dialects.tssa_types import shape_of, tensor_of

if TYPE_CHECKING:
    from jitdialects.analysis.fusion_legality import Candidate

Reads = Callable[[Operation], Iterable[SSAValue]]


MOST_ACCUMULATORS = 12
"""Bytes per lane of the accumulators of a sweep: of 32 lanes, three quarters of the vector registers of AVX2."""


@dataclass(eq=False)
class Sweep:
    """One pass over a row, after `level` reductions one behind the other."""

    reductions: tuple[Operation, ...]
    level: int
    roots: list[SSAValue]
    computes: list[Operation] = field(default_factory=list[Operation])
    """The elements that it computes, latest first."""
    stores: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Elements that it writes on the way, and the number of the result in whose place."""
    loads: set[SSAValue] = field(default_factory=set[SSAValue])
    """Elements that it reads from outside the group or where an earlier sweep has stored them."""


class RowStages:
    """The sweeps of a group; see the module."""

    def __init__(self, ops: Sequence[Operation], reads: Reads, yields: Sequence[SSAValue]) -> None:
        self.ops, self.reads = ops, reads
        reductions = [op for op in ops if has_trait(op, Reduction)]
        self.shape: Shape = shape_of(reductions[0].operands[0])
        self.yields = list(yields)
        self.level: dict[SSAValue, int] = {}
        self.kept: dict[SSAValue, int] = {}
        """Elements that a sweep stores, and the number of the result in whose place."""
        for op in ops:
            depth = max((self.level.get(v, 0) for v in reads(op)), default=0)
            self.level[op.results[0]] = depth + has_trait(op, Reduction)
        self._full = {r for op in ops for r in op.results if shape_of(r) == self.shape}
        by_level = sorted(reductions, key=lambda op: self.level[op.results[0]])
        self._shared: list[list[Operation]] = []
        for op in by_level:
            if not self._shared or not self._may_join(op, self._shared[-1]):
                self._shared.append([])
            self._shared[-1].append(op)
        self.sweeps = self._plan()
        while self._keep_one():
            self.sweeps = self._plan()

    @property
    def elements(self) -> list[int]:
        """The numbers of the results that have an element for each of a row's."""
        return [k for k, v in enumerate(self.yields) if shape_of(v) == self.shape]

    def first_store(self, number: int) -> int:
        """The sweep that begins to write result `number`."""
        for position, sweep in enumerate(self.sweeps):
            if number in sweep.stores.values():
                return position
        return len(self.sweeps) - 1

    def last_load(self, value: SSAValue) -> int:
        """The last sweep that reads elements of `value`; -1 if none does."""
        return max((p for p, s in enumerate(self.sweeps) if value in s.loads), default=-1)

    def _may_join(self, op: Operation, others: list[Operation]) -> bool:
        """Whether a reduction can be taken in one sweep with others."""
        chief = others[0]
        return (
            self.level[op.results[0]] == self.level[chief.results[0]]
            and tensor_of(op.operands[0]).get_element_type()
            == tensor_of(chief.operands[0]).get_element_type()
            and sum(map(_accumulators, (op, *others))) <= MOST_ACCUMULATORS
        )

    def _plan(self) -> list[Sweep]:
        """The sweeps, given what is kept."""
        sweeps = [
            Sweep(
                tuple(ops),
                self.level[ops[0].results[0]] - 1,
                [v for op in ops for v in self.reads(op)],
            )
            for ops in self._shared
        ]
        last = [self.yields[k] for k in self.elements if self.kept.get(self.yields[k]) != k]
        if last:
            level = max(self.level.get(v, 0) for v in last)
            sweeps.append(Sweep((), max(level, sweeps[-1].level + 1), last))
        stored: set[SSAValue] = set()
        for sweep in sweeps:
            self._fill(sweep, stored)
            stored.update(sweep.stores)
        return sweeps

    def _fill(self, sweep: Sweep, stored: set[SSAValue]) -> None:
        """Find what the sweep computes, stores and loads."""
        wanted = set(sweep.roots)
        for op in reversed(self.ops):
            result = op.results[0]
            if result not in wanted or result not in self._full or result in stored:
                continue
            sweep.computes.append(op)
            wanted.update(self.reads(op))
            if result in self.kept:
                sweep.stores[result] = self.kept[result]
        computed = {op.results[0] for op in sweep.computes}
        sweep.loads = {v for v in wanted if v not in computed}

    def _keep_one(self) -> bool:
        """Choose the latest element that is worth keeping and is not kept; False if there is none."""
        times = [op for sweep in self.sweeps for op in sweep.computes]
        taken = set(self.kept.values())
        for op in reversed(self.ops):
            value = op.results[0]
            if value in self.kept or op not in times:
                continue
            first = next(s for s in self.sweeps if op in s.computes)
            own = [k for k in self.elements if self.yields[k] is value]
            if own and first.reductions and own[0] not in taken:
                self.kept[value] = own[0]
                return True
            if own or not is_dear(op) or times.count(op) < 2:
                continue
            places = [
                k
                for k in self.elements
                if k not in taken
                and self.yields[k].type == value.type
                and self.kept.get(self.yields[k]) is None
            ]
            if places and not self.sweeps[-1].reductions:
                self.kept[value] = places[0]
                return True
        return False


def _accumulators(op: Operation) -> int:
    """Bytes per lane; a maximum of floats takes two numbers."""
    element = tensor_of(op.operands[0]).get_element_type()
    width = max(1, element.bitwidth // 8) if isinstance(element, FixedBitwidthType) else 8
    extreme = op.name in ("tssa.max", "tssa.min") and isinstance(element, AnyFloat)
    return 2 * width if extreme else width


def stages_of_block(block: Block) -> RowStages:
    """The sweeps of the body of a group."""
    last = block.last_op
    assert last is not None
    ops = [op for op in block.ops if op is not last]
    return RowStages(ops, lambda op: op.operands, last.operands)


def stages_of_candidate(group: Candidate) -> RowStages:
    """The sweeps of what may become a group."""
    return RowStages(
        group.ops,
        group.graph.inputs,
        [op.results[0] for op in group.yields],
    )


def is_swept_again(group: Candidate) -> bool:
    """Whether a group may have more than one sweep: a second reduction, or elements that are results."""
    return len(group.reductions) > 1 or any(
        shape_of(op.results[0]) == group.shape for op in group.yields
    )


def recomputed(group: Candidate) -> list[Operation]:
    """The operations of elements that sweeps of `group` compute again, once for each time."""
    if not is_swept_again(group):
        return []
    seen: set[Operation] = set()
    again: list[Operation] = []
    for sweep in stages_of_candidate(group).sweeps:
        for op in sweep.computes:
            if op in seen:
                again.append(op)
            seen.add(op)
    return again
