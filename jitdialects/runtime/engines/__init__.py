"""Ways from compiled code to callable addresses. `Engine` is what the runtime asks of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class LibraryFile:
    """A file that begins with a library, as it was when that was verified."""

    path: str
    inode: int


class LoadedLibrary(Protocol):
    """Code in this process. No call may be running when it is closed."""

    def address(self, symbol: str) -> int:
        """Address of an exported symbol. Raises `LoadError` if there is none of that name."""
        ...

    def close(self) -> None:
        """Unload the code; a second call does nothing."""
        ...


class Engine(Protocol):
    """Loads the bytes that code generation made."""

    def load(self, data: bytes, name: str, file: LibraryFile | None = None) -> LoadedLibrary:
        """Make `data` callable; `name` is what debuggers and profilers show. `file` has it already, so that
        no copy need be written."""
        ...
