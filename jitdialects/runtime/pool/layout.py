"""The native state of a pool: `PoolState`, followed by a table of block records, and the size classes.

Nothing about a block is kept in Python objects, so that machine code can walk the same lists. A record is
`RECORD_WORDS` 64-bit words (`ADDRESS` .. `SLAB`): one cache line. Lists link record numbers.
"""

from __future__ import annotations

import ctypes
import mmap

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

ADDRESS, CAPACITY, COUNT, KIND, NEXT, REQUESTED, SLAB = range(RECORD_WORDS - 1)
"""Words of a record. `KIND`: class number, `EXACT` or `IS_SLAB`. `NEXT`: next record of the list
that this one is in, 0 at its end. `SLAB`: record of the slab the block was cut from, or 0."""
EXACT, IS_SLAB, UNUSED = CLASSES, CLASSES + 1, CLASSES + 2


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


DEFERRED, REQUESTS, REQUESTED_BYTES = map(_word, ("deferred", "requests", "requested_bytes"))
"""Words of the state that every request touches: as a plain word each costs half of a ctypes field."""


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
