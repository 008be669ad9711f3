"""What a pool in debug mode knows about its blocks, and the faults that it finds.

Every block has an owner, kept after its release. Memory that nobody has is full of `POISON`, whose bytes are
NaN as float32 and as float64: code that reads it shows it, and a block that is not full of it any more when
it is given out again was written to after its release. Behind the requested size at least `RED_ZONE` bytes of
`_RED` must still be there at the release.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jitdialects.errors import PoolError
from jitdialects.runtime.pool.owners import Owner, asking

if TYPE_CHECKING:
    from jitdialects.runtime.pool.memory_pool import MemoryPool

MOST_TOLD = 20
"""Blocks listed at the end of the process."""
RED_ZONE = 64
_RED = 0xFD
POISON = 0x7FFC_DEAD_FFFC_DEAD


@dataclass(frozen=True)
class Leak:
    """A block that is live: `size` in bytes, `age` in requests since it was given out."""

    block: int
    size: int
    age: int | None
    owner: Owner | None
    """None, as `age`, if it was not in debug mode."""

    def __str__(self) -> str:
        ago = "" if self.age is None else f", {self.age} request(s) ago"
        return f"{self.size} bytes{ago}: {self.owner or 'owner unknown'}"


@dataclass(slots=True)
class _Entry:
    size: int
    request: int
    owner: Owner
    has_it: bool = True
    """Whether the owner still has the block. Who asked before the ledger was there may have it next."""


class Ledger:
    """The blocks that a pool gave out while it was debugged, by record number."""

    def __init__(self) -> None:
        self.entries: dict[int, _Entry] = {}
        self.poisoned: set[int] = set()
        self.faults: list[str] = []
        """What was found so far, one sentence each."""
        self._told = 0

    def give(self, block: int, address: int, capacity: int, size: int, request: int) -> bool:
        """A block is given out; False if it was written to after its release."""
        if block in self.poisoned:
            if self.touched(block, address, capacity):
                return False
            self.poisoned.discard(block)
        else:
            _bytes(address, capacity).view(np.uint64)[:] = POISON
        _bytes(address + size, capacity - size)[:] = _RED
        self.entries[block] = _Entry(size, request, asking())
        return True

    def take_back(self, block: int, address: int, capacity: int) -> None:
        """A block becomes free."""
        entry = self.entries.get(block)
        if entry is not None and entry.has_it:
            entry.has_it = False
            behind = _bytes(address + entry.size, capacity - entry.size)
            changed = np.flatnonzero(behind != _RED)
            if changed.size:
                self.faults.append(
                    f"{entry.owner} got {entry.size} bytes and wrote to byte {entry.size + changed[0]}"
                )
        _bytes(address, capacity).view(np.uint64)[:] = POISON
        self.poisoned.add(block)

    def touched(self, block: int, address: int, capacity: int) -> bool:
        """Whether a block that nobody has was written to, which is a fault. It is full of poison then."""
        words = _bytes(address, capacity).view(np.uint64)
        changed = np.flatnonzero(words != POISON)
        if not changed.size:
            return False
        words[:] = POISON
        entry = self.entries.get(block)
        who = f"{entry.owner} ({entry.size} bytes)" if entry else "an unknown owner"
        self.faults.append(
            f"the block that {who} released was written to afterwards, at byte {8 * changed[0]}"
        )
        return True

    def tell(self) -> None:
        """Raise the faults that nobody was told of yet."""
        new, self._told = self.faults[self._told :], len(self.faults)
        if new:
            raise PoolError(f"MemoryPool: {'; '.join(new)}")

    def forget(self, block: int) -> None:
        """The memory of a free block goes back to the system."""
        self.poisoned.discard(block)
        self.entries.pop(block, None)

    def name(self, block: int) -> str:
        """Who has a block, or had it last."""
        entry = self.entries.get(block)
        return str(entry.owner) if entry else ""


def _bytes(address: int, size: int) -> NDArray[np.uint8]:
    return np.frombuffer(memoryview((ctypes.c_uint8 * size).from_address(address)), np.uint8)


def last_words(pool: MemoryPool) -> str:
    """What is to be said when the process ends; empty if all is well."""
    assert pool.ledger is not None
    leaks = pool.leaks()
    lines = [f"  {leak}" for leak in leaks[:MOST_TOLD]]
    if len(leaks) > MOST_TOLD:
        lines.append(f"  and {len(leaks) - MOST_TOLD} more")
    if leaks:
        total = sum(leak.size for leak in leaks)
        lines.insert(0, f"MemoryPool: {len(leaks)} block(s), {total} bytes, still live at the end:")
    return "\n".join([f"MemoryPool: {fault}" for fault in pool.ledger.faults] + lines)
