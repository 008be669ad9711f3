"""The kernel cache of a process: compiled code by what it was compiled from and for.

An entry never changes; other bytecode, another signature, numerics mode, feature level or compiler is
another key. The cache has a version that every change raises, so that who keeps kernels at hand knows
when to look again, and every entry has the version at which it came.

Code beyond `config.code_cap` bytes is evicted, what was called least recently first, and unloaded when the
last call that runs in it returns. Below the process there may be the disk and storage that machines share:
`recall` loads what is on disk, `fetch` asks every level, `keep` and `share` store.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

from jitdialects.bytecode.program import Constant
from jitdialects.bytecode.signature import parse
from jitdialects.config import config
from jitdialects.errors import CompileError, Error
from jitdialects.runtime.cache.disk import DiskLevel, Found
from jitdialects.runtime.cache.key import CacheKey
from jitdialects.runtime.cache.shared import SharedLevel
from jitdialects.runtime.dispatch import Kernel, differences
from jitdialects.runtime.engines import Engine, LoadedLibrary
from jitdialects.runtime.engines.choice import shared_engine
from jitdialects.runtime.indicators import indicators
from jitdialects.runtime.messages import CompileReply, without_library
from jitdialects.runtime.weak import listed

OVERHEAD = 16 << 10
"""Bytes that a kernel takes beside its library: its tables in the dynamic linker, its Python objects."""
_PAGE = 4096


@dataclass(eq=False)
class CacheEntry:
    """A kernel, the version of the cache at which it came, and how many calls it has served."""

    key: CacheKey
    kernel: Kernel | None
    """None once the code was evicted; who calls it holds a reference of his own."""
    version: int
    source: str = "compiler"
    """Where it came from: compiler, disk, or shared storage."""
    bytes: int = 0
    hits: int = 0
    used: int = 0
    """The last round of evictions before which it was called."""
    hits_then: int = 0


class User(Protocol):
    """Someone who keeps kernels of a cache at hand."""

    def forget_code(self, gone: Collection[CacheEntry]) -> None:
        """Call none of these kernels any more."""
        ...


class KernelCache:
    """Kernels by key; safe to use from several threads. `engine` makes the bytes of code callable; `disk`
    is what processes share, `shared` what machines share, None: nothing. At most `code_cap` bytes stay
    loaded (None: `config.code_cap`).
    """

    def __init__(
        self,
        engine: Engine | None = None,
        disk: DiskLevel | None = None,
        shared: SharedLevel | None = None,
        code_cap: int | None = None,
    ) -> None:
        self.version = 0
        self.misses = 0
        """Calls past their threshold that found no code here."""
        self.evictions = 0
        self.disk = disk
        self.shared = shared
        self.bytes = 0
        """Of the code that is loaded."""
        self._engine = shared_engine() if engine is None else engine
        self._entries: dict[CacheKey, CacheEntry] = {}
        self._cap = code_cap
        self._round = 0
        self._preferred: dict[CacheKey, CacheKey] = {}
        """For code that was let go for other code with the same results: the key of that."""
        self._lock = threading.RLock()
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

    @property
    def code_cap(self) -> int:
        """Bytes of code that may stay loaded."""
        return config.code_cap if self._cap is None else self._cap

    def find(self, key: CacheKey) -> CacheEntry | None:
        """The entry for exactly this key, or the one that was found to be faster."""
        entry = self._entries.get(key)
        while entry is None and key in self._preferred:
            key = self._preferred[key]
            entry = self._entries.get(key)
        return entry

    def find_all(self, keys: Iterable[CacheKey]) -> list[CacheEntry]:
        """The entries for these keys, each once."""
        found = dict.fromkeys(map(self.find, keys))
        return [entry for entry in found if entry is not None]

    def store(
        self, key: CacheKey, reply: CompileReply, constants: Sequence[Constant] = ()
    ) -> CacheEntry:
        """Load the code of a reply and keep it; an entry that is there already wins. `constants` is the
        pool of the program."""
        library = self._engine.load(reply.library, key.signature)
        return self._add(key, reply, constants, library, "compiler")

    def _add(
        self,
        key: CacheKey,
        reply: CompileReply,
        constants: Sequence[Constant],
        library: LoadedLibrary,
        source: str,
    ) -> CacheEntry:
        natives = {name: _one_copy(name, data) for name, data in reply.natives.items()}
        size = OVERHEAD + -(-len(reply.library) // _PAGE) * _PAGE
        kept = replace(reply, library=b"", natives=natives)
        kernel = Kernel(parse(key.signature), kept, library, constants)
        with self._lock:
            if key not in self._entries:
                self.version += 1
                entry = CacheEntry(key, kernel, self.version, source, size, used=self._round)
                self._entries[key] = entry
                self._preferred.pop(key, None)
                self.bytes += size
                if self.bytes > self.code_cap:
                    self._evict(entry)
            return self._entries[key]

    # ---- eviction

    def _evict(self, newest: CacheEntry) -> None:
        """Let go what was called least recently, an eighth of the cap at once: finding out who was called
        looks at every counter. The newest entry stays, however large it is."""
        indicators.collect()
        self._round += 1
        for entry in self._entries.values():
            if entry.hits != entry.hits_then:
                entry.used, entry.hits_then = self._round, entry.hits
        goal = self.code_cap - self.code_cap // 8
        gone: list[CacheEntry] = []
        for entry in sorted(self._entries.values(), key=lambda e: (e.used, e.version)):
            if self.bytes <= goal:
                break
            if entry is not newest:
                gone.append(entry)
                self.bytes -= entry.bytes
        if gone:
            self.evictions += len(gone)
            self._let_go(gone)

    def _let_go(self, gone: Sequence[CacheEntry]) -> None:
        for entry in gone:
            self._entries.pop(entry.key, None)
            entry.kernel = None
        self.version += 1
        entries = set(gone)
        for user in listed(lambda: self.users):
            user.forget_code(entries)

    def settle(self, kept: CacheEntry, left: CacheEntry, measured: str) -> bool:
        """Of two entries for the same calls let one go, for `kept`, here and on disk; `measured` says why. False if
        either is gone already."""
        with self._lock:
            gone = any(self._entries.get(entry.key) is not entry for entry in (kept, left))
            if gone or kept is left:
                return False
            self._preferred.pop(kept.key, None)
            self._preferred[left.key] = kept.key
            self.bytes -= left.bytes
            self._let_go([left])
        if self.disk is not None:
            self.disk.settle(kept.key, left.key, measured)
        return True

    def drop(self, entry: CacheEntry) -> None:
        """Let go what nobody calls. On disk it stays."""
        with self._lock:
            if self._entries.get(entry.key) is entry:
                self.bytes -= entry.bytes
                self._let_go([entry])

    def clear(self) -> None:
        """Forget everything that is loaded. Code that is running stays until it returns; what is on disk
        and in shared storage stays there, and is found there again."""
        with self._lock:
            self.bytes = 0
            self._preferred.clear()
            self._let_go(list(self._entries.values()))

    def after_fork(self) -> None:
        """Another thread of the parent may have held the lock."""
        self._lock = threading.RLock()
        if self.disk is not None:
            self.disk.after_fork()
        if self.shared is not None:
            self.shared.after_fork()

    # ---- other levels

    def recall(
        self,
        wanted: CacheKey,
        constants: Sequence[Constant] = (),
        order: Sequence[int] = (),
        *,
        general: bool = True,
    ) -> list[CacheKey]:
        """Load what is on disk for a call of exactly the signature in `wanted`, or else, if `general`, for
        all sizes of such calls; the keys of what is here now. `order`: the numbers of the constants in the
        order of the fingerprint."""
        if self.disk is None or config.dump is not None:  # who wants texts of stages compiles
            return []
        found = self.disk.find(wanted, general=general)
        return [f.stored.key for f in found if self._load(f, constants, order) is not None]

    def fetch(
        self, key: CacheKey, constants: Sequence[Constant] = (), order: Sequence[int] = ()
    ) -> bool:
        """Whether there is code for exactly this key now, loaded from another level. Raises
        `CompileError` where it is known there that there cannot be any."""
        if config.dump is not None:
            return False
        for found in [] if self.disk is None else self.disk.find(key, general=False):
            error = found.stored.reply.error
            if found.stored.key == key and error is not None:
                raise CompileError(error)
            if found.stored.key == key and self._load(found, constants, order) is not None:
                return True
        return key in self.fetch_shared(key, constants, order, general=False)

    def fetch_shared(
        self,
        wanted: CacheKey,
        constants: Sequence[Constant] = (),
        order: Sequence[int] = (),
        *,
        general: bool = True,
    ) -> list[CacheKey]:
        """As `recall`, from storage that machines share; what is found there is kept on disk, too."""
        if self.shared is None or config.dump is not None:
            return []
        keys: list[CacheKey] = []
        for stored in self.shared.find(wanted, general=general):
            key, reply = stored.key, stored.reply
            file = self.disk and self.disk.put(key, stored.level, stored.frame, reply.library)
            if self._load(Found(stored, file), constants, order, "shared") is not None:
                keys.append(key)
        return keys

    def share(
        self, key: CacheKey, data: bytes, reply: CompileReply, order: Sequence[int] = ()
    ) -> None:
        """Let other machines have a reply, whose bytes are `data`; not code that is on trial here."""
        if (
            key.balance == 1.0
            and self.shared is not None
            and self.shared.is_on
            and _is_portable(reply, order)
        ):
            frame = without_library(data, list(order).index)
            self.shared.put(key, reply.level or key.features, frame, reply.library)

    def keep(
        self,
        key: CacheKey,
        data: bytes,
        reply: CompileReply,
        constants: Sequence[Constant] = (),
        order: Sequence[int] = (),
    ) -> None:
        """Store a reply, whose bytes are `data`, here and on disk. A failure is kept if every attempt would
        end in it."""
        file = None
        stable = reply.final or _is_portable(reply, order)
        if self.disk is not None and stable:
            frame = without_library(data, list(order).index)
            file = self.disk.put(key, reply.level or key.features, frame, reply.library)
        if reply.error is None:
            library = self._engine.load(reply.library, key.signature, file)
            self._add(key, reply, constants, library, "compiler")

    def compiling(self, key: CacheKey) -> AbstractContextManager[None]:
        """While `key` is compiled: so that other processes wait for the code instead of making it, too."""
        return nullcontext() if self.disk is None else self.disk.compiling(key)

    def _load(
        self,
        found: Found,
        constants: Sequence[Constant],
        order: Sequence[int],
        source: str = "disk",
    ) -> CacheEntry | None:
        """Make an entry of another level callable; None where that fails."""
        stored = found.stored
        known = self._entries.get(stored.key)
        if known is not None or stored.reply.error is not None:
            return known
        try:
            facts = tuple(replace(c, index=order[c.index]) for c in stored.reply.constants)
            reply = replace(stored.reply, constants=facts)
            library = self._engine.load(reply.library, stored.key.signature, found.file)
            return self._add(stored.key, reply, constants, library, source)
        except (Error, OSError, LookupError, ValueError) as error:
            level = self.shared if source == "shared" else self.disk
            if level is not None:
                text = f"the cache entry {stored.key.file_name} cannot be loaded: {error}"
                level.events.problem("unreadable", text)
            return None

    # ---- what it says

    def statistics(self) -> dict[str, Any]:
        """Counts and bytes of every level as plain data."""
        found: dict[str, Any] = {
            "entries": len(self),
            "bytes": self.bytes,
            "cap": self.code_cap,
            "evictions": self.evictions,
        }
        if self.disk is not None:
            found["disk"] = self.disk.events.as_dict("hits", "misses", "stores", "write failures")
        if self.shared is not None and config.shared_cache is not None:
            found["shared"] = self.shared.events.as_dict(
                "hits", "misses", "stores", "write failures"
            )
        return found

    def explain(
        self, key: CacheKey, values: Sequence[int | None] = (), names: Sequence[str] = ()
    ) -> str:
        """Why a call of the exact signature in `key` finds no code: what differs, entry by entry.

        `values`: the integer scalars among its arguments, None for the others; `names`: what people call
        the arguments.
        """
        lines: list[str] = []
        for entry in self:
            kernel = entry.kernel
            if entry.key.fingerprint != key.fingerprint or kernel is None:
                continue
            found = list(field_differences(key, entry.key))
            found += differences(kernel, parse(key.signature), values, names)
            lines.append(f"{entry.key.signature}: {'; '.join(found) or 'fits now'}")
        if not lines:
            return f"no entry for this bytecode (fingerprint {key.fingerprint[:8]})"
        return "\n".join(lines)


def _is_portable(reply: CompileReply, order: Sequence[int]) -> bool:
    """Whether a reply makes sense to another program with this code."""
    return reply.error is None and {c.index for c in reply.constants} <= set(order)


_natives: dict[str, bytes] = {}


def _one_copy(name: str, data: bytes) -> bytes:
    """Equal bytes as one object: every reply brings the libraries of the runtime."""
    known = _natives.setdefault(name, data)
    return known if known == data else data


def field_differences(wanted: CacheKey, entry: CacheKey) -> Iterator[str]:
    """What differs between keys, but for the signature and what only judges of fusion were told."""
    for each in fields(CacheKey):
        x, y = getattr(wanted, each.name), getattr(entry, each.name)
        if x != y and each.name not in ("signature", "typical", "balance"):
            yield f"{each.name}: {x}, entry has {y}"


default_cache = KernelCache(disk=DiskLevel(), shared=SharedLevel())
"""The cache of the process."""
