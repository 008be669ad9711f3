"""Whether one group is faster than two: bytes that no longer move against operations that are done again.

The roofline model (Williams, Waterman, Patterson, 2009), as far as a comparison needs it: a group moves its
inputs and results once, at the rate of the level of memory that holds them, and computes at one vector operation
per step. All of that are estimates. A judgement that would be another one if they were wrong by `CLOSE` is *close*: who
can measure may have the code for a judge of another `balance`, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import FixedBitwidthType
from xdsl.ir import Attribute, Operation, SSAValue

from jitdialects.analysis.fusion_graph import reduced_axes
from jitdialects.analysis.fusion_legality import Candidate, Kind, is_over_columns
from jitdialects.analysis.machine import STEPS, TEMPORARIES, Core
from jitdialects.analysis.register_pressure import short_name
from jitdialects.analysis.row_stages import recomputed, stages_of_candidate
from jitdialects.analysis.typical_sizes import TYPICAL
from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Shape
from jitdialects.dialects.tssa_types import shape_of, tensor_of

VECTOR = 32
"""Bytes of a vector register."""
CLOSE = 3.0
"""What bytes and cycles may be wrong by, against each other."""
WORTH = 0.05
"""What must be at stake, of the time of all: less is not found in a measurement."""
BALANCES = {True: 4.0, False: 0.25}
"""By what has been accepted or refused: the balance for which everything close would be judged the other way."""


@dataclass(frozen=True)
class Costs:
    """What moving and computing takes on a core; `typical`: sizes that are not known."""

    core: Core
    typical: Mapping[str, int] = field(default_factory=dict[str, int])
    _elements: dict[Attribute, int] = field(default_factory=dict[Attribute, int])

    def elements_of(self, type: Attribute) -> int:
        """The number of elements of a tensor, at least 1."""
        known = self._elements.get(type)
        if known is None:
            known = self._elements[type] = self.count(shape_of(type))
        return known

    def count(self, shape: Shape) -> int:
        """The number of indices of a shape, at least 1."""
        size = dims.product(shape)
        sizes = {name: self.typical.get(name, TYPICAL) for name in dims.symbols_of(size)}
        return max(1, dims.evaluate(size, sizes))

    def bytes_of(self, type: Attribute) -> int:
        """The bytes of a tensor, at least those of one element."""
        element = tensor_of(type).get_element_type()
        width = max(1, element.bitwidth // 8) if isinstance(element, FixedBitwidthType) else 8
        return width * self.elements_of(type)

    def cycles_of(self, ops: Iterable[Operation]) -> float:
        """The time of operations whose operands and results are in registers; one number takes a step, too."""
        return sum(
            STEPS.get(short_name(op), 1) * max(1.0, self.bytes_of(op.results[0].type) / VECTOR)
            for op in ops
        )

    def cycles_to_move(self, amount: float, footprint: int) -> float:
        """The time to move `amount` bytes of data that is `footprint` bytes in all."""
        rate = next(rate for capacity, rate in self.core.bandwidth if footprint <= capacity)
        return amount / rate

    def one_by_one(self, group: Candidate) -> float:
        """What elementary functions behind a product with a vector take longer than by themselves: it makes one
        number at a time. Cheaper operations hide beside the loads of the next row."""
        if not any(len(shape_of(op.operands[1])) == 1 for op in group.products):
            return 0.0
        results = (
            (STEPS[name], op.results[0].type)
            for op in group.ops
            if (name := short_name(op)) in TEMPORARIES
        )
        return sum(
            steps * (self.elements_of(type) - -(-self.bytes_of(type) // VECTOR))
            for steps, type in results
        )

    def in_part_vectors(self, group: Candidate) -> float:
        """What elements that are computed for the columns of one row at a time take longer than all in a line."""
        if not is_over_columns(group):
            return 0.0
        reduction = group.reductions[0]
        operand, last = reduction.operands[0].type, reduced_axes(reduction)[-1]
        columns = self.count(group.shape[last + 1 :])
        row = columns * self.bytes_of(operand) // self.elements_of(operand)
        if columns == 1 or row % VECTOR == 0:  # one column is a row
            return 0.0
        elements = [op for op in group.ops if shape_of(op.results[0]) == group.shape]
        return self.cycles_of(elements) * (-(-row // VECTOR) * VECTOR / row - 1)


@dataclass(frozen=True)
class Price:
    """What other groups would save, and what that costs."""

    saved: int
    """Bytes that no longer move."""
    moving: float = 0.0
    """Cycles that moving them takes."""
    again: float = 0.0
    """Cycles of what is computed once more."""
    alone: float = 0.0
    """Cycles more of functions that are computed number by number."""
    narrow: float = 0.0
    """Cycles more of what is computed in a part of a vector."""

    @property
    def computing(self) -> float:
        """Cycles more in all."""
        return self.again + self.alone + self.narrow

    def why_not(self, balance: float) -> str | None:
        """Why that is too dear, if computing takes `balance` times what it is taken to; None where it pays."""
        if self.saved <= 0:
            return "one group would move as many bytes as two"
        if self.computing * balance < self.moving or self.computing <= 0:
            return None
        if self.alone > 0:
            cost = "functions be computed row by row, not in vectors, "
            return (
                f"{self.saved} bytes would not be moved, but {cost}in {self.alone:.0f} cycles more"
            )
        if self.narrow > 0:
            cost = f"a row of columns fill part of a vector, in {self.narrow:.0f} cycles more"
            return f"{self.saved} bytes would not be moved, but {cost}"
        cost = f"{self.again:.0f} cycles of computation be done again for it"
        return f"{self.saved} bytes would not be moved, but {cost}"

    @property
    def weighs(self) -> bool:
        """Whether there is something on either side."""
        return self.saved > 0 and self.computing > 0

    @property
    def at_stake(self) -> float:
        """Cycles of the dearer side."""
        return max(self.moving, self.computing)

    def is_close(self, balance: float) -> bool:
        """Whether estimates that are wrong by `CLOSE` would make it pay, or not pay, unlike now."""
        computing = self.computing * balance
        return self.weighs and self.moving < CLOSE * computing < CLOSE * CLOSE * self.moving

    def __str__(self) -> str:
        return f"{self.computing:.0f} cycles of computation against {self.moving:.0f} of moving {self.saved} bytes"


@dataclass(frozen=True)
class Judgement:
    """What was done, or was not, because of a price that weighs."""

    accepted: bool
    price: Price
    what: str

    def __str__(self) -> str:
        return f"{self.what}{'' if self.accepted else ' not'}: {self.price}"


def other_balance(
    judgements: Sequence[Judgement], balance: float, cycles: float
) -> tuple[float, Judgement] | None:
    """The balance for which most of what was close would be judged the other way, and the dearest of that; None where
    nothing was, or where little is at stake beside the `cycles` of all."""
    close = [each for each in judgements if each.price.is_close(balance)]

    def at_stake(accepted: bool) -> float:
        return sum(each.price.at_stake for each in close if each.accepted is accepted)

    if not close:
        return None
    accepted = at_stake(True) >= at_stake(False)
    if at_stake(accepted) < WORTH * cycles:
        return None
    turned = (each for each in close if each.accepted is accepted)
    return BALANCES[accepted], max(turned, key=lambda each: each.price.at_stake)


class ProfitJudge:
    """Asks whether one group is faster than two on a core, and remembers what it was told about each.

    `typical`: sizes that are not known. `balance`: how many times as dear as it is taken to be computing is.
    """

    def __init__(
        self, core: Core, typical: Mapping[str, int] | None = None, balance: float = 1.0
    ) -> None:
        self.costs, self.balance = Costs(core, typical or {}), balance
        self._bytes: dict[SSAValue, int] = {}
        self._traffic: dict[Candidate, int] = {}
        self._again: dict[Candidate, float] = {}

    def price(self, left: Candidate, right: Candidate, both: Candidate) -> Price:
        """What one group saves against two."""
        footprint = self.traffic(left) + self.traffic(right)
        saved = footprint - self.traffic(both)
        if saved <= 0:
            return Price(saved)
        again = self.computed_again(both)
        if again > 0:
            again -= self.computed_again(left) + self.computed_again(right)
        moving = self.costs.cycles_to_move(saved, footprint)
        alone, narrow = self.costs.one_by_one(both), self.costs.in_part_vectors(both)
        return Price(saved, moving, again, alone, narrow)

    def why_no_profit(self, left: Candidate, right: Candidate, both: Candidate) -> str | None:
        """Why two groups are to be preferred to one; None where one is faster."""
        return self.price(left, right, both).why_not(self.balance)

    def cycles(self, group: Candidate) -> float:
        """The time of a group: that of moving or of computing."""
        traffic = self.traffic(group)
        computing = self.costs.cycles_of(group.ops) + self.computed_again(group)
        for op in group.products:
            computing += self.costs.cycles_of([op]) * (
                self.costs.count(shape_of(op.operands[0])[-1:]) - 1
            )
        return max(computing, self.costs.cycles_to_move(traffic, traffic))

    def traffic(self, group: Candidate) -> int:
        """Bytes that a group reads and writes: each input and result once, unless it goes over rows that no cache
        holds from one sweep to the next."""
        if group not in self._traffic:
            self._traffic[group] = self._traffic_of(group)
        return self._traffic[group]

    def _traffic_of(self, group: Candidate) -> int:
        written = self._moved(op.results[0] for op in group.yields)
        cached = self.costs.core.bandwidth[-2][0] / 2
        if group.kind is not Kind.ROWS or self._row_bytes(group) <= cached:
            return self._moved(group.inputs) + written
        stages = stages_of_candidate(group)
        elements = {v for v in group.inputs if shape_of(v) == group.shape}
        read_once = self._moved(v for v in group.inputs if v not in elements)
        swept = (v for sweep in stages.sweeps for v in sweep.loads)
        return (
            read_once + written + self._moved(v for v in swept if v in elements or v in stages.kept)
        )

    def _row_bytes(self, group: Candidate) -> int:
        """What a sweep goes over."""
        reduction = group.reductions[0]
        rows = self.costs.elements_of(reduction.results[0].type)
        return self.costs.bytes_of(reduction.operands[0].type) // rows

    def _moved(self, values: Iterable[SSAValue]) -> int:
        """Bytes of several values."""
        total, known = 0, self._bytes
        for value in values:
            if value not in known:
                known[value] = self.costs.bytes_of(value.type)
            total += known[value]
        return total

    def computed_again(self, group: Candidate) -> float:
        """The time of what a group computes more than once: elements that several passes over a row need."""
        if group.kind is not Kind.ROWS:
            return 0.0
        if group not in self._again:
            self._again[group] = self.costs.cycles_of(recomputed(group))
        return self._again[group]
