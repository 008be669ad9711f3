"""`loop-pack-constants`: lay out a constant matrix the way the loops that read it walk through it.

    func.func @f(%B: memref<784x500xf32> {tssa.constant = 0 : i64}) {
      scf.for %jt = 0 to 496 step 16 { ... scf.for %j = %jt to %jt + 16 { memref.load %B[%k, %j] } } {pack = 1}
    ->
    func.func @f(%B: memref<32x784x16xf32> {tssa.constant = 0 : i64, loop.packed = 16 : i64}) {
      scf.for %jt = 0 to 496 step 16 { %p = %jt / 16
                               ... scf.for %j = %jt to %jt + 16 { memref.load %B[%p, %k, %j - %jt] } }

Whoever passes the argument packs it, once: element [p, k, c] is B[k, 16 * p + c], zero beyond the last column.
Where a row of a panel was a whole matrix row away from the next, it is now its neighbour. Only loops whose
schedule says `pack` are asked; a matrix is left alone unless every use of it is a load that can change.
Run it before `loop-pack`, which copies what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, MemRefType, ModuleOp, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from jitdialects.analysis.body import body_of
from jitdialects.analysis.bounds import constant_of
from jitdialects.analysis.memory import Access, memref_type
from jitdialects.dialects.constants import CONSTANT
from jitdialects.dialects.loop import PACKED
from jitdialects.passes.loop_pack import Panel, Places, panel_of, tile_of
from jitdialects.passes.loop_rewrite import loops_innermost_first, schedule_of, set_schedule


@dataclass(frozen=True)
class Read:
    """A load of a constant matrix inside a loop over panels of it."""

    access: Access
    loop: scf.ForOp
    panel: Panel


def constant_function(matrix: SSAValue) -> FuncOp | None:
    """The function that `matrix` is a constant argument of."""
    if not isinstance(matrix, BlockArgument):
        return None
    function = matrix.block.parent_op()
    if not isinstance(function, FuncOp) or function.arg_attrs is None:
        return None
    if matrix.block is not function.body.blocks.first:
        return None
    attributes = function.arg_attrs.data[matrix.index].data
    return function if CONSTANT in attributes and PACKED not in attributes else None


# ---- legality ----------------------------------------------------------------------------------


def starts_at_a_panel(read: Read) -> bool:
    """The loop takes whole panels, counted from column 0 (its step is a number of them)."""
    lower = constant_of(read.loop.lb)
    return lower is not None and lower >= 0 and lower % read.panel.columns == 0


def agree_on_panels(reads: list[Read]) -> bool:
    """One layout serves all loops."""
    return len({read.panel.columns for read in reads}) == 1


def cover_all_uses(matrix: SSAValue, reads: list[Read]) -> bool:
    """Nothing else looks at the matrix."""
    known = {read.access.op for read in reads}
    return all(use.operation in known for use in matrix.uses)


def is_layout_free(matrix: SSAValue, reads: list[Read]) -> bool:
    """The matrix may be laid out otherwise."""
    return (
        constant_function(matrix) is not None
        and memref_type(matrix).has_static_shape()
        and all(starts_at_a_panel(read) for read in reads)
        and agree_on_panels(reads)
        and cover_all_uses(matrix, reads)
    )


# ---- the rewrite -------------------------------------------------------------------------------


def reads_of_constants(module: ModuleOp) -> dict[SSAValue, list[Read]]:
    """The loads to look at, by matrix."""
    found: dict[SSAValue, list[Read]] = {}
    for loop in loops_innermost_first(module):
        if not schedule_of(loop).pack:
            continue
        for access in body_of(loop.body.block).accesses:
            if access.is_store or constant_function(access.base) is None:
                continue
            panel = panel_of(access, loop)
            if panel is not None:
                found.setdefault(access.base, []).append(Read(access, loop, panel))
    return found


def repack(matrix: SSAValue, reads: list[Read]) -> None:
    """Change the type of the argument, and every load."""
    columns = reads[0].panel.columns
    rows, width = memref_type(matrix).get_shape()
    place = Places()
    for read in reads:
        set_schedule(read.loop, schedule_of(read.loop).without("pack"))
        tile = tile_of(read.access, read.loop)
        assert tile is not None
        (row, column), first = read.access.indices, tile.loop.body.block.args[0]
        read.access.op.operands = (matrix, place(first, None, columns), row, place(column, first))
    element: Attribute = memref_type(matrix).get_element_type()
    _change_argument(matrix, MemRefType(element, (-(-width // columns), rows, columns)), columns)


def _change_argument(matrix: SSAValue, type: MemRefType[Attribute], columns: int) -> None:
    function = constant_function(matrix)
    assert function is not None and isinstance(matrix, BlockArgument)
    assert function.arg_attrs is not None
    attributes = list(function.arg_attrs.data)
    old = attributes[matrix.index].data
    attributes[matrix.index] = DictionaryAttr({**old, PACKED: IntegerAttr(columns, i64)})
    function.arg_attrs = ArrayAttr(attributes)
    Rewriter.replace_value_with_new_type(matrix, type)
    function.update_function_type()


class LoopPackConstantsPass(ModulePass):
    """Group the columns of constant matrices into the panels that loops read."""

    name = "loop-pack-constants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for matrix, reads in reads_of_constants(op).items():
            if is_layout_free(matrix, reads):
                repack(matrix, reads)
