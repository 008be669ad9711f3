"""Which engine loads code: `config.engine`, or the first that works on this machine.

Files come first, since debuggers and profilers show their names; then anonymous memory files, for folders from
which nothing may be executed or that cannot be written; then memory of our own. The dynamic linker looks at
all that it has loaded, for each library anew: beyond `MANY` of them, code goes where that costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from jitdialects.config import config
from jitdialects.runtime.engines import Engine, LibraryFile, LoadedLibrary
from jitdialects.runtime.engines.dlopen import DlopenEngine, LoadError, MemoryEngine, open_libraries
from jitdialects.runtime.engines.mapped import MappedEngine

MANY = 1000
"""Open libraries from which on one more takes longer through the dynamic linker than without."""
_ENGINES: dict[str, Callable[[], Engine]] = {
    "file": DlopenEngine,
    "memory": MemoryEngine,
    "mapped": MappedEngine,
}


class ChosenEngine:
    """Loads libraries in whatever way is right here."""

    def __init__(self, engines: dict[str, Callable[[], Engine]] | None = None) -> None:
        self._makers = _ENGINES if engines is None else engines
        self._made: dict[str, Engine] = {}
        self._usable = list(self._makers)

    def load(self, data: bytes, name: str, file: LibraryFile | None = None) -> LoadedLibrary:
        """Load the library `data`. Raises `LoadError`, which says why, where no engine takes it."""
        refused: list[str] = []
        for engine in self._order():
            try:
                if engine not in self._made:
                    self._made[engine] = self._makers[engine]()
                library = self._made[engine].load(data, name, file)
            except (LoadError, OSError) as error:
                refused.append(f"{engine}: {error}")
            else:
                if refused and config.engine == "auto":
                    # what refused this library refuses the next: folders seldom change their ways
                    self._usable = self._usable[len(refused) :]
                return library
        raise LoadError(f"no engine loads {name} ({'; '.join(refused)})")

    def _order(self) -> list[str]:
        if config.engine != "auto":
            return [config.engine]
        return self._usable[-1:] if open_libraries() >= MANY else self._usable


@cache
def shared_engine() -> Engine:
    """The engine of the process."""
    return ChosenEngine()
