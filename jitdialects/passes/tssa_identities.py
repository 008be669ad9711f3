"""The identities of `tssa-simplify`, one function each, exact for every bit pattern.

A rule takes an operation whose name it is registered for and gives the value that stands for its
result, the result itself after a change in place, or None.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import Operation, OpResult, SSAValue

from jitdialects.bytecode.dtypes import INT32, INT64, integer_range
from jitdialects.dialects.constants import constant_array, constant_op
from jitdialects.dialects.tssa import BroadcastOp, TransposeOp
from jitdialects.dialects.tssa_types import DimsAttr, dtype_of, shape_of, tensor_type

# ---- what rules ask ----------------------------------------------------------------------------


def producer(value: SSAValue, name: str) -> Operation | None:
    """The operation that gives `value`, if it is called `name`."""
    return value.op if isinstance(value, OpResult) and value.op.name == name else None


def splat(value: SSAValue) -> np.generic | None:
    """The one number in all elements of a constant, also behind broadcasts and reshapes."""
    while isinstance(value, OpResult) and value.op.name in ("tssa.broadcast", "tssa.reshape"):
        value = value.op.operands[0]
    constant = producer(value, "tssa.constant")
    if constant is None:
        return None
    elements = constant_array(constant).reshape(-1)
    if elements.size == 0 or elements.tobytes() != elements[:1].tobytes() * elements.size:
        return None
    return elements[0]


def is_splat_of(value: SSAValue, number: float) -> bool:
    """Whether every element is `number`, with the same sign if it is zero."""
    found: Any = splat(value)
    return (
        found is not None
        and bool(found == number)
        and bool(np.signbit(np.float64(found)) == np.signbit(np.float64(number)))
    )


def is_float(value: SSAValue) -> bool:
    """Whether the elements have a NaN and two zeros."""
    return dtype_of(value).name.startswith("float")


def _other(op: Operation, number: float) -> SSAValue | None:
    """The operand of a commutative operation beside a splat of `number`."""
    left, right = op.operands
    if is_splat_of(right, number):
        return left
    return right if is_splat_of(left, number) else None


def _filled(op: Operation, like: SSAValue, number: int) -> SSAValue:
    """A value of the type of `like` with `number` in all elements, in front of `op`."""
    constant = constant_op(dtype_of(like), np.array(number, dtype_of(like).numpy))
    block = op.parent_block()
    assert block is not None
    block.insert_op_before(constant, op)
    if not shape_of(like):
        return constant.result
    broadcast = BroadcastOp.create(operands=[constant.result], result_types=[like.type])
    block.insert_op_before(broadcast, op)
    return broadcast.results[0]


# ---- arithmetic --------------------------------------------------------------------------------


def multiply_by_one(op: Operation) -> SSAValue | None:
    """x * 1 is x."""
    return _other(op, 1)


def multiply_by_zero(op: Operation) -> SSAValue | None:
    """x * 0 is 0 for integers and bool; not for floats: NaN, infinities, -0.0."""
    if is_float(op.results[0]):
        return None
    left, right = op.operands
    if is_splat_of(right, 0):
        return right
    return left if is_splat_of(left, 0) else None


def divide_by_one(op: Operation) -> SSAValue | None:
    """x / 1 is x."""
    return op.operands[0] if is_splat_of(op.operands[1], 1) else None


def add_neutral(op: Operation) -> SSAValue | None:
    """x + (-0.0) is x for floats, x + 0 for integers and bool. x + (+0.0) is not: -0.0 + 0.0 is
    0.0."""
    return _other(op, -0.0 if is_float(op.results[0]) else 0)


def subtract_zero(op: Operation) -> SSAValue | None:
    """x - (+0.0) is x, also for -0.0. x - (-0.0) is not."""
    return op.operands[0] if is_splat_of(op.operands[1], 0) else None


def subtract_itself(op: Operation) -> SSAValue | None:
    """x - x is 0 for integers; for floats it is NaN where x is NaN or infinite."""
    left, right = op.operands
    if left is not right or is_float(left):
        return None
    return _filled(op, left, 0)


def shift_by_zero(op: Operation) -> SSAValue | None:
    """x << 0 and x >> 0 are x."""
    return op.operands[0] if is_splat_of(op.operands[1], 0) else None


def undo_itself(op: Operation) -> SSAValue | None:
    """-(-x) is x, wrapping and both zeros included; not(not x) is x."""
    inner = producer(op.operands[0], op.name)
    return None if inner is None else inner.operands[0]


def abs_of_sign_change(op: Operation) -> SSAValue | None:
    """|-x| is |x|, for the smallest integer too; | |x| | is |x|."""
    if producer(op.operands[0], "tssa.abs") is not None:
        return op.operands[0]
    inner = producer(op.operands[0], "tssa.negative")
    if inner is None:
        return None
    op.operands[0] = inner.operands[0]
    return op.results[0]


# ---- comparisons -------------------------------------------------------------------------------


def compare_in_int32(op: Operation) -> SSAValue | None:
    """x < c of an int32 x, compared in int64 because c is a Python integer, is x < c in int32 where int32
    holds c. Two vectors of the wide type become one of the narrow."""
    for side in (0, 1):
        cast = producer(op.operands[side], "tssa.cast")
        number = splat(op.operands[1 - side])
        if cast is None or number is None or dtype_of(cast.results[0]) != INT64:
            continue
        low, high = integer_range("int32")
        narrow = cast.operands[0]
        if dtype_of(narrow) == INT32 and low <= int(number) <= high:
            op.operands[side] = narrow
            op.operands[1 - side] = _filled(op, narrow, int(number))
            return op.results[0]
    return None


# ---- choices -----------------------------------------------------------------------------------


def both_operands_equal(op: Operation) -> SSAValue | None:
    """min(x, x), max(x, x), x and x, x or x are x."""
    left, right = op.operands
    return left if left is right else None


def and_with_constant(op: Operation) -> SSAValue | None:
    """x and true is x; x and false is false."""
    same = _other(op, 1)
    return same if same is not None else multiply_by_zero(op)


def or_with_constant(op: Operation) -> SSAValue | None:
    """x or false is x; x or true is true."""
    same = _other(op, 0)
    if same is not None:
        return same
    left, right = op.operands
    if is_splat_of(right, 1):
        return right
    return left if is_splat_of(left, 1) else None


def where_same(op: Operation) -> SSAValue | None:
    """where(c, x, x) is x."""
    _, left, right = op.operands
    return left if left is right else None


def where_decided(op: Operation) -> SSAValue | None:
    """where(true, x, y) is x; where(false, x, y) is y."""
    condition = splat(op.operands[0])
    if condition is None:
        return None
    return op.operands[1] if condition else op.operands[2]


# ---- casts and moves ---------------------------------------------------------------------------

_EXACT_CASTS = {
    *(("bool", wider) for wider in ("int32", "int64", "float32", "float64")),
    ("int32", "int64"),
    ("int32", "float64"),
    ("float32", "float64"),
}
"""Casts after which the value is the same number, so that a further cast cannot tell the
difference."""


def same_type(op: Operation) -> SSAValue | None:
    """A cast, broadcast or reshape to the type of its operand."""
    return op.operands[0] if op.operands[0].type == op.results[0].type else None


def cast_of_exact_cast(op: Operation) -> SSAValue | None:
    """cast(cast(x)) is cast(x) where the inner one keeps the number: not int64 -> float32 -> int64,
    nor float64 -> float32 -> float64."""
    inner = producer(op.operands[0], "tssa.cast")
    if inner is None:
        return None
    if (dtype_of(inner.operands[0]).name, dtype_of(inner.results[0]).name) not in _EXACT_CASTS:
        return None
    op.operands[0] = inner.operands[0]
    return op.results[0]


def of_same_operation(op: Operation) -> SSAValue | None:
    """A reshape of a reshape, or a broadcast of a broadcast, in one."""
    inner = producer(op.operands[0], op.name)
    if inner is None:
        return None
    op.operands[0] = inner.operands[0]
    return op.results[0]


def _permutation(op: Operation) -> tuple[int, ...]:
    axes = op.properties["permutation"]
    assert isinstance(axes, DenseArrayBase)
    return tuple(int(a) for a in axes.get_values())


def transpose_in_order(op: Operation) -> SSAValue | None:
    """A transpose that leaves the axes in their order."""
    axes = _permutation(op)
    return op.operands[0] if axes == tuple(range(len(axes))) else None


def transpose_of_transpose(op: Operation) -> SSAValue | None:
    """Two transposes in one."""
    inner = producer(op.operands[0], "tssa.transpose")
    if inner is None:
        return None
    first = _permutation(inner)
    op.properties["permutation"] = DenseArrayBase.from_list(
        i64, [first[a] for a in _permutation(op)]
    )
    op.operands[0] = inner.operands[0]
    return op.results[0]


def _covers_everything(op: Operation, whole: SSAValue, part: SSAValue) -> bool:
    """Whether the region that the operation names is the whole tensor, in order."""
    offsets, steps = op.properties["offsets"], op.properties["steps"]
    assert isinstance(offsets, DimsAttr) and isinstance(steps, DenseArrayBase)
    return (
        whole.type == part.type
        and all(o == 0 for o in offsets.data)
        and all(int(s) == 1 for s in steps.get_values())
    )


def extract_everything(op: Operation) -> SSAValue | None:
    """x[:] is x."""
    whole = op.operands[0]
    return whole if _covers_everything(op, whole, op.results[0]) else None


def insert_everything(op: Operation) -> SSAValue | None:
    """x with x[:] = y is y."""
    whole, part = op.operands[:2]
    return part if _covers_everything(op, whole, part) else None


def bring_reduced_axes_together(op: Operation) -> SSAValue | None:
    """sum {axes = 0, 2} of [a, b, c] is sum {axes = 1, 2} of the transpose [b, a, c]: loops want the reduced
    axes to be neighbours. Their order stays, and kept axes behind the last of them stay behind."""
    axes = [int(a) for a in op.properties["axes"].get_values()]  # pyright: ignore
    if not axes or axes[-1] - axes[0] + 1 == len(axes):
        return None
    operand = op.operands[0]
    shape = shape_of(operand)
    behind = range(axes[-1] + 1, len(shape))
    before = [a for a in range(axes[-1]) if a not in axes]
    order = [*before, *axes, *behind]
    type = tensor_type(dtype_of(operand), tuple(shape[a] for a in order))
    transposed = TransposeOp(operand, order, type)
    block = op.parent
    assert block is not None
    block.insert_op_before(transposed, op)
    op.operands[0] = transposed.result
    joined = range(len(before), len(before) + len(axes))
    op.properties["axes"] = DenseArrayBase.from_list(i64, list(joined))
    return op.results[0]
