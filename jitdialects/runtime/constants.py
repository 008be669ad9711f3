"""Constants as compiled code reads them: laid out once, shared by all code that wants the same layout.

A packed constant B of shape (K, N) is an array of panels of T columns, (ceil(N/T), K, T): element
[p, k, c] is B[k, p*T + c], zero beyond N. The rows of a panel are neighbours, so a product reads it as
one stream.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jitdialects.runtime.values import Array

ALIGNMENT = 64
"""Bytes; a cache line, and the widest vector."""
PACKED_RANK = 3
"""Axes of a packed constant."""


@dataclass(frozen=True, eq=False)
class LaidOut:
    """`array` holds the elements of `source`; it must not be written."""

    source: Array
    array: Array

    @property
    def slots(self) -> tuple[int, ...]:
        """Its words in the kernel ABI: address, sizes, strides in elements."""
        array = self.array
        strides = (stride // array.itemsize for stride in array.strides)
        return (array.ctypes.data, *array.shape, *strides)


_known: weakref.WeakValueDictionary[tuple[int, int], LaidOut] = weakref.WeakValueDictionary()
"""By identity of the source, which an entry keeps alive, and tile."""


def laid_out(source: Array, tile: int) -> LaidOut:
    """A C-contiguous constant in the layout that `tile` names; 0: as it is, without a copy."""
    if not tile:
        return LaidOut(source, source)
    key = id(source), tile
    found = _known.get(key)
    if found is None:
        found = _known[key] = LaidOut(source, packed(source, tile))
    return found


def packed(matrix: Array, tile: int) -> Array:
    """`matrix` as panels of `tile` columns; see the module."""
    rows, columns = matrix.shape
    whole, rest = divmod(columns, tile)
    out = _aligned_zeros((whole + bool(rest), rows, tile), matrix.dtype)
    panels = matrix[:, : whole * tile].reshape(rows, whole, tile)
    out[:whole] = panels.transpose(1, 0, 2)
    if rest:
        out[whole, :, :rest] = matrix[:, whole * tile :]
    return out


def _aligned_zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Zeros whose address is a multiple of `ALIGNMENT`."""
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)
