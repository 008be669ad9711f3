"""A pool that somebody watches: in debug mode, or while its requests are recorded.

`MemoryPool` becomes one of these (its class changes) and back, so that pools that nobody watches pay nothing. A
method may still run after the change back: so it names `MemoryPool` where others would say `super()`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jitdialects.errors import PoolError
from jitdialects.runtime.pool.debug import RED_ZONE
from jitdialects.runtime.pool.layout import (
    ADDRESS,
    CAPACITY,
    COUNT,
    RECORD_WORDS,
    REQUESTED,
    REQUESTS,
)
from jitdialects.runtime.pool.memory_pool import MemoryPool

MOST_NAMED = 5
"""Live blocks that an error names."""


class WatchedPool(MemoryPool):
    """See `MemoryPool.debug` and `MemoryPool.record`."""

    def allocate(self, size: int) -> int:
        """As of `MemoryPool`; in debug mode `PoolError` also if the block was written to after its release."""
        ledger, recorder = self.ledger, self.recorder
        try:
            block = MemoryPool.allocate(
                self, size if ledger is None or size < 0 else size + RED_ZONE
            )
        except PoolError:
            if recorder is not None and size >= 0:
                recorder.add(f"!{size}")
            raise
        at = block * RECORD_WORDS
        if ledger is not self.ledger:
            ledger = None  # it has ended, and does not know who had the block since
        if ledger is not None:
            address, capacity = self.table[at + ADDRESS], self.table[at + CAPACITY]
            if not ledger.give(block, address, capacity, size, self.head[REQUESTS]):
                with self._lock:
                    self.table[at + COUNT] = 0
                    MemoryPool._free(self, block)
                ledger.tell()
            self.table[at + REQUESTED] = size
        if recorder is not None:
            owner = "" if ledger is None else f" {ledger.name(block)}"
            recorder.add(f"+{block} {size}{owner}")
            if recorder.is_full and not recorder.flush():
                self.state.trace_failures += 1
                self.leave_recording()
        return block

    def _free(self, block: int) -> None:
        if self.ledger is not None:
            at = block * RECORD_WORDS
            self.ledger.take_back(block, self.table[at + ADDRESS], self.table[at + CAPACITY])
        if (recorder := self.recorder) is not None:
            recorder.add(f"-{block}")
        MemoryPool._free(self, block)

    def owners(self, held: NDArray[np.bool_]) -> list[str] | None:
        """As of `Store`."""
        if self.ledger is None:
            return None
        sizes = self.rows()[:, REQUESTED] * held
        count = int(held.sum())
        largest = np.argsort(sizes)[::-1][: min(MOST_NAMED, count)].tolist()
        names = [f"{sizes[b]} bytes ({self.ledger.name(b) or 'owner unknown'})" for b in largest]
        return names + ["..."] * (len(names) < count)

    def reshaped(self, kind: int, capacity: int) -> int:
        """As of `Store`; not in debug mode, where free blocks are full of poison."""
        return 0 if self.ledger is not None else MemoryPool.reshaped(self, kind, capacity)

    def discard(self, block: int) -> None:
        """As of `Store`."""
        if self.ledger is not None:
            self.ledger.forget(block)
        MemoryPool.discard(self, block)

    def recycle(self, block: int) -> None:
        """As of `MemoryPool`; in debug mode `PoolError` also if its owner wrote beyond it."""
        MemoryPool.recycle(self, block)
        if (ledger := self.ledger) is not None:
            ledger.tell()

    def safe_point(self) -> None:
        """As of `MemoryPool`; in debug mode `PoolError` also if the owner of a block wrote beyond it."""
        MemoryPool.safe_point(self)
        if (ledger := self.ledger) is not None:
            ledger.tell()

    def check(self) -> None:
        """As of `MemoryPool`; in debug mode also that nobody wrote to blocks that are free."""
        MemoryPool.check(self)
        if (ledger := self.ledger) is not None:
            with self._lock:
                if ledger is not self.ledger:
                    return
                for block in sorted(ledger.poisoned):
                    at = block * RECORD_WORDS
                    if self.table[at + COUNT]:  # another thread is just getting it
                        continue
                    ledger.touched(block, self.table[at + ADDRESS], self.table[at + CAPACITY])
            ledger.tell()
