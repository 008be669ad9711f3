"""Who asks a pool for memory, found out from the call stack: it costs nothing until somebody wants to know."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType

_PACKAGE = "jitdialects."
_POOL = __name__.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Owner:
    """Who asked for a block."""

    operator: str
    """Operator, or the function of the runtime that wanted the memory; empty for callers from outside."""
    location: str
    """`file:line[:column]` of the program text, or of the Python code that called."""

    def __str__(self) -> str:
        return f"{self.operator} at {self.location}" if self.operator else self.location


_describers: dict[CodeType, Callable[[FrameType], Owner]] = {}


def describe(function: CodeType, who: Callable[[FrameType], Owner]) -> None:
    """Have `who` name the owner of what is asked for while `function` runs, from its frame. An empty location
    stands for that of the Python code that called the package."""
    _describers[function] = who


def asking() -> Owner:
    """The owner of the request that is being served."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    operator = ""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if who := _describers.get(frame.f_code):
            found = who(frame)
            if found.location:
                return found
            operator = found.operator
        elif frame.f_code.co_filename.startswith("<") and frame.f_code.co_name == "invoke":
            operator = f"compiled {frame.f_code.co_filename[1:-1]}"  # its file is its signature
        elif not module.startswith(_PACKAGE):
            return Owner(operator, f"{frame.f_code.co_filename}:{frame.f_lineno}")
        elif not operator and not module.startswith(_POOL):
            operator = frame.f_code.co_qualname
        frame = frame.f_back
    return Owner(operator, "?")
