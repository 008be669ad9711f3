"""What importing xDSL takes the compile server most of its start for, put off or done once.

Defining an operation with an assembly format parses the format, though who neither reads nor prints IR never uses it;
defining a dataclass compiles the text of each of its methods, though nearly half of them were compiled before for
another class. Both are a few lines at home in xDSL and Python (docs/upstream-gaps.md).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache, cached_property, partial
from types import CodeType
from typing import Any, cast


@contextmanager
def quick_definitions() -> Generator[None]:
    """Define classes the quick way inside; they behave like others. For a process in which nobody else imports
    anything meanwhile."""
    of_dataclasses = cast(Any, dataclasses)
    of_dataclasses.exec = _execute
    try:
        from xdsl.irdl.declarative_assembly_format import FormatProgram

        program = cast(Any, FormatProgram)
        parse, found = program.from_str, vars(FormatProgram)["from_str"]
        program.from_str = partial(_Format, parse)
        try:
            yield
        finally:
            program.from_str = found
    finally:
        del of_dataclasses.exec
        _compiled.cache_clear()


def _execute(text: str, *names: Any) -> None:
    """As `exec` does."""
    exec(_compiled(text), *names)  # noqa: S102 (in the place of exec)


@cache
def _compiled(text: str) -> CodeType:
    return compile(text, "<string>", "exec")


class _Format:
    """A format that is parsed when it is used."""

    def __init__(self, parse: Callable[..., Any], *source: Any) -> None:
        self._parse, self._source = parse, source

    @cached_property
    def _program(self) -> Any:
        return self._parse(*self._source)

    def parse(self, *arguments: Any) -> Any:
        """Read an operation."""
        return self._program.parse(*arguments)

    def print(self, *arguments: Any) -> Any:
        """Print one."""
        return self._program.print(*arguments)
