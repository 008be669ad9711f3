"""Constants that are one number everywhere."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerType
from xdsl.ir import Operation


def splat_of(op: Operation) -> int | float | None:
    """The number that every element of a `tssa.constant` is, bit for bit; None where there is no such
    number (other operations, different elements, no elements). bool gives 0 or 1.

    `DenseIntOrFPElementsAttr.is_splat` will not do: it takes 0.0 for -0.0 and fails without elements.
    """
    value = op.properties.get("value")
    if op.name != "tssa.constant" or not isinstance(value, DenseIntOrFPElementsAttr):
        return None
    count, data = len(value), value.data.data
    if not count or data != data[: len(data) // count] * count:
        return None
    number = value.get_values()[0]
    element = value.get_element_type()
    assert isinstance(number, int | float)
    return int(bool(number)) if element == IntegerType(1) else number
