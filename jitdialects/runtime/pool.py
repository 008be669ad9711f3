"""The memory pool: recycled, 64-byte aligned blocks for arrays, arenas and kernels.

All of its state is one native structure, `PoolState` followed by a table of block records, linked by
record numbers; nothing about a block is kept in Python objects, so that machine code can walk the same
lists. A record is `RECORD_WORDS` 64-bit words (see `_ADDRESS` .. `_SLAB`): one cache line.

Where a block comes from:

- *classes*: powers of two from 2**6 to 2**26 bytes, one free list each. Blocks of up to half a slab are
  cut from slabs of 256 KiB, larger ones are mapped one by one.
- *exact*: a request that would waste more than a quarter of its class block, or that is larger than
  2**26, gets a mapping of its own, rounded to pages (where that is indeed smaller). After release it
  waits in a list sorted by size; a request takes the smallest that fits if at most a quarter is wasted.

A block has a reference count. At zero it waits in the deferred list until the next `safe_point`, when
nobody can still be computing with it, and only then becomes free.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from jitdialects.errors import PoolError

ALIGNMENT = 64
SMALLEST, LARGEST = 6, 26
CLASSES = LARGEST - SMALLEST + 1
SLAB_BYTES = 1 << 18
SLAB_SHARE = 64
"""A slab takes at most one in so many bytes of the limit, and at least a page."""
PAGE = mmap.PAGESIZE
CLASS_ONLY = 2 * PAGE
"""Requests up to here get a class block: it is at most two pages, and whole pages are no smaller."""
RECORD_WORDS = 8
MAX_RECORDS = 1 << 20

_ADDRESS, _CAPACITY, _COUNT, _KIND, _NEXT, _REQUESTED, _SLAB = range(RECORD_WORDS - 1)
"""Words of a record. `_KIND`: class number, `_EXACT` or `_IS_SLAB`. `_NEXT`: next record of the list
that this one is in, 0 at its end. `_SLAB`: record of the slab the block was cut from, or 0."""
_EXACT, _IS_SLAB, _UNUSED = CLASSES, CLASSES + 1, CLASSES + 2


class PoolState(ctypes.Structure):
    """Head of the native state. Counters are in bytes or numbers of blocks; list heads are records."""

    _fields_ = [
        ("free", ctypes.c_uint64 * CLASSES),  # comes first: word k is the list of class k
        ("bump", ctypes.c_uint64 * CLASSES),  # offset of the next block in the slab being cut
        ("slab", ctypes.c_uint64 * CLASSES),  # record of that slab, or 0
        ("exact", ctypes.c_uint64),  # released exact blocks, smallest first
        ("deferred", ctypes.c_uint64),
        ("spare", ctypes.c_uint64),  # records without memory
        ("records", ctypes.c_uint64),  # records ever used; number 0 is never used
        ("limit", ctypes.c_uint64),  # of `reserved`; 0: none
        ("requests", ctypes.c_uint64),
        ("requested_bytes", ctypes.c_uint64),
        ("fresh_requests", ctypes.c_uint64),  # served from memory that was never used
        ("fresh_bytes", ctypes.c_uint64),
        ("reserved_bytes", ctypes.c_uint64),  # mapped from the system
        ("trims", ctypes.c_uint64),
    ]


def _word(name: str) -> int:
    return getattr(PoolState, name).offset // 8


_DEFERRED, _REQUESTS, _REQUESTED_BYTES = map(_word, ("deferred", "requests", "requested_bytes"))
"""Words of the state that every request touches: as a plain word each costs half of a ctypes field."""


@dataclass(frozen=True)
class PoolStatistics:
    """A snapshot; bytes unless the name says otherwise."""

    requests: int
    reused_requests: int
    requested_bytes: int
    reused_bytes: int
    live_blocks: int
    live_bytes: int
    reserved_bytes: int
    free_bytes: int
    waste_bytes: int
    """Capacity of live blocks beyond what was requested."""
    largest_free_bytes: int
    deferred_blocks: int
    trims: int

    @property
    def reuse_rate(self) -> float:
        """Requests served from recycled blocks / all requests; 0 before the first."""
        return self.reused_requests / self.requests if self.requests else 0.0

    @property
    def fragmentation(self) -> float:
        """Largest free block / total free: 1 is not fragmented; 1 too when nothing is free."""
        return self.largest_free_bytes / self.free_bytes if self.free_bytes else 1.0


def size_class(size: int) -> int:
    """The number of the class that holds `size` bytes, at most 2**LARGEST."""
    return max((size - 1).bit_length() - SMALLEST, 0)


def is_exact(size: int) -> bool:
    """Whether `size` bytes get a block of their own outside the classes."""
    if size <= CLASS_ONLY:
        return False
    if size > 1 << LARGEST:
        return True
    block = 1 << (size_class(size) + SMALLEST)
    return 4 * (block - size) > block and page_rounded(size) < block


def page_rounded(size: int) -> int:
    """`size` rounded up to whole pages."""
    return -(-size // PAGE) * PAGE


class _Lease(ctypes.Structure):
    """Base object of an array from `MemoryPool.empty`: gives its block back when it is collected.

    It holds the pool, so that the memory outlives the last array in it.
    """

    __slots__ = ("block", "pool")
    pool: MemoryPool
    block: int

    def __del__(self) -> None:
        self.pool.leave(self.block)


@lru_cache(maxsize=256)
def _lease_type(capacity: int) -> type[_Lease]:
    fields = [("bytes", ctypes.c_char * capacity)]
    return cast(type[_Lease], type("_Lease", (_Lease,), {"_fields_": fields, "__slots__": ()}))


def is_pool_array(array: NDArray[Any]) -> bool:
    """Whether `array` is the very array that `empty` returned, rather than a view or a stranger."""
    return isinstance(array.base, _Lease)


def _system() -> tuple[Any, Any]:
    library = ctypes.CDLL(None, use_errno=True)
    map_, unmap = library.mmap, library.munmap
    map_.restype, unmap.restype = ctypes.c_void_p, ctypes.c_int
    map_.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
    unmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return map_, unmap


_mmap, _munmap = _system()
_MAP_FAILED = ctypes.c_void_p(-1).value
_MAP_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_MAP_NORESERVE = 0x4000  # Linux; a hint elsewhere


def _map(size: int) -> int | None:
    """Address of `size` fresh zeroed bytes, or None if the system has no more."""
    if size >= 1 << 63:  # ctypes would cut it off
        return None
    address = _mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, _MAP_FLAGS, -1, 0)
    return None if address == _MAP_FAILED else address


class MemoryPool:
    """A pool with its own state; safe to use from several threads and after a fork.

    `limit` bounds the bytes mapped from the system: at the limit free blocks are unmapped, then
    `PoolError` is raised and the pool stays as it was.
    """

    def __init__(self, limit: int | None = None) -> None:
        if limit is not None and (not isinstance(cast(object, limit), int) or limit < 1):
            raise PoolError(
                f"MemoryPool: limit must be at least 1 byte, got {limit!r}; None is no limit"
            )
        head = -(-ctypes.sizeof(PoolState) // 64) * 64
        flags = _MAP_FLAGS | _MAP_NORESERVE
        self._memory = mmap.mmap(-1, head + MAX_RECORDS * RECORD_WORDS * 8, flags)
        self.state = PoolState.from_buffer(self._memory)
        self._head: memoryview[int] = memoryview(self._memory)[:head].cast("Q")
        self._table: memoryview[int] = memoryview(self._memory)[head:].cast("Q")
        self.state.records = 1
        self.state.limit = limit or 0
        self._lock = threading.Lock()
        self._mailbox: deque[int] = deque()
        self.leave = self._mailbox.append
        """`release` for destructors, which run anywhere, also inside the lock: at a safe point."""
        _pools.add(self)
        weakref.finalize(self, _unmap_all, self._table, self.state).atexit = False

    # ---- requests ------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        """A block of at least `size` bytes with reference count 1; returns its record number."""
        if size < 0:
            raise PoolError(f"MemoryPool: a request must not be negative, got {size} bytes")
        kind = _EXACT if size > CLASS_ONLY and is_exact(size) else size_class(size)
        with self._lock:
            head, table = self._head, self._table
            block = self._take_exact(size) if kind == _EXACT else head[kind]
            at = block * RECORD_WORDS
            if not block:
                block = self._fresh(kind, size)
                at = block * RECORD_WORDS
                self.state.fresh_requests += 1
                self.state.fresh_bytes += size
            elif kind != _EXACT:
                head[kind] = table[at + _NEXT]
            table[at + _COUNT] = 1
            table[at + _REQUESTED] = size
            head[_REQUESTS] += 1
            head[_REQUESTED_BYTES] += size
            return block

    def address(self, block: int) -> int:
        """Where the block begins; a multiple of 64."""
        return self._table[block * RECORD_WORDS + _ADDRESS]

    def retain(self, block: int) -> None:
        """One more reference to a live block."""
        with self._lock:
            self._check_live(block, "retain")
            self._table[block * RECORD_WORDS + _COUNT] += 1

    def release(self, block: int) -> None:
        """One reference less; the last one sends the block to the deferred list."""
        with self._lock:
            self._check_live(block, "release")
            table, at = self._table, block * RECORD_WORDS
            table[at + _COUNT] -= 1
            if not table[at + _COUNT]:
                table[at + _NEXT] = self._head[_DEFERRED]
                self._head[_DEFERRED] = block

    def _check_live(self, block: int, who: str) -> None:
        inside = 0 < block < self.state.records
        if not inside or not self._table[block * RECORD_WORDS + _COUNT]:
            raise PoolError(
                f"MemoryPool: {who} of block {block}, which is not live; "
                "release each reference exactly once"
            )

    def recycle(self, block: int) -> None:
        """`release` of a block with which nothing computes: after the last reference it is free at once."""
        with self._lock:
            self._check_live(block, "recycle")
            self._recycle(block)

    def _recycle(self, block: int) -> None:
        count = self._table[block * RECORD_WORDS + _COUNT] - 1
        self._table[block * RECORD_WORDS + _COUNT] = count
        if not count:
            self._free(block)

    def safe_point(self) -> None:
        """Nothing computes with released blocks any more: make them available."""
        if self._mailbox or self._head[_DEFERRED]:
            with self._lock:
                self._drain()

    def _drain(self) -> None:
        head, table, mailbox = self._head, self._table, self._mailbox
        while mailbox:
            self._recycle(mailbox.popleft())
        block = head[_DEFERRED]
        head[_DEFERRED] = 0
        while block:
            following = table[block * RECORD_WORDS + _NEXT]
            self._free(block)
            block = following

    def _free(self, block: int) -> None:
        head, table, at = self._head, self._table, block * RECORD_WORDS
        kind = table[at + _KIND]
        if kind == _EXACT:
            self._keep_exact(block)
        else:
            table[at + _NEXT] = head[kind]
            head[kind] = block

    def empty(self, shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
        """An uninitialised C-contiguous array; its block is released when the last view goes."""
        element = np.dtype(dtype)
        return self.array(shape, element, prod(shape) * element.itemsize)

    def array(self, shape: Sequence[int], dtype: np.dtype[Any], size: int) -> NDArray[Any]:
        """`empty` for who knows the size in bytes."""
        block = self.allocate(size)
        at = block * RECORD_WORDS
        lease = _lease_type(self._table[at + _CAPACITY]).from_address(self._table[at])
        lease.pool = self
        lease.block = block
        buffer: Any = lease  # NumPy's type hints do not know ctypes structures
        try:
            return np.ndarray(shape, dtype, buffer)
        except ValueError:  # sizes that overflow beside a size of 0; the lease gives the block back
            raise PoolError(f"MemoryPool: no array can have the shape {tuple(shape)}") from None

    # ---- memory from the system ----------------------------------------------------------------

    def _fresh(self, kind: int, size: int) -> int:
        """A record with memory that was never used; raises before anything is changed."""
        capacity = page_rounded(size) if kind == _EXACT else 1 << (kind + SMALLEST)
        if kind == _EXACT or 2 * capacity > SLAB_BYTES:
            return self._mapped(kind, capacity, size)
        state, table = self.state, self._table
        slab: int = state.slab[kind]
        if not slab or state.bump[kind] + capacity > table[slab * RECORD_WORDS + _CAPACITY]:
            slab = state.slab[kind] = self._mapped(_IS_SLAB, self._slab_bytes(capacity), size)
            state.bump[kind] = 0
        address: int = table[slab * RECORD_WORDS + _ADDRESS] + state.bump[kind]
        block = self._record(address, capacity, kind)
        table[block * RECORD_WORDS + _SLAB] = slab
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
                raise self._exhausted(size, f"within the limit of {state.limit} bytes")
        address = _map(capacity)
        if address is None:
            self._trim()
            address = _map(capacity)
        if address is None:
            raise self._exhausted(size, "in the memory that the system gives")
        state.reserved_bytes += capacity
        return self._record(address, capacity, kind)

    def _record(self, address: int, capacity: int, kind: int) -> int:
        state, table = self.state, self._table
        block = state.spare
        if block:
            state.spare = table[block * RECORD_WORDS + _NEXT]
        elif state.records == MAX_RECORDS:
            raise PoolError(f"MemoryPool: more than {MAX_RECORDS} blocks; release some or trim()")
        else:
            block = state.records
            state.records += 1
        at = block * RECORD_WORDS
        for word in range(RECORD_WORDS):
            table[at + word] = 0
        table[at + _ADDRESS], table[at + _CAPACITY], table[at + _KIND] = address, capacity, kind
        return block

    def _take_exact(self, size: int) -> int:
        """The smallest released exact block for `size`, unlinked, if at most a quarter is wasted."""
        state, table, wanted = self.state, self._table, page_rounded(size)
        previous, block = 0, int(state.exact)
        while block and table[block * RECORD_WORDS + _CAPACITY] < wanted:
            previous, block = block, table[block * RECORD_WORDS + _NEXT]
        if not block or 4 * wanted < 3 * table[block * RECORD_WORDS + _CAPACITY]:
            return 0
        self._link_exact(previous, table[block * RECORD_WORDS + _NEXT])
        return block

    def _keep_exact(self, block: int) -> None:
        state, table = self.state, self._table
        capacity = table[block * RECORD_WORDS + _CAPACITY]
        previous, following = 0, int(state.exact)
        while following and table[following * RECORD_WORDS + _CAPACITY] < capacity:
            previous, following = following, table[following * RECORD_WORDS + _NEXT]
        table[block * RECORD_WORDS + _NEXT] = following
        self._link_exact(previous, block)

    def _link_exact(self, previous: int, block: int) -> None:
        if previous:
            self._table[previous * RECORD_WORDS + _NEXT] = block
        else:
            self.state.exact = block

    def trim(self) -> int:
        """Unmap every mapping without a live or deferred block; returns the bytes given back."""
        with self._lock:
            return self._trim()

    def _trim(self) -> int:
        state, table = self.state, self._table
        before = state.reserved_bytes
        in_use = {table[block * RECORD_WORDS + _SLAB] for block in self._held()} - {0}
        for kind in range(CLASSES):
            kept = 0
            for block in self._chain(state.free[kind]):
                if table[block * RECORD_WORDS + _SLAB] in in_use:
                    table[block * RECORD_WORDS + _NEXT] = kept
                    kept = block
                else:
                    self._discard(block)
            state.free[kind] = kept
            if state.slab[kind] not in in_use:
                state.slab[kind] = 0
        for block in self._chain(state.exact):
            self._discard(block)
        state.exact = 0
        for block in range(1, state.records):
            if table[block * RECORD_WORDS + _KIND] == _IS_SLAB and block not in in_use:
                self._discard(block)
        state.trims += 1
        return before - state.reserved_bytes

    def _discard(self, block: int) -> None:
        """Unmap the block, unless its slab is mapped for it, and make the record a spare one."""
        state, table, at = self.state, self._table, block * RECORD_WORDS
        if not table[at + _SLAB]:
            _munmap(table[at + _ADDRESS], table[at + _CAPACITY])
            state.reserved_bytes -= table[at + _CAPACITY]
        table[at + _KIND] = _UNUSED
        table[at + _NEXT] = state.spare
        state.spare = block

    def _chain(self, block: int) -> list[int]:
        """The records of the list that begins at `block`."""
        out: list[int] = []
        while block:
            out.append(block)
            block = self._table[block * RECORD_WORDS + _NEXT]
        return out

    # ---- what it says about itself -------------------------------------------------------------

    def _free_blocks(self) -> dict[int, int]:
        """Size of free blocks -> how many there are."""
        found: dict[int, int] = {}
        for head in (*self.state.free, self.state.exact):
            for block in self._chain(head):
                capacity = self._table[block * RECORD_WORDS + _CAPACITY]
                found[capacity] = found.get(capacity, 0) + 1
        return found

    def _exhausted(self, size: int, where: str) -> PoolError:
        state = self.state
        free = ", ".join(f"{n} x {b}" for b, n in sorted(self._free_blocks().items())) or "none"
        waiting = len(self._mailbox) + len(self._chain(state.deferred))
        held = self._held()
        advice = "release arrays" + (f" or raise the limit ({state.limit})" if state.limit else "")
        if waiting:
            advice = f"call safe_point() to recycle {waiting} released block(s), {advice}"
        return PoolError(
            f"MemoryPool: {size} bytes do not fit {where} (reserved {state.reserved_bytes}, live "
            f"{self._total(held, _REQUESTED)} in {len(held)} block(s), free blocks: "
            f"{free}); {advice}"
        )

    def _held(self) -> list[int]:
        """The blocks that are live or deferred."""
        table = self._table
        live = (b for b in range(1, self.state.records) if table[b * RECORD_WORDS + _COUNT])
        return [*live, *self._chain(self.state.deferred)]

    def _total(self, blocks: list[int], word: int) -> int:
        return sum(self._table[block * RECORD_WORDS + word] for block in blocks)

    def statistics(self) -> PoolStatistics:
        """Counters since the pool was made, and its present state."""
        with self._lock:
            state, free, held = self.state, self._free_blocks(), self._held()
            live_bytes = self._total(held, _REQUESTED)
            return PoolStatistics(
                requests=state.requests,
                reused_requests=state.requests - state.fresh_requests,
                requested_bytes=state.requested_bytes,
                reused_bytes=state.requested_bytes - state.fresh_bytes,
                live_blocks=len(held),
                live_bytes=live_bytes,
                reserved_bytes=state.reserved_bytes,
                free_bytes=sum(size * count for size, count in free.items()),
                waste_bytes=self._total(held, _CAPACITY) - live_bytes,
                largest_free_bytes=max(free, default=0),
                deferred_blocks=len(self._mailbox) + len(self._chain(state.deferred)),
                trims=state.trims,
            )

    # ---- forks ---------------------------------------------------------------------------------

    def hold(self) -> None:
        """Take the lock, so that a fork sees a consistent state."""
        self._lock.acquire()

    def let_go(self) -> None:
        """Undo `hold`, in the parent and in the child."""
        self._lock.release()


def _unmap_all(table: memoryview[int], state: PoolState) -> None:
    for block in range(1, state.records):
        at = block * RECORD_WORDS
        if table[at + _KIND] != _UNUSED and not table[at + _SLAB]:
            _munmap(table[at + _ADDRESS], table[at + _CAPACITY])


_pools: weakref.WeakSet[MemoryPool] = weakref.WeakSet()
_held: list[MemoryPool] = []


def _before_fork() -> None:
    _held.extend(_pools)
    for pool in _held:
        pool.hold()


def _after_fork() -> None:
    while _held:
        _held.pop().let_go()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)

default_pool = MemoryPool()
"""The pool of the process; virtual machines use it unless they are given another."""
