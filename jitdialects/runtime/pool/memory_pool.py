"""Requests to a pool: reference counts, the deferred list, arrays, threads and forks."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
import threading
import weakref
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from jitdialects.errors import PoolError
from jitdialects.runtime.pool.arrays import lease_type
from jitdialects.runtime.pool.check import faults
from jitdialects.runtime.pool.layout import (
    ADDRESS,
    CAPACITY,
    COARSE,
    COUNT,
    DEFERRED,
    EXACT,
    NEXT,
    RECORD_WORDS,
    REQUESTED,
    REQUESTED_BYTES,
    REQUESTS,
    kind_of,
)
from jitdialects.runtime.pool.report import (
    PoolStatistics,
    SizeCount,
    advice,
    sizes,
    statistics,
)
from jitdialects.runtime.pool.shelf import SHELVED, stock_of
from jitdialects.runtime.pool.store import Store
from jitdialects.runtime.pool.system import SYSTEM, Memory
from jitdialects.runtime.pool.trim import trim

if TYPE_CHECKING:
    from jitdialects.runtime.pool.debug import Leak, Ledger
    from jitdialects.runtime.pool.trace import Recorder

CLASS_TABLES = "fine", "coarse"


class MemoryPool(Store):
    """A pool with its own state; safe to use from several threads and after a fork.

    `limit` bounds the bytes had from the system: at the limit free blocks go back, then `PoolError` is
    raised and the pool stays as it was. `classes` is the table of size classes, `debug` looks for misuse (see
    `pool.debug`), `memory` is where pages come from. Signal handlers must not ask for memory: they may run in the
    middle of a request, which then waits for itself.
    """

    def __init__(
        self,
        limit: int | None = None,
        classes: str = "fine",
        debug: bool = False,
        memory: Memory = SYSTEM,
    ) -> None:
        super().__init__(_checked_limit(limit), _is_coarse(classes), memory)
        self._lock = threading.Lock()
        self.leave = self.mailbox.append
        """`release` for destructors: at a safe point."""
        self.ledger: Ledger | None = None
        self.recorder: Recorder | None = None
        self.debug = debug
        _pools.add(self)

    # ---- options, to be changed at any time ----------------------------------------------------

    @property
    def limit(self) -> int | None:
        """Most bytes from the system; a new limit trims the pool if it has more."""
        return self.state.limit or None

    @limit.setter
    def limit(self, limit: int | None) -> None:
        with self._lock:
            self.state.limit = _checked_limit(limit) or 0
            if limit and self.state.reserved_bytes > limit:
                trim(self)

    @property
    def classes(self) -> str:
        """The table of size classes that requests take: "fine" or "coarse"."""
        return CLASS_TABLES[self.head[COARSE]]

    @classes.setter
    def classes(self, classes: str) -> None:
        self.state.coarse = _is_coarse(classes)
        self.shelf.choose_classes(_is_coarse(classes))

    @property
    def debug(self) -> bool:
        """Whether blocks have owners, poison and red zones: what was given out before has none."""
        return self.ledger is not None

    @debug.setter
    def debug(self, debug: bool) -> None:
        from jitdialects.runtime.pool.debug import Ledger

        with self._lock:  # who holds it goes on with what it found
            if debug != self.debug:
                self.ledger = Ledger() if debug else None
                self._become_watched()

    def record(self, path: str | Path) -> None:
        """Write all requests from now on to `path`, until `stop_recording` or the end of the process, for
        `jit-pool replay`. A file that cannot be written later ends the recording with a warning."""
        from jitdialects.runtime.pool.trace import Recorder

        self.stop_recording()
        recorder = Recorder(Path(path))
        with self._lock:
            self.shelf.watch(True)
            self.clear_shelf()
            for block in np.flatnonzero(self.held()).tolist():
                recorder.add(f"+{block} {self.table[block * RECORD_WORDS + REQUESTED]}")
            self.recorder = recorder
            self._become_watched()

    def stop_recording(self) -> None:
        """End the recording, if there is one."""
        recorder, self.recorder = self.recorder, None
        if recorder is not None:
            self._become_watched()
            self.state.trace_failures += not recorder.flush()
            recorder.close()

    def _become_watched(self) -> None:
        """Be of the class that watches, or of the one that does not."""
        from jitdialects.runtime.pool.watched import WatchedPool

        watched = self.ledger is not None or self.recorder is not None
        pool: Any = self
        pool.__class__ = WatchedPool if watched else MemoryPool
        self.shelf.watch(watched)

    def leaks(self) -> list[Leak]:
        """The blocks that are live, largest first; with their owners if they were given out in debug mode."""
        from jitdialects.runtime.pool.debug import Leak

        with self._lock:
            entries = self.ledger.entries if self.ledger is not None else {}
            counts = self.rows()[:, COUNT]
            is_live = (counts > 0) & (counts != SHELVED)
            live = set(np.flatnonzero(is_live).tolist()) - set(self.mailbox)
            found: list[Leak] = []
            for block in live:
                entry, size = entries.get(block), self.table[block * RECORD_WORDS + REQUESTED]
                age = self.head[REQUESTS] - entry.request if entry is not None else None
                found.append(Leak(block, size, age, entry.owner if entry is not None else None))
        return sorted(found, key=lambda leak: (-leak.size, leak.block))

    # ---- requests ------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        """A block of at least `size` bytes with reference count 1; returns its record number."""
        if size < 0:
            raise PoolError(f"MemoryPool: a request must not be negative, got {size} bytes")
        with self._lock:
            head, table = self.head, self.table
            kind = kind_of(size, head[COARSE])
            if kind == EXACT:
                block = self.take_exact(size) or self.fresh(kind, size)
            elif block := head[kind]:
                head[kind] = table[block * RECORD_WORDS + NEXT]
            else:
                block = self.take_from_shelf(kind, size) or self.fresh(kind, size)
            at = block * RECORD_WORDS
            table[at + COUNT] = 1
            table[at + REQUESTED] = size
            head[REQUESTS] += 1
            head[REQUESTED_BYTES] += size
            return block

    def address(self, block: int) -> int:
        """Where the block begins; a multiple of 64."""
        return self.table[block * RECORD_WORDS + ADDRESS]

    def retain(self, block: int) -> None:
        """One more reference to a live block."""
        with self._lock:
            self._check_live(block, "retain")
            self.table[block * RECORD_WORDS + COUNT] += 1

    def release(self, block: int) -> None:
        """One reference less; the last one sends the block to the deferred list."""
        with self._lock:
            self._check_live(block, "release")
            table, at = self.table, block * RECORD_WORDS
            table[at + COUNT] -= 1
            if not table[at + COUNT]:
                table[at + NEXT] = self.head[DEFERRED]
                self.head[DEFERRED] = block

    def _check_live(self, block: int, who: str) -> None:
        inside = 0 < block < self.state.records
        if not inside or self.table[block * RECORD_WORDS + COUNT] in (0, SHELVED):
            owner = self.ledger.name(block) if self.ledger is not None else ""
            raise PoolError(
                f"MemoryPool: {who} of block {block}, which is not live"
                f"{f' (the last to have it was {owner})' if owner else ''}; "
                "release each reference exactly once"
            )

    def recycle(self, block: int) -> None:
        """`release` of a block with which nothing computes: after the last reference it is free at once."""
        with self._lock:
            self._check_live(block, "recycle")
            self._recycle(block)

    def safe_point(self) -> None:
        """Nothing computes with released blocks any more: make them available."""
        if self.mailbox or self.head[DEFERRED] or self.shelf.was_closed:
            with self._lock:
                self._drain()

    def _drain(self) -> None:
        head, table = self.head, self.table
        self._empty_mailbox()
        while block := head[DEFERRED]:
            head[DEFERRED] = table[block * RECORD_WORDS + NEXT]
            self._free(block)

    def empty(self, shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
        """An uninitialised C-contiguous array; its block is released when the last view goes."""
        element = np.dtype(dtype)
        return self.array(shape, element, prod(shape) * element.itemsize)

    def array(self, shape: Sequence[int], dtype: np.dtype[Any], size: int) -> NDArray[Any]:
        """`empty` for who knows the size in bytes."""
        block = self.allocate(size)
        at = block * RECORD_WORDS
        lease = lease_type(self.table[at + CAPACITY]).from_address(self.table[at])
        lease.pool = self
        lease.block = block
        buffer: Any = lease  # NumPy's type hints do not know ctypes structures
        try:
            return np.ndarray(shape, dtype, buffer)
        except ValueError:  # sizes that overflow beside a size of 0; the lease gives the block back
            raise PoolError(f"MemoryPool: no array can have the shape {tuple(shape)}") from None

    def stock(self, size: int) -> None:
        """Put blocks for requests of `size` bytes where machine code finds them; fewer near a limit."""
        if self.shelf.is_open:
            with self._lock, contextlib.suppress(PoolError):
                kind = kind_of(size, self.head[COARSE])
                for _ in range(stock_of(kind)):
                    self.put_on_shelf(kind, size)

    def counts(self) -> tuple[int, int, int, int]:
        """Requests, those of them served from memory that was new, and the bytes of both."""
        state = self.state
        requests, bytes, fresh, fresh_bytes = self.shelf.counts()
        return (
            state.requests + requests,
            state.fresh_requests + fresh,
            state.requested_bytes + bytes,
            state.fresh_bytes + fresh_bytes,
        )

    def trim(self) -> int:
        """Give everything back to the system that no live or deferred block needs; the bytes that were."""
        with self._lock:
            return trim(self)

    def statistics(self) -> PoolStatistics:
        """Counters since the pool was made, and its present state."""
        with self._lock:
            return statistics(self)

    def advice(self) -> list[str]:
        """Sentences that say what would lessen fragmentation and was not done yet."""
        with self._lock:
            return advice(self)

    def sizes(self) -> list[SizeCount]:
        """The blocks by capacity: a map of the pool."""
        with self._lock:
            return sizes(self)

    def check(self) -> None:
        """Walk all lists and records; `PoolError` if they contradict each other. For tests."""
        with self._lock:
            found = faults(self)
        if found:
            raise PoolError(f"MemoryPool: the state is damaged: {'; '.join(found)}")

    # ---- forks ---------------------------------------------------------------------------------

    def hold(self) -> None:
        """Take the lock, so that a fork sees a consistent state."""
        self._lock.acquire()

    def leave_recording(self) -> None:
        """End the recording without another write: the file is full, or that of the parent of a forked process."""
        recorder, self.recorder = self.recorder, None
        if recorder is not None:
            self._become_watched()
            recorder.close()

    def let_go(self) -> None:
        """Undo `hold`, in the parent and in the child."""
        self._lock.release()


def _checked_limit(limit: int | None) -> int | None:
    if limit is not None and (not isinstance(cast(object, limit), int) or limit < 1):
        raise PoolError(
            f"MemoryPool: limit must be at least 1 byte, got {limit!r}; None is no limit"
        )
    return limit


def _is_coarse(classes: str) -> bool:
    if classes not in CLASS_TABLES:
        raise PoolError(
            f"MemoryPool: classes must be one of {', '.join(CLASS_TABLES)}, got {classes!r}"
        )
    return classes == "coarse"


# ---- the process ---------------------------------------------------------------------------------

_pools: weakref.WeakSet[MemoryPool] = weakref.WeakSet()
_held: list[MemoryPool] = []
_forking = threading.Lock()
"""Two threads that fork at a time would hold each other's pools."""


def _before_fork() -> None:
    _forking.acquire()
    _held.extend(_pools)
    for pool in _held:
        pool.hold()


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().let_go()
    _forking.release()


def _after_fork_in_child() -> None:
    for pool in _held:
        pool.leave_recording()
    _after_fork_in_parent()


def _at_exit() -> None:
    for pool in list(_pools):
        pool.stop_recording()
        if pool.ledger is not None:
            from jitdialects.runtime.pool.debug import last_words

            gc.collect()
            if said := last_words(pool):
                print(said, file=sys.stderr)


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
atexit.register(_at_exit)
