"""The text of constants and attribute values; printing and parsing are inverse, to the bit.

    f32[2,2] [1.5, -0.0, inf, 0x7fc00001]    elements in C order; 0x: the bits of a NaN with a payload
    f32[784,512] "0x0000803f..."             the bytes, little endian: what long constants print as
    float 0.1    int 3    pybool true        Python scalars
    i64[] [3]    bool[2] [true, false]

Attribute values: `-1`, `true`, `none`, `float32`, `(1, 0)`, shapes `[$1, -1]` and indices `[0:$1, ...]`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jitdialects.bytecode.attributes import (
    At,
    Attribute,
    Bound,
    Ellipsis,
    IndexEntry,
    IndexSpec,
    Ints,
    NewAxis,
    OperandRef,
    ShapeSpec,
    Slice,
)
from jitdialects.bytecode.dtypes import DType, integer_range
from jitdialects.bytecode.lexer import Cursor
from jitdialects.bytecode.program import Constant, Location
from jitdialects.bytecode.signature import SCALAR_NAMES, SPELLING, TENSOR_NAMES
from jitdialects.bytecode.verifier import check_sizes

LONGEST_LIST = 64
"""Elements; constants with more are printed as bytes."""
_BOOLS = {"true": True, "false": False}


# ---- constants ---------------------------------------------------------------------------------


def constant_text(constant: Constant) -> str:
    """The text of a valid constant."""
    name = SPELLING[constant.dtype]
    if constant.dtype.weak:
        return f"{name} {_element_texts(constant.value)[0]}"
    head = f"{name}[{','.join(map(str, constant.value.shape))}]"
    if constant.value.size > LONGEST_LIST:
        return f'{head} "0x{constant.to_bytes().hex()}"'
    return f"{head} [{', '.join(_element_texts(constant.value))}]"


def _element_texts(value: NDArray[np.generic]) -> list[str]:
    flat = value.reshape(-1)
    if value.dtype.kind != "f":
        return [str(x).lower() for x in flat.tolist()]
    unsigned = np.dtype(f"u{value.itemsize}")
    texts = [str(x) for x in flat]  # the shortest that gives the same number, but any NaN is "nan"
    again = np.array([float(t) for t in texts], dtype=value.dtype).view(unsigned).tolist()
    bits = flat.view(unsigned).tolist()
    digits = 2 * value.itemsize
    return [
        text if x == y else f"0x{x:0{digits}x}"
        for text, x, y in zip(texts, bits, again, strict=True)
    ]


def parse_constant(cursor: Cursor) -> Constant:
    """The constant ahead."""
    start = cursor.location
    name = cursor.take("name")
    if name in SCALAR_NAMES:
        dtype = SCALAR_NAMES[name]
        return Constant.of(_element(cursor, dtype), dtype)
    if name not in TENSOR_NAMES:
        known = ", ".join(TENSOR_NAMES | SCALAR_NAMES)
        raise cursor.error(f"unknown dtype '{name}' (known: {known})", start)
    dtype = TENSOR_NAMES[name]
    sizes = tuple(cursor.list("[", "]", cursor.integer))
    with cursor.blaming(start):
        check_sizes("the constant", sizes, dtype.numpy.itemsize)
    if cursor.kind == "string":
        data = _hex(cursor)
    else:
        elements = cursor.list("[", "]", lambda: _element(cursor, dtype))
        data = np.array(elements, dtype=dtype.numpy.newbyteorder("<")).tobytes()
    with cursor.blaming(start):
        constant = Constant.from_bytes(dtype, sizes, data)
    return constant


def _hex(cursor: Cursor) -> bytes:
    here = cursor.location
    text = cursor.take("string")[1:-1]
    try:
        if not text.startswith("0x"):
            raise ValueError
        return bytes.fromhex(text[2:])
    except ValueError:
        raise cursor.error(
            'the bytes of a constant are written "0x" and hex digits', here
        ) from None


def _element(cursor: Cursor, dtype: DType) -> np.generic:
    if dtype.name == "bool":
        if cursor.value not in _BOOLS:
            raise cursor.error(f"expected true or false, found '{cursor.value}'")
        return np.bool_(_BOOLS[cursor.take("name")])
    here, kind = cursor.location, dtype.numpy.type
    if dtype.is_integer:
        value = cursor.integer()
        low, high = integer_range(dtype.name)
        if not low <= value <= high:
            raise cursor.error(f"{value} is not an {dtype.name}", here)
        return kind(value)
    text = cursor.take("number")
    if text.lower().startswith(("0x", "-0x")):
        return _from_bits(cursor, text, dtype, here)
    with np.errstate(over="ignore"):
        number = kind(float(text))
    if np.isinf(number) and not text.endswith("inf"):
        raise cursor.error(f"{text} is too large for {dtype.name}; write inf if it is meant", here)
    return number


def _from_bits(cursor: Cursor, text: str, dtype: DType, here: Location) -> np.generic:
    digits = 2 * dtype.numpy.itemsize
    if len(text) != 2 + digits or text[0] == "-":
        raise cursor.error(
            f"{text}: the bits of a {dtype.name} are 0x and {digits} hex digits", here
        )
    raw = int(text, 16).to_bytes(dtype.numpy.itemsize, "little")
    return Constant.from_bytes(dtype, (), raw).value.reshape(1)[0]


# ---- attributes --------------------------------------------------------------------------------


def attribute_text(value: Attribute) -> str:
    """The text of an attribute value."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def parse_attribute(cursor: Cursor, types: tuple[type, ...]) -> Attribute:
    """The value ahead, of one of `types`; a shape and an index look alike, hence the parameter."""
    if ShapeSpec in types:
        return ShapeSpec(tuple(cursor.list("[", "]", lambda: _number_or_reference(cursor))))
    if IndexSpec in types:
        return IndexSpec(tuple(cursor.list("[", "]", lambda: _index_entry(cursor))))
    if cursor.kind == "mark" and cursor.value == "(":
        return Ints(tuple(cursor.list("(", ")", cursor.integer)))
    if cursor.kind == "number":
        return cursor.integer()
    text = cursor.take("name")
    return {"none": None, **_BOOLS}.get(text, text)


def _number_or_reference(cursor: Cursor) -> int | OperandRef:
    if cursor.kind == "reference":
        return OperandRef(int(cursor.take("reference")))
    return cursor.integer()


def _index_entry(cursor: Cursor) -> IndexEntry:
    if cursor.skip("..."):
        return Ellipsis()
    if cursor.skip_word("newaxis"):
        return NewAxis()
    start: Bound = None
    if cursor.kind in ("number", "reference"):
        start = _number_or_reference(cursor)
    if not cursor.skip(":"):
        if start is None:
            raise cursor.error(
                f"expected an index, a slice, '...' or newaxis, found {cursor.value!r}"
            )
        return At(start)
    stop = _number_or_reference(cursor) if cursor.kind in ("number", "reference") else None
    step = cursor.integer() if cursor.skip(":") else 1
    return Slice(start, stop, step)
