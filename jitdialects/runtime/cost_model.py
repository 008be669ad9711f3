"""What compiling costs and what it saves, as far as this process can tell from what it has measured.

Two predictions, each a prior times a factor. *Compile seconds*: a straight line over the weight of the operators.
*Compiled seconds* of a run: the interpreted seconds divided by a speedup, kept apart by how long an operator takes in
the interpreter (short ones cost what calling them costs, long ones what their arithmetic costs). Factors are
geometric means of what was measured, later measurements counting more; the priors were measured once (Zen 5, 2 cores;
`benchmarks/runtime/tiers.py` measures them again) and weigh as much as two measurements. Means of ratios, not
least squares: one compile that lost its core must not bend the line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jitdialects.bytecode.operators import ELEMENTARY, OPERATORS, Kind
from jitdialects.bytecode.program import Block, Program

PRODUCT, REDUCTION, FUNCTION, OTHER = 40.0, 25.0, 8.0, 1.0
"""What an operator adds to compile time, as multiples of an addition's; FUNCTION: an elementary one."""
PRIOR_START, PRIOR_SLOPE = 9e-3, 0.32e-3
"""Seconds of compiling nothing, and per unit of weight."""
SIZES = (20.0, 80.0, math.inf)
"""Weights below which compiles are of one kind: a few cheap operators, a reduction or a product, several."""
FORGET = 0.97
"""Weight of a measurement after one more."""
PRIOR_SPEEDUPS = ((10e-6, 8.0), (30e-6, 4.0), (100e-6, 2.5), (math.inf, 2.0))
"""(interpreted seconds per operator below which it holds, speedup)."""
PRIOR_WEIGHT = 2.0
"""Measurements that a prior counts for."""
MOST = 1e4
"""By which a measurement may differ from 1, either way."""


@dataclass(frozen=True)
class Work:
    """What code is made of: its operators, and their weight in compile time."""

    operators: int = 0
    weight: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(self.operators + other.operators, self.weight + other.weight)


def work_of(program: Program, blocks: Sequence[Block], depth: int = 8) -> Work:
    """Of some blocks of one function, calls inlined (recursive ones down to `depth`)."""
    total = Work()
    for instruction in (i for block in blocks for i in block.instructions):
        operator = OPERATORS.get(instruction.opcode)
        if operator is not None:
            total += Work(1, _weight(operator.name, operator.kind))
        elif instruction.opcode == "call" and depth:
            callee = program.function(str(instruction.attributes["callee"]))
            if callee is not None:
                total += work_of(program, callee.blocks, depth - 1)
    return total


def _weight(name: str, kind: Kind) -> float:
    if kind is Kind.CONTRACTION:
        return PRODUCT
    if kind is Kind.REDUCTION:
        return REDUCTION
    return FUNCTION if name in ELEMENTARY else OTHER


class _Means:
    """Geometric means, one for each class of keys below a bound. What is learnt fades, and so does the prior."""

    def __init__(self, priors: Sequence[tuple[float, float]]) -> None:
        self._bounds = [bound for bound, _ in priors]
        self._sums = [(PRIOR_WEIGHT, PRIOR_WEIGHT * math.log(value)) for _, value in priors]
        self.count = 0

    def at(self, key: float) -> float:
        """The mean for `key`."""
        return self._mean(self._class(key))

    def add(self, key: float, value: float) -> None:
        """Learn `value`, a positive number."""
        number = self._class(key)
        weight, logarithms = self._sums[number]
        learnt = math.log(min(MOST, max(1 / MOST, value)))
        self._sums[number] = 1 + FORGET * weight, learnt + FORGET * logarithms
        self.count += 1

    def _class(self, key: float) -> int:
        return next(n for n, bound in enumerate(self._bounds) if key < bound)

    def _mean(self, number: int) -> float:
        weight, logarithms = self._sums[number]
        return math.exp(logarithms / weight)

    def __str__(self) -> str:
        return ", ".join(f"{self._mean(n):.1f}" for n in range(len(self._sums)))


class CostModel:
    """Predicts, and learns from what came true. Shared by threads: a lost measurement is no harm."""

    def __init__(self) -> None:
        self._compiling = _Means([(bound, 1.0) for bound in SIZES])
        self._speedups = _Means(PRIOR_SPEEDUPS)

    @property
    def compiles(self) -> int:
        """Compiles measured."""
        return self._compiling.count

    @property
    def runs(self) -> int:
        """Speedups measured."""
        return self._speedups.count

    def compile_seconds(self, work: Work) -> float:
        """What compiling this will take."""
        return _prior(work) * self._compiling.at(work.weight)

    def learn_compile(self, work: Work, seconds: float) -> None:
        """Compiling this took so long."""
        if 0 < seconds < math.inf:
            self._compiling.add(work.weight, seconds / _prior(work))

    def compiled_seconds(self, interpreted: float, operators: float) -> float:
        """What a run will take that takes `interpreted` seconds now and executes so many operators."""
        return interpreted / self.speedup(interpreted, operators)

    def speedup(self, interpreted: float, operators: float) -> float:
        """Expected interpreted / compiled seconds."""
        return self._speedups.at(interpreted / max(1.0, operators))

    def learn_run(self, interpreted: float, compiled: float, operators: float) -> None:
        """Runs that took `interpreted` seconds take `compiled` seconds now."""
        if interpreted > 0 and compiled > 0:
            self._speedups.add(interpreted / max(1.0, operators), interpreted / compiled)

    def __str__(self) -> str:
        return (
            f"compiling takes {self._compiling} times the prior, from small to large ({self.compiles} measured); "
            f"speedups {self._speedups} from short to long operators ({self.runs} measured)"
        )


def _prior(work: Work) -> float:
    return PRIOR_START + PRIOR_SLOPE * work.weight
