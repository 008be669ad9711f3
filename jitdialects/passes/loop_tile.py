"""`loop-tile`: an axis of a nest becomes an axis over tiles around an axis within a tile.

    loop.nest (%i, %j) = (%c0, %c0) to (%m, %n) ... schedule <tile = [0, 16], order = [1, 0], vector = 16> { B }
    ->
    loop.nest (%i, %jt) = (%c0, %c0) to (%m, %main) step (1, 16) ... schedule <order = [1, 0]> {
      loop.nest (%j) = (%jt) to (%jt + 16) ... schedule <vector = 16> { B }
    }
    loop.nest (%i, %jt) = (%c0, %main) to (%m, %n) step (1, 16) ... schedule <order = [1, 0]> {
      loop.nest (%j) = (%jt) to (min(%jt + 16, %n)) ... schedule <vector = 16> { B }
    }

The last axis is split, so that whole tiles need no masks, unless it will be distributed over many loops; a ragged
tile of another axis ends at the axis' bound.
With `panel = 4` in the schedule, four whole tiles go together, a nest of their own between the two:

    loop.nest (%i, %p) = (%c0, %c0) to (%m, %main) step (1, 64) ... schedule <order = [1, 0]> {
      loop.nest (%jt) = (%p) to (min(%p + 64, %main)) step (16) ... {
        loop.nest (%j) = (%jt) to (%jt + 16) ... schedule <vector = 16> { B } } }

Parts that cannot be reached are not made. `order`, `pack`, `threads`, and the `jam` of axes that are not tiled,
stay on the outer nest, everything else goes to the inner one; one tile is no work for several threads; a ragged tile is not jammed, since most of its copies would
not exist. Only parallel axes are tiled, since axes that are not move
outside those that are. Sizes come from the schedule of a nest, or from the option `sizes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from jitdialects.analysis.bounds import constant_extent
from jitdialects.dialects.loop import PARALLEL, NestOp
from jitdialects.dialects.schedules import Schedule
from jitdialects.passes.index_math import Index, IndexMath, before
from jitdialects.passes.loop_rewrite import nest_schedule, nests_innermost_first, refuse


def tiles_parallel_axes(nest: NestOp, sizes: Sequence[int]) -> bool:
    """No tiled axis has an order that is meaning."""
    return all(
        size == 0 or kind == PARALLEL for size, kind in zip(sizes, nest.kind_names, strict=True)
    )


@dataclass(frozen=True)
class Part:
    """A range of the tile axis; `ragged` if a tile may reach past `upper`, `rest` if it is what whole tiles left."""

    lower: Index
    upper: Index
    ragged: bool
    rest: bool = False


def parts_of(nest: NestOp, axis: int, size: int, math: IndexMath) -> list[Part]:
    """How the tiles of `axis` are covered: whole tiles apart from a ragged one on the last axis."""
    lower, upper = math.number(nest.lower[axis]), math.number(nest.upper[axis])
    step = nest.step_values[axis]
    extent = constant_extent(nest.lower[axis], nest.upper[axis])
    if extent is not None and extent % (size * step) == 0:
        return [Part(lower, upper, False)]
    if axis != nest.rank - 1 or nest_schedule(nest).distribute:
        return [Part(lower, upper, True)]
    trips = math.trips(lower, upper, step)
    whole = math.sub(trips, math.remui(trips, size))
    middle = math.add(lower, math.mul(whole, step))
    return [Part(lower, middle, False), Part(middle, upper, True, True)]


def needs_tiles(nest: NestOp, axis: int, size: int) -> bool:
    """More than one tile is possible on this axis."""
    extent = constant_extent(nest.lower[axis], nest.upper[axis])
    return extent is None or extent > size * nest.step_values[axis]


def tile(nest: NestOp, sizes: Sequence[int]) -> None:
    """Replace `nest` by a nest over tiles, or two if its last axis is ragged."""
    math = IndexMath(before(nest))
    choices: list[list[Part]] = [[]]
    for axis, size in enumerate(sizes):
        whole = [Part(nest.lower[axis], nest.upper[axis], False)]
        parts = (
            parts_of(nest, axis, size, math) if size and needs_tiles(nest, axis, size) else whole
        )
        choices = [[*chosen, part] for chosen in choices for part in parts]
    bodies = [nest.body.clone() for _ in choices[1:]] + [nest.detach_region(nest.body)]
    for parts, body in zip(choices, bodies, strict=True):
        tiles = put_tiled(nest, sizes, parts, body, math)
        panel = nest_schedule(nest).panel
        if panel and tiles is not None and not parts[-1].ragged:
            group(tiles, panel)
    Rewriter.erase_op(nest)


def group(tiles: NestOp, count: int) -> None:
    """Let `count` steps of the last axis be a nest of their own, inside a nest that takes so many at a time."""
    math = IndexMath(before(tiles))
    body = tiles.detach_region(tiles.body)
    block = Block(arg_types=[IndexType()] * tiles.rank)
    for old, new in zip(tuple(body.block.args), block.args, strict=True):
        new.name_hint = old.name_hint
        if new is not block.args[-1]:
            old.replace_all_uses_with(new)
            body.block.erase_arg(old)
    last, steps = block.args[-1], tiles.step_values
    inside = IndexMath(block.add_op)
    end = inside.add(last, count * steps[-1])
    extent = constant_extent(tiles.lower[-1], tiles.upper[-1])
    if extent is None or extent % (count * steps[-1]):
        end = inside.minsi(end, math.number(tiles.upper[-1]))
    block.add_op(NestOp([last], [inside.value(end)], steps[-1:], tiles.kind_names[-1:], body))
    groups = NestOp(
        tiles.lower,
        tiles.upper,
        (*steps[:-1], count * steps[-1]),
        tiles.kind_names,
        Region(block),
        nest_schedule(tiles),
    )
    Rewriter.replace_op(tiles, groups, ())


def put_tiled(
    nest: NestOp, sizes: Sequence[int], parts: Sequence[Part], body: Region, math: IndexMath
) -> NestOp | None:
    """The nest over the tiles of `parts` around the nest over their points; `body` is used up. Returns the
    former, None if there is one tile only."""
    schedule = nest_schedule(nest)
    inner = [axis for axis, size in enumerate(sizes) if size]
    outer = [axis for axis, size in enumerate(sizes) if not size or needs_tiles(nest, axis, size)]
    block = Block(arg_types=[IndexType()] * len(outer))
    inside = IndexMath(block.add_op)
    lower, upper = [nest.lower[axis] for axis in inner], [nest.upper[axis] for axis in inner]
    old = list(body.block.args)
    for axis, iv in zip(outer, block.args, strict=True):
        iv.name_hint = old[axis].name_hint
        if axis not in inner:
            old[axis].replace_all_uses_with(iv)
            body.block.erase_arg(old[axis])
            continue
        place = inner.index(axis)
        end = inside.add(iv, sizes[axis] * nest.step_values[axis])
        if parts[axis].ragged:
            end = inside.minsi(end, parts[axis].upper)
        lower[place], upper[place] = iv, inside.value(end)
    points = _nest(nest, inner, lower, upper, None, body, _inner_schedule(schedule, inner, parts))
    if not outer:
        math.put(points)
        return None
    block.add_op(points)
    tiles = _nest(
        nest,
        outer,
        [math.value(parts[axis].lower) for axis in outer],
        [math.value(parts[axis].upper) for axis in outer],
        sizes,
        Region(block),
        _outer_schedule(schedule, inner, outer, parts),
    )
    math.put(tiles)
    return tiles


def _nest(
    nest: NestOp,
    axes: Sequence[int],
    lower: Sequence[SSAValue],
    upper: Sequence[SSAValue],
    sizes: Sequence[int] | None,
    body: Region,
    schedule: Schedule,
) -> NestOp:
    """A nest over `axes` of `nest`; its steps are whole tiles if there are `sizes`."""
    steps = [nest.step_values[axis] * ((sizes[axis] if sizes else 0) or 1) for axis in axes]
    kinds = [nest.kind_names[axis] for axis in axes]
    return NestOp(lower, upper, steps, kinds, body, schedule)


def _inner_schedule(schedule: Schedule, inner: Sequence[int], parts: Sequence[Part]) -> Schedule:
    jam = schedule.jam and tuple(1 if parts[a].ragged else schedule.jam[a] for a in inner)
    jams = any(copies > 1 for copies in jam)
    rest = schedule.rest if jams else 0
    jam = jam if jams else ()
    return replace(schedule, tile=(), order=(), jam=jam, rest=rest, panel=0, pack=0, threads=0)


def _outer_schedule(
    schedule: Schedule, inner: Sequence[int], outer: Sequence[int], parts: Sequence[Part]
) -> Schedule:
    order = tuple(outer.index(axis) for axis in schedule.order if axis in outer)
    jam = (
        tuple(1 if axis in inner else schedule.jam[axis] for axis in outer) if schedule.jam else ()
    )
    in_order = order == tuple(range(len(order)))
    outermost = outer[order[0] if order else 0]
    jams = any(copies > 1 for copies in jam)
    return Schedule(
        order=() if in_order else order,
        jam=jam if jams else (),
        rest=schedule.rest if jams else 0,
        pack=schedule.pack,
        threads=0 if parts[outermost].rest else schedule.threads,
        asked=schedule.asked,
    )


@dataclass(frozen=True)
class LoopTilePass(ModulePass):
    """Split axes of loop.nest into tiles, the last axis without masks in whole tiles."""

    name = "loop-tile"

    sizes: tuple[int, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(size < 0 for size in self.sizes):
            raise PassFailedException(
                "loop-tile: a size is negative; give a positive size, or 0 for an axis not to tile"
            )
        for nest in nests_innermost_first(op):
            schedule = nest_schedule(nest)
            sizes = schedule.tile
            if not schedule and len(self.sizes) == nest.rank:
                sizes = self.sizes
            if not any(sizes):
                continue
            if tiles_parallel_axes(nest, sizes):
                tile(nest, sizes)
            else:
                refuse(
                    nest,
                    schedule,
                    self.name,
                    "a tiled axis is a reduction, and its order is meaning",
                )
