"""Memory that goes back to the system: all that lies free (`trim`), or what was idle longest (`look`).

`trim` unmaps free blocks that were mapped alone, slabs without a block in use, and gives back the pages of
free blocks in the other slabs (*spans*; their addresses stay ours). It runs when somebody asks, and before a
request fails.

`look` keeps the pool from growing around memory that nobody uses any more, such as blocks for shapes that do
not come back. It runs when the pool is about to grow beyond half more than was ever live, and gives back the
free blocks that were released first, until only `KEEP` more than that is reserved. Growth decides when to look,
so the cost of a look is spread over the memory that was mapped since the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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

GROW, KEEP = 1.5, 1.25
"""Reserved bytes at which a look is due, and that it leaves, as multiples of the most that was live."""
UNSEEN = 8 << 20
"""Up to so many bytes nobody looks."""


def look(store: Store, wanted: int, size: int) -> None:
    """Give back idle memory, if there is too much of it for a pool that grows by `wanted` bytes for a request of
    `size`."""
    state, rows = store.state, store.rows()
    total = state.reserved_bytes + wanted
    if total > UNSEEN:
        held = store.held()
        live = int(rows[held, REQUESTED].sum())
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
        heads = getattr(store.state, name)
        heads[place] = _relinked(store, [b for b in store.chain(heads[place]) if b not in gone])
    for block in gone:
        store.discard(block)


def _list_of(store: Store, block: int) -> tuple[str, int]:
    at = block * RECORD_WORDS
    kind = store.table[at + KIND]
    return ("exact", exact_bin(store.table[at + CAPACITY])) if kind == EXACT else ("free", kind)


def _relinked(store: Store, blocks: list[int]) -> int:
    """Make these records a list; its head."""
    following = 0
    for block in reversed(blocks):
        store.table[block * RECORD_WORDS + NEXT] = following
        following = block
    return following


def trim(store: Store) -> int:
    """Give back all that lies free; the bytes that were."""
    store.clear_shelf()
    state, rows = store.state, store.rows()
    before = state.reserved_bytes
    in_use = set(rows[store.held(), SLAB].tolist()) - {0}
    for name, place in store.free_lists():
        heads = getattr(state, name)
        if heads[place]:
            heads[place] = _without_unused(store, heads[place], in_use)
    for place in range(PAGE_CLASS, FIRST_MAPPED):
        spans = store.chain(state.spans[place])
        gone = [s for s in spans if store.table[s * RECORD_WORDS + SLAB] not in in_use]
        state.reserved_bytes += len(gone) << (
            place + SMALLEST
        )  # counted with their slab from here on
        state.spans[place] = _without_unused(store, state.spans[place], in_use)
    for place in range(CLASSES):
        if state.slab[place] not in in_use:
            state.slab[place] = 0
    slabs = np.flatnonzero(rows[:, KIND] == IS_SLAB).tolist()
    for slab in set(slabs) - in_use:
        store.discard(slab)
    for kind in range(FIRST_MAPPED):
        if state.free[kind]:
            state.free[kind] = _give_back_pages(store, kind)
    state.trims += 1
    return before - state.reserved_bytes


def _without_unused(store: Store, head: int, in_use: set[int]) -> int:
    """Discard the records of a list that belong to no slab in use; the head of what stays."""
    kept: list[int] = []
    for block in store.chain(head):
        if store.table[block * RECORD_WORDS + SLAB] in in_use:
            kept.append(block)
        else:
            store.discard(block)
    return _relinked(store, kept)


def _give_back_pages(store: Store, kind: int) -> int:
    """Make spans of the pages that free blocks of a class fill; the head of its list without them."""
    state, table = store.state, store.table
    place = max(kind, PAGE_CLASS)
    room = 1 << (place + SMALLEST)
    pages: dict[int, list[int]] = {}
    for block in store.chain(state.free[kind]):
        pages.setdefault(table[block * RECORD_WORDS + ADDRESS] // PAGE, []).append(block)
    kept: list[int] = []
    for page, blocks in pages.items():
        if len(blocks) << (kind + SMALLEST) < room:
            kept += blocks
            continue
        slab = table[blocks[0] * RECORD_WORDS + SLAB]
        for block in blocks:
            store.discard(block)
        span = store.new_record(page * PAGE, room, SPAN)
        table[span * RECORD_WORDS + SLAB] = slab
        table[span * RECORD_WORDS + NEXT] = state.spans[place]
        state.spans[place] = span
        store.memory.forget(page * PAGE, room)
        state.reserved_bytes -= room
    return _relinked(store, kept)
