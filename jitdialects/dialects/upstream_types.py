"""Facts about types that the completed operations of `arith` and `llvm` share."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType, VectorType, i1
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from jitdialects.dialects.interned import vector_type


def boolean_like(type: Attribute) -> Attribute:
    """`i1`, or the vector or tensor of `i1` with the shape of `type`."""
    if isinstance(type, VectorType):
        shape = type.get_shape()
        if len(shape) == 1 and not any(type.get_scalable_dims()):
            return vector_type(i1, *shape)
        return VectorType(i1, type.shape, type.scalable_dims)
    if isinstance(type, TensorType):
        return TensorType(i1, type.get_shape())
    return i1


def verify_condition(
    name: str, condition: Attribute, value: Attribute, *, may_be_scalar: bool
) -> None:
    """Refuse a condition of the wrong shape for `value`; a single `i1` only if `may_be_scalar`."""
    if may_be_scalar and condition == i1:
        return
    if condition != boolean_like(value):
        raise VerifyException(
            f"{name} needs {boolean_like(value)} to go with {value}, not {condition}"
        )
