"""Trip counts: what is known of the bounds of a loop without running it.

Pure functions over SSA values. `None` always means "not known". All comparisons are signed, as in `scf.for`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.dialects.scf import ForOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from jitdialects.dialects.loop import ParallelOp


def constant_of(value: SSAValue) -> int | None:
    """The integer that `arith.constant` gives `value`."""
    if not isinstance(value, OpResult) or value.op.name != "arith.constant":
        return None
    attribute = value.op.properties.get("value")
    return attribute.value.data if isinstance(attribute, IntegerAttr) else None


def trip_count(lower: int, upper: int, step: int) -> int:
    """How often a loop from `lower` to below `upper` runs; `step` is positive."""
    return max(0, -((lower - upper) // step))


def constant_trip_count(loop: ForOp) -> int | None:
    """The trip count of `loop` if it is the same in every execution."""
    step = constant_of(loop.step)
    if step is None or step <= 0:
        return None
    extent = constant_extent(loop.lb, loop.ub)
    return None if extent is None else trip_count(0, extent, step)


def constant_extent(lower: SSAValue, upper: SSAValue) -> int | None:
    """`upper - lower` where both are constants, or `upper` is `lower + constant`."""
    low, high = constant_of(lower), constant_of(upper)
    if low is not None and high is not None:
        return high - low
    return _added_to(lower, upper)


def extent_at_most(lower: SSAValue, upper: SSAValue) -> int | None:
    """A constant that `upper - lower` never exceeds."""
    exact = constant_extent(lower, upper)
    if exact is not None:
        return exact
    op = _owner(upper)
    if op is None:
        return None
    if op.name == "arith.subi" and _is_never_negative(op.operands[1]):
        return extent_at_most(lower, op.operands[0])
    if op.name == "arith.minsi":
        bounds = [extent_at_most(lower, operand) for operand in op.operands]
        known = [bound for bound in bounds if bound is not None]
        return min(known, default=None)
    low = constant_of(lower)
    number = constant_of(op.operands[1]) if len(op.operands) == 2 else None
    if low is None or number is None or number < 0:
        return None
    if op.name == "arith.andi":
        return number - low
    return number - 1 - low if op.name in ("arith.remsi", "arith.remui") else None


def is_multiple_of(value: SSAValue, number: int) -> bool:
    """`value`, of type index, is known to be a multiple of `number`, which is positive."""
    constant = constant_of(value)
    if constant is not None:
        return constant % number == 0
    op = _owner(value)
    if op is None:
        return _is_multiple_in_loop(value, number)
    if not isinstance(value.type, IndexType):
        return False
    if op.name in ("arith.addi", "arith.subi", "arith.minsi", "arith.maxsi"):
        return all(is_multiple_of(operand, number) for operand in op.operands)
    return op.name == "arith.muli" and any(is_multiple_of(o, number) for o in op.operands)


def _is_multiple_in_loop(value: SSAValue, number: int) -> bool:
    """An induction variable that starts at a multiple and goes on in multiples, or the begin of a chunk."""
    loop = value.block.parent_op() if isinstance(value, BlockArgument) else None
    if isinstance(loop, ParallelOp) and value is loop.begin:
        return is_multiple_of(loop.lower, number) and is_multiple_of(loop.chunk, number)
    if not isinstance(loop, ForOp) or value is not loop.body.block.args[0]:
        return False
    return is_multiple_of(loop.lb, number) and is_multiple_of(loop.step, number)


def _added_to(base: SSAValue, value: SSAValue) -> int | None:
    """`c` if `value` is `base + c`, of type index: narrower integers may wrap."""
    op = _owner(value)
    if op is None or op.name != "arith.addi" or not isinstance(value.type, IndexType):
        return None
    left, right = op.operands
    if left is base:
        return constant_of(right)
    return constant_of(left) if right is base else None


def _is_never_negative(value: SSAValue) -> bool:
    """A constant, or some bits of a number."""
    op = _owner(value)
    number = constant_of(op.operands[1] if op is not None and op.name == "arith.andi" else value)
    return number is not None and number >= 0


def _owner(value: SSAValue) -> Operation | None:
    return value.op if isinstance(value, OpResult) else None
