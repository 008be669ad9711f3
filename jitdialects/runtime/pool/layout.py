"""The native state of a pool: `PoolState`, followed by a table of block records, and the size classes.

Nothing about a block is kept in Python objects, so that machine code can walk the same lists. A record is
`RECORD_WORDS` 64-bit words (`ADDRESS` .. `STAMP`): one cache line. Lists link record numbers.
"""

from __future__ import annotations

import ctypes
import mmap
from functools import lru_cache

ALIGNMENT = 64
SMALLEST, LARGEST = 6, 26
CLASSES = LARGEST - SMALLEST + 1
"""Class k holds 2**(k + SMALLEST) bytes. The fine classes are all of them, the coarse ones those of even k."""
SLAB_BYTES = 1 << 18
SLAB_SHARE = 64
"""A slab takes at most one in so many bytes of the limit, and at least a page."""
PAGE = mmap.PAGESIZE
PAGE_CLASS = PAGE.bit_length() - 1 - SMALLEST
FIRST_MAPPED = SLAB_BYTES.bit_length() - 1 - SMALLEST
"""Blocks of this class and above are mapped one by one, those below are cut from slabs."""
RECORD_WORDS = 8
MAX_RECORDS = 1 << 20
EXACT_BINS = 4 * 37
"""Lists of released exact blocks: four for each doubling, up to 2**48 bytes."""

ADDRESS, CAPACITY, COUNT, KIND, NEXT, REQUESTED, SLAB, STAMP = range(RECORD_WORDS)
"""Words of a record. `KIND`: class number or one of those below. `NEXT`: next record of the list that this one
is in, 0 at its end. `SLAB`: record of the slab the block was cut from, or 0. `STAMP`: of a released block that
was mapped alone, the number of requests before its release."""
EXACT, IS_SLAB, SPAN, UNUSED = range(CLASSES, CLASSES + 4)
"""`SPAN`: pages of a slab in use that were given back to the system and can be had again."""


class PoolState(ctypes.Structure):
    """Head of the native state. Counters are in bytes or numbers of blocks; list heads are records."""

    _fields_ = [
        ("free", ctypes.c_uint64 * CLASSES),  # comes first: word k is the list of class k
        ("bump", ctypes.c_uint64 * CLASSES),  # offset of the next block in the slab being cut
        ("slab", ctypes.c_uint64 * CLASSES),  # record of that slab, or 0
        ("spans", ctypes.c_uint64 * CLASSES),  # of the size of a class, from PAGE_CLASS on
        ("exact", ctypes.c_uint64 * EXACT_BINS),  # released exact blocks, smallest first
        ("deferred", ctypes.c_uint64),
        ("spare", ctypes.c_uint64),  # records without memory
        ("spares", ctypes.c_uint64),  # how many
        ("records", ctypes.c_uint64),  # records ever used; number 0 is never used
        ("limit", ctypes.c_uint64),  # of `reserved`; 0: none
        ("coarse", ctypes.c_uint64),  # 1: requests take coarse classes
        ("requests", ctypes.c_uint64),
        ("requested_bytes", ctypes.c_uint64),
        ("fresh_requests", ctypes.c_uint64),  # served from pages new to this process
        ("fresh_bytes", ctypes.c_uint64),
        ("reserved_bytes", ctypes.c_uint64),  # had from the system and not given back
        ("grow_until", ctypes.c_uint64),  # `reserved` up to which nobody looks for idle memory
        ("peak_bytes", ctypes.c_uint64),  # most requested bytes that were live at such a look
        ("looks", ctypes.c_uint64),
        ("trims", ctypes.c_uint64),
        ("failures", ctypes.c_uint64),  # requests that got a PoolError
        ("trace_failures", ctypes.c_uint64),  # recordings that ended early
    ]


def _word(name: str) -> int:
    return getattr(PoolState, name).offset // 8


DEFERRED, REQUESTS, REQUESTED_BYTES, COARSE, EXACT_LISTS = map(
    _word, ("deferred", "requests", "requested_bytes", "coarse", "exact")
)
"""Words of the state that requests touch: as a plain word each costs half of a ctypes field."""


def size_class(size: int) -> int:
    """The number of the fine class that holds `size` bytes, at most 2**LARGEST."""
    return max((size - 1).bit_length() - SMALLEST, 0)


def is_exact(size: int, coarse: int = 0) -> bool:
    """Whether `size` bytes get a block of their own outside the classes."""
    return kind_of(size, coarse) == EXACT


@lru_cache(maxsize=1 << 12)
def kind_of(size: int, coarse: int) -> int:
    """The class of a block for `size` bytes, or `EXACT`."""
    if size > 1 << LARGEST:
        return EXACT
    kind = size_class(size)
    kind += kind & coarse
    block = 1 << (kind + SMALLEST)
    wasteful = 4 * (block - size) > block and page_rounded(max(size, 1)) < block
    return EXACT if wasteful else kind


@lru_cache(maxsize=1 << 12)
def exact_bin(capacity: int) -> int:
    """The list for released exact blocks of `capacity` bytes, whole pages."""
    pages = capacity // PAGE
    power = pages.bit_length() - 1
    return min(4 * power + ((pages << 2 >> power) & 3), EXACT_BINS - 1)


@lru_cache(maxsize=1 << 12)
def exact_search(size: int) -> tuple[int, int, int, int]:
    """Where an exact block for `size` bytes is looked for: least and most capacity, words of the first list and
    behind the last."""
    least = page_rounded(size)
    most = 4 * least // 3
    return least, most, EXACT_LISTS + exact_bin(least), EXACT_LISTS + exact_bin(most) + 1


def page_rounded(size: int) -> int:
    """`size` rounded up to whole pages."""
    return -(-size // PAGE) * PAGE
