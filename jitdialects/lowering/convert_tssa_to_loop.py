"""`convert-tssa-to-loop`: each group over buffers becomes loop nests with scalar bodies.

    tssa.group ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) {     loop.nest (%i) = (%c0) to (%n) ... {
    ^bb0(%a : tensor<?xf32, #tssa.dims<[n]>>):                          %v = memref.load %x[%i]
      %b = tssa.exp %a : ...                                      ->    %e = math.exp %v : f32
      tssa.yield %b                                                     memref.store %e, %y[%i]
    }                                                                 }

The kinds of group are told apart by what is inside; see docs/architecture.md. Sizes come from the function's
arguments (their `tssa.dims` attributes), as values at its top. Needs `tssa-bufferize`. Never changes an
order of summation, a rounding, or what may be undefined.
"""

from __future__ import annotations

from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from jitdialects.analysis.splats import Table, splat_of
from jitdialects.dialects.interfaces import Contraction, Reduction, has_trait
from jitdialects.dialects.tssa import ConstantOp, GroupOp, InsertOp
from jitdialects.dialects.tssa_types import shape_of
from jitdialects.lowering.emitter import Emitter
from jitdialects.lowering.loop_elementwise import lower_elementwise, lower_insert, lower_table
from jitdialects.lowering.loop_matmul import lower_matmul
from jitdialects.lowering.loop_reduction import lower_dot, lower_reduction
from jitdialects.lowering.loop_rowwise import lower_rows


def lower_group(at: Emitter, group: GroupOp) -> None:
    """Emit the nests of one group in front of it."""
    if not group.outs:
        raise PassFailedException(
            "convert-tssa-to-loop: a tssa.group yields tensors; run tssa-bufferize first"
        )
    for op in group.block.ops:
        if has_trait(op, Contraction):
            lower = lower_dot if len(shape_of(op.operands[1])) == 1 else lower_matmul
            return lower(at, group, op)
        if has_trait(op, Reduction):
            alone = len(group.block.ops) == 2
            return lower_reduction(at, group, op) if alone else lower_rows(at, group)
        if isinstance(op, InsertOp):
            return lower_insert(at, group, op)
        if isinstance(op, ConstantOp) and splat_of(op) is None:
            return lower_table(at, group, cast("Table", op.value))
    return lower_elementwise(at, group)


class ConvertTssaToLoopPass(ModulePass):
    """Turn every tssa.group over buffers into loop nests with scalar bodies."""

    name = "convert-tssa-to-loop"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp):
                _lower_function(function)


def _lower_function(function: FuncOp) -> None:
    groups: list[Operation] = [
        op for block in function.body.blocks for op in block.ops if op.name == "tssa.group"
    ]
    if not groups:
        return
    at = Emitter(function)
    for group in groups:
        assert isinstance(group, GroupOp)
        at.place_before(group)
        lower_group(at, group)
        group.detach()
        group.erase()
