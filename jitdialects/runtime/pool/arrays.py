"""NumPy arrays in blocks of a pool: a lease, the array's base object, gives the block back."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import NDArray

if TYPE_CHECKING:
    from jitdialects.runtime.pool.memory_pool import MemoryPool


class Lease(ctypes.Structure):
    """Base object of an array from `MemoryPool.empty`: gives its block back when it is collected.

    It holds the pool, so that the memory outlives the last array in it.
    """

    __slots__ = ("block", "pool")
    pool: MemoryPool
    block: int

    def __del__(self) -> None:
        self.pool.leave(self.block)


@lru_cache(maxsize=256)
def lease_type(capacity: int) -> type[Lease]:
    """The lease of a block of `capacity` bytes."""
    fields = [("bytes", ctypes.c_char * capacity)]
    return cast(type[Lease], type("Lease", (Lease,), {"_fields_": fields, "__slots__": ()}))


def is_pool_array(array: NDArray[Any]) -> bool:
    """Whether `array` is the very array that `empty` returned, rather than a view or a stranger."""
    return isinstance(array.base, Lease)
