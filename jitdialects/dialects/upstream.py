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
    I1,
    AnyFloatConstr,
    BoolAttr,
    IndexTypeConstr,
    IntegerAttr,
    ShapedType,
    SignlessIntegerConstraint,
    TensorType,
    VectorType,
    i1,
    i64,
)
from xdsl.dialects.llvm import (
    LLVM,
    FastMathAttr,
    FCmpPredicateFlag,
    GenericCastOp,
    LLVMPointerType,
)
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect, Pure, SameOperandsAndResultType
from xdsl.utils.exceptions import VerifyException

from jitdialects.dialects.upstream_casts import CASTS

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
_LLVM_INT = SignlessIntegerConstraint | VectorType.constr(SignlessIntegerConstraint)
_LLVM_FLOAT = AnyFloatConstr | VectorType.constr(AnyFloatConstr)


def boolean_like(type: Attribute) -> Attribute:
    """`i1`, or the vector or tensor of `i1` with the shape of `type`."""
    if isinstance(type, VectorType):
        return VectorType(i1, type.shape, type.scalable_dims)
    if isinstance(type, TensorType):
        return TensorType(i1, type.get_shape())
    return i1


def _verify_condition(name: str, condition: Attribute, value: Attribute, *, may_be_scalar: bool):
    if may_be_scalar and condition == i1:
        return
    if condition != boolean_like(value):
        raise VerifyException(
            f"{name} needs {boolean_like(value)} to go with {value}, not {condition}"
        )


# ---- arith


class _ArithComparison(IRDLOperation, ABC):
    PREDICATES: ClassVar[list[str]]

    traits = traits_def(Pure())

    predicate = prop_def(IntegerAttr)

    def verify_(self) -> None:
        operand, result = self.operands[0].type, self.results[0].type
        _verify_condition(self.name, result, operand, may_be_scalar=False)
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
        _verify_condition(self.name, self.condition.type, self.result.type, may_be_scalar=True)

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


# ---- llvm: scalar operations that upstream allows on vectors too


@irdl_op_definition
class LlvmFCmpOp(IRDLOperation):
    """`llvm.fcmp` on floats and vectors of floats."""

    name = "llvm.fcmp"

    T: ClassVar = VarConstraint("T", _LLVM_FLOAT)

    predicate = prop_def(IntegerAttr)
    lhs = operand_def(T)
    rhs = operand_def(T)
    fastmathFlags = prop_def(FastMathAttr, default_value=FastMathAttr(None))
    res = result_def(I1 | VectorType[I1])

    traits = traits_def(Pure())

    irdl_options = (ParsePropInAttrDict(),)

    def verify_(self) -> None:
        _verify_condition(self.name, self.res.type, self.lhs.type, may_be_scalar=False)

    @classmethod
    def parse(cls, parser: Parser) -> LlvmFCmpOp:
        flag = FCmpPredicateFlag(parser.parse_str_literal())
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        properties: dict[str, Attribute] = {
            "predicate": IntegerAttr(flag.to_int(), i64),
            "fastmathFlags": attributes.pop("fastmathFlags", FastMathAttr(None)),
        }
        return cls.create(
            operands=parser.resolve_operands([lhs, rhs], [type, type], parser.pos),
            result_types=[boolean_like(type)],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f' "{FCmpPredicateFlag.from_int(self.predicate.value.data)}" ')
        printer.print_list(self.operands, printer.print_ssa_value)
        attributes = dict(self.attributes)
        if self.fastmathFlags != FastMathAttr(None):
            attributes["fastmathFlags"] = self.fastmathFlags
        printer.print_op_attributes(attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)


@irdl_op_definition
class LlvmSelectOp(IRDLOperation):
    """`llvm.select` with one condition, or with one for each lane."""

    name = "llvm.select"

    T: ClassVar = VarConstraint("T", AnyAttr())

    condition = operand_def(I1 | VectorType[I1])
    true_value = operand_def(T)
    false_value = operand_def(T)
    fastmathFlags = prop_def(FastMathAttr, default_value=FastMathAttr(None))
    res = result_def(T)

    traits = traits_def(Pure())

    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = (
        "$condition `,` $true_value `,` $false_value attr-dict `:` type($condition) `,` type($res)"
    )

    def verify_(self) -> None:
        _verify_condition(self.name, self.condition.type, self.res.type, may_be_scalar=True)


# ---- llvm: missing casts and element access


@irdl_op_definition
class LlvmFPToSIOp(GenericCastOp):
    """Poison where the value does not fit: check the range first."""

    name = "llvm.fptosi"


@irdl_op_definition
class LlvmFPToUIOp(GenericCastOp):
    """Poison where the value does not fit: check the range first."""

    name = "llvm.fptoui"


@irdl_op_definition
class LlvmUIToFPOp(GenericCastOp):
    name = "llvm.uitofp"


@irdl_op_definition
class LlvmExtractElementOp(IRDLOperation):
    name = "llvm.extractelement"

    T: ClassVar = VarConstraint("T", AnyAttr())

    vector = operand_def(VectorType.constr(T))
    position = operand_def(SignlessIntegerConstraint)
    res = result_def(T)

    traits = traits_def(NoMemoryEffect())

    def verify_(self) -> None:
        if isinstance(self.vector.type, ShapedType) and self.vector.type.get_num_dims() != 1:
            raise VerifyException("llvm.extractelement needs a vector of one dimension")

    assembly_format = "$vector `[` $position `:` type($position) `]` attr-dict `:` type($vector)"


# ---- llvm: intrinsics


@irdl_op_definition
class LlvmMaskedLoadOp(IRDLOperation):
    """Lanes whose mask bit is clear touch no memory and yield the lane of `pass_thru`."""

    name = "llvm.intr.masked.load"

    T: ClassVar = VarConstraint("T", VectorType.constr(AnyAttr()))

    data = operand_def(LLVMPointerType)
    mask = operand_def(VectorType[I1])
    pass_thru = operand_def(T)
    alignment = prop_def(IntegerAttr)
    res = result_def(T)

    traits = traits_def()

    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = "operands attr-dict `:` functional-type(operands, results)"


@irdl_op_definition
class LlvmMaskedStoreOp(IRDLOperation):
    """Lanes whose mask bit is clear touch no memory. xDSL's stores vectors of floats only."""

    name = "llvm.intr.masked.store"

    value = operand_def(VectorType)
    data = operand_def(LLVMPointerType)
    mask = operand_def(VectorType[I1])
    alignment = prop_def(IntegerAttr)

    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = (
        "$value `,` $data `,` $mask attr-dict `:` type($value) `,` type($mask) `into` type($data)"
    )


class _FloatUnaryIntrinsic(IRDLOperation, ABC):
    T: ClassVar = VarConstraint("T", _LLVM_FLOAT)

    arg = operand_def(T)
    fastmathFlags = prop_def(FastMathAttr, default_value=FastMathAttr(None))
    res = result_def(T)

    traits = traits_def(Pure(), SameOperandsAndResultType())

    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"


class _FloatBinaryIntrinsic(IRDLOperation, ABC):
    T: ClassVar = VarConstraint("T", _LLVM_FLOAT)

    a = operand_def(T)
    b = operand_def(T)
    fastmathFlags = prop_def(FastMathAttr, default_value=FastMathAttr(None))
    res = result_def(T)

    traits = traits_def(Pure(), SameOperandsAndResultType())

    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"


class _IntBinaryIntrinsic(IRDLOperation, ABC):
    T: ClassVar = VarConstraint("T", _LLVM_INT)

    a = operand_def(T)
    b = operand_def(T)
    res = result_def(T)

    traits = traits_def(Pure(), SameOperandsAndResultType())

    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"


@irdl_op_definition
class LlvmMaximumOp(_FloatBinaryIntrinsic):
    """NaN if an operand is NaN; +0.0 is above -0.0. (`maxnum` drops NaN.)"""

    name = "llvm.intr.maximum"


@irdl_op_definition
class LlvmMinimumOp(_FloatBinaryIntrinsic):
    """NaN if an operand is NaN; -0.0 is below +0.0. (`minnum` drops NaN.)"""

    name = "llvm.intr.minimum"


@irdl_op_definition
class LlvmRoundEvenOp(_FloatUnaryIntrinsic):
    name = "llvm.intr.roundeven"


@irdl_op_definition
class LlvmFTruncOp(_FloatUnaryIntrinsic):
    name = "llvm.intr.trunc"


@irdl_op_definition
class LlvmSMaxOp(_IntBinaryIntrinsic):
    name = "llvm.intr.smax"


@irdl_op_definition
class LlvmSMinOp(_IntBinaryIntrinsic):
    name = "llvm.intr.smin"


@irdl_op_definition
class LlvmUMaxOp(_IntBinaryIntrinsic):
    name = "llvm.intr.umax"


@irdl_op_definition
class LlvmUMinOp(_IntBinaryIntrinsic):
    name = "llvm.intr.umin"


@irdl_op_definition
class LlvmCtPopOp(IRDLOperation):
    name = "llvm.intr.ctpop"

    T: ClassVar = VarConstraint("T", _LLVM_INT)

    value = operand_def(T)
    res = result_def(T)

    traits = traits_def(Pure(), SameOperandsAndResultType())

    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"


class _IntUnaryFlaggedIntrinsic(IRDLOperation, ABC):
    """MLIR has no textual form of its own for these: they print generically."""

    T: ClassVar = VarConstraint("T", _LLVM_INT)

    value = operand_def(T)
    res = result_def(T)

    traits = traits_def(Pure(), SameOperandsAndResultType())


@irdl_op_definition
class LlvmCountTrailingZerosOp(_IntUnaryFlaggedIntrinsic):
    name = "llvm.intr.cttz"

    is_zero_poison = prop_def(BoolAttr)


@irdl_op_definition
class LlvmCountLeadingZerosOp(_IntUnaryFlaggedIntrinsic):
    name = "llvm.intr.ctlz"

    is_zero_poison = prop_def(BoolAttr)


@irdl_op_definition
class LlvmAbsOp(_IntUnaryFlaggedIntrinsic):
    name = "llvm.intr.abs"

    is_int_min_poison = prop_def(BoolAttr)


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

COMPLETED_LLVM = _completed(
    LLVM,
    (
        LlvmAbsOp,
        LlvmCountLeadingZerosOp,
        LlvmCountTrailingZerosOp,
        LlvmCtPopOp,
        LlvmExtractElementOp,
        LlvmFCmpOp,
        LlvmFPToSIOp,
        LlvmFPToUIOp,
        LlvmFTruncOp,
        LlvmMaskedLoadOp,
        LlvmMaskedStoreOp,
        LlvmMaximumOp,
        LlvmMinimumOp,
        LlvmRoundEvenOp,
        LlvmSMaxOp,
        LlvmSMinOp,
        LlvmSelectOp,
        LlvmUIToFPOp,
        LlvmUMaxOp,
        LlvmUMinOp,
    ),
)
