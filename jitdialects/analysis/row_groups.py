"""How iterations are covered by groups of two sizes: as many large groups as possible, then some small ones.

With 6 and 4, 8 iterations are two small groups, 10 a large and a small one, 11 two large ones of which the last
does one iteration twice. Few register tiles of a product work in vain that way, whatever the number of rows.
"""

from __future__ import annotations

from functools import cache


@cache
def small_groups(large: int, small: int) -> tuple[int, ...]:
    """For each remainder modulo `large`: the small groups after which the rest of large ones waste least."""
    return tuple(
        min(range(large), key=lambda count: ((small * count - rest) % large, count))
        for rest in range(large)
    )


def in_large_groups(trips: int, large: int, small: int) -> int:
    """Iterations that the large groups reach: a multiple of `large`, at times more than `trips`."""
    left = max(0, trips - small * small_groups(large, small)[trips % large])
    return -(-left // large) * large


def iterations_done(trips: int, large: int, small: int) -> int:
    """Iterations that are done to cover `trips`, those done twice included."""
    first = in_large_groups(trips, large, small)
    return first + max(0, -(-(trips - first) // small)) * small
