"""The kernel cache of a process: compiled code by what it was compiled from and for.

An entry never changes; other bytecode, another signature, numerics mode, feature level or compiler is
another key. The cache has a version that every change raises, so that who keeps kernels at hand knows
when to look again, and every entry has the version at which it came.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Protocol

from jitdialects.bytecode.program import Constant
from jitdialects.bytecode.signature import parse
from jitdialects.runtime.dispatch import Kernel, differences
from jitdialects.runtime.engines import Engine
from jitdialects.runtime.engines.dlopen import DlopenEngine
from jitdialects.runtime.messages import CompileReply


@dataclass(frozen=True)
class CacheKey:
    """Everything that compiled code depends on."""

    fingerprint: str
    """Of the bytecode of the function and of what it calls."""
    signature: str
    features: str
    compiler: str
    numerics: str = "strict"
    fuse: bool = True
    schedule: str = ""


@dataclass(eq=False)
class CacheEntry:
    """A kernel, the version of the cache at which it came, and how many calls it has served."""

    key: CacheKey
    kernel: Kernel
    version: int
    hits: int = 0


class User(Protocol):
    """Someone who keeps kernels of a cache at hand."""

    def forget_code(self) -> None:
        """Call none of them any more."""
        ...


@cache
def shared_engine() -> Engine:
    """The engine of the process, with one temporary folder for all code."""
    return DlopenEngine()


class KernelCache:
    """Kernels by key; safe to use from several threads. `engine` makes the bytes of code callable."""

    def __init__(self, engine: Engine | None = None) -> None:
        self.version = 0
        self.misses = 0
        """Calls past their threshold that found no code here."""
        self._engine = shared_engine() if engine is None else engine
        self._entries: dict[CacheKey, CacheEntry] = {}
        self._lock = threading.Lock()
        self.users: weakref.WeakSet[User] = weakref.WeakSet()
        """Who calls kernels without asking here each time."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[CacheEntry]:
        return iter(list(self._entries.values()))

    @property
    def hits(self) -> int:
        """Calls that the present entries have served."""
        return sum(entry.hits for entry in self)

    def find(self, key: CacheKey) -> CacheEntry | None:
        """The entry for exactly this key."""
        return self._entries.get(key)

    def store(
        self, key: CacheKey, reply: CompileReply, constants: Sequence[Constant] = ()
    ) -> CacheEntry:
        """Load the code of a reply and keep it; an entry that is there already wins. `constants` is the
        pool of the program."""
        library = self._engine.load(reply.library, key.signature)
        kernel = Kernel(parse(key.signature), reply, library, constants)
        with self._lock:
            if key not in self._entries:
                self.version += 1
                self._entries[key] = CacheEntry(key, kernel, self.version)
            return self._entries[key]

    def clear(self) -> None:
        """Forget everything. Code that is running stays loaded until it returns."""
        with self._lock:
            self._entries.clear()
            self.version += 1
        for user in list(self.users):
            user.forget_code()

    def after_fork(self) -> None:
        """Another thread of the parent may have held the lock."""
        self._lock = threading.Lock()

    def explain(
        self, key: CacheKey, values: Sequence[int | None] = (), names: Sequence[str] = ()
    ) -> str:
        """Why a call of the exact signature in `key` finds no code: what differs, entry by entry.

        `values`: the integer scalars among its arguments, None for the others; `names`: what people call
        the arguments.
        """
        lines: list[str] = []
        for entry in self:
            if entry.key.fingerprint != key.fingerprint:
                continue
            found = list(_field_differences(key, entry.key))
            found += differences(entry.kernel, parse(key.signature), values, names)
            lines.append(f"{entry.key.signature}: {'; '.join(found) or 'fits now'}")
        if not lines:
            return f"no entry for this bytecode (fingerprint {key.fingerprint[:8]})"
        return "\n".join(lines)


def _field_differences(wanted: CacheKey, entry: CacheKey) -> Iterator[str]:
    for each in fields(CacheKey):
        x, y = getattr(wanted, each.name), getattr(entry, each.name)
        if x != y and each.name != "signature":
            yield f"{each.name}: {x}, entry has {y}"


default_cache = KernelCache()
"""The cache of the process."""
