"""Constants that are one number everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerType
from xdsl.ir import Attribute, Operation


def splat_of(op: Operation) -> int | float | None:
    """The number that every element of a `tssa.constant` is, bit for bit; None where there is no such
    number (other operations, different elements, no elements). bool gives 0 or 1.

    `DenseIntOrFPElementsAttr.is_splat` will not do: it takes 0.0 for -0.0 and fails without elements.
    """
    table = op.properties.get("value")
    if op.name != "tssa.constant" or not isinstance(table, DenseIntOrFPElementsAttr):
        return None
    values, data = table.get_values(), table.data.data
    if not values or data != data[: len(data) // len(values)] * len(values):
        return None
    return numbers_of(table)[0]


def numbers_of(table: DenseIntOrFPElementsAttr) -> Sequence[int | float]:
    """The elements in C order; bool gives 0 or 1."""
    numbers = cast("Sequence[int | float]", table.get_values())
    element = cast("Attribute", table.get_element_type())
    return [int(bool(n)) for n in numbers] if element == IntegerType(1) else numbers
