"""Attributes that passes ask for over and over, each made once.

Making an attribute verifies it, which costs as much as several operations: 25 us for an integer, 50 for an
array, 100 for a vector type. Attributes are immutable and compared by value, so that sharing one is not
seen by anybody.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
    i32,
    i64,
)
from xdsl.ir import Attribute

INDEX = IndexType()
_SIZE = 4096
"""Attributes of each kind that are kept."""


@lru_cache(_SIZE)
def vector_type(element: Attribute, lanes: int) -> VectorType[Attribute]:
    """The vector of `lanes` elements."""
    return VectorType(element, (lanes,))


@lru_cache(_SIZE)
def index_attr(value: int) -> IntegerAttr[IndexType]:
    """`value : index`."""
    return IntegerAttr(value, INDEX)


@lru_cache(_SIZE)
def integer_attr(value: int, type: IntegerType) -> IntegerAttr[IntegerType]:
    """`value`, wrapped to `type`."""
    return IntegerAttr(value, type, truncate_bits=True)


@lru_cache(_SIZE)
def i32_array(*values: int) -> DenseArrayBase[IntegerType]:
    """`array<i32: ...>`: segment sizes, masks, constant indices."""
    return DenseArrayBase.from_list(i32, values)


@lru_cache(_SIZE)
def i64_array(*values: int) -> DenseArrayBase[IntegerType]:
    """`array<i64: ...>`: positions, steps."""
    return DenseArrayBase.from_list(i64, values)


def splat_attr(type: VectorType[Attribute], number: float) -> Attribute:
    """`dense<number> : type`."""
    # Numbers that are equal may differ in their bits: 0.0 and -0.0.
    return _splat(type, struct.pack("<d", number) if isinstance(number, float) else number)


@lru_cache(_SIZE)
def _splat(type: VectorType[Attribute], number: bytes | int) -> Attribute:
    value = struct.unpack("<d", number)[0] if isinstance(number, bytes) else number
    return DenseIntOrFPElementsAttr.from_list(cast(Any, type), [value])
