"""`loop-schedule{features=x86-64-v3}`: writes how each nest is to be executed; other passes carry it out.

`choose_schedule` is the whole policy, a pure function of a few facts about a nest and of the machine's level:

| nest | schedule |
| --- | --- |
| innermost axis parallel, elements next to each other | vectors of the level's width (halved for 8-byte elements); a static extent that is a power of two up to 32: one vector without a loop; a short one: one masked vector |
| the same, body of a few operations | also unrolled |
| parallel axes around reductions with scalar accumulators (a matmul) | columns tiled to a register tile, rows jammed: 8 rows x 2 vectors (v4), 6 x 2 or, if their number is not static, 4 x 2 (v3), 2 x 1 (below: no FMA); one row: 16 vectors. Tiles of columns go outside, so that a panel of the right operand is used by all rows; where there are more rows than one tile has, the panel is packed |
| the same, but columns not next to each other | four columns jammed: independent chains hide the latency |
| a chain of products, inside | unrolled by 4 from v3 on |
| anything else | none |

Register tiles leave room for the broadcast and the loaded operands: 8 x 2 spills with 16 registers. Rows of a
static extent are balanced: 9 rows with tiles of at most 8 are 5 + 4. A nest that has a schedule keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import FixedBitwidthType, ModuleOp, VectorType
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from jitdialects.analysis.body import Body, body_of
from jitdialects.analysis.bounds import constant_extent, extent_at_most, trip_count
from jitdialects.analysis.lanes import Lanes, lanes_along
from jitdialects.analysis.memory import Access, is_fresh, memref_type, root_of
from jitdialects.dialects.loop import PARALLEL, NestOp, Schedule, ScheduleAttr
from jitdialects.passes.loop_rewrite import nests_innermost_first


@dataclass(frozen=True)
class Level:
    """What a machine is like.

    lanes    4-byte elements in a vector register
    rows     of the register tile of a product, at most; `some_rows`: if their number is not static, so that
             few of them are done twice
    vectors  of the register tile; `row_vectors`: if it has one row, when loading is what takes the time
    unroll   steps of a chain of FMA per iteration
    """

    lanes: int
    rows: int
    some_rows: int
    vectors: int
    row_vectors: int
    unroll: int


LEVELS = {
    "x86-64-v1": Level(4, 2, 2, 1, 4, 0),
    "x86-64-v2": Level(4, 2, 2, 1, 4, 0),
    "x86-64-v3": Level(8, 6, 4, 2, 16, 4),
    "x86-64-v4": Level(16, 8, 8, 2, 16, 4),
}
MAX_LANES = 32
PANELS_PER_COPY = 4
"""Long rows are copied faster: a matrix seldom starts where a cache line does."""
SMALL_BODY = 8
SMALL_BODY_UNROLL = 2
SCALAR_JAM = 4


@dataclass(frozen=True)
class NestFacts:
    """What the rules ask. Extents count iterations per axis, `None` if they are not static.

    `at_most` bounds the innermost one. `contiguous`: along the innermost axis, which is parallel, accesses
    go to neighbours or stay. `accumulators`: "none", "scalars" or "arrays" among the memory that the body
    allocates. `streams`: accesses to memory that was not allocated here.
    """

    kinds: tuple[str, ...]
    extents: tuple[int | None, ...]
    at_most: int | None
    contiguous: bool
    encloses_loops: bool
    accumulators: str
    streams: int
    element_bytes: int
    operations: int


def facts_of(nest: NestOp) -> NestFacts:
    """Collect the facts; the body is looked at once, and once more for its lanes."""
    body = body_of(nest.body.block)
    outside = [access for access in body.accesses if not is_fresh(root_of(access.base))]
    bounds = list(zip(nest.lower, nest.upper, nest.step_values, strict=True))
    extents = [constant_extent(low, high) for low, high, _ in bounds]
    return NestFacts(
        kinds=nest.kind_names,
        extents=tuple(
            None if extent is None else trip_count(0, extent, step)
            for extent, (_, _, step) in zip(extents, bounds, strict=True)
        ),
        at_most=extent_at_most(*bounds[-1][:2]),
        contiguous=nest.kind_names[-1] == PARALLEL
        and _is_contiguous(body.accesses, lanes_along(nest.ivs[-1])),
        encloses_loops=any(op.regions for op in body.others) or bool(body.loops),
        accumulators=_accumulators(body),
        streams=len(outside),
        element_bytes=max((_bytes(access.value_type) for access in body.accesses), default=4),
        operations=len(body.accesses) + len(body.others) + len(body.loops),
    )


def _is_contiguous(accesses: Sequence[Access], lanes: Lanes) -> bool:
    return all(
        lanes.is_contiguous_access(access)
        or (not access.is_store and lanes.is_uniform_access(access))
        or (not access.indices and is_fresh(root_of(access.base)))
        for access in accesses
    )


def _accumulators(body: Body) -> str:
    ranks = [
        memref_type(op.results[0]).get_num_dims()
        for op in body.others
        if op.name == "memref.alloca"
    ]
    return "none" if not ranks else "arrays" if any(ranks) else "scalars"


def _bytes(type: Attribute) -> int:
    if isinstance(type, VectorType):
        return _bytes(cast("VectorType[Attribute]", type).get_element_type())
    return max(1, type.bitwidth // 8) if isinstance(type, FixedBitwidthType) else 8


# ---- the policy


def choose_schedule(facts: NestFacts, level: Level) -> Schedule:
    """The table at the top of this module."""
    if facts.kinds[-1] != PARALLEL:
        return Schedule(unroll=level.unroll if is_chain(facts) else 0)
    if facts.accumulators == "arrays":
        return Schedule()
    if not facts.encloses_loops:
        return elementwise_schedule(facts, level) if facts.contiguous else Schedule()
    if any(kind != PARALLEL for kind in facts.kinds):
        return Schedule()
    if facts.contiguous and facts.extents[-1] != 1:
        return product_schedule(facts, level)
    axes_before = len(facts.kinds) - 1
    return Schedule(jam=(1,) * axes_before + (SCALAR_JAM,))


def is_chain(facts: NestFacts) -> bool:
    """A short sequence of steps that read what others made: the products along k of a matmul."""
    return not facts.encloses_loops and facts.streams > 1 and facts.operations <= SMALL_BODY


def elementwise_schedule(facts: NestFacts, level: Level) -> Schedule:
    """One vector per iteration of the innermost axis, or one for the whole of it."""
    width = lanes_for(facts, level)
    extent = facts.extents[-1]
    most = facts.at_most if extent is None else extent
    if most is not None and most <= 1:
        return Schedule()
    if most is not None and (
        most < width or (most <= MAX_LANES and facts.operations <= SMALL_BODY)
    ):
        return Schedule(vector=next_power_of_two(most))
    long = extent is None or extent >= width * SMALL_BODY_UNROLL
    small = facts.operations <= SMALL_BODY and long
    return Schedule(vector=width, unroll=SMALL_BODY_UNROLL if small else 0)


def product_schedule(facts: NestFacts, level: Level) -> Schedule:
    """A register tile: some rows of the left operand times some vectors of the right one."""
    rank = len(facts.kinds)
    columns = facts.extents[-1]
    rows = rows_for(facts.extents[-2], level) if rank > 1 else 1
    vectors = level.vectors if rows > 1 else level.row_vectors
    width = vectors * lanes_for(facts, level)
    if columns is not None:
        width = min(width, next_power_of_two(columns))
    tiled = columns is None or columns > width
    before = (0,) * (rank - 1)
    order = (*range(rank - 2), rank - 1, rank - 2) if tiled and rank > 1 else ()
    jam = (*(1,) * (rank - 2), rows, 1) if rows > 1 else ()
    return Schedule(
        tile=(*before, width) if tiled else (),
        order=order,
        vector=width,
        jam=jam,
        pack=PANELS_PER_COPY
        if order and rows > 1 and extent_is_above(facts.extents[-2], rows)
        else 0,
    )


def extent_is_above(extent: int | None, most: int) -> bool:
    """There may be more iterations than `most`."""
    return extent is None or extent > most


def lanes_for(facts: NestFacts, level: Level) -> int:
    """Lanes of the widest element in a register."""
    return max(2, level.lanes * 4 // max(4, facts.element_bytes))


def rows_for(extent: int | None, level: Level) -> int:
    """Rows of the register tile."""
    return level.some_rows if extent is None else balanced(extent, level.rows)


def balanced(extent: int, most: int) -> int:
    """Rows per tile, at most `most`, such that as few tiles as possible are as equal as possible."""
    if extent < 1:
        return most
    tiles = -(-extent // most)
    return -(-extent // tiles)


def next_power_of_two(number: int) -> int:
    """The smallest power of two that is not below `number`."""
    return 1 << max(0, number - 1).bit_length()


@dataclass(frozen=True)
class LoopSchedulePass(ModulePass):
    """Write a schedule on every loop.nest that has none."""

    name = "loop-schedule"

    features: str = "x86-64-v3"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.features not in LEVELS:
            raise PassFailedException(
                f"loop-schedule: unknown features '{self.features}'; known are {', '.join(LEVELS)}"
            )
        for nest in nests_innermost_first(op):
            if nest.schedule is None:
                schedule = choose_schedule(facts_of(nest), LEVELS[self.features])
                nest.schedule = ScheduleAttr(schedule) if schedule else None
