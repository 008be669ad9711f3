"""Debug sections of an object, as a shared library carries them: read by debuggers, never loaded.

Each keeps its content; a reference to code becomes the address of that code in the library (`R_X86_64_64`), one to
another debug section an offset in it (`R_X86_64_32`). One object of a library may have debug sections, so offsets stay
what they are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

_R_64, _R_32 = 1, 10


@dataclass(frozen=True)
class Reference:
    """At `offset`, the value of a symbol: `code`, a symbol of the linker, or a debug section's start if None."""

    offset: int
    kind: int
    code: object | None
    addend: int


@dataclass
class DebugSection:
    """One section, with what is to be filled in."""

    name: str
    data: bytes
    references: list[Reference] = field(default_factory=list[Reference])

    def resolved(self, address: Callable[[object], int]) -> bytes:
        """The content, once it is known where code lies."""
        out = bytearray(self.data)
        for reference in self.references:
            base = 0 if reference.code is None else address(reference.code)
            layout = "<Q" if reference.kind == _R_64 else "<I"
            struct.pack_into(layout, out, reference.offset, base + reference.addend)
        return bytes(out)


def is_debug(name: str) -> bool:
    """Whether a section of this name is for debuggers."""
    return name.startswith(".debug_")


def is_known(kind: int) -> bool:
    """Whether a relocation of this kind may be in a debug section."""
    return kind in (_R_64, _R_32)


def names_of(sections: Sequence[DebugSection]) -> bytes:
    """Their names, as section headers refer to them."""
    return b"".join(section.name.encode() + b"\0" for section in sections)
