"""Upstream operations that xDSL 0.75 lacks, or has for scalars only: same names, upstream semantics.

`COMPLETED_ARITH` and `COMPLETED_LLVM` are xDSL's dialects with these in place of its own. The textual
forms are MLIR 22's. Each gap is described in docs/upstream-gaps.md, as a patch to offer.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable
from typing import ClassVar

from xdsl.dialect_interfaces import DialectInterface
from xdsl.dialect_interfaces.constant_materialization import ConstantMaterializationInterface
from xdsl.dialects.arith import (
    CMPF_COMPARISON_OPERATIONS,
    CMPI_COMPARISON_OPERATIONS,
    Arith,
    FastMathFlagsAttr,
)
from xdsl.dialects.builtin import (
    AnyFloatConstr,
    IndexTypeConstr,
    IntegerAttr,
    SignlessIntegerConstraint,
    TensorType,
    VectorType,
    i1,
    i64,
)
from xdsl.dialects.llvm import (
    LLVM,
)
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from jitdialects.dialects.upstream_casts import CASTS
from jitdialects.dialects.upstream_llvm import LLVM_OPERATIONS
from jitdialects.dialects.upstream_types import boolean_like, verify_condition

_INT_SCALAR = SignlessIntegerConstraint | IndexTypeConstr
_INT_LIKE = (
    _INT_SCALAR | VectorType.constr(_INT_SCALAR) | TensorType.constr(element_type=_INT_SCALAR)
)
_FLOAT_LIKE = (
    AnyFloatConstr
    | VectorType.constr(AnyFloatConstr)
    | TensorType.constr(element_type=AnyFloatConstr)
)
_STRICT = FastMathFlagsAttr("none")


class _ArithComparison(IRDLOperation, ABC):
    PREDICATES: ClassVar[list[str]]

    traits = traits_def(Pure())

    predicate = prop_def(IntegerAttr)

    def verify_(self) -> None:
        operand, result = self.operands[0].type, self.results[0].type
        verify_condition(self.name, result, operand, may_be_scalar=False)
        if not 0 <= self.predicate.value.data < len(self.PREDICATES):
            raise VerifyException(f"{self.name} has no predicate {self.predicate.value.data}")

    @classmethod
    def _parse_head(cls, parser: Parser):
        keyword = parser.parse_identifier()
        if keyword not in cls.PREDICATES:
            parser.raise_error(f"{cls.name} needs one of {', '.join(cls.PREDICATES)}")
        parser.parse_punctuation(",")
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        return keyword, lhs, rhs

    def _print_head(self, printer: Printer) -> None:
        printer.print_string(f" {self.PREDICATES[self.predicate.value.data]}, ")
        printer.print_ssa_value(self.operands[0])
        printer.print_string(", ")
        printer.print_ssa_value(self.operands[1])


@irdl_op_definition
class CmpiOp(_ArithComparison):
    """`arith.cmpi` on integers, index, and vectors and tensors of them."""

    name = "arith.cmpi"
    PREDICATES: ClassVar[list[str]] = CMPI_COMPARISON_OPERATIONS

    T: ClassVar = VarConstraint("T", _INT_LIKE)

    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def()

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation, predicate: str):
        lhs = SSAValue.get(lhs)
        super().__init__(
            operands=[lhs, rhs],
            result_types=[boolean_like(lhs.type)],
            properties={"predicate": IntegerAttr(self.PREDICATES.index(predicate), i64)},
        )

    @classmethod
    def parse(cls, parser: Parser) -> CmpiOp:
        keyword, lhs, rhs = cls._parse_head(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        lhs, rhs = parser.resolve_operands([lhs, rhs], [type, type], parser.pos)
        op = cls(lhs, rhs, keyword)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        self._print_head(printer)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)


@irdl_op_definition
class CmpfOp(_ArithComparison):
    """`arith.cmpf` on floats, and vectors and tensors of them."""

    name = "arith.cmpf"
    PREDICATES: ClassVar[list[str]] = CMPF_COMPARISON_OPERATIONS

    T: ClassVar = VarConstraint("T", _FLOAT_LIKE)

    lhs = operand_def(T)
    rhs = operand_def(T)
    fastmath = prop_def(FastMathFlagsAttr, default_value=_STRICT)
    result = result_def()

    def __init__(
        self,
        lhs: SSAValue | Operation,
        rhs: SSAValue | Operation,
        predicate: str,
        fastmath: FastMathFlagsAttr = _STRICT,
    ):
        lhs = SSAValue.get(lhs)
        super().__init__(
            operands=[lhs, rhs],
            result_types=[boolean_like(lhs.type)],
            properties={
                "predicate": IntegerAttr(self.PREDICATES.index(predicate), i64),
                "fastmath": fastmath,
            },
        )

    @classmethod
    def parse(cls, parser: Parser) -> CmpfOp:
        keyword, lhs, rhs = cls._parse_head(parser)
        fastmath = _STRICT
        if parser.parse_optional_keyword("fastmath"):
            fastmath = FastMathFlagsAttr(FastMathFlagsAttr.parse_parameter(parser))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        lhs, rhs = parser.resolve_operands([lhs, rhs], [type, type], parser.pos)
        op = cls(lhs, rhs, keyword, fastmath)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        self._print_head(printer)
        if self.fastmath != _STRICT:
            printer.print_string(" fastmath")
            self.fastmath.print_parameter(printer)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)


@irdl_op_definition
class SelectOp(IRDLOperation):
    """`arith.select`: one condition for all of the value, or one for each lane or element."""

    name = "arith.select"

    T: ClassVar = VarConstraint("T", AnyAttr())

    condition = operand_def()
    true_value = operand_def(T)
    false_value = operand_def(T)
    result = result_def(T)

    traits = traits_def(Pure())

    def __init__(
        self,
        condition: SSAValue | Operation,
        true_value: SSAValue | Operation,
        false_value: SSAValue | Operation,
    ):
        true_value = SSAValue.get(true_value)
        super().__init__(
            operands=[condition, true_value, false_value], result_types=[true_value.type]
        )

    def verify_(self) -> None:
        verify_condition(self.name, self.condition.type, self.result.type, may_be_scalar=True)

    @classmethod
    def parse(cls, parser: Parser) -> SelectOp:
        names = [parser.parse_unresolved_operand()]
        for _ in range(2):
            parser.parse_punctuation(",")
            names.append(parser.parse_unresolved_operand())
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        condition: Attribute = i1
        if parser.parse_optional_punctuation(","):
            condition, type = type, parser.parse_type()
        operands = parser.resolve_operands(names, [condition, type, type], parser.pos)
        op = cls(operands[0], operands[1], operands[2])
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        if self.condition.type != i1:
            printer.print_attribute(self.condition.type)
            printer.print_string(", ")
        printer.print_attribute(self.result.type)


def _completed(dialect: Dialect, operations: Iterable[type[Operation]]) -> Dialect:
    """`dialect` with `operations` added, replacing those of the same name."""
    merged = {op.name: op for op in dialect.operations}
    merged.update((op.name, op) for op in operations)
    materialization = dialect.get_interface(ConstantMaterializationInterface)
    interfaces: list[DialectInterface] = [materialization] if materialization else []
    return Dialect(dialect.name, list(merged.values()), list(dialect.attributes), interfaces)


ARITH_ON_VECTORS = {op.name: op for op in (CmpiOp, CmpfOp, SelectOp, *CASTS)}
"""By name, the classes that take vectors where xDSL's take scalars only."""

COMPLETED_ARITH = _completed(Arith, ARITH_ON_VECTORS.values())

COMPLETED_LLVM = _completed(LLVM, LLVM_OPERATIONS)
