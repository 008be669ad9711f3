"""`loop-schedule{features=x86-64-v3}`: writes how each nest is to be executed; other passes carry it out.

`choose_schedule` is the whole policy, a pure function of a few facts about a nest and of the machine's level:

| nest | schedule |
| --- | --- |
| innermost axis parallel, elements next to each other | vectors of the level's width (halved for 8-byte elements); a static extent up to 32: one vector without a loop; a short one: one masked vector |
| the same, functions like exp in the body | vectors of several registers from v3 on: four, two of 8-byte elements. Their chains are kept side by side (`loop.interleave` on a module that has nothing else) |
| the same, a body of a few operations without functions and divisions | also unrolled |
| the same, two chunks of 16384 elements or more | chunks on several threads |
| the same, a result of 4 MiB or more (and cheap, if the size is not static) | stored past the cache, what it reads announced 16 KiB ahead; not vectors of several registers |
| parallel axes around reductions with scalar accumulators (a matmul) | columns tiled to a register tile, rows jammed: 8 rows x 2 vectors (v4), 6 x 2 (v3), 2 x 1 (below: no FMA), and 4 x 2 for what such tiles leave over; one row: 8 vectors. Tiles of columns go outside, so that a panel of the right operand is used by all rows; four tiles at a time, packed where there are more rows than one tile has |
| products, sums over the last axis (and other rows), segments of columns | chunks of the outermost axis on several threads |
| the same as a matmul, if nothing is shared between the columns, or the accumulators are arrays (a sum over an axis that is not the last) | segments of rows of up to 16 KB, the column axis distributed over the loops inside; threads share out segments, or, if there is one, the lanes in it |
| the same as a matmul, but columns not next to each other | four columns jammed: independent chains hide the latency |
| parallel axes around reductions with arrays of accumulators (a sum over the last axis) | up to four rows abreast, as many as have their accumulators in registers ; one at a time if they are long and gone over once, or long and more than 2 MiB |
| blocks of one row, whose sums are joined behind them | one at a time; chunks of them on several threads |
| the same, if the rows share what they are multiplied with (a matrix times a vector) | as many rows abreast as have their 32 lanes in the registers of a product's tile: four (v4), three (v3), one (below) |
| the loop along a row of something larger than 2 MiB, the first one that reads it | reads announced 8 KiB ahead, if rows are not abreast; of columns 1 KiB |
| a reduction of up to 8 steps | unrolled |
| anything else | none |

Register tiles leave room for the broadcast and the loaded operands: 8 x 2 spills with 16 registers. Rows of a
static extent are balanced: 9 rows with tiles of at most 8 are 5 + 4; if tiles of two sizes save rows, two are made. A nest that has a schedule keeps it.
The option `override` comes before the table and before what a nest has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from jitdialects.analysis.body import body_of
from jitdialects.analysis.machine import LEVELS, Level
from jitdialects.analysis.nest_facts import NestFacts, facts_of
from jitdialects.analysis.schedule_elementwise import elementwise_schedule
from jitdialects.analysis.schedule_product import product_schedule
from jitdialects.analysis.schedule_reduction import (
    SHORT,
    blocks_schedule,
    chunks_schedule,
    columns_schedule,
    dots_schedule,
    is_reduction,
    rows_schedule,
)
from jitdialects.dialects.loop import INTERLEAVE, PARALLEL, NestOp, ScheduleAttr
from jitdialects.dialects.schedules import Schedule, parse_overrides, problem_of
from jitdialects.passes.loop_rewrite import nest_schedule, nests_in_order

SCALAR_JAM = 4


def family_of(facts: NestFacts) -> str:
    """The row of the table that a nest is in, one of `FAMILIES`."""
    if facts.kinds[-1] != PARALLEL:
        return "reduction"
    if not facts.encloses_loops:
        return "elementwise" if facts.contiguous else "other"
    if any(kind != PARALLEL for kind in facts.kinds):
        return "other"
    if facts.partial:
        return "blocks"
    contiguous = facts.contiguous and facts.extents[-1] != 1
    if contiguous and (is_reduction(facts) or facts.accumulators == "arrays"):
        return "columns"
    if facts.accumulators == "arrays":
        return "rows" if is_reduction(facts) else "dots"
    return "product" if contiguous else "strided-product"


def choose_schedule(facts: NestFacts, level: Level) -> Schedule:
    """The table at the top of this module."""
    match family_of(facts):
        case "reduction":
            return chain_schedule(facts)
        case "elementwise":
            return elementwise_schedule(facts, level)
        case "blocks":
            return blocks_schedule()
        case "columns":
            return columns_schedule(facts, level)
        case "rows":
            return rows_schedule(facts, level)
        case "dots":
            return dots_schedule(facts, level)
        case "product":
            return product_schedule(facts, level)
        case "strided-product":
            return Schedule(jam=(1,) * (len(facts.kinds) - 1) + (SCALAR_JAM,))
        case _:
            return Schedule()


def overridden(
    number: int, family: str, rank: int, overrides: Mapping[int | str, Schedule]
) -> Schedule | None:
    """The schedule that an override gives nest `number`, if one does."""
    who: int | str = number if number in overrides else family
    if who not in overrides:
        return None
    where = f"nest {number} ({family})"
    problem = problem_of(overrides[who], rank)
    if problem is not None:
        raise PassFailedException(f"loop-schedule: {where}: {problem}")
    return replace(overrides[who], asked=where)


def nests_around(nest: NestOp) -> Iterator[NestOp]:
    """The nests that contain `nest`, innermost first."""
    around = nest.parent_op()
    while around is not None:
        if isinstance(around, NestOp):
            yield around
        around = around.parent_op()


def one_region(nest: NestOp, schedule: Schedule) -> Schedule:
    """`schedule` for `nest` without threads in threads: those around it go first, unless the inner ones are asked
    for."""
    around = [each for each in nests_around(nest) if nest_schedule(each).threads]
    if not around or not schedule.threads:
        return schedule
    if not schedule.asked:
        return schedule.without("threads")
    for each in around:
        left = nest_schedule(each)
        if not left.asked:
            left = left.without("threads")
            each.schedule = ScheduleAttr(left) if left else None
    return schedule


def only_new_lines(nest: NestOp, schedule: Schedule) -> Schedule:
    """`schedule` without a prefetch, if what lies ahead is another row that is read at the same time, or if a nest
    before has brought all of it."""
    abreast = any(copies > 1 for each in nests_around(nest) for copies in nest_schedule(each).jam)
    if schedule.prefetch and not schedule.asked and (abreast or is_read_before(nest)):
        return schedule.without("prefetch")
    return schedule


def is_read_before(nest: NestOp) -> bool:
    """A nest in front of it, in the same iteration of one around both, reads some of the same memory."""
    if nest.parent_op() is None or not isinstance(nest.parent_op(), NestOp):
        return False
    mine = {access.base for access in body_of(nest.body.block).accesses if not access.is_store}
    before = nest.prev_op
    while before is not None:
        if isinstance(before, NestOp):
            theirs = body_of(before.body.block).accesses
            if any(not access.is_store and access.base in mine for access in theirs):
                return True
        before = before.prev_op
    return False


def chain_schedule(facts: NestFacts) -> Schedule:
    """A reduction: a short one has no loop. The chains of products are not unrolled: as many steps per second came out
    with 1, 2 and 4 in an iteration on Zen 3 and Zen 5, for half of the operations."""
    extent = facts.extents[-1]
    if (
        extent is not None
        and len(facts.extents) == 1
        and extent <= SHORT
        and not facts.encloses_loops
    ):
        return Schedule(unroll=max(extent, 2))
    if facts.encloses_loops:
        return chunks_schedule(facts)
    return Schedule()


@dataclass(frozen=True)
class LoopSchedulePass(ModulePass):
    """Write a schedule on every loop.nest that has none.

    `override`: schedules for some nests instead of the chosen ones, as `dialects.schedules` says. What a
    pass may not carry out of these is an error that names the nest. `chosen` says what each nest got.
    """

    name = "loop-schedule"

    features: str = "x86-64-v3"
    override: str = ""

    @cached_property
    def chosen(self) -> list[str]:
        """One line for each nest, in the form of an override."""
        return []

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.features not in LEVELS:
            raise PassFailedException(
                f"loop-schedule: unknown features '{self.features}'; known are {', '.join(LEVELS)}"
            )
        overrides = self._overrides()
        nests = list(nests_in_order(op))
        missing = [who for who in overrides if isinstance(who, int) and who >= len(nests)]
        if missing:
            raise PassFailedException(
                f"loop-schedule: there is no nest {missing[0]}; the program has {len(nests)}, from 0"
            )
        functions, families = False, set[str]()
        for number, nest in enumerate(nests):
            facts = facts_of(nest)
            family = family_of(facts)
            functions |= facts.functions > 0
            families.add(family)
            schedule = overridden(number, family, nest.rank, overrides)
            if schedule is not None or nest.schedule is None:
                choice = choose_schedule(facts, LEVELS[self.features])
                if schedule is None or replace(schedule, asked="") == choice:
                    schedule = (
                        choice  # who asks for what is chosen anyway need not be told what it lacks
                    )
            if schedule is not None:
                schedule = only_new_lines(nest, one_region(nest, schedule))
                nest.schedule = ScheduleAttr(schedule) if schedule else None
            self.chosen.append(f"{number}: {nest_schedule(nest)} ({family})")
        if functions and families == {"elementwise"}:  # rows, tiles leave no register to spare
            op.attributes[INTERLEAVE] = UnitAttr()

    def _overrides(self) -> dict[int | str, Schedule]:
        try:
            return parse_overrides(self.override)
        except ValueError as error:
            raise PassFailedException(f"loop-schedule: override: {error}") from None
