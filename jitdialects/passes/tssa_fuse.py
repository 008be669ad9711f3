"""`tssa-fuse`: wrap every computing operation into a `tssa.group`, together with what it can share a nest with.

    %0 = tssa.multiply %x, %x : (...)        %1:2 = tssa.group ins(%x : t) {
    %1 = tssa.add %0, %x : (...)             ^bb0(%a : t):
    func.return %0, %1                   ->    %0 = tssa.multiply %a, %a : (...)
                                               %2 = tssa.add %0, %a : (...)
                                               tssa.yield %0, %2 : t, t } -> t, t

From the last operation to the first, each is offered to the groups of its readers, then groups that read the same
values to each other, until nothing changes. Two groups become one if three judges agree: *dependence*
(`analysis.fusion_legality`), *register pressure* (`analysis.register_pressure`) and *roofline profit*
(`analysis.roofline`); the first refusal is a remark. What is still read by other groups than its own is computed
again in each of them where that is faster than memory (`analysis.fusion_recompute`); then groups are found anew.
What profit decided by little is a remark, too: the option `balance` gives the code of a judge that decides it otherwise.
A group yields every member that is read outside; groups are put in an order in which each stands after what it
reads. Needs nothing but SSA. Never moves an operation to another block, never changes what an operation computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue
from xdsl.utils.exceptions import PassFailedException

from jitdialects.analysis.fusion_graph import FusionGraph, bits_of, is_computing
from jitdialects.analysis.fusion_legality import Candidate, Kind, candidate_of, why_illegal
from jitdialects.analysis.fusion_recompute import Recomputation
from jitdialects.analysis.machine import Core
from jitdialects.analysis.register_pressure import PressureJudge
from jitdialects.analysis.roofline import WORTH, Judgement, ProfitJudge, other_balance
from jitdialects.passes.fusion_groups import build_groups, copy_into_readers
from jitdialects.passes.judging_pass import JudgingPass

NEIGHBOURS = 4
"""Groups that read a value, at most, to which another reader of it is offered."""


class Fuser:
    """Finds the groups of one block."""

    def __init__(
        self, block: Block, pressure: PressureJudge, profit: ProfitJudge, merge: bool
    ) -> None:
        self.graph = FusionGraph(block, copies=merge)
        self.pressure, self.profit = pressure, profit
        self.groups: dict[Candidate, None] = {}
        self.refusals: dict[tuple[int, int], str] = {}
        self._home: dict[int, Candidate] = {}
        self._weighed: dict[tuple[int, int], Judgement] = {}
        self._refused: set[tuple[Candidate, Candidate]] = set()
        self._joined: dict[Candidate, Candidate] = {}
        for position, node in self.graph.nodes.items():
            if is_computing(node.op):
                self._home[position] = candidate_of(self.graph, position)
                self.groups[self._home[position]] = None

    def run(self) -> None:
        """Merge as long as the judges agree. What one round has put together can make room for more: a
        value per row joins elements only beside its reduction."""
        before = 0
        while before != len(self.groups):
            before = len(self.groups)
            for position in sorted(self._home, reverse=True):
                for reader in bits_of(self.graph.nodes[position].readers):
                    if reader in self._home:
                        self._offer(position, reader)
            self._join_siblings()

    def recomputation(self) -> Recomputation:
        """What groups had better compute again than read."""
        choice = Recomputation(self.graph, self.home, self.pressure, self.profit)
        for position in self._home:
            choice.offer(position)
        return choice

    def home(self, position: int) -> Candidate:
        """The group of a node."""
        start = group = self._home[position]
        while group in self._joined:
            group = self._joined[group]
        if group is not start:
            self._joined[start] = self._home[position] = group
        return group

    def _join_siblings(self) -> None:
        """Offer groups that read the same value to each other, the nearest ones first. A product takes
        nobody that has nothing to do with it."""
        readers: dict[SSAValue, list[int]] = {}
        for position in sorted(self._home):
            for value in list(self.home(position).inputs):
                nearest = readers.setdefault(value, [])
                for other in nearest[: -1 - NEIGHBOURS : -1]:
                    kinds = self.home(other).kind, self.home(position).kind
                    if Kind.PRODUCT not in kinds and Kind.ALONE not in kinds:
                        self._offer(other, position)
                if not nearest or self.home(nearest[-1]) is not self.home(position):
                    nearest.append(position)

    def _offer(self, left: int, right: int) -> None:
        """Make one group of those of two nodes, or remember why not."""
        one, other = self.home(left), self.home(right)
        if one is other or (one, other) in self._refused:
            return
        self._refused.add((one, other))
        both, why = why_illegal(one, other)
        if both is not None:
            refusal = self.pressure.why_too_much(both) or self._why_no_profit(left, right, both)
            if refusal is None:
                self._merge(both)
                return
            why = refusal
        self.refusals[left, right] = why

    def _why_no_profit(self, left: int, right: int, both: Candidate) -> str | None:
        price = self.profit.price(self.home(left), self.home(right), both)
        why = price.why_not(self.profit.balance)
        if price.weighs:
            names = [self.graph.nodes[position].op.name for position in (left, right)]
            self._weighed[left, right] = Judgement(why is None, price, " merged with ".join(names))
        return why

    def _merge(self, both: Candidate) -> None:
        self.groups[both] = None
        for part in both.parts:
            self._joined[part] = both
            del self.groups[part]
        both.parts = ()
        before = both.before | both.members
        work, seen = both.readers, both.members
        while work:  # whoever a path leads to from here comes after all of it
            position = work.bit_length() - 1
            group = self.home(position) if position in self._home else None
            if group is None:
                seen |= 1 << position
                work |= self.graph.nodes[position].readers
            else:
                seen |= group.members
                if before & ~group.members & ~group.before:
                    group.before |= before & ~group.members
                    work |= group.readers
            work &= ~seen

    def cycles(self) -> float:
        """What all groups take, by the roofline."""
        return sum(map(self.profit.cycles, self.groups))

    def judgements(self) -> Iterator[Judgement]:
        """What was weighed and stands."""
        for (left, right), judgement in self._weighed.items():
            if judgement.accepted or self.home(left) is not self.home(right):
                yield judgement

    def remarks(self) -> Iterator[str]:
        """A sentence part for each refusal that stands: two groups can still have met through a third."""
        for (left, right), why in self.refusals.items():
            if self.home(left) is not self.home(right):
                names = [self.graph.nodes[position].op.name for position in (left, right)]
                yield f"{names[0]} is not merged with {names[1]}: {why}"


@dataclass(frozen=True)
class TssaFusePass(JudgingPass):
    """Wrap computing operations into tssa.group, alone or merged with what they feed or stand beside.

    `merge=false` gives every operation its own group. `typical="n=65536"` says what sizes to expect that are not known,
    `balance=4` that computing is so many times as dear, against moving, as the roofline has it.
    """

    name = "tssa-fuse"

    merge: bool = True
    typical: str = ""
    balance: float | int = 1.0

    @cached_property
    def judgements(self) -> list[Judgement]:
        """What was weighed, by all calls of this object, in functions in which much is at stake."""
        return []

    @cached_property
    def alternatives(self) -> list[float]:
        """Per function in which much was judged by little, the balance that would have it otherwise."""
        return []

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.balance > 0:
            raise PassFailedException(f"{self.name}: balance must be above 0, got {self.balance}")
        super().apply(ctx, op)

    def rewrite(self, function: FuncOp, core: Core) -> Iterator[str]:
        typical = self.sizes(self.typical)
        new, blocks = list[Judgement](), list[Fuser]()
        for block in function.body.blocks:
            judges = PressureJudge(core), ProfitJudge(core, typical, self.balance)
            fuser = Fuser(block, *judges, self.merge)
            if self.merge:
                fuser.run()
                choice = fuser.recomputation()
                yield from choice.remarks()
                new += choice.judgements
                if choice.copies:
                    copy_into_readers(fuser.graph, choice.copies)
                    fuser = Fuser(block, *judges, self.merge)
                    fuser.run()
                new += fuser.judgements()
            yield from fuser.remarks()
            blocks.append(fuser)
            build_groups(fuser.graph, list(fuser.groups))
        cycles = sum(fuser.cycles() for fuser in blocks) if new else 0.0
        if sum(each.price.at_stake for each in new) >= WORTH * cycles:
            self.judgements.extend(new)
        other = other_balance(new, self.balance, cycles)
        if other is not None:
            self.alternatives.append(other[0])
            yield f"by little, and balance={other[0]:g} would have it otherwise: {other[1]}"
