"""Schedules of products: the register tile."""

from __future__ import annotations

from jitdialects.analysis.machine import Level
from jitdialects.analysis.nest_facts import NestFacts, lanes_for, next_power_of_two
from jitdialects.analysis.row_groups import iterations_done
from jitdialects.dialects.schedules import Schedule

PANEL_BYTES = 256
"""Of a row of the right operand: rows of the left one meet so many tiles while they are in the cache. Long rows are
copied faster, too: a matrix seldom starts where a cache line does."""
WORTH_A_TILE = 40
"""A second tile is compiled for if it saves more than one row in so many."""
CHUNK = 1 << 19
"""Multiplications that are worth another thread: about 15 us."""


def product_schedule(facts: NestFacts, level: Level) -> Schedule:
    """A register tile: some rows of the left operand times some vectors of the right one."""
    rank = len(facts.kinds)
    columns = facts.extents[-1]
    rows, rest = rows_for(facts.extents[-2], level) if rank > 1 else (1, 0)
    vectors = level.vectors if rows > 1 else level.row_vectors
    width = vectors * lanes_for(facts, level)
    if columns is not None:
        width = min(width, next_power_of_two(columns))
    tiled = columns is None or columns > width
    before = (0,) * (rank - 1)
    order = (*range(rank - 2), rank - 1, rank - 2) if tiled and rank > 1 else ()
    jam = (*(1,) * (rank - 2), rows, 1) if rows > 1 else ()
    # where one vector has all columns, no loop is left that would count them
    chunk = CHUNK if tiled else max(CHUNK // width, 1)
    return Schedule(
        tile=(*before, width) if tiled else (),
        order=order,
        vector=width,
        jam=jam,
        rest=rest if rows > 1 else 0,
        panel=panel_of(width, facts.element_bytes) if rows > 1 and tiled else 0,
        pack=int(tiled),
        threads=chunk if may_be_shared_out(facts, width, rows) else 0,
    )


def may_be_shared_out(facts: NestFacts, width: int, rows: int) -> bool:
    """There is more than one tile. (How many products there are in one is seen when the loops are there.)"""
    tiles = (width, rows)
    known = zip(reversed(facts.extents), (*tiles, *(1 for _ in facts.extents[2:])), strict=False)
    return any(extent is None or extent > tile for extent, tile in known)


def panel_of(width: int, element_bytes: int) -> int:
    """Tiles that go together; 0 if that would be one."""
    tiles = PANEL_BYTES // (width * element_bytes)
    return tiles if tiles > 1 else 0


def rows_for(extent: int | None, level: Level) -> tuple[int, int]:
    """Rows of the register tile, and of the one for what is left over (0: the same)."""
    if extent is None or extent < 1 or not level.rest:
        return level.rows if extent is None else balanced(extent, level.rows), level.rest
    rows = balanced(extent, level.rows)
    done = -(-extent // rows) * rows
    saved = done - iterations_done(extent, level.rows, level.rest)
    return (level.rows, level.rest) if saved * WORTH_A_TILE > done else (rows, 0)


def balanced(extent: int, most: int) -> int:
    """Rows per tile, at most `most`, such that as few tiles as possible are as equal as possible."""
    if extent < 1:
        return most
    tiles = -(-extent // most)
    return -(-extent // tiles)
