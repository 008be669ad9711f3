"""Attributes and types of `tssa`: symbolic sizes in the text of the IR, and what reads and makes them.

A tensor type with a dynamic size carries `#tssa.dims<[n, 8, n + 1]>`, one expression per axis; fully static
types carry none. bool is `i1` in tensors and a byte in buffers. A Python scalar is a tensor of rank 0 like any
other: that it is weak has been used up when types are explicit.
"""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    NoneAttr,
    TensorType,
    f32,
    f64,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Data, Operation, SSAValue
from xdsl.irdl import (
    irdl_attr_definition,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Dim, Shape
from jitdialects.bytecode.dtypes import DType

# ---- attributes --------------------------------------------------------------------------------


def _parse_dim(parser: AttrParser) -> Dim:
    """An expression in the text of `bytecode.dims`, read from the parser's own tokens."""
    out = _parse_term(parser)
    while True:
        if parser.parse_optional_punctuation("+") is not None:
            out = dims.add(out, _parse_term(parser))
        elif parser.parse_optional_punctuation("-") is not None:
            out = dims.sub(out, _parse_term(parser))
        else:
            return out


def _parse_term(parser: AttrParser) -> Dim:
    out = _parse_atom(parser)
    while parser.parse_optional_punctuation("*") is not None:
        out = dims.mul(out, _parse_atom(parser))
    return out


def _parse_atom(parser: AttrParser) -> Dim:
    number = parser.parse_optional_integer(allow_boolean=False)
    if number is not None:
        return number
    name = parser.parse_identifier()
    if parser.parse_optional_punctuation("(") is None:
        return dims.symbol(name)
    if name not in dims.FUNCTIONS:
        parser.raise_error(f"unknown function '{name}' in a size")
    left = _parse_dim(parser)
    parser.parse_punctuation(",")
    right = _parse_dim(parser)
    parser.parse_punctuation(")")
    return dims.mul(left, right) if name == "mul" else dims.apply(name, left, right)


@irdl_attr_definition
class DimsAttr(Data[tuple[Dim, ...]]):
    """`#tssa.dims<[n, 8, n + 1]>`: symbolic sizes, as a tensor's encoding or on their own."""

    name = "tssa.dims"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Dim, ...]:
        with parser.in_angle_brackets():
            return tuple(
                parser.parse_comma_separated_list(
                    parser.Delimiter.SQUARE, lambda: _parse_dim(parser)
                )
            )

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<[{', '.join(map(str, self.data))}]>")


@irdl_attr_definition
class GuardAttr(Data[tuple[str, Dim, Dim]]):
    """`#tssa.guard<n == m>` or `#tssa.guard<1 <= n>`: what the code relies on."""

    name = "tssa.guard"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[str, Dim, Dim]:
        with parser.in_angle_brackets():
            left = _parse_dim(parser)
            less = parser.parse_optional_punctuation("<") is not None
            if not less:
                parser.parse_punctuation("=")
            parser.parse_punctuation("=")
            return ("<=" if less else "==", left, _parse_dim(parser))

    def print_parameter(self, printer: Printer) -> None:
        relation, left, right = self.data
        printer.print_string(f"<{left} {relation} {right}>")


# ---- types -------------------------------------------------------------------------------------

ELEMENT_TYPES: dict[str, Attribute] = {
    "bool": i1,
    "int32": i32,
    "int64": i64,
    "float32": f32,
    "float64": f64,
}
_DTYPES: dict[Attribute, str] = {element: name for name, element in ELEMENT_TYPES.items()}
_STRONG = {name: DType(name) for name in ELEMENT_TYPES}


def tensor_type(dtype: DType, shape: Shape) -> TensorType[Attribute]:
    """The canonical type: sizes that are expressions are `?` with `#tssa.dims`."""
    return _tensor_type(ELEMENT_TYPES[dtype.name], tuple(shape))


@lru_cache(4096)
def _tensor_type(element: Attribute, shape: Shape) -> TensorType[Attribute]:
    """Made once for each shape, as everything in `dialects.interned`."""
    static = [DYNAMIC_INDEX if not isinstance(s, int) else s for s in shape]
    encoding = DimsAttr(shape) if DYNAMIC_INDEX in static else NoneAttr()
    return TensorType(element, static, encoding)


def tensor_of(value: SSAValue | Attribute) -> TensorType[Attribute]:
    """The tensor type; a plain test of the class, since passes ask at every operation."""
    tensor = value.type if isinstance(value, SSAValue) else value
    if not isinstance(tensor, TensorType):
        raise VerifyException(f"expected a tensor, got {tensor}")
    return cast(TensorType[Attribute], tensor)


def shape_of(value: SSAValue | Attribute) -> Shape:
    """Sizes of a tensor value or type; `VerifyException` where a dynamic one has no expression."""
    tensor = tensor_of(value)
    encoding = tensor.encoding
    if isinstance(encoding, DimsAttr):
        return encoding.data
    shape = tensor.get_shape()
    if DYNAMIC_INDEX in shape:
        raise VerifyException(f"{tensor} has a dynamic size without #tssa.dims")
    return shape


def dtype_of(value: SSAValue | Attribute) -> DType:
    """Element type of a tensor value or type."""
    element = tensor_of(value).get_element_type()
    name = _DTYPES.get(element)
    if name is None:
        known = ", ".join(map(str, _DTYPES))
        raise VerifyException(f"element type {element} is none of {known}")
    return _STRONG[name]


def verify_tensor(value: SSAValue) -> None:
    """Check that the encoding agrees with the static sizes and that the element type is known."""
    dtype_of(value)
    sizes = shape_of(value)
    tensor = tensor_of(value)
    static = tensor.get_shape()
    expected = tuple(s if isinstance(s, int) else DYNAMIC_INDEX for s in sizes)
    if static != expected:
        raise VerifyException(f"sizes of {value.type} disagree with its #tssa.dims")
    if all(isinstance(s, int) for s in sizes) and tensor.encoding != NoneAttr():
        raise VerifyException(f"{value.type} is static and must not carry #tssa.dims")


def buffer_element_type(element: Attribute) -> Attribute:
    """How an element lies in memory: bool takes a byte."""
    return i8 if element == i1 else element


def guards_of(function: Operation) -> tuple[GuardAttr, ...]:
    """The guards of a function after `convert-vm-to-tssa`."""
    attribute = function.attributes.get("tssa.guards")
    if attribute is None:
        return ()
    if not isa(attribute, ArrayAttr[GuardAttr]):
        raise VerifyException("tssa.guards must be an array of #tssa.guard")
    return attribute.data
