"""What importing xDSL takes the compile server most of its start for, put off or done once.

Defining an operation with an assembly format parses the format, though who neither reads nor prints IR never uses it;
defining a dataclass compiles the text of each of its methods, in every process and often the same for several classes.
So formats wait, and code is kept as Python keeps that of modules. Both would be a few lines at home in xDSL and
Python (docs/upstream-gaps.md).
"""

from __future__ import annotations

import dataclasses
import marshal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from types import CodeType
from typing import Any, cast

from jitdialects.errors import Error
from jitdialects.runtime import pack_file
from jitdialects.runtime.engines.dlopen import write_whole

_ORIGIN = f"definitions {sys.version}"


@contextmanager
def quick_definitions(folder: Path | None = None) -> Generator[None]:
    """Define classes the quick way inside; they behave like others. For a process in which nobody else imports
    anything meanwhile. `folder`: where code is kept."""
    of_dataclasses, codes = cast(Any, dataclasses), _Codes(folder)
    of_dataclasses.exec = codes.execute
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
    codes.keep()


class _Codes:
    """Code by its text."""

    def __init__(self, folder: Path | None) -> None:
        self._path = folder and folder / f"definitions-{sys.hexversion:x}.codes"
        self._known: dict[str, CodeType] = {}
        self._has_more = False
        """Than the file."""
        with suppress(OSError, Error):  # what cannot be used is made again
            stored = self._path and pack_file.read(self._path, _ORIGIN)
            if stored:
                self._known = marshal.loads(stored[1])

    def execute(self, text: str, *names: Any) -> None:
        """As `exec` does."""
        code = self._known.get(text)
        if code is None:
            code = self._known[text] = compile(text, "<string>", "exec")
            self._has_more = True
        exec(code, *names)  # noqa: S102 (in the place of exec)

    def keep(self) -> None:
        """For the next process."""
        if self._path is not None and self._has_more:
            data = pack_file.encode(_ORIGIN, {}, marshal.dumps(self._known))
            with suppress(OSError, Error):
                write_whole(self._path, data)


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
