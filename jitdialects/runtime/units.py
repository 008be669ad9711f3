"""Units of compilation smaller than a function: hot loops, and stretches of blocks.

- A *loop* that has run for `Policy.loop_seconds` in one activation is compiled by itself and entered at its
  header, since a call may be one long loop: the registers are the whole state, and each iteration brings them
  back to the header. (Hoelzle and Ungar's on-stack replacement, without a stack.)
- Where a function cannot be compiled as a whole (recursion, a size that depends on tensor data), its blocks
  are cut into *stretches* between calls. A stretch that cannot be compiled either is halved until two operators are left.

Each unit is a function of its own (`bytecode.outline`), with a profile, shapes and entries like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from jitdialects.bytecode.operators import OPERATORS
from jitdialects.bytecode.outline import Part, headers, outline_loop, outline_stretch
from jitdialects.bytecode.program import Function, Instruction, Program
from jitdialects.runtime.tier0 import Site

if TYPE_CHECKING:
    from jitdialects.runtime.function_code import FunctionCode

FEWEST_OPERATORS = 2
"""Of a stretch: for one alone, the interpreter has a kernel."""

Make: TypeAlias = "Callable[[Part], FunctionCode]"


@dataclass(frozen=True, eq=False)
class Unit:
    """A part of a function, and what is known of it as a function."""

    part: Part
    code: FunctionCode


@dataclass(frozen=True, eq=False)
class Stretch:
    """Steps `first` to `end` of a block, which are one unit."""

    unit: Unit
    block: int
    first: int
    steps: Sequence[Step]


Step: TypeAlias = "Site | Instruction | Stretch"


class Units:
    """The units of one function, made when somebody asks for them."""

    def __init__(self, program: Program, function: Function, make: Make) -> None:
        self._program, self._function, self._make = program, function, make
        self._loops: dict[int, Unit | None] | None = None
        self.stretches: list[Unit] = []
        """Those that are in use, in the order in which they were made."""

    @property
    def loops(self) -> list[Unit]:
        """The loops that were asked for."""
        return [unit for unit in (self._loops or {}).values() if unit is not None]

    def loop(self, block: int) -> Unit | None:
        """The loop that `block` is the header of, if there is one that can be a unit."""
        if self._loops is None:
            self._loops = {}
            self._headers = headers(self._function)
        if block not in self._headers:
            return None
        if block not in self._loops:
            part = outline_loop(self._program, self._function, block)
            unit = None if part is None else Unit(part, self._make(part))
            self._loops[block] = unit
        return self._loops[block]

    def cut(self, block: int, steps: Sequence[Step]) -> list[Step]:
        """The steps of a block, terminator included, as stretches between calls."""
        body, out = list(steps[:-1]), list[Step]()
        first = 0
        for at, step in enumerate([*body, None]):
            if step is None or (isinstance(step, Instruction) and step.opcode == "call"):
                out += self._stretch(block, first, body[first:at])
                out += [step] if step is not None else []
                first = at + 1
        return [*out, steps[-1]]

    def halve(self, stretch: Stretch) -> list[Step]:
        """What takes the place of a stretch that cannot be compiled."""
        self.stretches = [u for u in self.stretches if u is not stretch.unit]
        steps = stretch.steps
        if _operators(steps) < 2 * FEWEST_OPERATORS:
            return list(steps)
        middle = next(
            n for n in range(len(steps)) if _operators(steps[:n]) >= _operators(steps) // 2
        )
        left = self._stretch(stretch.block, stretch.first, steps[:middle])
        return [*left, *self._stretch(stretch.block, stretch.first + middle, steps[middle:])]

    def _stretch(self, block: int, first: int, steps: Sequence[Step]) -> list[Step]:
        if _operators(steps) < FEWEST_OPERATORS:
            return list(steps)
        end = first + len(steps)
        part = outline_stretch(self._program, self._function, block, first, end)
        if part is None:
            return list(steps)
        unit = Unit(part, self._make(part))
        self.stretches.append(unit)
        return [Stretch(unit, block, first, tuple(steps))]


def _operators(steps: Sequence[Step]) -> int:
    return sum(isinstance(s, Site) and s.instruction.opcode in OPERATORS for s in steps)
