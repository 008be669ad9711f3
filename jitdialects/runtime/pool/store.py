"""Where the blocks of a pool come from and go to: slabs, mappings, lists of free blocks.

- *classes*: powers of two from 2**6 to 2**26 bytes, one free list each. Blocks of up to half a slab are
  cut from slabs of 256 KiB, larger ones are mapped one by one.
- *exact*: a request that would waste more than a quarter of its class block, or that is larger than
  2**26, gets a mapping of its own, rounded to pages (where that is indeed smaller). After release it
  waits in a list sorted by size; a request takes the smallest that fits if at most a quarter is wasted.
"""

from __future__ import annotations

import ctypes
import mmap
import weakref
from collections import deque
from typing import cast

from jitdialects.errors import PoolError
from jitdialects.runtime.pool.layout import (
    ADDRESS,
    CAPACITY,
    CLASSES,
    COUNT,
    EXACT,
    IS_SLAB,
    KIND,
    MAX_RECORDS,
    NEXT,
    RECORD_WORDS,
    SLAB,
    SLAB_BYTES,
    SLAB_SHARE,
    SMALLEST,
    UNUSED,
    PoolState,
    page_rounded,
)
from jitdialects.runtime.pool.report import exhausted
from jitdialects.runtime.pool.system import MAP_FLAGS, MAP_NORESERVE, map_memory, unmap


class Store:
    """The native state of one pool. Whoever calls a method holds the pool's lock."""

    def __init__(self, limit: int | None) -> None:
        if limit is not None and (not isinstance(cast(object, limit), int) or limit < 1):
            raise PoolError(
                f"MemoryPool: limit must be at least 1 byte, got {limit!r}; None is no limit"
            )
        head = -(-ctypes.sizeof(PoolState) // 64) * 64
        flags = MAP_FLAGS | MAP_NORESERVE
        self._memory = mmap.mmap(-1, head + MAX_RECORDS * RECORD_WORDS * 8, flags)
        self.state = PoolState.from_buffer(self._memory)
        self.head: memoryview[int] = memoryview(self._memory)[:head].cast("Q")
        self.table: memoryview[int] = memoryview(self._memory)[head:].cast("Q")
        self.state.records = 1
        self.state.limit = limit or 0
        self.mailbox: deque[int] = deque()
        """Blocks that destructors gave back, which run anywhere, also inside the lock."""
        weakref.finalize(self, _unmap_all, self.table, self.state).atexit = False

    def _fresh(self, kind: int, size: int) -> int:
        """A record with memory that was never used; raises before anything is changed."""
        capacity = page_rounded(size) if kind == EXACT else 1 << (kind + SMALLEST)
        if kind == EXACT or 2 * capacity > SLAB_BYTES:
            return self._mapped(kind, capacity, size)
        state, table = self.state, self.table
        slab: int = state.slab[kind]
        if not slab or state.bump[kind] + capacity > table[slab * RECORD_WORDS + CAPACITY]:
            slab = state.slab[kind] = self._mapped(IS_SLAB, self._slab_bytes(capacity), size)
            state.bump[kind] = 0
        address: int = table[slab * RECORD_WORDS + ADDRESS] + state.bump[kind]
        block = self._record(address, capacity, kind)
        table[block * RECORD_WORDS + SLAB] = slab
        state.bump[kind] += capacity
        return block

    def _slab_bytes(self, capacity: int) -> int:
        """Smaller under a small limit: one slab per class must leave room for the others."""
        share = self.state.limit // SLAB_SHARE or SLAB_BYTES
        return max(page_rounded(capacity), page_rounded(min(share, SLAB_BYTES)))

    def _mapped(self, kind: int, capacity: int, size: int) -> int:
        state = self.state
        if state.limit and state.reserved_bytes + capacity > state.limit:
            self._trim()
            if state.reserved_bytes + capacity > state.limit:
                raise exhausted(self, size, f"within the limit of {state.limit} bytes")
        address = map_memory(capacity)
        if address is None:
            self._trim()
            address = map_memory(capacity)
        if address is None:
            raise exhausted(self, size, "in the memory that the system gives")
        state.reserved_bytes += capacity
        return self._record(address, capacity, kind)

    def _record(self, address: int, capacity: int, kind: int) -> int:
        state, table = self.state, self.table
        block = state.spare
        if block:
            state.spare = table[block * RECORD_WORDS + NEXT]
        elif state.records == MAX_RECORDS:
            raise PoolError(f"MemoryPool: more than {MAX_RECORDS} blocks; release some or trim()")
        else:
            block = state.records
            state.records += 1
        at = block * RECORD_WORDS
        for word in range(RECORD_WORDS):
            table[at + word] = 0
        table[at + ADDRESS], table[at + CAPACITY], table[at + KIND] = address, capacity, kind
        return block

    def _take_exact(self, size: int) -> int:
        """The smallest released exact block for `size`, unlinked, if at most a quarter is wasted."""
        state, table, wanted = self.state, self.table, page_rounded(size)
        previous, block = 0, int(state.exact)
        while block and table[block * RECORD_WORDS + CAPACITY] < wanted:
            previous, block = block, table[block * RECORD_WORDS + NEXT]
        if not block or 4 * wanted < 3 * table[block * RECORD_WORDS + CAPACITY]:
            return 0
        self._link_exact(previous, table[block * RECORD_WORDS + NEXT])
        return block

    def _keep_exact(self, block: int) -> None:
        state, table = self.state, self.table
        capacity = table[block * RECORD_WORDS + CAPACITY]
        previous, following = 0, int(state.exact)
        while following and table[following * RECORD_WORDS + CAPACITY] < capacity:
            previous, following = following, table[following * RECORD_WORDS + NEXT]
        table[block * RECORD_WORDS + NEXT] = following
        self._link_exact(previous, block)

    def _link_exact(self, previous: int, block: int) -> None:
        if previous:
            self.table[previous * RECORD_WORDS + NEXT] = block
        else:
            self.state.exact = block

    def _trim(self) -> int:
        state, table = self.state, self.table
        before = state.reserved_bytes
        in_use = {table[block * RECORD_WORDS + SLAB] for block in self.held()} - {0}
        for kind in range(CLASSES):
            kept = 0
            for block in self.chain(state.free[kind]):
                if table[block * RECORD_WORDS + SLAB] in in_use:
                    table[block * RECORD_WORDS + NEXT] = kept
                    kept = block
                else:
                    self._discard(block)
            state.free[kind] = kept
            if state.slab[kind] not in in_use:
                state.slab[kind] = 0
        for block in self.chain(state.exact):
            self._discard(block)
        state.exact = 0
        for block in range(1, state.records):
            if table[block * RECORD_WORDS + KIND] == IS_SLAB and block not in in_use:
                self._discard(block)
        state.trims += 1
        return before - state.reserved_bytes

    def _discard(self, block: int) -> None:
        """Unmap the block, unless its slab is mapped for it, and make the record a spare one."""
        state, table, at = self.state, self.table, block * RECORD_WORDS
        if not table[at + SLAB]:
            unmap(table[at + ADDRESS], table[at + CAPACITY])
            state.reserved_bytes -= table[at + CAPACITY]
        table[at + KIND] = UNUSED
        table[at + NEXT] = state.spare
        state.spare = block

    def chain(self, block: int) -> list[int]:
        """The records of the list that begins at `block`."""
        out: list[int] = []
        while block:
            out.append(block)
            block = self.table[block * RECORD_WORDS + NEXT]
        return out

    def held(self) -> list[int]:
        """The blocks that are live or deferred."""
        table = self.table
        live = (b for b in range(1, self.state.records) if table[b * RECORD_WORDS + COUNT])
        return [*live, *self.chain(self.state.deferred)]

    def total(self, blocks: list[int], word: int) -> int:
        """The sum of a word over records."""
        return sum(self.table[block * RECORD_WORDS + word] for block in blocks)


def _unmap_all(table: memoryview[int], state: PoolState) -> None:
    for block in range(1, state.records):
        at = block * RECORD_WORDS
        if table[at + KIND] != UNUSED and not table[at + SLAB]:
            unmap(table[at + ADDRESS], table[at + CAPACITY])
