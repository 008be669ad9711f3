"""Memory that goes back to the system: all that lies free (`trim`), or what was idle longest (`look`).

`trim` unmaps free blocks that were mapped alone, slabs without a block in use, and gives back the pages of
free blocks in the other slabs (*spans*; their addresses stay ours). It runs when somebody asks, and before a
request fails.

`look` keeps the pool from growing around memory that nobody uses any more, such as blocks for shapes that do
not come back. It runs when the pool is about to grow beyond half more than was ever live and no free block could be
made into what is wanted (`reshape`), and gives back the free blocks that were released first, until `KEEP` times that is
reserved. Growth decides when to look,
so the cost of a look is spread over the memory that was mapped since the last one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from jitdialects.runtime.pool.layout import (
    ADDRESS,
    CAPACITY,
    CLASSES,
    EXACT,
    FIRST_MAPPED,
    IS_SLAB,
    KIND,
    NEXT,
    PAGE,
    PAGE_CLASS,
    RECORD_WORDS,
    REQUESTED,
    SLAB,
    SMALLEST,
    SPAN,
    STAMP,
    exact_bin,
)

if TYPE_CHECKING:
    from jitdialects.runtime.pool.store import Store

Heads: TypeAlias = "ctypes.Array[ctypes.c_uint64]"
GROW, KEEP = 1.5, 1.4
"""Reserved bytes at which a look is due, and that it leaves, as multiples of the most that was live."""
UNSEEN = 64 << 20
"""Up to so many bytes nobody looks: fresh pages cost more than that much memory is worth."""


def look(store: Store, wanted: int, size: int) -> None:
    """Give back idle memory, if there is too much of it for a pool that grows by `wanted` bytes for a request of
    `size`."""
    state, rows = store.state, store.rows()
    total = state.reserved_bytes + wanted
    if total > UNSEEN:
        held = store.held()
        live = int(rows[store.taken(), REQUESTED].sum())
        state.peak_bytes = max(state.peak_bytes, live + size)
        state.looks += 1
        if total > GROW * state.peak_bytes:
            _evict(store, np.flatnonzero(store.free(held)), int(total - KEEP * state.peak_bytes))
            if state.reserved_bytes + wanted > GROW * state.peak_bytes:
                trim(store)
    total, most = state.reserved_bytes + wanted, int(GROW * state.peak_bytes)
    # where not enough could go, the next look comes after another eighth
    state.grow_until = max(UNSEEN, most if total <= most else total * 9 // 8)


def _evict(store: Store, free: np.ndarray, excess: int) -> None:
    """Unmap free blocks that were mapped alone, first released first, until `excess` bytes are gone."""
    rows = store.rows()
    alone = free[rows[free, SLAB] == 0]
    alone = alone[np.argsort(rows[alone, STAMP], kind="stable")]
    before = np.cumsum(rows[alone, CAPACITY]) - rows[alone, CAPACITY]
    going = alone[before < excess]
    gone = set(going.tolist())
    for name, place in {_list_of(store, block) for block in gone}:
        _unlink(store, getattr(store.state, name), place, gone)
    for block in gone:
        store.discard(block)


def _list_of(store: Store, block: int) -> tuple[str, int]:
    at = block * RECORD_WORDS
    kind = store.table[at + KIND]
    return ("exact", exact_bin(store.table[at + CAPACITY])) if kind == EXACT else ("free", kind)


def _unlink(store: Store, heads: Heads, place: int, gone: Collection[int]) -> None:
    """Take these blocks out of a list. Until its head changes, the list leads to all that it led to."""
    following = 0
    for block in reversed(store.chain(heads[place])):
        if block not in gone:
            store.table[block * RECORD_WORDS + NEXT] = following
            following = block
    heads[place] = following


def trim(store: Store) -> int:
    """Give back all that lies free; the bytes that were."""
    store.clear_shelf()
    state, rows = store.state, store.rows()
    before = state.reserved_bytes
    in_use = set(rows[store.held(), SLAB].tolist()) - {0}
    for name, place in store.free_lists():
        _discard_unused(store, getattr(state, name), place, in_use)
    for place in range(PAGE_CLASS, FIRST_MAPPED):
        gone = _discard_unused(store, state.spans, place, in_use)
        state.reserved_bytes += gone << (place + SMALLEST)  # counted with their slab from here on
    for place in range(CLASSES):
        if state.slab[place] not in in_use:
            state.slab[place] = 0
    slabs = np.flatnonzero(rows[:, KIND] == IS_SLAB).tolist()
    for slab in set(slabs) - in_use:
        store.discard(slab)
    for kind in range(FIRST_MAPPED):
        if state.free[kind]:
            _give_back_pages(store, kind)
    state.trims += 1
    return before - state.reserved_bytes


def _discard_unused(store: Store, heads: Heads, place: int, in_use: set[int]) -> int:
    """Discard the blocks of a list that belong to no slab in use; their number."""
    blocks = store.chain(heads[place])
    gone = {b for b in blocks if store.table[b * RECORD_WORDS + SLAB] not in in_use}
    if gone:
        _unlink(store, heads, place, gone)
        for block in gone:
            store.discard(block)
    return len(gone)


def _give_back_pages(store: Store, kind: int) -> None:
    """Make spans of the pages that free blocks of a class fill."""
    state, table = store.state, store.table
    place = max(kind, PAGE_CLASS)
    room = 1 << (place + SMALLEST)
    pages: dict[int, list[int]] = {}
    for block in store.chain(state.free[kind]):
        pages.setdefault(table[block * RECORD_WORDS + ADDRESS] // PAGE, []).append(block)
    full = {p: b for p, b in pages.items() if len(b) << (kind + SMALLEST) >= room}
    _unlink(store, state.free, kind, {block for blocks in full.values() for block in blocks})
    for page, blocks in full.items():
        slab = table[blocks[0] * RECORD_WORDS + SLAB]
        for block in blocks:
            store.discard(block)
        store.memory.forget(page * PAGE, room)
        state.reserved_bytes -= room
        span = store.new_record(page * PAGE, room, SPAN, slab)
        table[span * RECORD_WORDS + NEXT] = state.spans[place]
        state.spans[place] = span
