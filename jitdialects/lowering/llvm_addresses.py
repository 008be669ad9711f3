"""Addresses of memref elements, with as few operations as the accesses of a function allow.

The address of `m[i, j]` is built term by term, `base + i * stride_i`, then `+ j * stride_j`: terms whose
operands are defined earlier come first, and each partial sum stands right behind its operands and is made
once. So eight unrolled rows share what depends on the column, and a loop recomputes only what depends on
its own variable. A constant added to an index (`i + 4`) becomes a constant added to the address, last,
where the addressing modes of a machine take it for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.dialects.llvm import GEP_USE_SSA_VAL, AddOp, GEPOp, MulOp
from xdsl.ir import Attribute, OpResult, SSAValue

from jitdialects.dialects.interned import i32_array
from jitdialects.lowering.llvm_conversion import (
    Conversion,
    Descriptor,
    Size,
    Term,
    as_memref,
    byte_width,
    llvm_type,
)

_ONE_VALUE = i32_array(GEP_USE_SSA_VAL)
_GEP_FLAGS = IntegerAttr(0, i32)
_WRAPS: Mapping[str, Attribute] = {"overflowFlags": IntegerAttr(0, i32)}
_LARGEST_CONSTANT_INDEX = 2**31 - 1
"""`llvm.getelementptr` keeps constant indices in 32 bits, and uses one value for "see the operand"."""


def constant_of(value: SSAValue) -> int | None:
    """The number that `value` is a constant of, or None."""
    if isinstance(value, OpResult) and value.op.name == "llvm.mlir.constant":
        attribute = value.op.properties["value"]
        if isinstance(attribute, IntegerAttr):
            return attribute.value.data
    return None


def as_number(size: Size) -> Size:
    """The number behind `size` where it is a constant, else `size`."""
    if isinstance(size, int):
        return size
    number = constant_of(size)
    return size if number is None else number


def split_constant(index: SSAValue) -> tuple[SSAValue | None, int]:
    """`index` as variable part (None: there is none) + constant part; looks through `llvm.add`."""
    total = 0
    while True:
        if (number := constant_of(index)) is not None:
            return None, total + number
        if not isinstance(index, OpResult) or index.op.name != "llvm.add":
            return index, total
        lhs, rhs = index.op.operands
        if (number := constant_of(rhs)) is not None:
            index = lhs
        elif (number := constant_of(lhs)) is not None:
            index = rhs
        else:
            return index, total
        total += number


def offset_pointer(c: Conversion, base: SSAValue, offset: Size, element: Attribute) -> SSAValue:
    """`base + offset` elements; `base` itself for a constant zero."""
    return _offset(c, base, as_number(offset), element, byte_width(element))


def _offset(
    c: Conversion, base: SSAValue, offset: Size, element: Attribute, width: int
) -> SSAValue:
    """The same, for an offset that is a number where it is a constant, and elements of `width` bytes."""
    if isinstance(offset, int) and abs(offset) > _LARGEST_CONSTANT_INDEX:
        offset = c.constant(offset)
    if isinstance(offset, int):
        if offset == 0:
            return base
        place, indices, operands = ("number", offset), i32_array(offset), (base,)
    else:
        place, indices, operands = ("value", id(offset)), _ONE_VALUE, (base, offset)
    key = (id(base), place, width)
    if (known := c.known(key)) is not None:
        return known
    properties: dict[str, Attribute] = {
        "rawConstantIndices": indices,
        "elem_type": element,
        "noWrapFlags": _GEP_FLAGS,
    }
    return c.hoisted(GEPOp, operands, base.type, properties, key)


def scaled(c: Conversion, index: Size, stride: Size) -> Size:
    """`index * stride`, a number where both are."""
    index, stride = as_number(index), as_number(stride)
    if isinstance(index, int) and isinstance(stride, int):
        return index * stride
    if index == 0 or stride == 0:
        return 0
    if index == 1:
        return stride
    if stride == 1:
        return index
    operands = (c.sized(index), c.sized(stride))
    return c.hoisted(MulOp, operands, operands[0].type, _WRAPS, ("mul", *map(id, operands)))


def added(c: Conversion, a: Size, b: Size) -> Size:
    """`a + b`, a number where both are."""
    a, b = as_number(a), as_number(b)
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if a == 0:
        return b
    if b == 0:
        return a
    operands = (c.sized(a), c.sized(b))
    return c.hoisted(AddOp, operands, operands[0].type, _WRAPS, ("add", *map(id, operands)))


def element_pointer(
    c: Conversion, descriptor: Descriptor, indices: Sequence[SSAValue], element: Attribute
) -> SSAValue:
    """Pointer to the element at `indices` (i64 values) of `descriptor`."""
    constant, terms = 0, list[Term]()
    for index, stride in zip(indices, descriptor.strides, strict=True):
        known = isinstance(stride, int)
        key = id(index), known, stride if known else id(stride)
        if key not in c.terms:
            c.terms[key] = _terms_of(c, index, stride)
        number, some = c.terms[key]
        constant += number
        terms += some
    if isinstance(descriptor.offset, int):
        constant += descriptor.offset
    else:
        terms.append((c.depth(descriptor.offset), descriptor.offset))
    if len(terms) > 1:
        terms.sort(key=_depth)
    pointer, width = descriptor.aligned, byte_width(element)
    for _, term in terms:
        pointer = _offset(c, pointer, as_number(term), element, width)
    return _offset(c, pointer, constant, element, width)


def _terms_of(c: Conversion, index: SSAValue, stride: Size) -> tuple[int, list[Term]]:
    """`index * stride` as a number and terms with the depths of their definitions."""
    constant, terms = 0, list[Term]()
    variable, number = split_constant(index)
    if isinstance(stride, int):
        constant = number * stride
    elif number:
        terms.append((c.depth(stride), scaled(c, number, stride)))
    if variable is not None:
        term = scaled(c, variable, stride)
        terms.append((c.depth(term), term))
    return constant, terms


def _depth(term: Term) -> int:
    return term[0]


@cache
def access_properties(alignment: int) -> Mapping[str, Attribute]:
    """Properties of a load or store that is aligned to `alignment` bytes: one element, all that a
    view promises."""
    return {"alignment": IntegerAttr(alignment, i64), "ordering": IntegerAttr(0, i64)}


@cache
def masked_properties(alignment: int) -> Mapping[str, Attribute]:
    """The same for the masked intrinsics."""
    return {"alignment": IntegerAttr(alignment, i32)}


def access(c: Conversion, memref: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
    """Pointer to the element of the original `memref` at the original `indices`."""
    type = as_memref(memref.type)
    assert type is not None
    element = llvm_type(type.element_type)
    converted = [c.value(index) for index in indices]
    return element_pointer(c, c.descriptor(memref), converted, element)
