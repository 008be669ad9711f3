"""Where the blocks of a pool come from: slabs, mappings, lists of free blocks.

- *classes*: powers of two from 2**6 to 2**26 bytes (or every second of them, the coarse classes), one free
  list each. Blocks of up to half a slab are cut from slabs of 256 KiB, larger ones are mapped one by one.
- *exact*: a request that would waste more than a quarter of its class block, or that is larger than
  2**26, gets a mapping of its own, rounded to pages (where that is indeed smaller). After release it
  waits in a list sorted by size; a request takes the smallest that fits if at most a quarter is wasted.

Memory goes back to the system in `trim`. An exception from outside (an interrupt) may come between any two steps
and must leave at most a block that nobody has and nobody gets: a record changes its kind last when it comes into use
and first when it goes, leaves its list before its memory goes, and bytes are counted before they are had.
"""

from __future__ import annotations

import ctypes
import mmap
import weakref
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jitdialects.errors import PoolError
from jitdialects.runtime.pool.layout import (
    ADDRESS,
    CAPACITY,
    CLASSES,
    COUNT,
    EXACT,
    EXACT_BINS,
    EXACT_LISTS,
    FIRST_MAPPED,
    IS_SLAB,
    KIND,
    MAX_RECORDS,
    NEXT,
    PAGE,
    PAGE_CLASS,
    RECORD_WORDS,
    REQUESTED,
    REQUESTS,
    SLAB,
    SLAB_BYTES,
    SLAB_SHARE,
    SMALLEST,
    SPAN,
    STAMP,
    UNUSED,
    PoolState,
    exact_bin,
    exact_search,
    page_rounded,
    size_class,
)
from jitdialects.runtime.pool.report import exhausted
from jitdialects.runtime.pool.reshape import reshaped
from jitdialects.runtime.pool.shelf import SHELVED, Shelf
from jitdialects.runtime.pool.system import MAP_FLAGS, MAP_NORESERVE, Memory
from jitdialects.runtime.pool.trim import look, trim

MOST_NEW_RECORDS = PAGE >> SMALLEST
"""Records that one request can need: for all blocks of a page."""


class Store:
    """The native state of one pool. Whoever calls a method holds the pool's lock."""

    def __init__(self, limit: int | None, coarse: bool, memory: Memory) -> None:
        head = -(-ctypes.sizeof(PoolState) // 64) * 64
        flags = MAP_FLAGS | MAP_NORESERVE
        self._native = mmap.mmap(-1, head + MAX_RECORDS * RECORD_WORDS * 8, flags)
        self.state = PoolState.from_buffer(self._native)
        self.head: memoryview[int] = memoryview(self._native)[:head].cast("Q")
        self.table: memoryview[int] = memoryview(self._native)[head:].cast("Q")
        words = np.frombuffer(self._native, np.uint64, offset=head)
        self._rows: NDArray[Any] = words.reshape(MAX_RECORDS, RECORD_WORDS)
        self.state.records = 1
        self.state.limit = limit or 0
        self.state.coarse = int(coarse)
        self.memory = memory
        table = ctypes.addressof(ctypes.c_uint64.from_buffer(self._native, head))
        self.shelf = Shelf(self, table, coarse)
        self.mailbox: deque[int] = deque()
        """Blocks that destructors gave back, which run anywhere, also inside the lock."""
        weakref.finalize(self, _unmap_all, self.table, self.state, memory).atexit = False

    # ---- blocks of machine code ----------------------------------------------------------------

    def put_on_shelf(self, kind: int, size: int) -> None:
        """A block of a class, for requests of about `size` bytes, where machine code finds it."""
        state, head, block = self.state, self.head, self.head[kind]
        is_fresh = not block
        if block:
            head[kind] = self.table[block * RECORD_WORDS + NEXT]
        else:
            block = self.fresh(kind, size)
            state.fresh_requests -= 1  # counted when somebody has it
            state.fresh_bytes -= size
        self.shelf.put(block, is_fresh)

    def take_from_shelf(self, kind: int, size: int) -> int:
        """A block of a class that machine code does not use, or 0."""
        block = self.shelf.take(kind) if kind < FIRST_MAPPED else 0
        if block and self.table[block * RECORD_WORDS + STAMP]:
            self.table[block * RECORD_WORDS + STAMP] = 0
            self.state.fresh_requests += 1
            self.state.fresh_bytes += size
        return block

    def clear_shelf(self) -> None:
        """Every block that machine code does not use becomes an ordinary free one."""
        self.shelf.clear(ctypes.addressof(self.state))  # where the free lists are

    # ---- blocks that become free ---------------------------------------------------------------

    def _recycle(self, block: int) -> None:
        count = self.table[block * RECORD_WORDS + COUNT] - 1
        self.table[block * RECORD_WORDS + COUNT] = count
        if not count:
            self._free(block)

    def _free(self, block: int) -> None:
        head, table, at = self.head, self.table, block * RECORD_WORDS
        kind = table[at + KIND]
        if kind >= FIRST_MAPPED:
            table[at + STAMP] = head[REQUESTS]
        if kind == EXACT:
            self.keep_exact(block)
        else:
            table[at + NEXT] = head[kind]
            head[kind] = block

    def _empty_mailbox(self) -> None:
        """What destructors gave back is nobody's: an array that somebody computes with is not destroyed."""
        mailbox, shelf = self.mailbox, self.shelf
        while mailbox:
            self._recycle(mailbox.popleft())
        if shelf.was_closed:
            while block := shelf.take_left():
                self._recycle(block)

    # ---- fresh memory --------------------------------------------------------------------------

    def fresh(self, kind: int, size: int) -> int:
        """A record for `size` bytes where no free block of its kind is left; raises before anything is
        changed, but for what was given back to the system."""
        state = self.state
        capacity = page_rounded(size) if kind == EXACT else 1 << (kind + SMALLEST)
        try:
            self._have_records()
            if kind >= FIRST_MAPPED:
                if block := self.reshaped(kind, capacity):
                    return block
                block = self._mapped(kind, capacity, size)
            else:
                block = self._cut(kind, capacity, size)
        except PoolError:
            block = self._larger(size)
            if block:
                return block
            state.failures += 1
            raise
        state.fresh_requests += 1
        state.fresh_bytes += size
        return block

    def reshaped(self, kind: int, capacity: int) -> int:
        """A free block of another size that has been made into one of this, or 0."""
        return reshaped(self, kind, capacity)

    def _have_records(self) -> None:
        """See that there are enough spare records for any request."""
        if self._records_left() < MOST_NEW_RECORDS:
            self._empty_mailbox()
            trim(self)
            if self._records_left() < MOST_NEW_RECORDS:
                raise PoolError(f"MemoryPool: {MAX_RECORDS} blocks are in use; release some")

    def _records_left(self) -> int:
        return self.state.spares + MAX_RECORDS - self.state.records

    def _cut(self, kind: int, capacity: int, size: int) -> int:
        """A block of a slab."""
        state, table = self.state, self.table
        slab: int = state.slab[kind]
        if not slab or state.bump[kind] + capacity > table[slab * RECORD_WORDS + CAPACITY]:
            if state.spans[max(kind, PAGE_CLASS)]:
                return self._regained(kind, capacity, size)
            slab = self._mapped(IS_SLAB, self._slab_bytes(capacity), size)
            state.slab[kind], state.bump[kind] = slab, 0
        address: int = table[slab * RECORD_WORDS + ADDRESS] + state.bump[kind]
        state.bump[kind] += capacity
        return self.new_record(address, capacity, kind, slab)

    def _regained(self, kind: int, capacity: int, size: int) -> int:
        """A block in pages that had been given back."""
        state, table = self.state, self.table
        place = max(kind, PAGE_CLASS)
        room = 1 << (place + SMALLEST)
        self._make_room(room, size)
        span: int = state.spans[place]
        if not span:  # making room unmapped its slab
            return self._cut(kind, capacity, size)
        at = span * RECORD_WORDS
        state.spans[place] = table[at + NEXT]
        state.reserved_bytes += room
        address, slab = table[at + ADDRESS], table[at + SLAB]
        table[at + KIND], table[at + CAPACITY] = kind, capacity
        for offset in range(capacity, room, capacity):
            block = self.new_record(address + offset, capacity, kind, slab)
            table[block * RECORD_WORDS + NEXT] = state.free[kind]
            state.free[kind] = block
        return span

    def _slab_bytes(self, capacity: int) -> int:
        """Smaller under a small limit: one slab per class must leave room for the others."""
        share = self.state.limit // SLAB_SHARE or SLAB_BYTES
        return max(page_rounded(capacity), page_rounded(min(share, SLAB_BYTES)))

    def _mapped(self, kind: int, capacity: int, size: int) -> int:
        self._make_room(capacity, size)
        address = self.memory.map(capacity)
        if address is None:
            self._empty_mailbox()
            trim(self)
            address = self.memory.map(capacity)
        if address is None:
            raise exhausted(self, size, "in the memory that the system gives")
        self.state.reserved_bytes += capacity
        return self.new_record(address, capacity, kind)

    def _make_room(self, capacity: int, size: int) -> None:
        """Whatever must go before `capacity` bytes more may be had goes; `PoolError` if that is not enough."""
        state = self.state
        if state.reserved_bytes + capacity > state.grow_until:
            look(self, capacity, size)
        if state.limit and state.reserved_bytes + capacity > state.limit:
            self._empty_mailbox()
            trim(self)
            if state.reserved_bytes + capacity > state.limit:
                raise exhausted(self, size, f"within the limit of {state.limit} bytes")

    def _larger(self, size: int) -> int:
        """Where nothing more can be had: a free block that is larger than it should be, or 0."""
        for kind in range(size_class(size), CLASSES):
            block: int = self.state.free[kind]
            if block:
                self.state.free[kind] = self.table[block * RECORD_WORDS + NEXT]
                return block
        return 0

    def new_record(self, address: int, capacity: int, kind: int, slab: int = 0) -> int:
        """A record for memory in no list."""
        state, table = self.state, self.table
        block = state.spare
        if block:
            state.spares -= 1
            state.spare = table[block * RECORD_WORDS + NEXT]
        else:
            block = state.records
            table[block * RECORD_WORDS + KIND] = UNUSED
            state.records = block + 1
        at = block * RECORD_WORDS
        table[at + ADDRESS], table[at + CAPACITY], table[at + SLAB] = address, capacity, slab
        table[at + COUNT] = table[at + NEXT] = table[at + REQUESTED] = table[at + STAMP] = 0
        table[at + KIND] = kind
        return block

    def discard(self, block: int) -> None:
        """Unmap the block, unless its slab is mapped for it, and make the record a spare one."""
        state, table, at = self.state, self.table, block * RECORD_WORDS
        table[at + KIND] = UNUSED
        if not table[at + SLAB]:
            self.memory.unmap(table[at + ADDRESS], table[at + CAPACITY])
            state.reserved_bytes -= table[at + CAPACITY]
        table[at + NEXT] = state.spare
        state.spare = block
        state.spares += 1

    # ---- exact blocks --------------------------------------------------------------------------

    def take_exact(self, size: int) -> int:
        """The smallest released exact block for `size`, unlinked, if at most a quarter is wasted."""
        wanted, most, first, last = exact_search(size)
        head, table = self.head, self.table
        for place in range(first, last):
            previous, block = 0, head[place]
            while block and table[block * RECORD_WORDS + CAPACITY] < wanted:
                previous, block = block, table[block * RECORD_WORDS + NEXT]
            if block:
                if table[block * RECORD_WORDS + CAPACITY] > most:
                    return 0
                following = table[block * RECORD_WORDS + NEXT]
                if previous:
                    table[previous * RECORD_WORDS + NEXT] = following
                else:
                    head[place] = following
                return block
        return 0

    def keep_exact(self, block: int) -> None:
        """Put a released exact block into its list."""
        head, table = self.head, self.table
        capacity = table[block * RECORD_WORDS + CAPACITY]
        place = EXACT_LISTS + exact_bin(capacity)
        previous, following = 0, head[place]
        while following and table[following * RECORD_WORDS + CAPACITY] < capacity:
            previous, following = following, table[following * RECORD_WORDS + NEXT]
        table[block * RECORD_WORDS + NEXT] = following
        if previous:
            table[previous * RECORD_WORDS + NEXT] = block
        else:
            head[place] = block

    # ---- walks ---------------------------------------------------------------------------------

    def chain(self, block: int) -> list[int]:
        """The records of the list that begins at `block`."""
        out: list[int] = []
        while block:
            out.append(block)
            block = self.table[block * RECORD_WORDS + NEXT]
        return out

    def rows(self) -> NDArray[Any]:
        """All records that were ever used, one a row; number 0 is no record."""
        return self._rows[: self.state.records]

    def taken(self) -> NDArray[np.bool_]:
        """Per record, whether it is a block that is live or deferred."""
        return self.held() & (self.rows()[:, COUNT] != SHELVED)

    def held(self) -> NDArray[np.bool_]:
        """Per record, whether it is a block that is live or deferred, or that machine code may have any moment."""
        held = self.rows()[:, COUNT] > 0
        held[self.chain(self.state.deferred)] = True
        return held

    def free(self, held: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Per record, whether it is a block in a free list."""
        free = (self.rows()[:, KIND] <= EXACT) & ~held
        free[0] = False
        return free

    def owners(self, held: NDArray[np.bool_]) -> list[str] | None:
        """The largest of these blocks with their owners; None where nobody keeps them."""
        return None

    def free_lists(self) -> list[tuple[str, int]]:
        """The lists of free blocks: array of heads in the state, and index."""
        return [*(("free", k) for k in range(CLASSES)), *(("exact", k) for k in range(EXACT_BINS))]


def _unmap_all(table: memoryview[int], state: PoolState, memory: Memory) -> None:
    for block in range(1, state.records):
        at = block * RECORD_WORDS
        if table[at + KIND] not in (UNUSED, SPAN) and not table[at + SLAB]:
            memory.unmap(table[at + ADDRESS], table[at + CAPACITY])
