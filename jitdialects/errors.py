"""The one exception tree. Every error that a user can cause is a subclass of `Error`.

A message is one sentence that says who refuses, what is wrong and what would help. `location`, where
known, is printed in front as `file:line:col`.
"""

from __future__ import annotations

from typing import Protocol


class SourceLocation(Protocol):
    """Anything that prints as `file:line:col`."""

    def __str__(self) -> str: ...


class Error(Exception):
    """Base of all errors of jitdialects. `str(error)` is `[location: ]message`."""

    def __init__(self, message: str, location: SourceLocation | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location

    def __str__(self) -> str:
        return f"{self.location}: {self.message}" if self.location is not None else self.message


class BytecodeError(Error):
    """A malformed program: text, binary or in memory."""


class ShapeError(Error, ValueError):
    """Shapes or axes that do not fit the operator."""


class DTypeError(Error, TypeError):
    """A dtype that an operator, or this version, does not take."""


class IntegerRangeError(Error, OverflowError):
    """A Python integer that the dtype it takes cannot hold."""


class ArgumentError(Error, TypeError):
    """A call with the wrong number or kind of arguments."""


class MissingNameError(Error, AttributeError):
    """A function or method of NumPy that this version does not have."""


class OutOfBoundsError(Error, IndexError):
    """An index outside its axis."""


class TraceError(Error, TypeError):
    """Python code that cannot be captured, such as an `if` on a traced value."""


class ConfigError(Error, ValueError):
    """An option or environment variable with a value that is not allowed."""


class CompileError(Error):
    """A region that this version cannot compile. The VM goes on interpreting it."""


class CompileTimeError(CompileError):
    """A compile that was given up for the time it takes; another machine may manage."""


class PoolError(Error, MemoryError):
    """The memory pool cannot serve a request within its limit."""
