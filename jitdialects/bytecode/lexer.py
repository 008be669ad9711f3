"""Tokens of one line of program text, with the errors that name their place."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from jitdialects.bytecode.program import Location
from jitdialects.errors import BytecodeError

T = TypeVar("T")
_TOKEN = re.compile(
    r"""[ \t\r]*(?://.*|
        (?P<string>"[^"\\]*(?:\\.[^"\\]*)*")
      | (?P<number>-?(?:0[xX][0-9a-fA-F]+|inf\b|nan\b|[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?))
      | (?P<name>[A-Za-z_][A-Za-z0-9_.]*)
      | %(?P<register>[0-9]+) | \#(?P<constant>[0-9]+) | \$(?P<reference>[0-9]+)
      | @(?P<function>[A-Za-z_][A-Za-z0-9_.]*) | \^(?P<block>[A-Za-z_][A-Za-z0-9_.]*)
      | (?P<mark>->|<=|\.\.\.|[][(){}:,=])
    )""",
    re.VERBOSE,
)
_MAX_NUMBER = 64  # characters; the longest that is ever printed has 24
_DESCRIPTIONS = {
    "string": "a string in double quotes",
    "number": "a number",
    "name": "a name",
    "register": "a register such as %0",
    "constant": "a constant such as #0",
    "reference": "a reference such as $1",
    "function": "a function such as @main",
    "block": "a block such as ^entry",
    "end": "the end of the line",
}


class Cursor:
    """Reads one line. `kind` and `value` are those of the token ahead, which starts in `column`."""

    def __init__(self, text: str, file: str, line: int) -> None:
        self.text, self.file, self.line = text, file, line
        self._next = 0
        self.advance()

    def advance(self) -> None:
        """Go to the next token."""
        match = _TOKEN.match(self.text, self._next)
        if match is not None and match.lastgroup is not None:
            self.kind = match.lastgroup
            self.value = match[self.kind]
            sigil = self.kind in ("register", "constant", "reference", "function", "block")
            self.column = match.start(self.kind) + (0 if sigil else 1)
            self._next = match.end()
            numeric = self.kind in ("number", "register", "constant", "reference")
            if numeric and len(self.value) > _MAX_NUMBER:
                raise self.error(f"a number of {len(self.value)} characters; shorten it")
            return
        rest = self.text[self._next :] if match is None else ""
        self.column = len(self.text) - len(rest.lstrip()) + 1
        self.kind, self.value, self._next = "end", "", len(self.text)
        if rest.strip():
            raise self.error(f"unexpected {rest.lstrip()[0]!r}")

    @property
    def location(self) -> Location:
        """Where the token ahead is."""
        return Location(self.file, self.line, self.column)

    def error(self, sentence: str, location: Location | None = None) -> BytecodeError:
        """An error at `location`, or at the token ahead."""
        return BytecodeError(sentence, location or self.location)

    @contextmanager
    def blaming(self, location: Location) -> Generator[None, None, None]:
        """Give errors that have no place this one."""
        try:
            yield
        except BytecodeError as error:
            raise BytecodeError(error.message, error.location or location) from None

    def skip(self, mark: str) -> bool:
        """Whether the token ahead is this mark; if so, go past it."""
        found = self.kind == "mark" and self.value == mark
        if found:
            self.advance()
        return found

    def skip_word(self, word: str) -> bool:
        """Whether the token ahead is this name; if so, go past it."""
        found = self.kind == "name" and self.value == word
        if found:
            self.advance()
        return found

    def take(self, kind: str) -> str:
        """The value of the token ahead, which must be of this kind."""
        if self.kind != kind:
            found = repr(self.value) if self.kind != "end" else "the end of the line"
            raise self.error(f"expected {_DESCRIPTIONS[kind]}, found {found}")
        value = self.value
        if kind != "end":
            self.advance()
        return value

    def expect(self, mark: str) -> None:
        """Go past this mark."""
        if not self.skip(mark):
            found = repr(self.value) if self.kind != "end" else "the end of the line"
            raise self.error(f"expected '{mark}', found {found}")

    def integer(self) -> int:
        """The decimal integer ahead."""
        if self.kind == "number" and not self.value.lstrip("-").isdigit():
            raise self.error(f"expected a decimal integer, found '{self.value}'")
        return int(self.take("number"))

    def list(self, opening: str, closing: str, item: Callable[[], T]) -> list[T]:
        """Items between two marks, separated by commas; there may be none."""
        self.expect(opening)
        out: list[T] = []
        while not self.skip(closing):
            if out:
                self.expect(",")
            out.append(item())
        return out

    def registers(self) -> tuple[int, ...]:
        """A list of registers, separated by commas; it may be empty."""
        out: list[int] = []
        while self.kind == "register":
            out.append(int(self.take("register")))
            if not self.skip(","):
                break
            if self.kind != "register":
                self.take("register")
        return tuple(out)
