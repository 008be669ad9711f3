"""Schedules of reductions: along columns, and of several rows abreast, also of rows times a vector.

Along columns (a kept axis behind the reduced one) the axis moves into the loops, so that memory is read in long
segments of rows: whole pages, which the hardware prefetches; several rows at once, which it prefetches side by
side. The accumulators of a segment live in the second-level cache.
"""

from __future__ import annotations

from jitdialects.analysis.machine import Level
from jitdialects.analysis.nest_facts import NestFacts, lanes_for
from jitdialects.analysis.schedule_product import balanced
from jitdialects.dialects.schedules import Schedule

SEGMENT = 16 * 1024
"""Bytes of a row that are visited in one go, at most."""
ACCUMULATORS = 1280 * 1024
"""Bytes of accumulators on the stack, at most: those in use, 32 for a column, then fit a second-level cache."""
ROWS = 4
"""Rows abreast, at most: chains of additions overlap, and what there is to do between rows."""
LONG_ROW = 256
"""Elements from which on the sum of one row has enough to do: one stream is what memory serves best."""
LARGE = 2 << 20
"""Bytes that no second-level cache holds."""
PREFETCH = 8192
"""Bytes ahead: what memory brings in the time that one line takes, and a fraction of the first-level cache."""
PREFETCH_COLUMNS = 1024
"""Of each of some rows: a fraction of a segment."""
LANES = 32
"""Of a sum in the numerics contract."""
CHUNK = 16384
"""Elements that are worth another thread."""
CHUNK_OF_ROW = 65536
"""The same of one row: what another core has to bring from the cache of this one, it brings slowly."""
CHUNK_OF_LANES = 65536
"""The same of lanes in the only segment of columns."""
SHORT = 8
"""A reduction of at most so many steps has no loop."""


def is_reduction(facts: NestFacts) -> bool:
    """Parallel axes around reductions that read each element once; in a product, columns share the rows."""
    return facts.encloses_loops and facts.accumulators != "none" and not facts.shares


def columns_schedule(facts: NestFacts, level: Level) -> Schedule:
    """Segments of rows, vectors along them."""
    width = lanes_for(facts, level)
    extent = facts.extents[-1]
    columns = segment(facts, width)
    tile = 0
    if extent is None:
        tile = 1 << (columns.bit_length() - 1)  # sizes are often powers of two: no small last tile
    elif extent > columns:
        tiles = -(-extent // columns)
        tile = round_up(-(-extent // tiles), width)
    return Schedule(
        tile=(0,) * (len(facts.kinds) - 1) + (tile,) if tile else (),
        vector=width,
        distribute=tile or max(extent or 1, 1),
        prefetch=0 if may_be_cached(facts) else PREFETCH_COLUMNS,
        threads=CHUNK if tile else CHUNK_OF_LANES,
    )


def rows_schedule(facts: NestFacts, level: Level) -> Schedule:
    """Some rows abreast: memory serves several streams better than one, and chains of additions overlap. All
    registers may be accumulators, since operands come from memory."""
    registers = level.registers * level.lanes * 4
    most = max(1, min(ROWS, registers // max(1, facts.lane_bytes)))
    alone = is_long(facts) and facts.sweeps == 1
    return abreast(facts, 1 if alone or comes_from_memory(facts) else most)


def dots_schedule(facts: NestFacts, level: Level) -> Schedule:
    """Rows that meet one vector: as many abreast as have their lanes in the registers of a product's tile."""
    registers = LANES // lanes_for(facts, level)
    most = max(1, min(ROWS, level.rows * level.vectors // registers))
    return abreast(facts, 1 if comes_from_memory(facts) else most)


def comes_from_memory(facts: NestFacts) -> bool:
    """Long rows, one after the other as they lie in memory, are what it serves best."""
    return is_long(facts) and not may_be_cached(facts)


def is_long(facts: NestFacts) -> bool:
    """A row has more elements than there is to do between two of them."""
    return facts.row is not None and facts.row >= LONG_ROW


def may_be_cached(facts: NestFacts) -> bool:
    """What it reads may be in a cache that is close; so may memory of unknown size."""
    return facts.read_bytes is None or facts.read_bytes < LARGE


def blocks_schedule() -> Schedule:
    """Blocks of one row, one at a time: each has enough to do."""
    return Schedule(threads=CHUNK_OF_ROW)


def chunks_schedule(facts: NestFacts) -> Schedule:
    """The loop along one row."""
    return Schedule(prefetch=PREFETCH if facts.along and not may_be_cached(facts) else 0)


def abreast(facts: NestFacts, most: int) -> Schedule:
    """Up to `most` rows at a time, without a loop where there are no more."""
    extent = facts.extents[-1]
    rows = most if extent is None else balanced(extent, most)
    if rows < 2:
        return Schedule(threads=CHUNK if extent is None or extent > 1 else 0)
    others = len(facts.kinds) - 1
    jam = (1,) * others + (rows,)
    if extent == rows:
        return Schedule(jam=jam)
    return Schedule(tile=(0,) * others + (rows,), jam=jam, threads=CHUNK)


def segment(facts: NestFacts, width: int) -> int:
    """Columns that are visited together: a multiple of the vector."""
    columns = min(SEGMENT // facts.element_bytes, ACCUMULATORS // max(1, facts.private_bytes))
    return max(width, columns // width * width)


def round_up(number: int, multiple: int) -> int:
    """The next multiple."""
    return -(-number // multiple) * multiple
