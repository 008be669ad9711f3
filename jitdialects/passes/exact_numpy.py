"""The operators whose bits NumPy can compute, for folding constants.

Everything here is exact or correctly rounded (IEEE, one rounding) and so equals what compiled code
computes; sign and payload of NaN are exempt. Sums, matmul and elementary functions follow
definitions of their own and are absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


def evaluate(name: str, operands: list[Array], dtype: np.dtype[np.generic]) -> Array | None:
    """Operator `name` on arrays of one shape, the result in `dtype`; None if it is not in the
    table."""
    function = EXACT.get(name)
    if function is None:
        return None
    shape = operands[0].shape
    with np.errstate(all="ignore"):
        result = function(*(np.atleast_1d(x) for x in operands), dtype)
    return np.ascontiguousarray(result, dtype).reshape(shape)


def _ufunc(ufunc: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *operands_and_dtype: ufunc(*operands_and_dtype[:-1])


def _minimum(x: Array, y: Array, dtype: np.dtype[np.generic]) -> Array:
    """NaN propagates and -0 < +0, which np.minimum leaves open."""
    if dtype.kind != "f":
        return np.minimum(x, y)
    smaller = np.where((x < y) | ((x == y) & np.signbit(x)), x, y)
    return np.where(np.isnan(x) | np.isnan(y), x + y, smaller)


def _maximum(x: Array, y: Array, dtype: np.dtype[np.generic]) -> Array:
    if dtype.kind != "f":
        return np.maximum(x, y)
    larger = np.where((x > y) | ((x == y) & ~np.signbit(x)), x, y)
    return np.where(np.isnan(x) | np.isnan(y), x + y, larger)


def _cast(x: Array, dtype: np.dtype[np.generic]) -> Array:
    """Out of range and NaN give the smallest integer; to bool: non-zero."""
    if x.dtype.kind == "f" and dtype.kind == "i":
        bound = 2.0 ** (8 * dtype.itemsize - 1)
        fits = (x >= -bound) & (x < bound)
        return np.where(fits, np.where(fits, x, 0).astype(dtype), np.iinfo(dtype.name).min)
    return x != 0 if dtype.kind == "b" else x.astype(dtype)


def _left_shift(x: Array, y: Array, dtype: np.dtype[np.generic]) -> Array:
    inside = (y >= 0) & (y < 8 * dtype.itemsize)
    return np.where(inside, np.left_shift(x, np.where(inside, y, 0)), 0)


def _right_shift(x: Array, y: Array, dtype: np.dtype[np.generic]) -> Array:
    bits = 8 * dtype.itemsize
    inside = (y >= 0) & (y < bits)
    return np.right_shift(x, np.where(inside, y, bits - 1))


def _negative(x: Array, dtype: np.dtype[np.generic]) -> Array:
    return np.copysign(x, np.where(np.signbit(x), 1.0, -1.0)) if dtype.kind == "f" else -x


EXACT: Mapping[str, Callable[..., Array]] = {
    "add": _ufunc(np.add),
    "subtract": _ufunc(np.subtract),
    "multiply": _ufunc(np.multiply),
    "divide": _ufunc(np.divide),
    "left_shift": _left_shift,
    "right_shift": _right_shift,
    "negative": _negative,
    "abs": _ufunc(np.abs),
    "minimum": _minimum,
    "maximum": _maximum,
    "sqrt": _ufunc(np.sqrt),
    "equal": _ufunc(np.equal),
    "not_equal": _ufunc(np.not_equal),
    "less": _ufunc(np.less),
    "less_equal": _ufunc(np.less_equal),
    "greater": _ufunc(np.greater),
    "greater_equal": _ufunc(np.greater_equal),
    "logical_and": _ufunc(np.logical_and),
    "logical_or": _ufunc(np.logical_or),
    "logical_not": _ufunc(np.logical_not),
    "where": _ufunc(np.where),
    "cast": _cast,
}
"""Operator -> its meaning on arrays of equal shape; the last parameter is the dtype of the
result."""
