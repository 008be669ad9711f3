"""Tier 0: one operator at a time, on any shapes, with the bits that compiled code has.

What an operator accepts and which shape it gives comes from the operator table; this module computes.
Operators that are exact or correctly rounded go through NumPy; the others (the elementary functions, and of floats
minimum, maximum, sum, max and matmul) through the kernel pack, because NumPy's bits differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeAlias

import numpy as np

from jitdialects.bytecode import dims
from jitdialects.bytecode.attributes import (
    At,
    Attributes,
    Bound,
    Ellipsis,
    IndexSpec,
    OperandRef,
    Slice,
)
from jitdialects.bytecode.dtype_rules import Typing
from jitdialects.bytecode.operators import ELEMENTARY, OPERATORS, Operator
from jitdialects.bytecode.program import Instruction
from jitdialects.bytecode.shape_rules import ConcreteFacts, permutation, reduced_axes, size_axis
from jitdialects.errors import ShapeError
from jitdialects.runtime import pack
from jitdialects.runtime.pool import MemoryPool, owners
from jitdialects.runtime.pool.owners import Owner
from jitdialects.runtime.values import Array, Value, as_array, as_integer, dtype_of, shape_of

Shape: TypeAlias = tuple[int, ...]
_FACTS = ConcreteFacts()
MOST_BYTES = 2**63 - 1
"""What NumPy can address."""


@dataclass(slots=True)
class Call:
    """One application of an operator, checked: operands have the dtypes of `typing`."""

    operands: tuple[Array, ...]
    attributes: Attributes
    indices: tuple[int | None, ...]
    """Per operand of the instruction, its value if it is a size or index (`$k`)."""
    typing: Typing
    shape: Shape
    pool: MemoryPool

    def fresh(self) -> Array:
        """An array for the result."""
        return self.pool.empty(self.shape, self.typing.result.numpy)

    @property
    def is_float(self) -> bool:
        """Whether the operator works on floats."""
        return self.operands[0].dtype.kind == "f"

    def pack(self, name: str, *operands: Array) -> Array:
        """The result of a kernel of the pack."""
        return pack.run(name, *operands, pool=self.pool).reshape(self.shape)


Rule: TypeAlias = Callable[[Call], Array]


class Site:
    """An instruction in place, with the types it met last so that they need not be inferred again."""

    def __init__(self, instruction: Instruction) -> None:
        self.instruction = instruction
        self.operator: Operator = OPERATORS[instruction.opcode]
        self._rule = RULES[instruction.opcode]
        # one tuple, because threads share the site: key, typing, shape
        self._last: tuple[object, Typing, Shape] | None = None

    def apply(self, operands: Sequence[Value], pool: MemoryPool) -> Value:
        """The result; errors are those of the operator table."""
        operator, attributes = self.operator, self.instruction.attributes
        dtypes = tuple(map(dtype_of, operands))
        shapes = tuple(map(shape_of, operands))
        extra = operands[operator.arity :]
        indices = (None,) * operator.arity + tuple(map(as_integer, extra)) if extra else ()
        key = (dtypes, shapes, indices)
        last = self._last
        if last is None or last[0] != key:
            typing = operator.infer_dtypes(dtypes, attributes)
            shape = operator.infer_shape(shapes, attributes, indices, _FACTS)
            sizes = tuple(dims.evaluate(s, {}) for s in shape)
            if math.prod(s or 1 for s in sizes) * typing.result.numpy.itemsize > MOST_BYTES:
                raise ShapeError(f"{operator.name}: no array can have the shape {sizes}")
            last = self._last = key, typing, sizes
        _, typing, shape = last
        arrays = tuple(as_array(v, d) for v, d in zip(operands, typing.operands, strict=False))
        result = self._rule(Call(arrays, attributes, indices, typing, shape, pool))
        return result.item() if typing.result.weak else result


def _owner(frame: FrameType) -> Owner:
    instruction: Instruction = frame.f_locals["self"].instruction
    location = instruction.location
    return Owner(instruction.opcode, str(location) if location is not None else "")


owners.describe(Site.apply.__code__, _owner)


# ---- elementwise -------------------------------------------------------------------------------


def _ufunc(function: Callable[..., Any]) -> Rule:
    def rule(call: Call) -> Array:
        out = call.fresh()
        function(*call.operands, out=out)
        return out

    return rule


def _left_shift(call: Call) -> Array:
    x, y = call.operands
    inside = (y >= 0) & (y < 8 * y.itemsize)
    return np.where(inside, x << np.where(inside, y, 0), 0)


def _right_shift(call: Call) -> Array:
    x, y = call.operands
    bits = 8 * y.itemsize
    return np.asarray(x >> np.where((y >= 0) & (y < bits), y, bits - 1))


def _where(call: Call) -> Array:
    condition, x, y = call.operands
    out = call.fresh()
    np.copyto(out, y)
    np.copyto(out, x, where=condition)
    return out


def _cast(call: Call) -> Array:
    return as_array(call.operands[0], call.typing.result)


def _pack_elementwise(name: str, integers: Callable[..., Any] | None = None) -> Rule:
    def rule(call: Call) -> Array:
        if integers is not None and not call.is_float:
            return np.asarray(integers(*call.operands))
        flat = (np.broadcast_to(x, call.shape).reshape(-1) for x in call.operands)
        return call.pack(name, *flat)

    return rule


# ---- reductions and contractions ---------------------------------------------------------------


def _reduction(name: str, integers: Callable[..., Any]) -> Rule:
    def rule(call: Call) -> Array:
        (x,) = call.operands
        axes = reduced_axes(name, x.ndim, call.attributes)
        if not call.is_float:
            return np.asarray(integers(x, axis=axes)).reshape(call.shape)
        return _fold(name, x, axes, call.pool).reshape(call.shape)

    return rule


def _fold(name: str, x: Array, axes: Sequence[int], pool: MemoryPool) -> Array:
    """The kernel `name` over `axes`; the kept axes become one or two.

    Kept axes behind the last reduced one stay behind: the kernel then walks along them. Others move to
    the front, which copies where reduced axes are not next to each other.
    """
    behind = range(axes[-1] + 1 if axes else x.ndim, x.ndim)
    before = [a for a in range(x.ndim) if a not in axes and a not in behind]
    outer, length, inner = (
        math.prod(x.shape[a] for a in group) for group in (before, axes, behind)
    )
    rows = x.transpose(*before, *axes, *behind)
    if inner == 1:
        return pack.run(name, rows.reshape(outer, length), pool=pool)
    return pack.run(f"{name} inside", rows.reshape(outer, length, inner), pool=pool)


def _quotient(total: Array, count: int) -> Array:
    """`total / count`, with the count rounded to the dtype."""
    return np.true_divide(total, np.asarray(count).astype(total.dtype))


def _mean(call: Call) -> Array:
    (x,) = call.operands
    axes = reduced_axes("mean", x.ndim, call.attributes)
    total = _fold("sum", x, axes, call.pool)
    return _quotient(total, math.prod(x.shape[a] for a in axes)).reshape(call.shape)


def _var(call: Call) -> Array:
    """Two passes: the mean, then the squares of what differs from it."""
    (x,) = call.operands
    axes = reduced_axes("var", x.ndim, call.attributes)
    count, correction = math.prod(x.shape[a] for a in axes), call.attributes["correction"]
    assert isinstance(correction, int)
    kept = tuple(1 if a in axes else s for a, s in enumerate(x.shape))
    mean = _quotient(_fold("sum", x, axes, call.pool), count).reshape(kept)
    away = np.subtract(x, mean)
    squares = _fold("sum", np.multiply(away, away), axes, call.pool)
    return _quotient(squares, max(count - correction, 0)).reshape(call.shape)


def _truth(function: Callable[..., Any]) -> Rule:
    def rule(call: Call) -> Array:
        (x,) = call.operands
        axes = reduced_axes("any", x.ndim, call.attributes)
        return np.asarray(function(x, axis=axes)).reshape(call.shape)

    return rule


def _matmul(call: Call) -> Array:
    x, y = call.operands
    if not call.is_float:
        return np.asarray(np.matmul(x, y))
    return call.pack("matmul" if y.ndim == 2 else "matvec", np.atleast_2d(x), y)


# ---- shapes ------------------------------------------------------------------------------------


def _reshape(call: Call) -> Array:
    return call.operands[0].reshape(call.shape)


def _broadcast_to(call: Call) -> Array:
    return np.broadcast_to(call.operands[0], call.shape)


def _transpose(call: Call) -> Array:
    (x,) = call.operands
    return x.transpose(permutation("transpose", x.ndim, call.attributes))


def _index(call: Call) -> tuple[Any, ...]:
    """NumPy's form of the index specification; `...` keeps NumPy from returning scalars."""
    spec = call.attributes["index"]
    assert isinstance(spec, IndexSpec)

    def bound(b: Bound) -> int | None:
        return call.indices[b.position] if isinstance(b, OperandRef) else b

    out: list[Any] = []
    for entry in spec.entries:
        if isinstance(entry, Slice):
            out.append(slice(bound(entry.start), bound(entry.stop), entry.step))
        elif isinstance(entry, At):
            out.append(bound(entry.index))
        else:
            out.append(... if isinstance(entry, Ellipsis) else None)
    return tuple(out) if ... in out else (*out, ...)


def _getitem(call: Call) -> Array:
    return call.operands[0][_index(call)]


def _setitem(call: Call) -> Array:
    target, stored = call.operands
    out = call.fresh()
    out[...] = target
    out[_index(call)] = stored
    return out


def _size(call: Call) -> Array:
    (x,) = call.operands
    return np.asarray(x.shape[size_axis("size", x.shape, call.attributes)], dtype=np.int64)


_UFUNCS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.true_divide,
    "negative": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_not": np.logical_not,
}

RULES: dict[str, Rule] = {name: _ufunc(function) for name, function in _UFUNCS.items()} | {
    "left_shift": _left_shift,
    "right_shift": _right_shift,
    "where": _where,
    "cast": _cast,
    "minimum": _pack_elementwise("minimum", np.minimum),
    "maximum": _pack_elementwise("maximum", np.maximum),
    **{name: _pack_elementwise(name) for name in ELEMENTARY},
    "sum": _reduction("sum", np.sum),
    "prod": _reduction("prod", np.prod),
    "max": _reduction("max", np.max),
    "min": _reduction("min", np.min),
    "mean": _mean,
    "var": _var,
    "any": _truth(np.any),
    "all": _truth(np.all),
    "matmul": _matmul,
    "reshape": _reshape,
    "broadcast_to": _broadcast_to,
    "transpose": _transpose,
    "getitem": _getitem,
    "setitem": _setitem,
    "size": _size,
}
"""Operator -> how tier 0 computes it. A test says that the table and this agree."""
