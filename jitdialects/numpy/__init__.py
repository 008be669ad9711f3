"""The operator namespace: `import jitdialects.numpy as jnp`.

Names and meaning of NumPy 2 and the array API standard for exactly the operators of the operator table,
with value semantics (`docs/numpy-differences.md`). Each call records one instruction: run at the next
synchronisation, or captured under `jd.jit`. What is not in the table but exactly a composition of it
(`relu`, `clip`, `softmax`) is written out here.
"""

from __future__ import annotations

from collections.abc import Callable
from math import e, inf, nan, pi
from typing import Protocol, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from jitdialects.bytecode.operators import OPERATORS
from jitdialects.errors import ArgumentError, IntegerRangeError, MissingNameError, ShapeError
from jitdialects.frontends.array import (
    Array,
    Axis,
    apply,
    broadcast_to,
    dtype_name,
    reduce,
    reshape,
    transpose,
    variance,
)
from jitdialects.frontends.recorder import NumPyValue, current, plain_array
from jitdialects.runtime.values import cast_array

float32, float64, int32, int64, bool_ = np.float32, np.float64, np.int32, np.int64, np.bool_
newaxis = None


__all__ = [
    "Array",
    "abs",
    "absolute",
    "add",
    "all",
    "amax",
    "amin",
    "any",
    "array",
    "asarray",
    "astype",
    "bitwise_left_shift",
    "bitwise_right_shift",
    "bool_",
    "broadcast_to",
    "clip",
    "divide",
    "dot",
    "e",
    "equal",
    "erf",
    "erfc",
    "exp",
    "float32",
    "float64",
    "full",
    "gelu",
    "greater",
    "greater_equal",
    "inf",
    "int32",
    "int64",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "logsumexp",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "multiply",
    "nan",
    "negative",
    "newaxis",
    "not_equal",
    "ones",
    "ones_like",
    "permute_dims",
    "pi",
    "prod",
    "reciprocal",
    "relu",
    "reshape",
    "right_shift",
    "rsqrt",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "sqrt",
    "square",
    "std",
    "subtract",
    "sum",
    "tanh",
    "transpose",
    "true_divide",
    "var",
    "where",
    "zeros",
    "zeros_like",
]


# ---- straight from the table -------------------------------------------------------------------


def _unary(opcode: str) -> Callable[[object], Array]:
    def operator(x: object, /) -> Array:
        return apply(opcode, x)

    return _named(operator, opcode)


def _binary(opcode: str) -> Callable[[object, object], Array]:
    def operator(x: object, y: object, /) -> Array:
        return apply(opcode, x, y)

    return _named(operator, opcode)


F = Callable[..., Array]


def _named(function: F, opcode: str) -> F:
    function.__name__ = function.__qualname__ = opcode
    function.__doc__ = OPERATORS[opcode].doc
    return function


add, subtract, multiply = _binary("add"), _binary("subtract"), _binary("multiply")
divide = true_divide = _binary("divide")
bitwise_left_shift = left_shift = _binary("left_shift")
bitwise_right_shift = right_shift = _binary("right_shift")
minimum, maximum = _binary("minimum"), _binary("maximum")
equal, not_equal = _binary("equal"), _binary("not_equal")
less, less_equal = _binary("less"), _binary("less_equal")
greater, greater_equal = _binary("greater"), _binary("greater_equal")
logical_and, logical_or = _binary("logical_and"), _binary("logical_or")
logical_not = _unary("logical_not")
negative, sqrt, rsqrt = _unary("negative"), _unary("sqrt"), _unary("rsqrt")
exp, tanh = _unary("exp"), _unary("tanh")
log, erf, erfc = _unary("log"), _unary("erf"), _unary("erfc")
sigmoid, softplus, silu = _unary("sigmoid"), _unary("softplus"), _unary("silu")
abs = absolute = _unary("abs")
matmul = dot = _binary("matmul")


def where(condition: object, x: object, y: object, /) -> Array:
    """x where condition, else y."""
    return apply("where", condition, x, y)


def astype(x: object, dtype: DTypeLike, /) -> Array:
    """To another dtype; float to int truncates, to bool: non-zero."""
    return apply("cast", x, dtype=dtype_name(dtype))


def _reduction(opcode: str) -> Reduction:
    def operator(x: object, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
        return reduce(opcode, x, axis, keepdims)

    operator.__name__ = operator.__qualname__ = opcode
    operator.__doc__ = OPERATORS[opcode].doc
    return operator


class Reduction(Protocol):
    """A reduction over one axis, a tuple of axes, or all of them (None)."""

    def __call__(self, x: object, /, axis: Axis = None, *, keepdims: bool = False) -> Array: ...


sum, prod, mean = _reduction("sum"), _reduction("prod"), _reduction("mean")
max, min = _reduction("max"), _reduction("min")
any, all = _reduction("any"), _reduction("all")
amax, amin = max, min


def var(x: object, /, axis: Axis = None, *, correction: int = 0, keepdims: bool = False) -> Array:
    """Variance: mean first, then the sum of (x - mean)**2, divided by max(n - correction, 0)."""
    return variance(x, axis, correction, keepdims)


def std(x: object, /, axis: Axis = None, *, correction: int = 0, keepdims: bool = False) -> Array:
    """Standard deviation, the square root of `var`."""
    return sqrt(variance(x, axis, correction, keepdims))


permute_dims = transpose


def matrix_transpose(x: object, /) -> Array:
    """The last two axes exchanged."""
    array = asarray(x)
    if array.ndim < 2:
        raise ShapeError(f"matrix_transpose needs at least 2 axes, got {array.ndim}; use reshape")
    *rest, rows, columns = range(array.ndim)
    return transpose(array, (*rest, columns, rows))


# ---- making arrays -----------------------------------------------------------------------------


def asarray(x: object, /, dtype: DTypeLike | None = None) -> Array:
    """An array with a copy of `x`: NumPy arrays, numbers, nested lists of numbers. Without `dtype`,
    Python floats become float32, Python integers int64; NumPy arrays keep their dtype."""
    if isinstance(x, Array):
        return x if dtype is None or np.dtype(dtype) == x.dtype else x.astype(dtype)
    if not isinstance(x, np.ndarray | np.generic):
        data = _from_python(x, dtype)
    else:
        data = plain_array(cast(NumPyValue, x), "asarray")
        if dtype is not None:
            data = cast_array(data, np.dtype(dtype_name(dtype)))
    return Array(current().lift(data, "asarray"))


def _from_python(x: object, dtype: DTypeLike | None) -> NDArray[np.generic]:
    """Numbers and nested lists of numbers; NumPy's default float becomes ours unless `dtype` says otherwise."""
    try:
        found: NDArray[np.generic] = np.asarray(x)
    except ValueError:
        raise ArgumentError("asarray: nested lists need equal lengths at every level") from None
    if found.dtype.kind not in "biuf":
        raise ArgumentError(
            f"asarray takes arrays, numbers and nested lists of them, got {type(x).__name__} of "
            f"{found.dtype.name}"
        )
    if dtype is None:
        return found.astype(np.float32) if found.dtype == np.float64 else found
    target = np.dtype(dtype_name(dtype))
    made = cast_array(found, target)
    if found.dtype.kind == target.kind == "i" and (made != found).any():
        raise IntegerRangeError(
            f"asarray: a Python integer does not fit {target}; use int64, or astype to let it wrap"
        )
    return made


array = asarray


def full(shape: object, fill_value: object, dtype: DTypeLike | None = None) -> Array:
    """An array of `shape` whose elements are `fill_value`."""
    return broadcast_to(asarray(fill_value, dtype), shape)


def zeros(shape: object, dtype: DTypeLike | None = None) -> Array:
    """An array of `shape` whose elements are 0; float32 unless `dtype` says otherwise."""
    return full(shape, 0, np.float32 if dtype is None else dtype)


def ones(shape: object, dtype: DTypeLike | None = None) -> Array:
    """An array of `shape` whose elements are 1; float32 unless `dtype` says otherwise."""
    return full(shape, 1, np.float32 if dtype is None else dtype)


def zeros_like(x: object, /) -> Array:
    """Zeros with the shape and dtype of `x`."""
    like = asarray(x)
    return zeros(like.shape, like.dtype)


def ones_like(x: object, /) -> Array:
    """Ones with the shape and dtype of `x`."""
    like = asarray(x)
    return ones(like.shape, like.dtype)


# ---- compositions, exact by definition ---------------------------------------------------------


def clip(x: object, /, min: object = None, max: object = None) -> Array:
    """`minimum(maximum(x, min), max)`; NaN propagates, None is no bound."""
    low = asarray(x) if min is None else maximum(x, min)
    return low if max is None else minimum(low, max)


def relu(x: object, /) -> Array:
    """`maximum(x, 0)`."""
    return maximum(x, 0)


def square(x: object, /) -> Array:
    """`x * x`."""
    return multiply(x, x)


def reciprocal(x: object, /) -> Array:
    """`1 / x`."""
    return divide(1, x)


def gelu(x: object, /, approximate: bool = True) -> Array:
    """`x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))`, or, not approximate, `x / 2 * (1 + erf(x / sqrt(2)))`.

    At most 2.5 units in the last place from that, however small it is.
    """
    return apply("gelu_tanh" if approximate else "gelu", x)


def logsumexp(x: object, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """log(sum(exp(x))) over the axes named: max, subtract, exp, sum, log, add; where max is infinite, without it."""
    most = _finite_or_zero(max(x, axis, keepdims=True))
    peak = _finite_or_zero(max(x, axis, keepdims=keepdims))
    return add(log(sum(exp(subtract(x, most)), axis, keepdims=keepdims)), peak)


def _finite_or_zero(x: Array) -> Array:
    return where(less(abs(x), inf), x, 0)


def softmax(x: object, /, axis: Axis = -1) -> Array:
    """Softmax over the axes named: max, subtract, exp, sum, divide."""
    powers = exp(subtract(x, max(x, axis, keepdims=True)))
    return divide(powers, sum(powers, axis, keepdims=True))


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    raise MissingNameError(
        f"jitdialects.numpy has no '{name}' yet; it has: {', '.join(sorted(__all__))}"
    )
