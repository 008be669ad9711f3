"""`loop-schedule{features=x86-64-v3}`: writes how each nest is to be executed; other passes carry it out.

`choose_schedule` is the whole policy, a pure function of a few facts about a nest and of the machine's level:

| nest | schedule |
| --- | --- |
| innermost axis parallel, elements next to each other | vectors of the level's width (halved for 8-byte elements); a static extent that is a power of two up to 32: one vector without a loop; a short one: one masked vector |
| the same, body of a few operations | also unrolled |
| the same, two chunks of 16384 elements or more | chunks on several threads |
| the same, a result of 4 MiB or more (and cheap, if the size is not static) | stored past the cache |
| parallel axes around reductions with scalar accumulators (a matmul) | columns tiled to a register tile, rows jammed: 8 rows x 2 vectors (v4), 6 x 2 (v3), 2 x 1 (below: no FMA), and 4 x 2 for what such tiles leave over; one row: 8 vectors. Tiles of columns go outside, so that a panel of the right operand is used by all rows; four tiles at a time, packed where there are more rows than one tile has |
| the same, if nothing is shared between the columns (a sum over an axis that is not the last) | segments of rows of up to 16 KB, the column axis distributed over the loops inside |
| the same as a matmul, but columns not next to each other | four columns jammed: independent chains hide the latency |
| parallel axes around reductions with arrays of accumulators (a sum over the last axis) | four rows abreast, two of 8-byte elements |
| a reduction of up to 8 steps | unrolled |
| a chain of products, inside | unrolled by 4 from v3 on |
| anything else | none |

Register tiles leave room for the broadcast and the loaded operands: 8 x 2 spills with 16 registers. Rows of a
static extent are balanced: 9 rows with tiles of at most 8 are 5 + 4; if tiles of two sizes save rows, two are made. A nest that has a schedule keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from jitdialects.analysis.machine import LEVELS, Level
from jitdialects.analysis.nest_facts import NestFacts, facts_of
from jitdialects.analysis.schedule_elementwise import elementwise_schedule
from jitdialects.analysis.schedule_product import is_chain, product_schedule
from jitdialects.analysis.schedule_reduction import SHORT, columns_schedule, is_reduction, rows_schedule
from jitdialects.dialects.loop import PARALLEL, Schedule, ScheduleAttr
from jitdialects.passes.loop_rewrite import nests_innermost_first

SCALAR_JAM = 4


def choose_schedule(facts: NestFacts, level: Level) -> Schedule:
    """The table at the top of this module."""
    if facts.kinds[-1] != PARALLEL:
        return chain_schedule(facts, level)
    if not facts.encloses_loops:
        return elementwise_schedule(facts, level) if facts.contiguous else Schedule()
    if any(kind != PARALLEL for kind in facts.kinds):
        return Schedule()
    if is_reduction(facts) and facts.contiguous and facts.extents[-1] != 1:
        return columns_schedule(facts, level)
    if facts.accumulators == "arrays":
        return rows_schedule(facts, level) if is_reduction(facts) else Schedule()
    if facts.contiguous and facts.extents[-1] != 1:
        return product_schedule(facts, level)
    axes_before = len(facts.kinds) - 1
    return Schedule(jam=(1,) * axes_before + (SCALAR_JAM,))


def chain_schedule(facts: NestFacts, level: Level) -> Schedule:
    """A reduction: a short one has no loop, a chain of products is unrolled."""
    extent = facts.extents[-1]
    if extent is not None and len(facts.extents) == 1 and extent <= SHORT and not facts.encloses_loops:
        return Schedule(unroll=max(extent, 2))
    return Schedule(unroll=level.unroll if is_chain(facts) else 0)


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
