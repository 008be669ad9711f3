"""Dtype rules of the operator table: NumPy 2's promotion, within `dtypes.SUPPORTED`.

Operators on Python scalars only give Python scalars, as Python's own do.

Each maps the dtypes of the data operands to the dtypes in which they are used and the dtype of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from jitdialects.bytecode.attributes import Attributes
from jitdialects.bytecode.dtypes import (
    BOOL,
    FLOAT64,
    INT64,
    WEAK_FLOAT,
    WEAK_INT,
    DType,
    check_supported,
    concrete,
    promote,
)
from jitdialects.errors import DTypeError


@dataclass(frozen=True)
class Typing:
    """Dtypes in which the data operands are used, and the dtype of the result."""

    operands: tuple[DType, ...]
    result: DType


DTypeRule: TypeAlias = Callable[[str, Sequence[DType], Attributes], Typing]


def _promoted(operands: Sequence[DType]) -> DType:
    common = operands[0]
    for other in operands[1:]:
        common = promote(common, other)
    return common


def arithmetic(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    common = _promoted(operands)
    return Typing((common,) * len(operands), common)


def no_bool(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    typing = arithmetic(who, operands, attributes)
    if typing.result.name == "bool":
        raise DTypeError(f"{who} is not defined for bool; use logical_* or cast with astype")
    return typing


def _as_float(common: DType) -> DType:
    """The float dtype in which NumPy computes: integers become float64."""
    if common.is_float:
        return common
    return WEAK_FLOAT if common.weak else FLOAT64


def floating(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    (operand,) = operands
    if operand.name == "bool":
        raise DTypeError(
            f"{who} of bool is float16 in NumPy, which is not supported; cast with astype('float32')"
        )
    used = _as_float(operand)
    return Typing((used,), used)


def averaged(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    used = _as_float(concrete(operands[0]))
    return Typing((used,), used)


def division(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    used = _as_float(_promoted(operands))
    return Typing((used, used), used)


def comparison(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    common = _promoted(operands)
    if common.name == "int32" and WEAK_INT in operands:
        common = INT64  # as in NumPy, a comparison takes Python integers that int32 cannot hold
    return Typing((common, common), BOOL)


def logical(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    return Typing((BOOL,) * len(operands), BOOL)


def integer(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    common = _promoted(operands)
    if not common.is_integer:
        raise DTypeError(
            f"{who} is defined for integers only, got {common}; cast with astype('int64')"
        )
    return Typing((common,) * len(operands), common)


def where(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    common = _promoted(operands[1:])
    if not operands[0].weak:  # a condition of any rank gives an array
        common = concrete(common)
    return Typing((BOOL, common, common), common)


def cast(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    target = attributes["dtype"]
    check_supported(str(target), who)
    return Typing((operands[0],), DType(str(target)))


def accumulated(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    operand = concrete(operands[0]) if operands[0].is_float else INT64
    return Typing((operand,), operand)


def same(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    operand = concrete(operands[0])
    return Typing((operand,), operand)


def stored(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    target = concrete(operands[0])
    return Typing((target, target), target)  # the stored value is cast to the target's dtype


def size(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    return Typing((operands[0],), WEAK_INT)  # as in NumPy, where sizes are Python integers
