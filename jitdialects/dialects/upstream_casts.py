"""The casts of `arith` on vectors and tensors; xDSL 0.75 has them for scalars only.

Part of `upstream.COMPLETED_ARITH`, in a file of their own because there are so many.
"""

from __future__ import annotations

from abc import ABC
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    AnyFloatConstr,
    IntegerType,
    ShapedType,
    SignlessIntegerConstraint,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

_INTEGERS = (
    SignlessIntegerConstraint
    | VectorType.constr(SignlessIntegerConstraint)
    | TensorType.constr(element_type=SignlessIntegerConstraint)
)
_FLOATS = (
    AnyFloatConstr
    | VectorType.constr(AnyFloatConstr)
    | TensorType.constr(element_type=AnyFloatConstr)
)


class _Cast(IRDLOperation, ABC):
    """One operand, one result of the same shape."""

    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue | Operation, target_type: Attribute):
        super().__init__(operands=[value], result_types=[target_type])

    def verify_(self) -> None:
        source, target = self.operands[0].type, self.results[0].type
        if _shape(source) != _shape(target):
            raise VerifyException(f"{self.name} cannot change the shape from {source} to {target}")


class _IntegerCast(_Cast, ABC):
    """Between integers; `WIDENS` says to which side."""

    WIDENS: ClassVar[bool]

    input = operand_def(_INTEGERS)
    result = result_def(_INTEGERS)

    def verify_(self) -> None:
        super().verify_()
        if (_bits(self.result.type) > _bits(self.input.type)) != self.WIDENS or (
            _bits(self.result.type) == _bits(self.input.type)
        ):
            more = "more" if self.WIDENS else "fewer"
            raise VerifyException(f"{self.name} needs a result with {more} bits than its operand")


class _IntegerToFloat(_Cast, ABC):
    input = operand_def(_INTEGERS)
    result = result_def(_FLOATS)


class _FloatToInteger(_Cast, ABC):
    input = operand_def(_FLOATS)
    result = result_def(_INTEGERS)


def _shape(type: Attribute) -> tuple[int, ...] | None:
    return type.get_shape() if isinstance(type, ShapedType) else None


def _bits(type: Attribute) -> int:
    if isinstance(type, VectorType | TensorType):
        type = cast("VectorType[Attribute] | TensorType[Attribute]", type).get_element_type()
    return cast(IntegerType, type).bitwidth


@irdl_op_definition
class ExtSIOp(_IntegerCast):
    """`arith.extsi`: more bits, all copies of the sign."""

    name = "arith.extsi"
    WIDENS: ClassVar[bool] = True


@irdl_op_definition
class ExtUIOp(_IntegerCast):
    """`arith.extui`: more bits, all zero."""

    name = "arith.extui"
    WIDENS: ClassVar[bool] = True


@irdl_op_definition
class TruncIOp(_IntegerCast):
    """`arith.trunci`: the low bits."""

    name = "arith.trunci"
    WIDENS: ClassVar[bool] = False


@irdl_op_definition
class SIToFPOp(_IntegerToFloat):
    """`arith.sitofp`: the nearest float to a signed integer."""

    name = "arith.sitofp"


@irdl_op_definition
class UIToFPOp(_IntegerToFloat):
    """`arith.uitofp`: the nearest float to an unsigned integer."""

    name = "arith.uitofp"


@irdl_op_definition
class FPToSIOp(_FloatToInteger):
    """`arith.fptosi`: towards zero; a value out of range gives poison."""

    name = "arith.fptosi"


@irdl_op_definition
class FPToUIOp(_FloatToInteger):
    """`arith.fptoui`: towards zero; a value out of range gives poison."""

    name = "arith.fptoui"


CASTS: tuple[type[Operation], ...] = (
    ExtSIOp,
    ExtUIOp,
    FPToSIOp,
    FPToUIOp,
    SIToFPOp,
    TruncIOp,
    UIToFPOp,
)
