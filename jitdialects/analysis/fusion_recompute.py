"""Whether groups that read a value are faster if each computes it again than if it goes through memory.

    %y = tssa.multiply %x, %a     group 1: y, and a sum over the last axis    one sum over the last axis
    sums of %y over the last      group 2: a sum over both axes, reads y  ->  of x * a, and one over both
    axis and over the last two    (y is written and read)                     (x and a are read twice)

The *cone* of a value are the operations that compute it inside its group, down to what is in memory anyway, to
values of another shape (the mean of a row: a few numbers are written instead) and to what is refused itself.
Legality is a conjunction of predicates, and each reader must take the cone as it would take any other group
(`why_illegal`, registers); profit compares both ways by the roofline. A value that anybody needs as a whole is a
root and stays where it is: copies would save its readers nothing but their reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from xdsl.ir import Operation, OpResult

from jitdialects.analysis.fusion_graph import FusionGraph, bits_of, is_computing
from jitdialects.analysis.fusion_legality import Candidate, candidate_of, union, why_illegal
from jitdialects.analysis.register_pressure import PressureJudge
from jitdialects.analysis.roofline import Judgement, Price, ProfitJudge
from jitdialects.dialects.interfaces import Elementwise, has_trait
from jitdialects.dialects.tssa_types import shape_of

LONGEST = 16
"""Operations of a cone, at most: so many vector operations take the time of writing and reading a vector."""

Home = Callable[[int], Candidate]
"""The group of the node at a position."""


@dataclass(frozen=True)
class Cone:
    """What would be computed again: `op`, whose result is read by groups other than its own."""

    graph: FusionGraph
    op: Operation
    group: Candidate
    members: int
    """The operations, `op` among them."""
    written: int
    """The members of the group that have to be results for it, and are none yet."""
    readers: tuple[Candidate, ...]
    """Other groups that read the result, with what they compute again already."""

    @property
    def ops(self) -> list[Operation]:
        """The operations in program order."""
        return [self.graph.ops[position] for position in bits_of(self.members)]


# ---- legality ----------------------------------------------------------------------------------


def is_read_by_groups_only(cone: Cone) -> bool:
    """Nobody needs the value as a whole: no result of the function, no other block, no view, and no copy of a
    broadcast, which reads it at another index."""
    graph = cone.graph
    users = [use.operation for use in cone.op.results[0].uses]
    members = cone.group.members
    for reader in cone.readers:
        members |= reader.members
    return all(user in graph.position and members >> graph.position[user] & 1 for user in users)


def is_short(cone: Cone) -> bool:
    """There are few operations to be done again."""
    return cone.members.bit_count() <= LONGEST


LEGAL = (
    (is_read_by_groups_only, "it is needed as a whole as well"),
    (is_short, f"more than {LONGEST} operations compute it"),
)


# ---- profitability -----------------------------------------------------------------------------


def price(cone: Cone, left: Candidate, taken: Sequence[Candidate], profit: ProfitJudge) -> Price:
    """What is saved if the readers, as they are `taken`, compute the value themselves, and what that costs; `left` is
    what the group is then, nothing if it has no result."""
    before, after = (cone.group, *cone.readers), (left, *taken) if left.exports else taken
    footprint = sum(map(profit.traffic, before))
    saved = footprint - sum(map(profit.traffic, after))
    costs = profit.costs
    again = costs.cycles_of(cone.ops) * len(cone.readers)
    if not left.exports:
        again -= costs.cycles_of(left.ops)
    for cost in (profit.computed_again, costs.one_by_one, costs.in_part_vectors):
        again += sum(map(cost, after)) - sum(map(cost, before))
    return Price(saved, profit.costs.cycles_to_move(saved, footprint), again)


def why_no_profit(price: Price, balance: float) -> str | None:
    """Why the value is better written once and read; None where its readers are faster if they compute it."""
    if price.saved <= 0:
        return "what it is computed from takes as many bytes to read"
    return price.why_not(balance)


# ---- the choice --------------------------------------------------------------------------------


class Recomputation:
    """Finds the values of a block that their readers compute again.

    Values are taken in program order: what was refused is in memory for cones further down, and what was accepted
    is not, so that their cones go through it.
    """

    def __init__(
        self, graph: FusionGraph, home: Home, pressure: PressureJudge, profit: ProfitJudge
    ) -> None:
        self.graph, self.home = graph, home
        self.pressure, self.profit = pressure, profit
        self.copies: dict[Candidate, int] = {}
        """Per group the operations that it computes again."""
        self.refusals: dict[int, str] = {}
        """Per position why its result stays in memory."""
        self.judgements: list[Judgement] = []
        """What was weighed."""
        self._now: dict[Candidate, Candidate] = {}
        """The groups that have changed, as they will be."""
        self._gone = 0

    def offer(self, position: int) -> None:
        """Let the readers of a node compute it again, or remember why not."""
        home, node = self.home(position), self.graph.nodes[position]
        readers = {
            self.home(p): None
            for p in bits_of(node.readers & ~home.members)
            if is_computing(self.graph.ops[p])
        }
        if not readers or not has_trait(node.op, Elementwise):
            return
        cone = self._cone(position, home, list(readers))
        why = next((why for holds, why in LEGAL if not holds(cone)), None)
        if why is None:
            why = self._accept(cone, list(readers))
        if why is not None:
            self.refusals[position] = why

    def remarks(self) -> Iterator[str]:
        """A sentence part for each value that stays in memory between groups."""
        for position, why in self.refusals.items():
            yield f"{self.graph.ops[position].name} is not computed again where it is read: {why}"

    def _cone(self, position: int, home: Candidate, readers: list[Candidate]) -> Cone:
        """The cone of the result at `position`; one operation too long is long enough to be refused. All of it has
        one shape: elementwise operations are what reads a value directly."""
        graph, shape = self.graph, shape_of(self.graph.ops[position].results[0])
        group = self._now.get(home, home)
        members, written, work = 0, 0, 1 << position
        while work and members.bit_count() <= LONGEST:
            latest = work.bit_length() - 1
            work ^= 1 << latest
            members |= 1 << latest
            for value in graph.inputs(graph.ops[latest]):
                source = graph.node_of(value)
                here = source & home.members & ~group.exports
                computed = isinstance(value, OpResult) and has_trait(value.op, Elementwise)
                if source & self._gone or (here and computed and shape_of(value) == shape):
                    work |= source & ~members
                else:  # in memory, or put there
                    written |= here
        now = tuple(self._now.get(reader, reader) for reader in readers)
        return Cone(graph, graph.ops[position], group, members, written, now)

    def _accept(self, cone: Cone, readers: list[Candidate]) -> str | None:
        """Take the cone into its readers, or say why not."""
        taken: list[Candidate] = []
        for reader in cone.readers:
            wider, why = self._with(cone, reader)
            if wider is None:
                return why
            taken.append(wider)
        root = 1 << self.graph.position[cone.op]
        left = replace(cone.group, exports=cone.group.exports & ~root | cone.written, parts=())
        cost = price(cone, left, taken, self.profit)
        why = why_no_profit(cost, self.profit.balance)
        if cost.weighs:
            what = f"{cone.op.name} computed again by readers"
            self.judgements.append(Judgement(why is None, cost, what))
        if why is not None:
            return why
        home = self.home(self.graph.position[cone.op])
        self._now.update(zip(readers, taken, strict=True))
        self._now[home] = left
        self._gone |= root
        for reader in readers:
            copies = self.copies.get(reader, 0) | cone.members & ~reader.members
            self.copies[reader] = copies
        return None

    def _with(self, cone: Cone, reader: Candidate) -> tuple[Candidate | None, str]:
        """A reader that computes the cone, or None and the reason why there is none."""
        parts = [candidate_of(self.graph, p) for p in bits_of(cone.members & ~reader.members)]
        own = replace(reduce(union, parts), exports=0, readers=reader.members)
        both, why = why_illegal(own, reader)
        if both is None:
            return None, why
        both = replace(both, exports=reader.exports)
        too_much = self.pressure.why_too_much(both)
        return (both, "") if too_much is None else (None, too_much)
