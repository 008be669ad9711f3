"""What a pool says about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jitdialects.errors import PoolError
from jitdialects.runtime.pool.layout import CAPACITY, RECORD_WORDS, REQUESTED

if TYPE_CHECKING:
    from jitdialects.runtime.pool.store import Store


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


def statistics(store: Store) -> PoolStatistics:
    """Counters since the pool was made, and its present state."""
    state, free, held = store.state, free_blocks(store), store.held()
    live_bytes = store.total(held, REQUESTED)
    return PoolStatistics(
        requests=state.requests,
        reused_requests=state.requests - state.fresh_requests,
        requested_bytes=state.requested_bytes,
        reused_bytes=state.requested_bytes - state.fresh_bytes,
        live_blocks=len(held),
        live_bytes=live_bytes,
        reserved_bytes=state.reserved_bytes,
        free_bytes=sum(size * count for size, count in free.items()),
        waste_bytes=store.total(held, CAPACITY) - live_bytes,
        largest_free_bytes=max(free, default=0),
        deferred_blocks=len(store.mailbox) + len(store.chain(state.deferred)),
        trims=state.trims,
    )


def free_blocks(store: Store) -> dict[int, int]:
    """Size of free blocks -> how many there are."""
    found: dict[int, int] = {}
    for head in (*store.state.free, store.state.exact):
        for block in store.chain(head):
            capacity = store.table[block * RECORD_WORDS + CAPACITY]
            found[capacity] = found.get(capacity, 0) + 1
    return found


def exhausted(store: Store, size: int, where: str) -> PoolError:
    """The error of a request for `size` bytes that cannot be served."""
    state = store.state
    free = ", ".join(f"{n} x {b}" for b, n in sorted(free_blocks(store).items())) or "none"
    waiting = len(store.mailbox) + len(store.chain(state.deferred))
    held = store.held()
    advice = "release arrays" + (f" or raise the limit ({state.limit})" if state.limit else "")
    if waiting:
        advice = f"call safe_point() to recycle {waiting} released block(s), {advice}"
    return PoolError(
        f"MemoryPool: {size} bytes do not fit {where} (reserved {state.reserved_bytes}, live "
        f"{store.total(held, REQUESTED)} in {len(held)} block(s), free blocks: "
        f"{free}); {advice}"
    )
