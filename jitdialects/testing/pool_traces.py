"""Requests that troubled the pools of others, made up as traces (`runtime.pool.trace`) of our own.

Numbers in parentheses are reports of users: jax-ml/jax, pytorch/pytorch, microsoft/onnxruntime.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jitdialects.runtime.pool.trace import Event

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
TWO_HOURS_LIMIT = 4608 * MIB
"""Of the machine that `two_hours` ran on."""


class _Script:
    """Events in the order in which they are asked for."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._last = 0

    def give(self, size: int) -> int:
        """A block of `size` bytes."""
        self._last += 1
        self.events.append(("+", self._last, size))
        return self._last

    def free(self, *blocks: int) -> None:
        """The blocks become free."""
        self.events.extend(("-", block, 0) for block in blocks)

    def run(self, sizes: list[int]) -> None:
        """A chain of operators: each result lives until the one after the next is there."""
        window: list[int] = []
        for size in sizes:
            window.append(self.give(size))
            if len(window) > 2:
                self.free(window.pop(0))
        self.free(*window)


def many_shapes(shapes: int = 2000) -> list[Event]:
    """Layers of a network for 2,000 batch sizes in random order, each of them twice (jax#11923, #10828, #2072)."""
    script, order = _Script(), random.Random(118)
    for _ in range(2):
        batches = list(range(1, shapes + 1))
        order.shuffle(batches)
        for batch in batches:
            script.run([4 * batch * width for width in (3072, 2048, 2048, 1024, 1024, 40)])
    return script.events


def cleared_each_step(steps: int = 300) -> list[Event]:
    """Each step fills caches, computes, and clears them (jax#19429)."""
    script, order = _Script(), random.Random(119)
    for _ in range(steps):
        cache = [script.give(order.randrange(100, 8 * MIB)) for _ in range(20)]
        script.run([order.randrange(64, 4 * MIB) for _ in range(20)])
        order.shuffle(cache)
        script.free(*cache)
    return script.events


def large_then_small(times: int = 50) -> list[Event]:
    """A block of 4 GiB is released, 10 KiB are wanted and kept, then 4 GiB again (pytorch#95827)."""
    script = _Script()
    for _ in range(times):
        script.free(script.give(4 * GIB))
        script.give(10 * KIB)
    return script.events


def fits_what_is_free(limit: int) -> list[Event]:
    """Requests at the limit for which a block lies free that fits, well or badly (pytorch#189504)."""
    script = _Script()
    large, pieces = script.give(limit // 2), [script.give(limit // 16) for _ in range(8)]
    script.free(large)
    again = script.give(limit // 2 - limit // 16)
    script.free(again, *pieces)
    for size in (limit // 3, limit // 4, limit - limit // 8):
        script.free(script.give(size))
    return script.events


def pattern_while_chunks_are_held(runs: int = 40) -> list[Event]:
    """The first run takes chunks, later ones a block for the whole pattern, results of the run before are still held
    (onnxruntime#4062)."""
    script, sizes = _Script(), [12 * MIB, 20 * MIB, 4 * MIB, 2800 * KIB, 36 * MIB]
    held = [script.give(size) for size in sizes]
    for _ in range(runs):
        pattern = script.give(sum(sizes))
        script.free(*held)
        held = [script.give(sizes[-1]), script.give(sizes[0])]
        script.free(pattern)
    script.free(*held)
    return script.events


def a_new_shape_each_time(shapes: int = 1000) -> list[Event]:
    """No shape comes twice (onnxruntime#5796)."""
    script, order = _Script(), random.Random(126)
    for _ in range(shapes):
        rows = order.randrange(1, 5000)
        script.run([rows * 12288, rows * 4096 + 4, rows * 16384, rows * 160])
    return script.events


def two_hours() -> list[Event]:
    """Two hours of requests of ever other sizes; small results stay in caches. A burst leaves 4 GiB free, in pieces of
    at most 4 MiB, between what is cached. Then 256 MiB are wanted; they were not to be had."""
    script, order = _Script(), random.Random(2)
    cached: list[int] = []
    for _ in range(720):
        rows = order.randrange(16, 700)
        script.run([rows * 4096 + 64, rows * 1024, rows * 16384, rows * 256, 40 * rows])
        cached.append(script.give(order.choice((900, 7000, 30_000))))
        if len(cached) > 30:
            script.free(cached.pop(0))
    burst: list[int] = []
    total = 0
    while total < 4100 * MIB:
        size = order.randrange(40 * KIB, 4 * MIB)
        burst.append(script.give(size))
        total += size
        if order.random() < 0.2:
            cached.append(script.give(order.choice((900, 7000, 30_000))))
    order.shuffle(burst)
    script.free(*burst)
    script.events.append(("!", 0, 256 * MIB))
    return script.events


def pieces_of_slabs(blocks: int = 4096, size: int = 16 * KIB) -> list[Event]:
    """Many small blocks, of which one in sixteen stays; then as much again in other sizes."""
    script = _Script()
    made = [script.give(size) for _ in range(blocks)]
    script.free(*(block for number, block in enumerate(made) if number % 16))
    for _ in range(4):
        script.run([blocks * size // 6] * 5)
    return script.events


def several_sizes_in_turn(rounds: int = 2) -> list[Event]:
    """Phases that each want 96 MiB in blocks of one size."""
    script = _Script()
    for _ in range(rounds):
        for power in range(14, 25):
            script.free(*[script.give((1 << power) - 40) for _ in range(96 * MIB >> power)])
    return script.events


@dataclass(frozen=True)
class Trace:
    """A trace and the machine that it was made for."""

    name: str
    case: str
    events: Callable[[], list[Event]]
    limit: int | None = None


def traces() -> Iterator[Trace]:
    """All of the above."""
    yield Trace("2,000 shapes, each twice", "118", many_shapes)
    yield Trace("caches cleared each step", "119", cleared_each_step)
    yield Trace("4 GiB, 10 KiB, 4 GiB", "121", large_then_small)
    yield Trace("free blocks fit at the limit", "122", lambda: fits_what_is_free(GIB), GIB)
    yield Trace("pattern while chunks are held", "125", pattern_while_chunks_are_held)
    yield Trace("a new shape each time", "126", a_new_shape_each_time)
    yield Trace("two hours, then 256 MiB", "two hours", two_hours, TWO_HOURS_LIMIT)
    yield Trace("one block in 16 of a slab stays", "slabs", pieces_of_slabs)
    yield Trace("phases of one size each", "phases", several_sizes_in_turn)
