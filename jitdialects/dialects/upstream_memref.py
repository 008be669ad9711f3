"""The operation of the memref dialect that xDSL 0.75 lacks: `memref.prefetch`, as in MLIR 22."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import BoolAttr, IndexType, IntegerAttr, MemRefType, i32
from xdsl.dialects.memref import MemRef
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

MOST_LOCAL = 3
"""Into the cache that is closest."""


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """`memref.prefetch %m[%i], read, locality<3>, data : memref<?xf32>`: the line with this element will be read. A
    hint: nothing happens if there is no such element."""

    name = "memref.prefetch"

    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    isWrite = prop_def(BoolAttr)
    localityHint = prop_def(IntegerAttr)
    isDataCache = prop_def(BoolAttr)

    def __init__(
        self,
        memref: SSAValue,
        indices: Sequence[SSAValue],
        write: bool = False,
        locality: int = MOST_LOCAL,
        data: bool = True,
    ) -> None:
        super().__init__(
            operands=(memref, indices),
            properties={
                "isWrite": BoolAttr.from_bool(write),
                "localityHint": IntegerAttr(locality, i32),
                "isDataCache": BoolAttr.from_bool(data),
            },
        )

    def verify_(self) -> None:
        type = cast("MemRefType[Attribute]", self.memref.type)
        if len(self.indices) != type.get_num_dims():
            raise VerifyException("memref.prefetch needs an index for each axis")
        if not 0 <= self.localityHint.value.data <= MOST_LOCAL:
            raise VerifyException("memref.prefetch: locality is a number from 0 to 3")

    @classmethod
    def parse(cls, parser: Parser) -> PrefetchOp:
        memref = parser.parse_unresolved_operand()
        names = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, parser.parse_unresolved_operand
        )
        parser.parse_punctuation(",")
        write = _either(parser, "write", "read")
        parser.parse_punctuation(",")
        parser.parse_keyword("locality")
        with parser.in_angle_brackets():
            locality = parser.parse_integer()
        parser.parse_punctuation(",")
        data = _either(parser, "data", "instr")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        base = parser.resolve_operand(memref, parser.parse_type())
        indices = parser.resolve_operands(names, [IndexType()] * len(names), parser.pos)
        op = cls(base, indices, write, locality, data)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.memref)
        with printer.in_square_brackets():
            printer.print_list(self.indices, printer.print_ssa_value)
        way = "write" if self.isWrite.value.data else "read"
        kind = "data" if self.isDataCache.value.data else "instr"
        printer.print_string(f", {way}, locality<{self.localityHint.value.data}>, {kind}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.memref.type)


def _either(parser: Parser, yes: str, no: str) -> bool:
    """One of two words; whether it is the first."""
    if parser.parse_optional_keyword(yes) is not None:
        return True
    parser.parse_keyword(no)
    return False


COMPLETED_MEMREF = Dialect(MemRef.name, [*MemRef.operations, PrefetchOp], list(MemRef.attributes))
"""xDSL's dialect with this operation."""
