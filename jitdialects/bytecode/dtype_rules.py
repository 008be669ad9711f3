"""Dtype rules of the operator table: NumPy 2's promotion, within `dtypes.SUPPORTED`.

Each maps the dtypes of the data operands to the dtypes in which they are used and the dtype of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from jitdialects.bytecode.attributes import Attributes
from jitdialects.bytecode.dtypes import (
    BOOL,
    INT64,
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


def _promoted(who: str, operands: Sequence[DType]) -> DType:
    common = operands[0]
    for other in operands[1:]:
        common = promote(common, other, who)
    return common


def arithmetic(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    common = _promoted(who, operands)
    return Typing((common,) * len(operands), common)


def no_bool(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    typing = arithmetic(who, operands, attributes)
    if typing.result.name == "bool":
        raise DTypeError(f"{who} is not defined for bool; use logical_* or cast with astype")
    return typing


def floating(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    common = _promoted(who, operands)
    if common.name != "float32":
        raise DTypeError(
            f"{who} of {common} gives a dtype that is not supported (in NumPy: float64); "
            "cast with astype('float32')"
        )
    return Typing((common,) * len(operands), common)


def division(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    common = _promoted(who, operands)
    if common.weak:
        common = DType("float64", weak=True)
        return Typing((common, common), common)
    return floating(who, operands, attributes)


def comparison(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    common = _promoted(who, operands)
    return Typing((common, common), BOOL)


def logical(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    return Typing((BOOL,) * len(operands), BOOL)


def integer(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    common = _promoted(who, operands)
    if common.name != "int64":
        raise DTypeError(
            f"{who} is defined for int64 only, got {common}; cast with astype('int64')"
        )
    return Typing((common,) * len(operands), common)


def where(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    common = _promoted(who, operands[1:])
    if common.weak and not operands[0].weak:  # a condition of any rank gives an array
        common = concrete(common)
        check_supported(common.name, who)
    return Typing((BOOL, common, common), common)


def cast(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    target = attributes["dtype"]
    check_supported(str(target), who)
    return Typing((operands[0],), DType(str(target)))


def accumulated(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    operand = INT64 if operands[0].name == "bool" else concrete(operands[0])
    check_supported(operand.name, who)
    return Typing((operand,), operand)


def same(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    operand = concrete(operands[0])
    check_supported(operand.name, who)
    return Typing((operand,), operand)


def stored(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    target = concrete(operands[0])
    check_supported(target.name, who)
    return Typing((target, target), target)  # the stored value is cast to the target's dtype


def size(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    return Typing((operands[0],), WEAK_INT)  # as in NumPy, where sizes are Python integers
