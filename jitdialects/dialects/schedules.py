"""`Schedule`: what to do with a nest, as data and as text. Knows no IR, so that front ends can check it.

    tile = [0, 16], order = [1, 0], vector = 16, jam = [6, 1], unroll = 4, threads = 16384

Overrides give schedules to some nests of a program, instead of those that `loop-schedule` would choose: by the number
of a nest in the text of the program, or by family (`FAMILIES`); a number counts more. One schedule after the
other, separated by semicolons:

    elementwise: vector = 16, unroll = 4; 2: tile = [0, 16], order = [1, 0]
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import Any

FAMILIES = (
    "elementwise",
    "product",
    "strided-product",
    "reduction",
    "columns",
    "rows",
    "blocks",
    "dots",
    "other",
)
"""Kinds of nest that `loop-schedule` tells apart."""
LISTS = ("tile", "order", "jam")
NUMBERS = (
    "vector",
    "rest",
    "unroll",
    "panel",
    "pack",
    "stream",
    "prefetch",
    "threads",
    "distribute",
)
_FIELD = re.compile(r"\s*(\w+)\s*=\s*(\[[^\]]*\]|[^,\[\]]+?)\s*(?:,|$)")


@dataclass(frozen=True)
class Schedule:
    """What to do with a nest. Every field may be left out (empty, or 0): then nothing is done.

    tile    one size per axis, 0 = not tiled
    order   the axis that comes first, second, ... (outermost first), after tiling
    vector  lanes for the innermost axis
    jam     copies per axis, 1 = none: loops of that many iterations side by side inside inner loops
    rest    copies where too few iterations are left for those of `jam`, 0 = as many
    unroll  copies of the body per iteration of the innermost axis
    panel   tiles of the innermost axis that go together: all other axes meet them before the next ones
    pack    1: what one iteration of the outermost axis reads over and over inside is copied first
    stream  bytes of a result from which on the innermost axis stores past the cache
    prefetch  bytes that reads along the innermost axis are announced ahead
    threads elements (points of the loops inside counted) of a chunk, the least that is worth another thread:
            chunks of the outermost axis may run on several
    distribute  iterations, at most, of the innermost axis, which moves into the loops of the body
    asked   who wants exactly this: a pass that may not carry it out is an error then, not a remark
    """

    tile: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    vector: int = 0
    jam: tuple[int, ...] = ()
    rest: int = 0
    unroll: int = 0
    panel: int = 0
    pack: int = 0
    stream: int = 0
    prefetch: int = 0
    threads: int = 0
    distribute: int = 0
    asked: str = ""

    def __bool__(self) -> bool:
        return replace(self, asked="") != _NOTHING

    def without(self, *names: str) -> Schedule:
        """This schedule after the passes that carry out `names`."""
        return replace(self, **{name: getattr(_NOTHING, name) for name in names})

    def __str__(self) -> str:
        pairs = ((f.name, getattr(self, f.name)) for f in fields(self) if f.name != "asked")
        return ", ".join(
            f"{name} = {list(value) if name in LISTS else value}" for name, value in pairs if value
        )


_NOTHING = Schedule()


def problem_of(schedule: Schedule, rank: int | None = None) -> str | None:
    """What no nest (of `rank` axes, if given) can be told to do, one sentence."""
    if any(size < 0 for size in schedule.tile):
        return "a tile size is negative; give a positive size, or 0 for an axis not tiled"
    if sorted(schedule.order) != list(range(len(schedule.order))):
        return f"order {list(schedule.order)} is no permutation of the axes"
    if any(copies < 1 for copies in schedule.jam):
        return "a jam factor is less than 1; give 1 for an axis that is not jammed"
    if min(getattr(schedule, name) for name in NUMBERS) < 0:
        names = f"{', '.join(NUMBERS[:-1])} and {NUMBERS[-1]}"
        return f"{names} are counts; give a positive number or leave them out"
    for name in LISTS if rank is not None else ():
        count = len(getattr(schedule, name))
        if count not in (0, rank):
            return f"{name} of the schedule has {count} entries for {rank} axes"
    return None


def parse_schedule(text: str) -> Schedule:
    """The schedule that `text` says; `ValueError` with one sentence where it says none."""
    found: dict[str, Any] = {}
    at = 0
    while at < len(text.rstrip()):
        match = _FIELD.match(text, at)
        if match is None:
            raise ValueError(f"'{text[at:].strip()}' is no field of a schedule; write vector = 8")
        name, value = match.groups()
        if name in found:
            raise ValueError(f"{name} is given twice")
        found[name] = _value(name, value)
        at = match.end()
    schedule = Schedule(**found)
    problem = problem_of(schedule)
    if problem is not None:
        raise ValueError(problem)
    return schedule


def _value(name: str, text: str) -> int | tuple[int, ...]:
    if name not in (*LISTS, *NUMBERS):
        raise ValueError(f"{name} is no key of a schedule: {', '.join((*LISTS, *NUMBERS))}")
    try:
        if name in NUMBERS:
            return int(text)
        if text[0] != "[":
            raise ValueError
        return tuple(int(entry) for entry in text[1:-1].split(",") if entry.strip())
    except ValueError:
        wanted = "a whole number" if name in NUMBERS else "a list of whole numbers, [0, 16]"
        raise ValueError(f"{name} = {text}: needs {wanted}") from None


def parse_overrides(text: str) -> dict[int | str, Schedule]:
    """Number or family -> schedule; `ValueError` with one sentence where `text` is not as above."""
    found: dict[int | str, Schedule] = {}
    for part in text.split(";"):
        if not part.strip():
            continue
        who, colon, schedule = part.partition(":")
        who = who.strip()
        if not colon or not (who.isdecimal() or who in FAMILIES):
            raise ValueError(
                f"'{part.strip()}' is no override: write 'NEST: vector = 8', where NEST is a number or one of "
                f"{', '.join(FAMILIES)}"
            )
        key = int(who) if who.isdecimal() else who
        if key in found:
            raise ValueError(f"{who} is given twice")
        found[key] = parse_schedule(schedule)
    return found
