"""The pool under random use: a state machine, threads, a fork in the middle; `check` after it all."""

from __future__ import annotations

import ctypes
import os
import random
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from jitdialects.errors import PoolError
from jitdialects.runtime.pool import PAGE, MemoryPool
from jitdialects.runtime.pool.layout import COUNT, NEXT, RECORD_WORDS

SIZES = st.one_of(
    st.integers(0, 300),
    st.integers(0, 1 << 18),
    st.sampled_from([PAGE, 3 * PAGE, 700_000, 5 << 20]),
)


class PoolMachine(RuleBasedStateMachine):
    """Blocks hold their own number; whoever reads another has lost an update."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = MemoryPool(limit=48 << 20)
        self.live: dict[int, tuple[np.ndarray, int]] = {}
        self.retained: set[int] = set()
        self.arrays: list[tuple[np.ndarray, int]] = []
        self.number = 0

    def view(self, block: int, size: int) -> np.ndarray:
        address = self.pool.address(block)
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))

    @rule(size=SIZES)
    def allocate(self, size: int) -> None:
        try:
            block = self.pool.allocate(size)
        except PoolError:
            assert self.pool.statistics().live_bytes + size > 12 << 20
            return
        assert block not in self.live
        self.number = (self.number + 1) % 256
        view = self.view(block, size)
        view[:1] = view[-1:] = self.number
        self.live[block] = view, self.number

    @precondition(lambda self: self.live)
    @rule(data=st.data(), late=st.booleans())
    def release(self, data: st.DataObject, late: bool) -> None:
        block = data.draw(st.sampled_from(sorted(self.live)))
        view, number = self.live.pop(block)
        assert (view[:1] == number).all() and (view[-1:] == number).all()
        (self.pool.release if late else self.pool.recycle)(block)
        if block in self.retained:
            self.retained.remove(block)
            self.live[block] = view, number

    @precondition(lambda self: set(self.live) - self.retained)
    @rule(data=st.data())
    def retain(self, data: st.DataObject) -> None:
        block = data.draw(st.sampled_from(sorted(set(self.live) - self.retained)))
        self.pool.retain(block)
        self.retained.add(block)

    @rule(size=st.integers(1, 1 << 16))
    def array(self, size: int) -> None:
        if size % 3 == 0 and self.arrays:
            array, number = self.arrays.pop(size % len(self.arrays))
            assert (array == number).all()
        try:
            array = self.pool.empty((size,), np.uint8)
        except PoolError:
            return
        array[:] = size % 251
        self.arrays.append((array[size // 2 :], size % 251))

    @rule(megabytes=st.integers(24, 48))
    def limit(self, megabytes: int) -> None:
        self.pool.limit = megabytes << 20

    @rule()
    def safe_point(self) -> None:
        self.pool.safe_point()

    @rule()
    def trim(self) -> None:
        before = self.pool.statistics()
        assert self.pool.trim() <= before.reserved_bytes
        assert self.pool.statistics().live_bytes == before.live_bytes

    @rule(coarse=st.integers(0, 1))
    def classes(self, coarse: int) -> None:
        self.pool.state.coarse = coarse

    @invariant()
    def nothing_is_lost(self) -> None:
        self.pool.check()
        assert self.pool.statistics().reserved_bytes <= 48 << 20


TestPoolMachine = PoolMachine.TestCase
TestPoolMachine.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


def exercise(pool: MemoryPool, number: int, rounds: int, wrong: list[str]) -> None:
    """Arrays of random sizes, kept for a while, full of `number`."""
    random_ = random.Random(number)
    kept: list[np.ndarray] = []
    for _ in range(rounds):
        size = random_.choice((3, 50, 700, 3000, 70_000, 1 << 18))
        array = pool.empty((random_.randrange(size) + 1,), np.uint8)
        array[:] = number
        kept.append(array)
        if len(kept) > 12:
            gone = kept.pop(random_.randrange(12))
            if (gone != number).any():
                wrong.append(f"{number} read {set(gone.tolist())}")
        if random_.random() < 0.3:
            pool.safe_point()
        if random_.random() < 0.01:
            pool.trim()


@pytest.fixture(autouse=True)
def often_another_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("jitdialects.runtime.pool.trim.UNSEEN", 4 << 20)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def test_sixteen_threads_share_a_pool() -> None:
    pool, wrong = MemoryPool(), list[str]()
    threads = [threading.Thread(target=exercise, args=(pool, n, 300, wrong)) for n in range(1, 17)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        pool.check()
    for thread in threads:
        thread.join()
    pool.safe_point()
    assert not wrong
    pool.check()
    assert pool.statistics().live_blocks == 0
    assert pool.trim() > 0 and pool.statistics().reserved_bytes == 0


def test_a_fork_in_the_middle_leaves_both_processes_a_whole_pool() -> None:
    pool, wrong = MemoryPool(), list[str]()
    threads = [threading.Thread(target=exercise, args=(pool, n, 400, wrong)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        child = os.fork()
        if not child:
            try:
                pool.check()
                exercise(pool, 99, 30, wrong)
                pool.check()
                os._exit(bool(wrong))
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
    for thread in threads:
        thread.join()
    assert not wrong
    pool.check()


@pytest.mark.parametrize("word", [COUNT, NEXT])
def test_the_check_sees_a_damaged_record(word: int) -> None:
    pool = MemoryPool()
    blocks = [pool.allocate(100) for _ in range(3)]
    for block in blocks:
        pool.recycle(block)
    pool.check()
    pool.table[blocks[1] * RECORD_WORDS + word] = 3
    with pytest.raises(PoolError, match="the state is damaged"):
        pool.check()
