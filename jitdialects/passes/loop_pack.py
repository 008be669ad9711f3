"""`loop-pack`: copy panels that the loops inside read over and over into memory of their own.

    scf.for %p = %a to %b step 64 {                  scf.for %p = %a to %b step 64 {
      scf.for %i = ... {                               %panel = memref.alloca() : memref<4x784x16xf32>
        scf.for %t = %p to %p + 64 step 16 {           for r, %s, c: %panel[(%s - %p) / 16, r, c - %s] = %B[r, c]
          scf.for %j = %t to %t + 16 {        ->       scf.for %i = ... { scf.for %t = ... {
            ... memref.load %B[%k, %j] ...               %q = (%t - %p) / 16
      } } } } {pack = 1}                                 scf.for %j = %t to %t + 16 {
                                                           ... memref.load %panel[%q, %k, %j - %t] ... } } } }

The rows of a tile lie a whole matrix row apart; with a power of two between them they share few cache sets, so
every pass over the tile would come from far away. Packed, they are neighbours, tile after tile. It works on the
`scf.for` whose schedule says `pack`. The loop over the tiles may be missing: then its iterations are the tiles.
Rows are those that an inner loop goes through, if its bounds are known outside, or all of them. What only the run
tells, the run decides: whether another loop, that of the rows of the left operand, goes over the panel more than
once, and whether as many rows as the matrix turns out to have fit in. The loops inside read through strides then,

    %from = arith.select %pays, %panel, %matrix : memref<4x784x16xf32, strided<[?, ?, 1], offset: ?>>

and where it does not pay no row is copied. Never packs what the loop writes or reads once, more than fits on a
stack, nor a tile that lacks columns where rows are not counted before: few of many, or rows that are neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FixedBitwidthType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StridedLayoutAttr,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue
from xdsl.passes import ModulePass

from jitdialects.analysis.body import Body, body_of
from jitdialects.analysis.bounds import (
    constant_extent,
    constant_of,
    constant_trip_count,
    extent_at_most,
)
from jitdialects.analysis.memory import (
    Access,
    has_identity_layout,
    may_alias,
    memref_type,
)
from jitdialects.dialects.interned import INDEX
from jitdialects.dialects.loop import KIND, PARALLEL
from jitdialects.dialects.schedules import Schedule
from jitdialects.dialects.upstream import SelectOp
from jitdialects.passes.index_math import Index, IndexMath, before
from jitdialects.passes.loop_rewrite import (
    defined_outside,
    is_parallel,
    loops_innermost_first,
    refuse,
    schedule_of,
    set_schedule,
)

MAX_PANEL_BYTES = 1024 * 1024
"""A share of a common third-level cache. Tiles come as streams, so that the second level need not hold all."""
UNKNOWN_PANEL_BYTES = 512 * 1024
"""For a panel whose rows are counted when the code runs: the longest that is packed."""
MAX_STACK_BYTES = 2 * 1024 * 1024
"""All panels of a function: they live on the stack of whatever thread calls it."""
ALIGNMENT = 64


@dataclass(frozen=True)
class Panel:
    """What one iteration of a loop reads of `matrix`: tiles of neighbouring columns.

    Rows from `first` to below `last`, at most `rows`; None: all of the matrix, which may be more than `rows` where
    its number of rows is not static.
    """

    matrix: SSAValue
    first: SSAValue | None
    last: SSAValue | None
    rows: int
    columns: int
    tiles: int

    @property
    def may_be_longer(self) -> bool:
        """The matrix may have rows for which there is no room."""
        return self.first is None and memref_type(self.matrix).get_shape()[0] == DYNAMIC_INDEX


@dataclass(frozen=True)
class Tile:
    """Where an access finds its column: in the loop `columns`, which starts at an iteration of `loop`."""

    loop: scf.ForOp
    columns: scf.ForOp


def loop_of(value: SSAValue) -> scf.ForOp | None:
    """The loop whose induction variable `value` is."""
    if not isinstance(value, BlockArgument) or value.index:
        return None
    around = value.block.parent_op()
    return around if isinstance(around, scf.ForOp) else None


def tile_of(access: Access, loop: scf.ForOp) -> Tile | None:
    """The tile of columns that `access` reads, if it is one of those that `loop` goes through."""
    if len(access.indices) != 2 or access.lanes != 1:
        return None
    columns = loop_of(access.indices[1])
    if columns is None or columns is loop or constant_of(columns.step) != 1:
        return None
    tiles = loop_of(columns.lb)
    if tiles is None or (tiles is not loop and tiles.lb is not loop.body.block.args[0]):
        return None
    return Tile(tiles, columns)


def is_whole(tile: Tile) -> bool:
    """It has all of its columns."""
    return constant_extent(tile.columns.lb, tile.columns.ub) == constant_of(tile.loop.step)


def rows_of(
    access: Access, loop: scf.ForOp, row_bytes: int
) -> tuple[SSAValue | None, SSAValue | None, int]:
    """The rows that `access` reads in an iteration of `loop`, and for how many there is room; see `Panel`."""
    rows = loop_of(access.indices[0])
    if rows is not None and constant_of(rows.step) == 1:
        most = extent_at_most(rows.lb, rows.ub)
        if most is not None and all(defined_outside(bound, loop) for bound in rows.operands[:2]):
            return rows.lb, rows.ub, most
    rows_known = memref_type(access.base).get_shape()[0]
    if rows_known == DYNAMIC_INDEX:
        return None, None, UNKNOWN_PANEL_BYTES // row_bytes
    return None, None, rows_known


def element_bytes(matrix: SSAValue) -> int:
    """Of one element in memory."""
    element: Attribute = memref_type(matrix).get_element_type()
    return max(1, element.bitwidth // 8) if isinstance(element, FixedBitwidthType) else 8


# ---- legality ----------------------------------------------------------------------------------


def reads_only(matrix: SSAValue, body: Body) -> bool:
    """Nothing in a loop with this body writes what overlaps `matrix`."""
    return body.unknown_effect is None and not any(
        access.is_store and may_alias(access.base, matrix) for access in body.accesses
    )


def panel_of(access: Access, loop: scf.ForOp) -> Panel | None:
    """What to copy so that `access` need not go to its matrix; None if that is not static enough."""
    tile, step = tile_of(access, loop), constant_of(loop.step)
    if tile is None or step is None or not has_identity_layout(access.base):
        return None
    width, extent = constant_of(tile.loop.step), extent_at_most(tile.columns.lb, tile.columns.ub)
    if width is None or width < 1 or step % width or extent is None or extent > width:
        return None
    if tile.loop is not loop:
        reach = extent_at_most(tile.loop.lb, tile.loop.ub)
        if reach is None or reach > step:
            return None
    first, last, rows = rows_of(access, loop, step * element_bytes(access.base))
    panel = Panel(access.base, first, last, rows, width, step // width)
    if rows < 1 or (panel.may_be_longer and not is_whole(tile)):
        return None
    return panel


def is_packing_legal(access: Access, loop: scf.ForOp, body: Body) -> bool:
    """The panel is the same for every iteration of the loops inside."""
    return (
        not access.is_store
        and defined_outside(access.base, loop)
        and panel_of(access, loop) is not None
        and reads_only(access.base, body)
    )


def fits_on_the_stack(panels: Iterable[Panel], taken: int) -> bool:
    """With the `taken` bytes of other loops, copies of `panels` leave a thread's stack alone."""
    return taken + sum(map(panel_bytes, panels)) <= MAX_STACK_BYTES


# ---- profitability -----------------------------------------------------------------------------


def panel_bytes(panel: Panel) -> int:
    """What a copy takes."""
    return panel.rows * panel.columns * panel.tiles * element_bytes(panel.matrix)


def is_packing_profitable(access: Access, loop: scf.ForOp, panel: Panel) -> bool:
    """The copy stays in a cache that is close, and is read more than once there."""
    return panel_bytes(panel) <= MAX_PANEL_BYTES and is_read_again(access, loop)


def is_read_again(access: Access, loop: scf.ForOp) -> bool:
    """A parallel loop inside `loop`, that of the rows, takes more iterations than it jams: the panel serves all."""
    return any(trips is None or trips > once(other) for other, trips in others(access, loop))


def others(access: Access, loop: scf.ForOp) -> Iterator[tuple[scf.ForOp, int | None]]:
    """Parallel loops inside `loop` that read the same with `access` in each iteration, and how many there are."""
    around, tile = access.op.parent_op(), tile_of(access, loop)
    places = {loop_of(index) for index in access.indices} | {tile.loop if tile else loop}
    while isinstance(around, scf.ForOp) and around is not loop:
        if is_parallel(around) and around not in places:
            yield around, constant_trip_count(around)
        around = around.parent_op()


def once(loop: scf.ForOp) -> int:
    """Iterations that read side by side."""
    jam = schedule_of(loop).jam
    return jam[0] if jam else 1


def many_iterations(access: Access, loop: scf.ForOp, math: IndexMath) -> SSAValue | None:
    """Whether `is_read_again` turns out to be true, where that is known when `loop` starts; None if it is true."""
    found = list(others(access, loop))
    if any(trips is not None and trips > once(other) for other, trips in found):
        return None
    unknown = [other for other, trips in found if trips is None]
    if len(unknown) != 1 or not all(defined_outside(b, loop) for b in unknown[0].operands[:3]):
        return None
    (other,) = unknown
    step, extent = constant_of(other.step), math.sub(math.number(other.ub), math.number(other.lb))
    return None if step is None else math.less(step * once(other), extent)


# ---- the rewrite -------------------------------------------------------------------------------


def packable(loop: scf.ForOp) -> Iterator[tuple[Access, Panel]]:
    """The loads to redirect, each with its panel."""
    body = body_of(loop.body.block)
    for access in body.accesses:
        if is_packing_legal(access, loop, body):
            panel = panel_of(access, loop)
            if panel is not None and is_packing_profitable(access, loop, panel):
                yield access, panel


def at_start(loop: scf.ForOp) -> IndexMath:
    """Emits at the start of an iteration."""
    first = loop.body.block.first_op
    assert first is not None
    return IndexMath(before(first))


def parallel_loop(
    lower: SSAValue, upper: SSAValue, step: SSAValue, schedule: Schedule
) -> tuple[scf.ForOp, IndexMath]:
    """A loop without a body, and what emits into it."""
    block = Block(arg_types=(INDEX,))
    loop = scf.ForOp(lower, upper, step, (), Region(block))
    loop.attributes[KIND] = StringAttr(PARALLEL)
    set_schedule(loop, schedule)
    return loop, IndexMath(block.add_op)


def pack(panel: Panel, loop: scf.ForOp, whole: bool, access: Access) -> SSAValue:
    """Emit the copy at the start of `loop`; returns where `access` finds the panel. Each tile has all of its columns
    if they are `whole`, else the last may lack some."""
    math = at_start(loop)
    element: Attribute = memref_type(panel.matrix).get_element_type()
    shape = (panel.tiles, panel.rows, panel.columns)
    alignment = IntegerAttr(ALIGNMENT, i64)
    packed = math.insert(memref.AllocaOp.get(element, alignment=alignment, shape=shape))
    start, width = loop.body.block.args[0], panel.columns
    end = math.add(start, width * panel.tiles)
    extent = constant_extent(loop.lb, loop.ub)
    if extent is None or extent % (width * panel.tiles):
        end = math.minsi(end, math.number(loop.ub))
    count: Index = panel.rows
    if panel.first is not None and panel.last is not None:
        count = math.sub(math.number(panel.last), math.number(panel.first))
    pays = many_iterations(access, loop, math) if whole else None
    if panel.may_be_longer:
        count = math.insert(memref.DimOp(panel.matrix, math.value(0)))
        fits = math.less(count, panel.rows + 1)
        pays = fits if pays is None else math.insert(arith.AndIOp(pays, fits))
    copied = count
    if pays is not None:
        operands = (pays, math.value(count), math.value(0))
        copied = math.insert(SelectOp.create(operands=operands, result_types=(INDEX,)))
    one, zero = math.value(1), math.value(0)
    rows, in_rows = parallel_loop(zero, math.value(copied), one, Schedule())
    once = Schedule(unroll=panel.tiles if panel.tiles > 1 else 0)
    tiles, in_tiles = parallel_loop(start, math.value(end), math.value(width), once)
    row, tile = rows.body.block.args[0], tiles.body.block.args[0]
    source = in_rows.value(in_rows.add(row, math.number(panel.first))) if panel.first else row
    number = in_tiles.value(in_tiles.divui(in_tiles.sub(tile, start), width))
    stop = in_tiles.add(tile, width)
    stop = in_tiles.value(stop if whole else in_tiles.minsi(stop, math.value(end)))
    columns, inside = parallel_loop(tile, stop, one, Schedule(vector=width))
    column = columns.body.block.args[0]
    value = inside.insert(memref.LoadOp.get(panel.matrix, (source, column)))
    place = inside.value(inside.sub(column, tile))
    inside.put(memref.StoreOp.get(value, packed, (number, row, place)))
    inside.put(scf.YieldOp())
    for emit, each in ((in_tiles, columns), (in_rows, tiles)):
        emit.put(each)
        emit.put(scf.YieldOp())
    math.put(rows)
    if pays is None:
        return packed
    shape = math.divui(math.sub(end, start), width), count
    return either(pays, packed, panel, start, shape, math)


def either(
    pays: SSAValue,
    packed: SSAValue,
    panel: Panel,
    start: SSAValue,
    shape: tuple[Index, Index],
    math: IndexMath,
) -> SSAValue:
    """The `packed` memory if it `pays`, else the matrix itself, both as so many tiles of so many rows (`shape`) from
    column `start` on."""
    element: Attribute = memref_type(packed).get_element_type()
    strided = MemRefType(
        element,
        (DYNAMIC_INDEX, DYNAMIC_INDEX, panel.columns),
        StridedLayoutAttr((None, None, 1), None),
    )
    row: Index = memref_type(panel.matrix).get_shape()[1]
    if row == DYNAMIC_INDEX:
        row = math.insert(memref.DimOp(panel.matrix, math.value(1)))
    offset: Index = start
    if panel.first is not None:
        offset = math.add(math.mul(math.number(panel.first), row), start)
    matrix = memref.ReinterpretCastOp.from_dynamic(
        panel.matrix,
        [math.value(offset)],
        [*map(math.value, shape), panel.columns],
        [math.value(panel.columns), math.value(row), 1],
        strided,
    )
    tiles = (math.insert(memref.CastOp.get(packed, strided)), math.insert(matrix))
    return math.insert(SelectOp.create(operands=(pays, *tiles), result_types=(strided,)))


class Places:
    """Where an index lies in its panel: computed once, at the start of the loop that it belongs to."""

    def __init__(self) -> None:
        self._known: dict[tuple[SSAValue, SSAValue | None, int], SSAValue] = {}

    def __call__(self, index: SSAValue, first: SSAValue | None, width: int = 1) -> SSAValue:
        """`(index - first) / width`; `index` is an induction variable, `first` None is 0."""
        key = (index, first, width)
        if first is None and width == 1:
            return index
        if key not in self._known:
            loop = loop_of(index)
            assert loop is not None
            math = at_start(loop)
            distance = index if first is None else math.sub(index, math.number(first))
            self._known[key] = math.value(math.divui(distance, width))
        return self._known[key]


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
        found = list(packable(loop))
        panels = dict.fromkeys(panel for _, panel in found)
        if not found:
            refuse(
                loop, schedule, self.name, "nothing that the loops inside read again can be packed"
            )
            return 0
        if not fits_on_the_stack(panels, taken):
            refuse(loop, schedule, self.name, "the panels of this function would fill the stack")
            return 0
        place, start = Places(), loop.body.block.args[0]
        tiles = {access.op: tile_of(access, loop) for access, _ in found}
        whole = all(tile is not None and is_whole(tile) for tile in tiles.values())
        by_panel = {panel: access for access, panel in found}
        packed = {panel: pack(panel, loop, whole, by_panel[panel]) for panel in panels}
        for access, panel in found:
            tile = tiles[access.op]
            assert tile is not None
            (row, column), first = access.indices, tile.loop.body.block.args[0]
            number = place(first, start, panel.columns)
            where = (number, place(row, panel.first), place(column, first))
            access.op.operands = (packed[panel], *where)
        return sum(map(panel_bytes, panels))
