"""Schedules of nests whose innermost axis is parallel and whose elements lie next to each other."""

from __future__ import annotations

from math import prod

from jitdialects.analysis.machine import Level
from jitdialects.analysis.nest_facts import NestFacts, lanes_for, next_power_of_two
from jitdialects.dialects.schedules import Schedule

CHUNK = 16384
"""Elements that are worth another thread: about 5 us of the cheapest loop, ten times what a region costs."""
STREAM = 4 << 20
"""Bytes of a result that no reader finds in the cache any more, or that would cost others their place in it."""
PREFETCH = 16 * 1024
"""Bytes ahead that results past the cache leave time for."""
STREAM_BODY = 20
"""Operations of a body that is worth a second copy for when its result turns out to be large."""
MAX_LANES = 32
WHOLE_BODY = 64
"""Operations of a body that is written once for all of a short axis. Lanes of accumulators are one: in a loop they
would stay in memory."""
SMALL_BODY = 8
SMALL_BODY_UNROLL = 2
CHAINS = {4: 4, 8: 2}
"""Registers of a vector where functions are computed, by the bytes of an element: the steps of a function wait for
each other, those of several registers do not. Functions of 8 bytes have more constants that want a register."""


def elementwise_schedule(facts: NestFacts, level: Level) -> Schedule:
    """One vector per iteration of the innermost axis, or one for the whole of it."""
    registers = chains(facts, level)
    width = lanes_for(facts, level) * registers
    extent = facts.extents[-1]
    most = facts.at_most if extent is None else extent
    if most is not None and most <= 1:
        return Schedule()
    if most is not None and (
        most < width or (most <= MAX_LANES and facts.operations <= WHOLE_BODY)
    ):
        return Schedule(vector=next_power_of_two(most))
    threads = CHUNK if may_have_points(facts, 2 * CHUNK) else 0
    long = extent is None or extent >= width * SMALL_BODY_UNROLL
    cheap = facts.operations <= SMALL_BODY and facts.divisions == 0
    small = cheap and long and registers == 1
    stream = registers == 1 and may_be_worth_streaming(facts, width)
    return Schedule(
        vector=width,
        unroll=SMALL_BODY_UNROLL if small else 0,
        stream=STREAM if stream else 0,
        prefetch=PREFETCH if stream else 0,
        threads=threads,
    )


def chains(facts: NestFacts, level: Level) -> int:
    """Registers that one vector takes."""
    return CHAINS.get(facts.element_bytes, 1) if facts.functions and level.fma else 1


def may_be_worth_streaming(facts: NestFacts, width: int) -> bool:
    """The result is large; or its size is not known, and memory, not arithmetic, is what takes the time.
    Rows must be whole vectors."""
    columns = facts.extents[-1]
    if len(facts.extents) > 1 and (columns is None or columns % width):
        return False
    if facts.written_bytes is None:
        large = may_have_points(facts, STREAM // facts.element_bytes)
    else:  # maybe by iterations of nests around, a row each
        large = facts.written_bytes >= STREAM
    if not large:
        return False
    cheap = facts.functions == 0 and facts.operations <= STREAM_BODY
    return cheap or None not in facts.extents


def may_have_points(facts: NestFacts, points: int) -> bool:
    """The nest has so many points, as far as its extents are known."""
    known = [extent for extent in facts.extents if extent is not None]
    return len(known) < len(facts.extents) or prod(known) >= points
