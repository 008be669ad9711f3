"""Blocks of lazy arrays while they are recorded, and the programs that are made of them.

What was recorded so far is a point of a tree, whose root is the empty block: to record an operator call is to go
to the child that stands for it. Blocks of equal structure end at the same point, however often they are recorded,
and a point knows dtype and shape of its result for the operands that it had last.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, TypeAlias

from jitdialects.bytecode.attributes import (
    At,
    Attributes,
    IndexSpec,
    OperandRef,
    ShapeSpec,
    Slice,
)
from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.dims import Shape
from jitdialects.bytecode.dtypes import DType
from jitdialects.bytecode.program import Location, Program

if TYPE_CHECKING:
    from jitdialects.frontends.lazy import LazyRecorder, LazyValue

_Change: TypeAlias = Callable[[int | OperandRef], int | OperandRef]
Kind: TypeAlias = tuple[str, bool, Shape]
"""Name and weakness of a dtype, and a shape: what inference asks of an operand, cheap to compare."""
Place: TypeAlias = tuple[CodeType, int] | None
"""Where the user called: code and the offset of an instruction in it."""


class Point:
    """The structure of a block up to one instruction, and that. An operand k >= 0 is the result of the block's
    instruction k, k < 0 parameter -1-k. `slots` numbers the integers of an index or a shape, which may
    become run-time arguments. `result` is what came of `seen`: kinds of operands, and the integers if any."""

    __slots__ = ("children", "numbers", "opcode", "parent", "result", "seen", "slots")

    def __init__(
        self,
        parent: Point | None,
        opcode: str = "",
        numbers: tuple[int, ...] = (),
        slots: range = range(0),
    ) -> None:
        self.parent = parent
        self.opcode = opcode
        self.numbers = numbers
        self.slots = slots
        self.children: dict[object, Point] = {}
        self.seen: object = None
        self.result: tuple[DType, Shape, Kind] | None = None


class Block:
    """A block that is being recorded. `attributes` and `places` are those of its instructions, `integers` what the slots
    hold, `values` the results as weak references: a dead one is nobody's result."""

    __slots__ = (
        "attributes",
        "integers",
        "numbers",
        "parameters",
        "places",
        "point",
        "recorder",
        "values",
    )

    def __init__(self, recorder: LazyRecorder, start: Point) -> None:
        self.recorder = recorder
        self.point = start
        self.attributes: list[Attributes] = []
        self.places: list[Place] = []
        self.values: list[weakref.ref[LazyValue]] = []
        self.parameters: list[LazyValue] = []
        self.numbers: dict[int, int] = {}
        self.integers: list[int] = []

    def outside(self, value: LazyValue) -> int:
        """The number of a value that is not of this block: it becomes a parameter."""
        number = self.numbers.get(id(value))  # parameters keeps it alive, so the id stays its own
        if number is None:
            self.parameters.append(value)
            number = self.numbers[id(value)] = -len(self.parameters)
        return number

    def forget_parameters(self, known: int) -> None:
        """Those that were added after there were `known` are not used."""
        for value in self.parameters[known:]:
            del self.numbers[id(value)]
        del self.parameters[known:]

    def alive(self) -> list[LazyValue]:
        """The values that Python still holds, in order."""
        return [v for v in [r() for r in self.values] if v is not None]

    def entries(self) -> list[Entry]:
        """The instructions."""
        points: list[Point] = []
        point = self.point
        while point.parent is not None:
            points.append(point)
            point = point.parent
        found = zip(reversed(points), self.attributes, self.places, strict=True)
        return [Entry(p.opcode, p.numbers, a, p.slots, place) for p, a, place in found]


@dataclass(frozen=True)
class Entry:
    """One recorded instruction; fields as in `Point` and `Block`."""

    opcode: str
    operands: tuple[int, ...]
    attributes: Attributes
    slots: range
    place: Place

    def location(self) -> Location:
        """Where the user wrote it."""
        if self.place is None:
            return Location("<unknown>", 1)
        code, offset = self.place
        line, *_ = next(itertools.islice(code.co_positions(), offset // 2, None))
        return Location(code.co_filename, line or code.co_firstlineno)


def spec_of(attributes: Attributes) -> ShapeSpec | IndexSpec | None:
    found = attributes.get("shape", attributes.get("index"))
    return found if isinstance(found, ShapeSpec | IndexSpec) else None


def map_integers(spec: ShapeSpec | IndexSpec, change: _Change) -> ShapeSpec | IndexSpec:
    """`spec` with each integer replaced in order, except steps and the -1 of a reshape."""
    if isinstance(spec, ShapeSpec):
        return ShapeSpec(tuple(change(s) if s != -1 else s for s in spec.sizes))
    entries = tuple(
        At(change(e.index))
        if isinstance(e, At)
        else Slice(
            None if e.start is None else change(e.start),
            None if e.stop is None else change(e.stop),
            e.step,
        )
        if isinstance(e, Slice)
        else e
        for e in spec.entries
    )
    return IndexSpec(entries)


class Collect:
    """Replaces each integer by 0 and remembers it."""

    def __init__(self) -> None:
        self.found: list[int] = []

    def __call__(self, bound: int | OperandRef) -> int | OperandRef:
        if isinstance(bound, OperandRef):
            return bound
        self.found.append(bound)
        return 0


class _Bind:
    """Replaces each integer whose slot is a run-time argument by a reference to a new operand."""

    def __init__(self, entry: Entry, registers: dict[int, int]) -> None:
        self.slots = iter(entry.slots)
        self.first = len(entry.operands)
        self.registers = registers
        self.operands: list[int] = []

    def __call__(self, bound: int | OperandRef) -> int | OperandRef:
        if isinstance(bound, OperandRef):
            return bound
        register = self.registers.get(next(self.slots))
        if register is None:
            return bound
        self.operands.append(register)
        return OperandRef(self.first + len(self.operands) - 1)


def _needed(entries: list[Entry], results: Sequence[int]) -> list[int]:
    """The entries that the results depend on, in order."""
    marked = set(results)
    for index in range(len(entries) - 1, -1, -1):
        if index in marked:
            marked.update(k for k in entries[index].operands if k >= 0)
    return sorted(marked)


def build_program(
    entries: list[Entry], parameters: int, results: Sequence[int], dynamic: list[bool]
) -> Program:
    """One function `main` of one block; arguments are the parameters, then the dynamic slots."""
    slots = [s for s, d in enumerate(dynamic) if d]
    slot_registers = {s: parameters + i for i, s in enumerate(slots)}
    registers = {-1 - p: p for p in range(parameters)}
    program = ProgramBuilder()
    main = program.function("main", parameters + len(slots))
    for index in _needed(entries, results):
        entry = entries[index]
        operands = [registers[k] for k in entry.operands]
        attributes = dict(entry.attributes)
        spec = spec_of(attributes)
        if spec is not None:
            bind = _Bind(entry, slot_registers)
            name = "shape" if isinstance(spec, ShapeSpec) else "index"
            attributes[name] = map_integers(spec, bind)
            operands += bind.operands
        main.location = entry.location()
        registers[index] = main.apply(entry.opcode, *operands, into=None, **attributes)
    main.returns(*(registers[r] for r in results))
    return program.finish()
