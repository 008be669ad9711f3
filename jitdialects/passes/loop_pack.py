"""`loop-pack`: copy panels that the loops inside read over and over into memory of their own.

    scf.for %jt = %a to %b step 16 {                 scf.for %p = %a to %b step 64 {
      scf.for %i = ... {                               %panel = memref.alloca() : memref<784x64xf32>
        scf.for %j = %jt to %jt + 16 {                 scf.for %r = 0 to 784 { scf.for %c = %p to %e {
          ... memref.load %B[%k, %j] ...       ->        %panel[%r, %c - %p] = %B[%r, %c] } }
        } } } {pack = 4}                               scf.for %jt = %p to %e step 16 { scf.for %i = ... {
                                                         ... memref.load %panel[%k, %j - %p] ... } } }

with %e = min(%p + 64, %b). The rows of a panel lie a whole matrix row apart; with a power of two between them
they share few cache sets, so every pass over the panel would come from far away. Packed, its rows are
neighbours. It works on the `scf.for` whose schedule says `pack` (how many of its iterations share a copy),
needs loads of a matrix with a static number of rows, and never packs what the loop writes, nor more than
fits on a stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import (
    FixedBitwidthType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue
from xdsl.passes import ModulePass

from jitdialects.analysis.body import Body, body_of
from jitdialects.analysis.bounds import constant_extent, constant_of, extent_at_most
from jitdialects.analysis.memory import (
    Access,
    has_identity_layout,
    may_alias,
    memref_type,
)
from jitdialects.dialects.interned import INDEX
from jitdialects.dialects.loop import KIND, PARALLEL, Schedule
from jitdialects.passes.index_math import IndexMath, before
from jitdialects.passes.loop_rewrite import (
    defined_outside,
    loops_innermost_first,
    refuse,
    schedule_of,
    set_schedule,
)

MAX_PANEL_BYTES = 256 * 1024
"""Half of a common second-level cache."""
MAX_STACK_BYTES = 1024 * 1024
"""All panels of a function: they live on the stack of whatever thread calls it."""
ALIGNMENT = 64
MAX_LANES = 64


@dataclass(frozen=True)
class Panel:
    """What one iteration of a loop reads of `matrix`: all rows, some neighbouring columns."""

    matrix: SSAValue
    rows: int
    columns: int


def column_loop(access: Access, loop: scf.ForOp) -> scf.ForOp | None:
    """The loop inside `loop` whose induction variable is the column that `access` reads."""
    if len(access.indices) != 2 or access.lanes != 1:
        return None
    column = access.indices[1]
    if not isinstance(column, BlockArgument) or column.index:
        return None
    around = column.block.parent_op()
    if not isinstance(around, scf.ForOp) or around is loop:
        return None
    return around


# ---- legality ----------------------------------------------------------------------------------


def reads_only(matrix: SSAValue, body: Body) -> bool:
    """Nothing in a loop with this body writes what overlaps `matrix`."""
    return body.unknown_effect is None and not any(
        access.is_store and may_alias(access.base, matrix) for access in body.accesses
    )


def panel_of(access: Access, loop: scf.ForOp) -> Panel | None:
    """What to copy so that `access` need not go to its matrix; None if that is not static enough."""
    columns = column_loop(access, loop)
    step = constant_of(loop.step)
    if columns is None or step is None or constant_of(columns.step) != 1:
        return None
    rows = memref_type(access.base).get_shape()[0]
    if rows < 1 or not has_identity_layout(access.base):
        return None
    starts_with_tile = columns.lb is loop.body.block.args[0]
    extent = extent_at_most(columns.lb, columns.ub)
    if not starts_with_tile or extent is None or extent > step:
        return None
    return Panel(access.base, rows, step)


def is_packing_legal(access: Access, loop: scf.ForOp, body: Body) -> bool:
    """The panel is the same for every iteration of the loops inside."""
    return (
        not access.is_store
        and defined_outside(access.base, loop)
        and panel_of(access, loop) is not None
        and reads_only(access.base, body)
    )


def fits_on_the_stack(panels: Iterable[Panel], count: int, taken: int) -> bool:
    """With the `taken` bytes of other loops, copies of `panels` leave a thread's stack alone."""
    return taken + sum(panel_bytes(panel, count) for panel in panels) <= MAX_STACK_BYTES


# ---- profitability -----------------------------------------------------------------------------


def panel_bytes(panel: Panel, count: int) -> int:
    """What `count` panels take together."""
    element: Attribute = memref_type(panel.matrix).get_element_type()
    width = element.bitwidth if isinstance(element, FixedBitwidthType) else 64
    return panel.rows * panel.columns * count * max(8, width) // 8


def is_packing_profitable(panel: Panel, count: int) -> bool:
    """`count` panels together stay in a cache that is close."""
    return panel_bytes(panel, count) <= MAX_PANEL_BYTES


# ---- the rewrite -------------------------------------------------------------------------------


def packable(loop: scf.ForOp, count: int) -> Iterator[tuple[Access, Panel]]:
    """The loads to redirect, each with its panel."""
    body = body_of(loop.body.block)
    for access in body.accesses:
        if is_packing_legal(access, loop, body):
            panel = panel_of(access, loop)
            if panel is not None and is_packing_profitable(panel, count):
                yield access, panel


def strip_mine(loop: scf.ForOp, count: int) -> IndexMath:
    """Put `loop` inside a loop that takes `count` of its iterations at a time. Returns where to emit in
    front of it."""
    step = constant_of(loop.step)
    assert step is not None
    outside = IndexMath(before(loop))
    body = Block(arg_types=(INDEX,))
    around = scf.ForOp(loop.lb, loop.ub, outside.value(step * count), (), Region(body))
    around.attributes[KIND] = loop.attributes[KIND]
    outside.put(around)
    inside = IndexMath(body.add_op)
    end = inside.add(body.args[0], step * count)
    extent = constant_extent(loop.lb, loop.ub)
    if extent is None or extent % (step * count):
        end = inside.minsi(end, outside.number(loop.ub))
    loop.detach()
    loop.operands = (body.args[0], inside.value(end), *loop.operands[2:])
    body.add_ops((loop, scf.YieldOp()))
    return IndexMath(before(loop))


def pack(panel: Panel, loop: scf.ForOp, count: int, math: IndexMath) -> SSAValue:
    """Emit the copy of `count` panels in front of `loop`; returns the packed memory."""
    columns = panel.columns * count
    element: Attribute = memref_type(panel.matrix).get_element_type()
    alignment = IntegerAttr(ALIGNMENT, i64)
    packed = math.insert(
        memref.AllocaOp.get(element, alignment=alignment, shape=(panel.rows, columns))
    )
    row, column = (Block(arg_types=(INDEX,)) for _ in range(2))
    inside = IndexMath(column.add_op)
    value = inside.insert(memref.LoadOp.get(panel.matrix, (row.args[0], column.args[0])))
    place = inside.value(inside.sub(column.args[0], loop.lb))
    column.add_ops((memref.StoreOp.get(value, packed, (row.args[0], place)), scf.YieldOp()))
    one = math.value(1)
    copy = scf.ForOp(loop.lb, loop.ub, one, (), Region(column))
    row.add_ops((copy, scf.YieldOp()))
    rows = scf.ForOp(math.value(0), math.value(panel.rows), one, (), Region(row))
    for each in (copy, rows):
        each.attributes[KIND] = StringAttr(PARALLEL)
    whole = constant_extent(loop.lb, loop.ub) == columns <= MAX_LANES
    set_schedule(copy, Schedule(vector=columns if whole else panel.columns))
    math.put(rows)
    return packed


class Places:
    """Where a column lies in its panel: computed once, at the start of the loop over the columns."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, SSAValue] = {}

    def __call__(self, column: SSAValue, first: SSAValue) -> SSAValue:
        """`column - first`; `column` is an induction variable."""
        if column not in self._known:
            assert isinstance(column, BlockArgument) and column.block.first_op is not None
            math = IndexMath(before(column.block.first_op))
            self._known[column] = math.value(math.sub(column, first))
        return self._known[column]


class LoopPackPass(ModulePass):
    """Pack what an scf.for asks to have packed."""

    name = "loop-pack"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            taken = 0
            for loop in loops_innermost_first(function):
                if schedule_of(loop).pack:
                    taken += self._pack(loop, taken)

    def _pack(self, loop: scf.ForOp, taken: int) -> int:
        """Pack for one loop; returns the bytes of stack that it takes."""
        schedule = schedule_of(loop)
        set_schedule(loop, schedule.without("pack"))
        found = list(packable(loop, schedule.pack))
        panels = dict.fromkeys(panel for _, panel in found)
        if not found:
            refuse(loop, self.name, "nothing that the loops inside read again can be packed")
            return 0
        if not fits_on_the_stack(panels, schedule.pack, taken):
            refuse(loop, self.name, "the panels of this function would fill the stack")
            return 0
        math = strip_mine(loop, schedule.pack)
        packed = {panel: pack(panel, loop, schedule.pack, math) for panel in panels}
        place = Places()
        for access, panel in found:
            row, column = access.indices
            access.op.operands = (packed[panel], row, place(column, loop.lb))
        return sum(panel_bytes(panel, schedule.pack) for panel in panels)
