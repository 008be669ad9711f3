"""Kept axes behind reduced ones as one: what lies next to each other in memory is gone over in long segments.

    sum over 0 of [n, h, c], kept [h, c]     ->     sum over 0 of [n, h * c], kept [h * c]

One column is none: its axis goes, and what is left is a row.
"""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from jitdialects.analysis.fusion_graph import reduced_axes
from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Shape
from jitdialects.dialects.tssa import GroupOp
from jitdialects.dialects.tssa_types import dtype_of, shape_of, tensor_type
from jitdialects.lowering.emitter import Emitter, collapse
from jitdialects.lowering.loop_elementwise import is_contiguous


def join_axes_behind(at: Emitter, group: GroupOp, reduction: Operation) -> None:
    """Give the group fewer axes, in its body and its buffers, where all buffers are contiguous and nothing is
    repeated along some of the axes only. The group is about to be replaced by loops."""
    axes, full = reduced_axes(reduction), shape_of(reduction.operands[0])
    behind = full[axes[-1] + 1 :]
    size = dims.product(behind)
    if not behind or (len(behind) == 1 and size != 1) or not _have_buffers_in_order(group):
        return
    tail = () if size == 1 else (size,)
    kept = full[: axes[0]] + behind

    def joined(shape: Shape) -> Shape | None:
        if not shape:
            return ()
        if shape == kept:
            return (*shape[: axes[0]], *tail)
        if len(shape) != len(full):
            return None
        mine, shape = shape[axes[-1] + 1 :], shape[: axes[-1] + 1]
        if mine == behind:
            return (*shape, *tail)
        return (*shape, *(1 for _ in tail)) if all(s == 1 for s in mine) else None

    values: list[SSAValue] = [
        *group.block.args,
        *(result for op in group.block.ops for result in op.results),
    ]
    shapes = [joined(shape_of(value)) for value in values]
    by_chance = axes[0] and any(_is_seen_from_behind(op, kept, full) for op in group.block.ops)
    if None in shapes or by_chance:
        return
    buffers = [*group.ins, *group.outs]
    inner = [*group.block.args, *group.terminator.operands]
    for number, (value, buffer) in enumerate(zip(inner, buffers, strict=True)):
        shape = joined(shape_of(value))
        if isinstance(buffer.type, MemRefType) and shape is not None:
            group.operands[number] = collapse(at, buffer, shape)
    for value, shape in zip(values, shapes, strict=True):
        if shape is not None and len(shape) != len(shape_of(value)):
            Rewriter.replace_value_with_new_type(value, tensor_type(dtype_of(value), shape))


def _have_buffers_in_order(group: GroupOp) -> bool:
    buffers = (*group.ins, *group.outs)
    return all(is_contiguous(b) for b in buffers if isinstance(b.type, MemRefType))


def _is_seen_from_behind(op: Operation, kept: Shape, full: Shape) -> bool:
    """A broadcast of what has the kept shape by chance: its axes are the last ones of the full shape."""
    return (
        op.name == "tssa.broadcast"
        and shape_of(op.operands[0]) == kept
        and len(shape_of(op.results[0])) == len(full)
    )
