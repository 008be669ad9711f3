"""Whether one group is faster than two: bytes that no longer move against operations that are done again.

The roofline model (Williams, Waterman, Patterson, 2009), as far as a comparison needs it: a group moves its
inputs and results once, at the rate of the level of memory that holds them, and computes at one vector operation
per step. Sizes that are not known count as `TYPICAL`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from xdsl.dialects.builtin import FixedBitwidthType
from xdsl.ir import Attribute, Operation, SSAValue

from jitdialects.analysis.fusion_legality import Candidate, Kind
from jitdialects.analysis.machine import STEPS, TEMPORARIES, Core
from jitdialects.analysis.register_pressure import short_name
from jitdialects.analysis.row_stages import recomputed, stages_of_candidate
from jitdialects.bytecode import dims
from jitdialects.dialects.tssa_types import shape_of, tensor_of

TYPICAL = 256
"""A size that is not known, and the value of an argument."""
VECTOR = 32
"""Bytes of a vector register."""


@lru_cache(4096)
def elements_of(type: Attribute) -> int:
    """The number of elements of a tensor, at least 1."""
    size = dims.product(shape_of(type))
    return max(1, dims.evaluate(size, dict.fromkeys(dims.symbols_of(size), TYPICAL)))


def bytes_of(type: Attribute) -> int:
    """The bytes of a tensor, at least those of one element."""
    element = tensor_of(type).get_element_type()
    width = max(1, element.bitwidth // 8) if isinstance(element, FixedBitwidthType) else 8
    return width * elements_of(type)


def _row_bytes(group: Candidate) -> int:
    """What a sweep goes over."""
    reduction = group.reductions[0]
    return bytes_of(reduction.operands[0].type) // elements_of(reduction.results[0].type)


def cycles_of(ops: Iterable[Operation]) -> float:
    """The time of operations whose operands and results are in registers; one number takes a step, too."""
    return sum(
        STEPS.get(short_name(op), 1) * max(1.0, bytes_of(op.results[0].type) / VECTOR) for op in ops
    )


def cycles_to_move(amount: float, footprint: int, core: Core) -> float:
    """The time to move `amount` bytes of data that is `footprint` bytes in all."""
    rate = next(rate for capacity, rate in core.bandwidth if footprint <= capacity)
    return amount / rate


class ProfitJudge:
    """Asks whether one group is faster than two on a core, and remembers what it was told about each."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self._bytes: dict[SSAValue, int] = {}
        self._traffic: dict[Candidate, int] = {}
        self._again: dict[Candidate, float] = {}

    def why_no_profit(self, left: Candidate, right: Candidate, both: Candidate) -> str | None:
        """Why two groups are to be preferred to one; None where one is faster."""
        footprint = self.traffic(left) + self.traffic(right)
        saved = footprint - self.traffic(both)
        if saved <= 0:
            return "one group would move as many bytes as two"
        again = self.computed_again(both)
        if again > 0:
            again -= self.computed_again(left) + self.computed_again(right)
        if again > 0 and again >= cycles_to_move(saved, footprint, self.core):
            return (
                f"{saved} bytes would not be moved, "
                f"but {again:.0f} cycles of computation be done again for it"
            )
        alone = one_by_one(both)
        if alone > 0 and alone >= cycles_to_move(saved, footprint, self.core):
            return (
                f"{saved} bytes would not be moved, but functions be computed row by row, not in vectors, "
                f"in {alone:.0f} cycles more"
            )
        return None

    def traffic(self, group: Candidate) -> int:
        """Bytes that a group reads and writes: each input and result once, unless it goes over rows that no cache
        holds from one sweep to the next."""
        if group not in self._traffic:
            self._traffic[group] = self._traffic_of(group)
        return self._traffic[group]

    def _traffic_of(self, group: Candidate) -> int:
        written = self._moved(op.results[0] for op in group.yields)
        if group.kind is not Kind.ROWS or _row_bytes(group) <= self.core.bandwidth[-2][0] / 2:
            return self._moved(group.inputs) + written
        stages = stages_of_candidate(group)
        elements = {v for v in group.inputs if shape_of(v) == group.shape}
        read_once = self._moved(v for v in group.inputs if v not in elements)
        swept = (v for sweep in stages.sweeps for v in sweep.loads)
        return (
            read_once + written + self._moved(v for v in swept if v in elements or v in stages.kept)
        )

    def _moved(self, values: Iterable[SSAValue]) -> int:
        """Bytes of several values."""
        total, known = 0, self._bytes
        for value in values:
            if value not in known:
                known[value] = bytes_of(value.type)
            total += known[value]
        return total

    def computed_again(self, group: Candidate) -> float:
        """The time of what a group computes more than once: elements that several passes over a row need."""
        if group.kind is not Kind.ROWS:
            return 0.0
        if group not in self._again:
            self._again[group] = cycles_of(recomputed(group))
        return self._again[group]


def one_by_one(group: Candidate) -> float:
    """What elementary functions behind a product with a vector take longer than by themselves: it makes one
    number at a time. Cheaper operations hide beside the loads of the next row."""
    if not any(len(shape_of(op.operands[1])) == 1 for op in group.products):
        return 0.0
    functions = [op for op in group.ops if short_name(op) in TEMPORARIES]
    return sum(
        STEPS[short_name(op)]
        * (elements_of(op.results[0].type) - -(-bytes_of(op.results[0].type) // VECTOR))
        for op in functions
    )
