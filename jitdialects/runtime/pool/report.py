"""What a pool says about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jitdialects.errors import PoolError
from jitdialects.runtime.pool.layout import CAPACITY, EXACT, KIND, REQUESTED

if TYPE_CHECKING:
    from jitdialects.runtime.pool.store import Store

LITTLE = 1 << 20
FRAGMENTED = 0.5
MANY_SIZES = 8
"""Free bytes, largest free block / total free, and number of sizes that make advice due."""
MOST_LISTED = 8
"""Sizes that a message lists."""


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
    looks: int = 0
    """How often the pool looked for idle memory before it grew."""
    failures: int = 0
    """Requests that got a `PoolError`."""
    trace_failures: int = 0
    """Recordings that ended early because their file could not be written."""

    @property
    def fresh_requests(self) -> int:
        """Requests served from pages that were new."""
        return self.requests - self.reused_requests

    @property
    def reuse_rate(self) -> float:
        """Requests served from recycled blocks / all requests; 0 before the first."""
        return self.reused_requests / self.requests if self.requests else 0.0

    @property
    def fragmentation(self) -> float:
        """Largest free block / total free: 1 is not fragmented; 1 too when nothing is free."""
        return self.largest_free_bytes / self.free_bytes if self.free_bytes else 1.0


def statistics(store: Store) -> PoolStatistics:
    """Counters since the pool was made, and its present state."""
    state, rows, held = store.state, store.rows(), store.taken()
    free = rows[store.free(held), CAPACITY]
    requests, requested_bytes, fresh, fresh_bytes = store.shelf.counts()
    live_bytes = int(rows[held, REQUESTED].sum())
    return PoolStatistics(
        requests=state.requests + requests,
        reused_requests=state.requests + requests - state.fresh_requests - fresh,
        requested_bytes=state.requested_bytes + requested_bytes,
        reused_bytes=state.requested_bytes + requested_bytes - state.fresh_bytes - fresh_bytes,
        live_blocks=int(held.sum()),
        live_bytes=live_bytes,
        reserved_bytes=state.reserved_bytes,
        free_bytes=int(free.sum()),
        waste_bytes=int(rows[held, CAPACITY].sum()) - live_bytes,
        largest_free_bytes=int(free.max(initial=0)),
        deferred_blocks=waiting(store),
        trims=state.trims,
        looks=state.looks,
        failures=state.failures,
        trace_failures=state.trace_failures,
    )


@dataclass(frozen=True)
class SizeCount:
    """Blocks of one capacity in bytes: in use (or released and waiting), and free."""

    capacity: int
    exact: bool
    """Outside the classes."""
    live: int
    free: int


def sizes(store: Store) -> list[SizeCount]:
    """What the pool is made of, smallest blocks first, those of classes before exact ones."""
    rows, held = store.rows(), store.taken()
    free = store.free(held)
    keys = np.stack([rows[:, KIND] == EXACT, rows[:, CAPACITY]], axis=1)[held | free]
    if not len(keys):
        return []
    found, places = np.unique(keys, axis=0, return_inverse=True)
    counts = np.bincount(places.reshape(-1), minlength=len(found))
    live = np.bincount(places.reshape(-1), held[held | free], minlength=len(found)).astype(int)
    return [
        SizeCount(int(capacity), bool(exact), int(used), int(all_ - used))
        for (exact, capacity), all_, used in zip(found, counts, live, strict=True)
    ]


def waiting(store: Store) -> int:
    """Blocks that become free at the next safe point."""
    return len(store.mailbox) + len(store.chain(store.state.deferred))


def exhausted(store: Store, size: int, where: str) -> PoolError:
    """The error of a request for `size` bytes that cannot be served: what there is, and what would help
    that was not done yet."""
    state, rows, held = store.state, store.rows(), store.taken()
    free = rows[store.free(held), CAPACITY]
    help = ["release arrays"]
    if late := waiting(store):
        help.insert(0, f"call safe_point() to recycle {late} released block(s)")
    if state.limit:
        help.append(f"raise the limit ({state.limit})")
    if free.sum() >= size and not state.coarse:
        help.append("take coarse classes (JITDIALECTS_POOL_CLASSES=coarse)")
    names = store.owners(held)
    if names is None:
        help.append("see who has them (JITDIALECTS_POOL_DEBUG=1)")
    return PoolError(
        f"MemoryPool: {size} bytes do not fit {where} (reserved {state.reserved_bytes}, live "
        f"{int(rows[held, REQUESTED].sum())} in {int(held.sum())} block(s): "
        f"{', '.join(names or ()) or _counted(rows[held, REQUESTED])}, free blocks: {_counted(free)}); "
        f"{_joined(help)}"
    )


def advice(store: Store) -> list[str]:
    """What would lessen the memory that lies free in pieces and was not done yet; empty where there is little
    of it, or most is in one piece."""
    found = statistics(store)
    little = max(LITTLE, found.reserved_bytes // 4)
    if found.free_bytes < little or found.fragmentation >= FRAGMENTED:
        return []
    sizes = np.unique(store.rows()[store.free(store.taken()), CAPACITY]).size
    out = [f"trim() gives back most of the {found.free_bytes} bytes that lie free"]
    if found.deferred_blocks:
        out.append(f"safe_point() recycles {found.deferred_blocks} released block(s)")
    if not store.state.coarse and sizes >= MANY_SIZES:
        out.append(
            f"coarse classes (JITDIALECTS_POOL_CLASSES=coarse) let the {sizes} sizes of free blocks serve "
            "more requests; jit-pool replay tries them on a trace"
        )
    return out


def _joined(advice: list[str]) -> str:
    *first, last = advice
    return f"{', '.join(first)} or {last}" if first else last


def _counted(sizes: NDArray[Any]) -> str:
    """Sizes as `2 x 4096, 1 x 64`, largest first."""
    found, counts = np.unique(sizes, return_counts=True)
    pairs = list(zip(counts.tolist(), found.tolist(), strict=True))[::-1]
    text = ", ".join(f"{n} x {size}" for n, size in pairs[:MOST_LISTED]) or "none"
    return text + (f" and {len(pairs) - MOST_LISTED} more sizes" * (len(pairs) > MOST_LISTED))
