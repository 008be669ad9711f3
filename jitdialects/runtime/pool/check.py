"""A look at the whole native state that trusts none of it; shares no code with what changes it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from jitdialects.runtime.pool.layout import (
    ADDRESS,
    ALIGNMENT,
    CAPACITY,
    CLASSES,
    COUNT,
    EXACT,
    EXACT_BINS,
    IS_SLAB,
    KIND,
    NEXT,
    PAGE,
    REQUESTED,
    SLAB,
    SMALLEST,
    SPAN,
    UNUSED,
    exact_bin,
)

if TYPE_CHECKING:
    from jitdialects.runtime.pool.store import Store


def faults(store: Store) -> list[str]:
    """What is wrong with the state, one sentence each; nothing if every record is in one place, no two
    blocks share a byte and the sums are right."""
    return list(_Checker(store).faults())


class _Checker:
    def __init__(self, store: Store) -> None:
        self.state = store.state
        self.rows: list[list[int]] = store.rows().tolist()
        self.places: dict[int, str] = {}
        """Record -> the list that it is in."""

    def faults(self) -> Iterator[str]:
        for k in range(CLASSES):
            yield from self._list(f"free list {k}", self.state.free[k], k, 1 << (k + SMALLEST))
            yield from self._list(f"spans {k}", self.state.spans[k], SPAN, 1 << (k + SMALLEST))
        for k in range(EXACT_BINS):
            yield from self._list(f"exact list {k}", self.state.exact[k], EXACT)
            sizes = [
                self.rows[b][CAPACITY] for b, p in self.places.items() if p == f"exact list {k}"
            ]
            if sizes != sorted(sizes) or any(exact_bin(size) != k for size in sizes):
                yield f"exact list {k} holds {sizes}"
        yield from self._list("spare records", self.state.spare, UNUSED)
        spares = sum(place == "spare records" for place in self.places.values())
        if spares != self.state.spares:
            yield f"{self.state.spares} records are spare, the list has {spares}"
        yield from self._list("deferred blocks", self.state.deferred)
        yield from self._records()
        yield from self._extents()

    def _list(
        self, name: str, block: int, kind: int | None = None, capacity: int | None = None
    ) -> Iterator[str]:
        while block:
            if block >= len(self.rows):
                yield f"{name} leads to record {block}, there are {len(self.rows)}"
                return
            row = self.rows[block]
            if block in self.places:
                yield f"record {block} is in {self.places[block]} and in {name}"
                return
            self.places[block] = name
            if row[COUNT]:
                yield f"record {block} in {name} is live"
            if kind is not None and row[KIND] != kind:
                yield f"record {block} in {name} has kind {row[KIND]}"
            if capacity is not None and row[CAPACITY] != capacity:
                yield f"record {block} in {name} has {row[CAPACITY]} bytes"
            block = row[NEXT]

    def _records(self) -> Iterator[str]:
        for block, row in enumerate(self.rows[1:], 1):
            expected = row[COUNT] == 0 and row[KIND] != IS_SLAB
            if expected != (block in self.places):
                yield f"record {block} (kind {row[KIND]}, count {row[COUNT]}) is in no list"
            in_use = row[COUNT] or self.places.get(block) == "deferred blocks"
            if in_use and row[KIND] <= EXACT and row[REQUESTED] > row[CAPACITY]:
                yield f"block {block} of {row[CAPACITY]} bytes serves {row[REQUESTED]}"

    def _extents(self) -> Iterator[str]:
        """Every byte belongs to one mapping, and within a slab to one block."""
        mapped = [r for r in self.rows[1:] if not r[SLAB] and r[KIND] != UNUSED]
        yield from _overlaps(mapped)
        spans = sum(r[CAPACITY] for r in self.rows[1:] if r[KIND] == SPAN)
        total = sum(r[CAPACITY] for r in mapped) - spans
        if total != self.state.reserved_bytes:
            yield f"{self.state.reserved_bytes} bytes are reserved, mappings have {total}"
        inside: dict[int, list[list[int]]] = {}
        for block, row in enumerate(self.rows[1:], 1):
            if row[KIND] in (UNUSED, IS_SLAB):
                continue
            if row[ADDRESS] % (ALIGNMENT if row[SLAB] else PAGE):
                yield f"block {block} begins at {row[ADDRESS]}"
            if row[SLAB]:
                inside.setdefault(row[SLAB], []).append(row)
        for slab, rows in inside.items():
            first, size = self.rows[slab][ADDRESS], self.rows[slab][CAPACITY]
            if self.rows[slab][KIND] != IS_SLAB:
                yield f"record {slab} is no slab, but blocks were cut from it"
            yield from _overlaps(rows)
            for k in range(CLASSES):
                if self.state.slab[k] == slab:
                    size = self.state.bump[k]
            if any(not first <= r[ADDRESS] <= first + size - r[CAPACITY] for r in rows):
                yield f"a block of slab {slab} lies outside of what was cut from it"


def _overlaps(rows: list[list[int]]) -> Iterator[str]:
    for one, other in pairwise(sorted(rows)):
        if one[ADDRESS] + one[CAPACITY] > other[ADDRESS]:
            yield f"blocks at {one[ADDRESS]} and {other[ADDRESS]} overlap"
