"""Attributes of the `vm` dialect: what bytecode instructions carry besides registers, as IR attributes.

    axis = -1 : i64, keepdims = true, axes = none       builtin attributes where there are some
    axes = array<i64: 1, 0>, dtype = "float32"
    shape = #vm.shape<"[$1, 4, -1]">                    the text is that of bytecode
    index = #vm.index<"[0:$1, ..., newaxis]">
    #vm.registers<0, 3>                                 what an instruction reads or writes
    #vm.constant<"f32[2] [1.0, -0.0]">                  an entry of the constant pool

`to_attribute` and `from_attribute` are inverse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    IntAttr,
    IntegerAttr,
    NoneType,
    StringAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from jitdialects.bytecode import attributes as bytecode
from jitdialects.bytecode.attributes import IndexSpec, Ints, ShapeSpec
from jitdialects.bytecode.lexer import Cursor
from jitdialects.bytecode.literals import constant_text, parse_attribute, parse_constant
from jitdialects.bytecode.program import Constant
from jitdialects.errors import BytecodeError

T = TypeVar("T")


def _parse_literal(parser: AttrParser, parse: Callable[[Cursor], T]) -> T:
    """What the string literal ahead says, in the text form of bytecode."""
    try:
        cursor = Cursor(parser.parse_str_literal(), "attribute", 1)
        out = parse(cursor)
        cursor.take("end")
    except BytecodeError as error:
        parser.raise_error(str(error))
    return out


def parse_pool_entry(parser: AttrParser) -> ConstantAttr:
    """A constant, written as a string."""
    return ConstantAttr(_parse_literal(parser, parse_constant))


def print_pool_entry(printer: Printer, constant: Constant) -> None:
    """The inverse of `parse_pool_entry`. The text is printable ASCII without a backslash, and may have
    millions of digits: xDSL's `print_string_literal` looks at each in Python."""
    escaped = constant_text(constant).replace('"', r"\22")
    printer.print_string(f'"{escaped}"')


@irdl_attr_definition
class ConstantAttr(Data[Constant]):
    """An entry of the constant pool; equality is bitwise."""

    name = "vm.constant"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Constant:
        with parser.in_angle_brackets():
            return _parse_literal(parser, parse_constant)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_pool_entry(printer, self.data)


@irdl_attr_definition
class ShapeAttr(Data[ShapeSpec]):
    """A target shape."""

    name = "vm.shape"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ShapeSpec:
        with parser.in_angle_brackets():
            value = _parse_literal(parser, lambda cursor: parse_attribute(cursor, (ShapeSpec,)))
        assert isinstance(value, ShapeSpec)
        return value

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(str(self.data))


@irdl_attr_definition
class IndexAttr(Data[IndexSpec]):
    """What stands between the brackets of `x[...]`."""

    name = "vm.index"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> IndexSpec:
        with parser.in_angle_brackets():
            value = _parse_literal(parser, lambda cursor: parse_attribute(cursor, (IndexSpec,)))
        assert isinstance(value, IndexSpec)
        return value

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(str(self.data))


@irdl_attr_definition
class RegistersAttr(Data[tuple[int, ...]]):
    """Register numbers, `#vm.registers<0, 3>`."""

    name = "vm.registers"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[int, ...]:
        numbers = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_integer)
        return tuple(numbers)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_list(self.data, printer.print_int)


NO_REGISTERS = RegistersAttr(())


def to_attribute(value: bytecode.Attribute) -> Attribute:
    """The IR attribute for a bytecode attribute value."""
    match value:
        case None:
            return NoneType()
        case bool():
            return BoolAttr.from_bool(value)
        case int():
            return IntegerAttr(value, i64)
        case str():
            return StringAttr(value)
        case Ints(values):
            return DenseArrayBase.from_list(i64, values)
        case ShapeSpec():
            return ShapeAttr(value)
        case IndexSpec():
            return IndexAttr(value)


def from_attribute(attribute: Attribute) -> bytecode.Attribute:
    """The inverse of `to_attribute`; `VerifyException` for any other attribute."""
    match attribute:
        case NoneType():
            return None
        case IntegerAttr(value=IntAttr(data=data), type=type):
            return bool(data) if type == i1 else data
        case StringAttr(data=data):
            return data
        case DenseArrayBase(elt_type=type) if type == i64:
            return Ints(_integers(attribute))
        case ShapeAttr(data=shape):
            return shape
        case IndexAttr(data=index):
            return index
        case _:
            raise VerifyException(f"{attribute} is not an attribute that bytecode has")


def _integers(array: Attribute) -> tuple[int, ...]:
    assert DenseArrayBase.constr(i64).verifies(array)
    return array.get_values()
