"""What an instruction may carry besides registers: constants that belong to the program text.

An attribute value is `None`, a bool, an int, a string, an `Ints`, a `ShapeSpec` or
an `IndexSpec`. A value that
changes from call to call is never an attribute: shape and index specifications refer to operands of
their instruction by position, `OperandRef(1)`, written `$1`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import TypeAlias


@dataclass(frozen=True)
class OperandRef:
    """The value of the instruction's operand number `position` (a rank-0 integer), written `$1`."""

    position: int

    def __str__(self) -> str:
        return f"${self.position}"


Bound: TypeAlias = int | OperandRef | None


@dataclass(frozen=True)
class ShapeSpec:
    """A target shape: sizes, at most one -1 (reshape only), references; text `[$1, 4, -1]`."""

    sizes: tuple[int | OperandRef, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.sizes))}]"


@dataclass(frozen=True)
class Slice:
    """`start:stop:step` with Python's meaning; the step is a constant other than 0."""

    start: Bound = None
    stop: Bound = None
    step: int = 1

    def __str__(self) -> str:
        start, stop = ("" if b is None else str(b) for b in (self.start, self.stop))
        return f"{start}:{stop}" + (f":{self.step}" if self.step != 1 else "")


@dataclass(frozen=True)
class At:
    """One index; the axis disappears."""

    index: int | OperandRef

    def __str__(self) -> str:
        return str(self.index)


@dataclass(frozen=True)
class Ellipsis:
    """As many full slices as the rank leaves room for; at most one in a specification."""

    def __str__(self) -> str:
        return "..."


@dataclass(frozen=True)
class NewAxis:
    """A new axis of size 1."""

    def __str__(self) -> str:
        return "newaxis"


IndexEntry: TypeAlias = Slice | At | Ellipsis | NewAxis


@dataclass(frozen=True)
class IndexSpec:
    """What stands between the brackets of `x[...]`; text `[0:$1, ..., newaxis, -1]`."""

    entries: tuple[IndexEntry, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.entries))}]"


@dataclass(frozen=True)
class Ints:
    """A list of numbers (axes, the cases of a switch), text `(1, 0)`."""

    values: tuple[int, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.values))})"


Attribute: TypeAlias = None | bool | int | str | ShapeSpec | IndexSpec | Ints
Attributes: TypeAlias = Mapping[str, Attribute]

TYPES: Mapping[str, tuple[type, ...]] = {
    "axes": (Ints, NoneType),
    "axis": (int, Ints, NoneType),
    "callee": (str,),
    "cases": (Ints,),
    "constant": (int,),
    "correction": (int,),
    "dtype": (str,),
    "index": (IndexSpec,),
    "keepdims": (bool,),
    "shape": (ShapeSpec,),
}
"""Attribute name -> the types its value may have, for every opcode that has such an attribute."""


def references(value: Attribute) -> list[OperandRef]:
    """The operands that a shape or index specification refers to."""
    if isinstance(value, ShapeSpec):
        return [s for s in value.sizes if isinstance(s, OperandRef)]
    out: list[OperandRef] = []
    for entry in value.entries if isinstance(value, IndexSpec) else ():
        if isinstance(entry, Slice):
            out.extend(b for b in (entry.start, entry.stop) if isinstance(b, OperandRef))
        elif isinstance(entry, At) and isinstance(entry.index, OperandRef):
            out.append(entry.index)
    return out
