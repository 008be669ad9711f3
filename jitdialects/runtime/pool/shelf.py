"""Blocks that machine code may have without asking: the part of a pool that `native/arrays.ll` works on.

The shelf has a list of free blocks for each class that is cut from slabs. Machine code takes blocks from it for
results of compiled code, and puts them there when an array is gone, while it holds the GIL, and nobody else touches the
lists. The pool stocks it, under its lock, and counts what lies there as free. It takes everything back before it gives
memory to the system, and what it needs before it maps more. A pool that is watched has its shelf closed: then
machine code takes nothing, and what it had comes back through `left`.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from jitdialects.runtime.pool.layout import CLASSES, FIRST_MAPPED, SMALLEST

SHELVED = 1 << 63
"""The count of a block on the shelf: it is nobody's, and in no list of the pool."""
STOCK_BLOCKS, STOCK_BYTES = 16, 1 << 15
"""The most that is put there at once."""
_ENVIRONMENT, _POOL, _COARSE, _OPEN, _TABLE, _LEFT, _LISTS = range(7)
_COUNTS = _LISTS + CLASSES
_LEFT_LIST = -1


@dataclass(frozen=True)
class Functions:
    """What `native/arrays.ll` exports, and the environment that it wants."""

    environment: int
    shelve: int
    unshelve: int
    clear: int


class Shelf:
    """The shelf of one pool. Without machine code it is empty, and stays so."""

    def __init__(self, pool: object, table: int, coarse: bool) -> None:
        self.words: Any = (ctypes.c_uint64 * (_COUNTS + 4))()
        self.words[_POOL] = id(pool)
        self.choose_classes(coarse)
        self.words[_TABLE] = table
        self.was_closed = False
        """Whether blocks may have come back through `left`."""
        self._watched = False
        self._shelve: Any = None
        self._unshelve: Any = None
        self._clear: Any = None

    @property
    def address(self) -> int:
        """Of the words."""
        return ctypes.addressof(self.words)

    def connect(self, functions: Functions) -> None:
        """Let machine code have blocks."""
        if self._shelve is None:
            self.words[_ENVIRONMENT] = functions.environment
            word, pointer = ctypes.c_int64, ctypes.c_void_p
            self._shelve = ctypes.PYFUNCTYPE(None, pointer, word, word)(functions.shelve)
            self._unshelve = ctypes.PYFUNCTYPE(word, pointer, word)(functions.unshelve)
            self._clear = ctypes.PYFUNCTYPE(None, pointer, pointer)(functions.clear)
            self.words[_OPEN] = int(not self._watched)

    def choose_classes(self, coarse: bool) -> None:
        """The classes that requests take."""
        self.words[_COARSE] = int(coarse)

    def watch(self, watched: bool) -> None:
        """Close it, or open it again. What lies there stays until the pool takes it."""
        self._watched = watched
        self.was_closed |= watched
        self.words[_OPEN] = int(self._shelve is not None and not watched)

    @property
    def is_open(self) -> bool:
        """Whether machine code may take blocks."""
        return self.words[_OPEN] != 0

    def put(self, block: int, fresh: bool) -> None:
        """A block for machine code; `fresh`: nobody had it yet."""
        self._shelve(self.address, block, int(fresh))

    def take(self, kind: int) -> int:
        """A block of this class back, or 0."""
        return self._unshelve(self.address, kind) if self.words[_LISTS + kind] else 0

    def clear(self, free: int) -> None:
        """Move all blocks to the lists at this address."""
        if self._clear is not None:
            self._clear(self.address, free)

    def take_left(self) -> int:
        """A block that an array left behind while the shelf was closed, or 0."""
        return self._unshelve(self.address, _LEFT_LIST) if self.words[_LEFT] else 0

    def counts(self) -> tuple[int, int, int, int]:
        """Requests served and their bytes; those of them from memory that was new, and theirs."""
        requests, bytes, fresh, fresh_bytes = self.words[_COUNTS : _COUNTS + 4]
        return requests, bytes, fresh, fresh_bytes


def stock_of(kind: int) -> int:
    """How many blocks of a class are put on the shelf at once; none if it is not for them."""
    if kind >= FIRST_MAPPED:
        return 0
    return max(1, min(STOCK_BLOCKS, STOCK_BYTES >> (kind + SMALLEST)))
