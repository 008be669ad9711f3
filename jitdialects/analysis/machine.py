"""What the machine levels are like: the numbers that schedules are chosen by."""

from __future__ import annotations

from dataclasses import dataclass


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
