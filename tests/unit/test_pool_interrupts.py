"""An interrupt at any line of the pool costs at most a block: nobody gets memory that somebody has."""

from __future__ import annotations

import ctypes
import linecache
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import jitdialects.runtime.pool as package
from jitdialects.runtime.pool import PAGE, MemoryPool
from jitdialects.runtime.pool.check import faults

FOLDER = str(Path(package.__file__).parent)
ALLOWED = "is in no list", "bytes are reserved", "records are spare"
"""What an interrupt may leave: blocks and records that nobody has, memory that is counted and not there."""


class Interrupter:
    """Raises `KeyboardInterrupt` at the line of the pool with number `at`."""

    def __init__(self, at: int) -> None:
        self.at, self.lines = at, 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(FOLDER):
            return None
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and "with self._lock" not in text:  # Python takes no interrupt there
            self.lines += 1
            if self.lines == self.at:
                raise KeyboardInterrupt
        return self


def use(pool: MemoryPool, live: dict[int, int]) -> Iterator[None]:
    """Requests, releases, trims; each live block holds its own number in its first and last byte."""
    choose = random.Random(1)
    for step in range(60):
        size = choose.choice((10, 700, PAGE, 3 * PAGE, 300_000, 1 << 20))
        block = pool.allocate(size)
        first, last = ends(pool, block, size)
        first.value = last.value = block % 251
        live[block] = size
        yield
        if len(live) > 8:
            block = choose.choice(sorted(live))
            size = live.pop(block)
            first, last = ends(pool, block, size)
            assert first.value == last.value == block % 251
            (pool.release if step % 2 else pool.recycle)(block)
            yield
        if step % 7 == 0:
            pool.safe_point()
        if step % 20 == 19:
            pool.trim()
        yield


def ends(pool: MemoryPool, block: int, size: int) -> tuple[ctypes.c_uint8, ctypes.c_uint8]:
    address = pool.address(block)
    return ctypes.c_uint8.from_address(address), ctypes.c_uint8.from_address(address + size - 1)


def interrupted(at: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Lines that were run; the use after the interrupt is another one, with what is still live."""
    monkeypatch.setattr("jitdialects.runtime.pool.trim.UNSEEN", 1 << 20)
    pool, live = MemoryPool(limit=16 << 20), dict[int, int]()
    watch, before = Interrupter(at), sys.gettrace()
    try:
        sys.settrace(watch)
        for _ in use(pool, live):
            pass
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    found = [text for text in faults(pool) if not any(allowed in text for allowed in ALLOWED)]
    assert not found, at
    for _ in use(pool, live):
        pass
    return watch.lines


def test_an_interrupt_at_any_line_leaves_a_pool_that_can_be_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = interrupted(0, monkeypatch)
    assert lines > 1000
    for at in range(1, lines, 101):
        interrupted(at, monkeypatch)
