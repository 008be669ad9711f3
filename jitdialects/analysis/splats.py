"""Constants that are one number everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, IntegerType, i1
from xdsl.ir import Operation

Table: TypeAlias = DenseIntOrFPElementsAttr[IntegerType | AnyFloat]


def splat_of(op: Operation) -> int | float | None:
    """The number that every element of a `tssa.constant` is, bit for bit; None where there is no such
    number (other operations, different elements, no elements). bool gives 0 or 1.

    `DenseIntOrFPElementsAttr.is_splat` will not do: it takes 0.0 for -0.0 and fails without elements.
    """
    table = op.properties.get("value")
    if op.name != "tssa.constant" or not isinstance(table, DenseIntOrFPElementsAttr):
        return None
    values, data = numbers_of(cast("Table", table)), table.data.data
    if not values or data != data[: len(data) // len(values)] * len(values):
        return None
    return values[0]


def numbers_of(table: Table) -> Sequence[int | float]:
    """The elements in C order; bool gives 0 or 1."""
    numbers = cast("Sequence[int | float]", table.get_values())
    return [int(bool(n)) for n in numbers] if table.get_element_type() == i1 else numbers
