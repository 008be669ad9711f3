"""A free block of another size made into one that is wanted: its pages move, and are not had anew.

Fresh pages are the dear part of memory: a megabyte of them costs more than what is computed in it. So before the
pool would grow around idle memory, or beyond its limit, the free block that is nearest in size is cut or
extended (`mremap`). Only blocks that were mapped alone change, to a size at most `REACH` times smaller or larger.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jitdialects.runtime.pool.layout import (
    ADDRESS,
    CAPACITY,
    CLASSES,
    EXACT_LISTS,
    FIRST_MAPPED,
    KIND,
    NEXT,
    PAGE,
    RECORD_WORDS,
    SMALLEST,
    UNUSED,
    exact_bin,
)

if TYPE_CHECKING:
    from jitdialects.runtime.pool.store import Store

REACH = 4


def reshaped(store: Store, kind: int, capacity: int) -> int:
    """A free block that has become one of `kind` with `capacity` bytes; 0 if the pool may grow instead, or if none
    is near enough."""
    state, head, table = store.state, store.head, store.table
    most = min(state.grow_until, state.limit or state.grow_until)
    excess = state.reserved_bytes + capacity - most
    if excess <= 0:
        return 0
    found = _near(store, max(capacity // REACH, excess, PAGE), REACH * capacity)
    nearest = min(found, key=lambda one: abs(one[0] - capacity), default=None)
    if nearest is None:
        return 0
    before, place, previous, block = nearest
    at = block * RECORD_WORDS
    if previous:
        table[previous * RECORD_WORDS + NEXT] = table[at + NEXT]
    else:
        head[place] = table[at + NEXT]
    table[at + KIND] = UNUSED
    state.reserved_bytes += max(capacity - before, 0)
    address = store.memory.remap(table[at + ADDRESS], before, capacity)
    if address is None:
        state.reserved_bytes -= max(capacity - before, 0)
        store.discard(block)  # the system is short of memory: this much less is had from it
        return 0
    table[at + ADDRESS], table[at + CAPACITY] = address, capacity
    state.reserved_bytes -= max(before - capacity, 0)
    table[at + KIND] = kind
    return block


def _near(store: Store, least: int, most: int) -> Iterator[tuple[int, int, int, int]]:
    """Free blocks of such sizes that were mapped alone: bytes, word of the list, block in front or 0, block."""
    head, table = store.head, store.table
    for kind in range(FIRST_MAPPED, CLASSES):
        size = 1 << (kind + SMALLEST)
        if head[kind] and least <= size <= most:
            yield size, kind, 0, head[kind]
    for place in range(EXACT_LISTS + exact_bin(least), EXACT_LISTS + exact_bin(most) + 1):
        previous, block = 0, head[place]
        while block:
            size = table[block * RECORD_WORDS + CAPACITY]
            if least <= size <= most:
                yield size, place, previous, block
            previous, block = block, table[block * RECORD_WORDS + NEXT]
