"""What compiling costs and what it saves, as far as this process can tell from what it has measured.

Two predictions. *Compile seconds*: a straight line over the weight of the operators, fitted by least squares in which
each measurement counts a little less than the next one. *Compiled seconds* of a run: the interpreted seconds
divided by a speedup, the geometric mean of those measured so far, kept apart by how long an operator takes in the
interpreter (short ones cost what calling them costs, long ones what their arithmetic costs). Both begin with
priors, which were measured once (Zen 5, 2 cores; `benchmarks/runtime/tiers.py` measures them again) and weigh as
much as two or three measurements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jitdialects.bytecode.operators import OPERATORS, Kind
from jitdialects.bytecode.program import Block, Program

PRODUCT, REDUCTION, ELEMENTARY, OTHER = 40.0, 25.0, 8.0, 1.0
"""What an operator adds to compile time, as multiples of an addition's."""
ELEMENTARY_FUNCTIONS = ("exp", "tanh", "log", "erf", "sigmoid")
PRIOR_COMPILES = ((1.0, 9.5e-3), (40.0, 21e-3), (120.0, 47e-3))
"""(weight, seconds): one addition, one product, three products."""
LEAST_SECONDS = 1e-4
FORGET = 0.97
"""Weight of a measurement after one more."""
PRIOR_SPEEDUPS = ((10e-6, 8.0), (30e-6, 4.0), (100e-6, 2.5), (math.inf, 2.0))
"""(interpreted seconds per operator below which it holds, speedup)."""
PRIOR_WEIGHT = 2.0
"""Measurements that a prior speedup counts for."""


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
    return ELEMENTARY if name in ELEMENTARY_FUNCTIONS else OTHER


class _Line:
    """Least squares of y over x; what is learnt fades, the first points do not."""

    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        self._first = [self._terms(x, y) for x, y in points]
        self._learnt = [0.0] * 5
        self.count = 0

    @staticmethod
    def _terms(x: float, y: float) -> list[float]:
        return [1.0, x, x * x, y, x * y]

    def add(self, x: float, y: float) -> None:
        self._learnt = [FORGET * s + t for s, t in zip(self._learnt, self._terms(x, y), strict=True)]
        self.count += 1

    def fit(self) -> tuple[float, float]:
        """Value at 0 and slope, neither below 0."""
        n, x, xx, y, xy = map(sum, zip(self._learnt, *self._first, strict=True))
        slope = max(0.0, (n * xy - x * y) / (n * xx - x * x))
        start = (y - slope * x) / n
        if start < 0:
            return 0.0, xy / xx
        return start, slope


class CostModel:
    """Predicts, and learns from what came true. Shared by threads: a lost measurement is no harm."""

    def __init__(self) -> None:
        self._compiling = _Line(PRIOR_COMPILES)
        self._speedups = [(PRIOR_WEIGHT, math.log(s) * PRIOR_WEIGHT) for _, s in PRIOR_SPEEDUPS]
        self.runs = 0
        """Speedups measured."""

    @property
    def compiles(self) -> int:
        """Compiles measured."""
        return self._compiling.count

    def compile_seconds(self, work: Work) -> float:
        """What compiling this will take."""
        start, slope = self._compiling.fit()
        return max(LEAST_SECONDS, start + slope * work.weight)

    def learn_compile(self, work: Work, seconds: float) -> None:
        """Compiling this took so long."""
        if 0 <= seconds < math.inf:
            self._compiling.add(work.weight, seconds)

    def compiled_seconds(self, interpreted: float, operators: float) -> float:
        """What a run will take that takes `interpreted` seconds now and executes so many operators."""
        return interpreted / self.speedup(interpreted, operators)

    def speedup(self, interpreted: float, operators: float) -> float:
        """Expected interpreted / compiled seconds."""
        weight, logarithms = self._speedups[self._class(interpreted, operators)]
        return math.exp(logarithms / weight)

    def learn_run(self, interpreted: float, compiled: float, operators: float) -> None:
        """Runs that took `interpreted` seconds take `compiled` seconds now."""
        if interpreted <= 0 or compiled <= 0:
            return
        at = self._class(interpreted, operators)
        weight, logarithms = self._speedups[at]
        ratio = min(1e4, max(1e-2, interpreted / compiled))
        self._speedups[at] = (1 + FORGET * weight, math.log(ratio) + FORGET * logarithms)
        self.runs += 1

    @staticmethod
    def _class(interpreted: float, operators: float) -> int:
        each = interpreted / max(1.0, operators)
        return next(n for n, (bound, _) in enumerate(PRIOR_SPEEDUPS) if each < bound)

    def __str__(self) -> str:
        start, slope = self._compiling.fit()
        speedups = ", ".join(f"{math.exp(total / weight):.1f}" for weight, total in self._speedups)
        return (
            f"compiling takes {start * 1e3:.1f} ms + {slope * 1e3:.2f} ms x weight ({self.compiles} measured); "
            f"speedups {speedups} from short to long operators ({self.runs} measured)"
        )
