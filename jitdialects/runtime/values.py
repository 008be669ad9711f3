"""What a register holds: a NumPy array (never written once it is a value) or a Python scalar.

A Python `bool`, `int` or `float` is a weak value in the sense of `bytecode.dtypes`; everything else is
an array of a supported dtype, rank 0 included. Values are immutable, so that registers may share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from jitdialects.bytecode.dtypes import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    WEAK_BOOL,
    WEAK_FLOAT,
    WEAK_INT,
    DType,
    check_supported,
    integer_range,
)
from jitdialects.bytecode.program import Constant
from jitdialects.errors import ArgumentError, DTypeError, IntegerRangeError
from jitdialects.runtime.pool import MemoryPool, is_pool_array

Array: TypeAlias = NDArray[Any]
Value: TypeAlias = Array | bool | int | float

STRONG: dict[object, DType] = {d.numpy: d for d in (BOOL, INT32, INT64, FLOAT32, FLOAT64)}
"""Native NumPy dtype -> dtype; other byte orders and unsupported dtypes are absent."""
WEAK: dict[object, DType] = {bool: WEAK_BOOL, int: WEAK_INT, float: WEAK_FLOAT}
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def dtype_of(value: Value) -> DType:
    """The dtype of a value, weak for Python scalars."""
    return STRONG[value.dtype] if isinstance(value, np.ndarray) else WEAK[type(value)]


def shape_of(value: Value) -> tuple[int, ...]:
    """The shape of a value; scalars have rank 0."""
    return value.shape if isinstance(value, np.ndarray) else ()


def from_argument(argument: object, position: int, who: str) -> Value:
    """The value of argument number `position` of `who`: a read-only view, or a Python scalar.

    Raises `ArgumentError` for what is no array or number, `DTypeError` for dtypes and integers that
    this version does not have.
    """
    where, kind = f"argument {position} of {who}", type(argument)
    if isinstance(argument, np.ndarray | np.generic):
        if kind is not np.ndarray and issubclass(kind, np.ndarray):
            _refuse_masks(cast(object, argument), where)
        view: Array = np.asarray(cast(Any, argument)).view()
        if view.dtype not in STRONG:
            raise _unsupported(view, where)
        if not view.flags.aligned:
            view = view.copy()
        view.flags.writeable = False
        return view
    if isinstance(argument, bool | float):
        return argument if type(argument) is bool else float(argument)
    if isinstance(argument, int):
        if not INT64_MIN <= argument <= INT64_MAX:
            raise DTypeError(f"{where}: the integer {argument} does not fit int64")
        return int(argument)
    raise ArgumentError(
        f"{where}: {type(argument).__name__} is neither a NumPy array nor a Python number; "
        "convert with numpy.asarray"
    )


def _refuse_masks(argument: object, where: str) -> None:
    if isinstance(argument, np.ma.MaskedArray):
        raise ArgumentError(
            f"{where}: masked arrays are not supported; fill it first with filled()"
        )


def _unsupported(array: Array, where: str) -> DTypeError:
    check_supported(array.dtype.name, where)
    return DTypeError(
        f"{where}: {array.dtype.name} in foreign byte order ({array.dtype.str}) is not supported; "
        f"convert with astype('{array.dtype.name}')"
    )


def from_constant(constant: Constant) -> Value:
    """The value of an entry of the constant pool."""
    return constant.value.item() if constant.dtype.weak else constant.value


def as_array(value: Value, dtype: DType) -> Array:
    """The value as an array of `dtype`: converted by the cast of the numerics contract if need be. A Python
    integer that does not fit int32 raises `IntegerRangeError`."""
    target = dtype.numpy
    if not isinstance(value, np.ndarray):
        if type(value) is int and dtype.name == "int32":
            low, high = integer_range("int32")
            if not low <= value <= high:
                raise IntegerRangeError(
                    f"the Python integer {value} does not fit int32, the dtype of what it meets; "
                    "make an int64 array of one of them"
                )
        value = np.asarray(value)
    return value if value.dtype == target else cast_array(value, target)


def cast_array(array: Array, target: np.dtype[Any]) -> Array:
    """`array` with elements of `target`, by the cast of the numerics contract; quiet."""
    if target.kind == "i" and array.dtype.kind == "f":
        # NaN and out of range give the smallest integer, which is exact in every float
        bound = 2.0 ** (8 * target.itemsize - 1)
        inside = (array >= -bound) & (array < bound)
        array = np.where(inside, array, array.dtype.type(-bound))
    with np.errstate(all="ignore"):
        return array.astype(target)


def as_integer(value: Value) -> int | None:
    """The value of a rank-0 integer, None for anything else."""
    if isinstance(value, np.ndarray):
        return int(value) if not value.shape and value.dtype.kind == "i" else None
    return value if type(value) is int else None


def export(values: Sequence[Value], pool: MemoryPool) -> tuple[Array, ...]:
    """What a caller gets: arrays of its own, C-contiguous, aliasing neither arguments nor each other.

    Weak results become rank-0 arrays as NumPy makes them: bool, int64, float64.
    """
    out: list[Array] = []
    given: set[int] = set()
    for value in values:
        array = value if isinstance(value, np.ndarray) else np.asarray(value)
        own = is_pool_array(array) and array.flags.c_contiguous and array.flags.writeable
        if not own or id(array) in given:
            source, array = array, pool.empty(array.shape, array.dtype)
            array[...] = source
        given.add(id(array))
        out.append(array)
    return tuple(out)
