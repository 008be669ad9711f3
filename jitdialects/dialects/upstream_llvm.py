"""Operations of the llvm dialect that xDSL 0.75 lacks, or has for scalars only.

Part of `upstream.COMPLETED_LLVM`: same names, upstream semantics, MLIR 22's textual forms.
"""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from xdsl.dialects.builtin import (
    I1,
    AnyFloatConstr,
    BoolAttr,
    IntegerAttr,
    ShapedType,
    SignlessIntegerConstraint,
    VectorType,
    i64,
)
from xdsl.dialects.llvm import FastMathAttr, FCmpPredicateFlag, GenericCastOp, LLVMPointerType
from xdsl.ir import Attribute, Operation
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

from jitdialects.dialects.upstream_types import boolean_like, verify_condition

_INT_LIKE = SignlessIntegerConstraint | VectorType.constr(SignlessIntegerConstraint)
_FLOAT_LIKE = AnyFloatConstr | VectorType.constr(AnyFloatConstr)


# ---- scalar operations that upstream allows on vectors too


@irdl_op_definition
class FCmpOp(IRDLOperation):
    """`llvm.fcmp` on floats and vectors of floats."""

    name = "llvm.fcmp"

    T: ClassVar = VarConstraint("T", _FLOAT_LIKE)

    predicate = prop_def(IntegerAttr)
    lhs = operand_def(T)
    rhs = operand_def(T)
    fastmathFlags = prop_def(FastMathAttr, default_value=FastMathAttr(None))
    res = result_def(I1 | VectorType[I1])

    traits = traits_def(Pure())

    irdl_options = (ParsePropInAttrDict(),)

    def verify_(self) -> None:
        verify_condition(self.name, self.res.type, self.lhs.type, may_be_scalar=False)

    @classmethod
    def parse(cls, parser: Parser) -> FCmpOp:
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
class SelectOp(IRDLOperation):
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
        verify_condition(self.name, self.condition.type, self.res.type, may_be_scalar=True)


# ---- missing casts and element access


@irdl_op_definition
class FPToSIOp(GenericCastOp):
    """Poison where the value does not fit: check the range first."""

    name = "llvm.fptosi"


@irdl_op_definition
class FPToUIOp(GenericCastOp):
    """Poison where the value does not fit: check the range first."""

    name = "llvm.fptoui"


@irdl_op_definition
class UIToFPOp(GenericCastOp):
    name = "llvm.uitofp"


@irdl_op_definition
class ExtractElementOp(IRDLOperation):
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


# ---- intrinsics


@irdl_op_definition
class MaskedLoadOp(IRDLOperation):
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
class MaskedStoreOp(IRDLOperation):
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
    T: ClassVar = VarConstraint("T", _FLOAT_LIKE)

    arg = operand_def(T)
    fastmathFlags = prop_def(FastMathAttr, default_value=FastMathAttr(None))
    res = result_def(T)

    traits = traits_def(Pure(), SameOperandsAndResultType())

    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"


class _FloatBinaryIntrinsic(IRDLOperation, ABC):
    T: ClassVar = VarConstraint("T", _FLOAT_LIKE)

    a = operand_def(T)
    b = operand_def(T)
    fastmathFlags = prop_def(FastMathAttr, default_value=FastMathAttr(None))
    res = result_def(T)

    traits = traits_def(Pure(), SameOperandsAndResultType())

    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"


class _IntBinaryIntrinsic(IRDLOperation, ABC):
    T: ClassVar = VarConstraint("T", _INT_LIKE)

    a = operand_def(T)
    b = operand_def(T)
    res = result_def(T)

    traits = traits_def(Pure(), SameOperandsAndResultType())

    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"


@irdl_op_definition
class MaximumOp(_FloatBinaryIntrinsic):
    """NaN if an operand is NaN; +0.0 is above -0.0. (`maxnum` drops NaN.)"""

    name = "llvm.intr.maximum"


@irdl_op_definition
class MinimumOp(_FloatBinaryIntrinsic):
    """NaN if an operand is NaN; -0.0 is below +0.0. (`minnum` drops NaN.)"""

    name = "llvm.intr.minimum"


@irdl_op_definition
class RoundEvenOp(_FloatUnaryIntrinsic):
    name = "llvm.intr.roundeven"


@irdl_op_definition
class FTruncOp(_FloatUnaryIntrinsic):
    name = "llvm.intr.trunc"


@irdl_op_definition
class SMaxOp(_IntBinaryIntrinsic):
    name = "llvm.intr.smax"


@irdl_op_definition
class SMinOp(_IntBinaryIntrinsic):
    name = "llvm.intr.smin"


@irdl_op_definition
class UMaxOp(_IntBinaryIntrinsic):
    name = "llvm.intr.umax"


@irdl_op_definition
class UMinOp(_IntBinaryIntrinsic):
    name = "llvm.intr.umin"


@irdl_op_definition
class CtPopOp(IRDLOperation):
    name = "llvm.intr.ctpop"

    T: ClassVar = VarConstraint("T", _INT_LIKE)

    value = operand_def(T)
    res = result_def(T)

    traits = traits_def(Pure(), SameOperandsAndResultType())

    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"


class _IntUnaryFlaggedIntrinsic(IRDLOperation, ABC):
    """MLIR has no textual form of its own for these: they print generically."""

    T: ClassVar = VarConstraint("T", _INT_LIKE)

    value = operand_def(T)
    res = result_def(T)

    traits = traits_def(Pure(), SameOperandsAndResultType())


@irdl_op_definition
class CountTrailingZerosOp(_IntUnaryFlaggedIntrinsic):
    name = "llvm.intr.cttz"

    is_zero_poison = prop_def(BoolAttr)


@irdl_op_definition
class CountLeadingZerosOp(_IntUnaryFlaggedIntrinsic):
    name = "llvm.intr.ctlz"

    is_zero_poison = prop_def(BoolAttr)


@irdl_op_definition
class AbsOp(_IntUnaryFlaggedIntrinsic):
    name = "llvm.intr.abs"

    is_int_min_poison = prop_def(BoolAttr)


@irdl_op_definition
class ReduceOrOp(IRDLOperation):
    """All lanes, or-ed. MLIR has no textual form of its own for it: it prints generically."""

    name = "llvm.intr.vector.reduce.or"

    T: ClassVar = VarConstraint("T", SignlessIntegerConstraint)

    value = operand_def(VectorType.constr(T))
    res = result_def(T)

    traits = traits_def(Pure())


@irdl_op_definition
class FenceOp(IRDLOperation):
    """`llvm.fence seq_cst`: what this thread stored before is seen before what it stores after, stores past
    the cache included. The other orderings have no use here."""

    name = "llvm.fence"

    ordering = prop_def(IntegerAttr, default_value=IntegerAttr(7, i64))

    def __init__(self) -> None:
        super().__init__(properties={"ordering": IntegerAttr(7, i64)})

    @classmethod
    def parse(cls, parser: Parser) -> FenceOp:
        parser.parse_keyword("seq_cst")
        return cls()

    def print(self, printer: Printer) -> None:
        printer.print_string(" seq_cst")


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """The cache line at `addr` will be read (`rw` 0) or written (1); `hint`: 3 for the closest cache. Never faults."""

    name = "llvm.intr.prefetch"

    addr = operand_def(LLVMPointerType)
    rw = prop_def(IntegerAttr)
    hint = prop_def(IntegerAttr)
    cache = prop_def(IntegerAttr)


LLVM_OPERATIONS: tuple[type[Operation], ...] = (
    AbsOp,
    CountLeadingZerosOp,
    CountTrailingZerosOp,
    CtPopOp,
    ExtractElementOp,
    FCmpOp,
    FPToSIOp,
    FPToUIOp,
    FTruncOp,
    FenceOp,
    MaskedLoadOp,
    MaskedStoreOp,
    MaximumOp,
    MinimumOp,
    PrefetchOp,
    ReduceOrOp,
    RoundEvenOp,
    SMaxOp,
    SMinOp,
    SelectOp,
    UIToFPOp,
    UMaxOp,
    UMinOp,
)
