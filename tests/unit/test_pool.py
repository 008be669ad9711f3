"""The memory pool: alignment, classes, exact blocks, deferral, limits, threads, forks."""

import ctypes
import gc
import os
import threading

import numpy as np
import pytest

from jitdialects.errors import PoolError
from jitdialects.runtime.pool import CLASSES, PAGE, MemoryPool, is_exact, size_class
from jitdialects.runtime.pool.layout import CAPACITY, RECORD_WORDS, SLAB_BYTES, SLAB_SHARE
from jitdialects.runtime.pool.system import CountedMemory


def test_there_are_21_classes_from_64_bytes_to_64_mebibytes() -> None:
    assert CLASSES == 21
    assert [size_class(n) for n in (0, 1, 64, 65, 1 << 26)] == [0, 0, 0, 1, 20]


@pytest.mark.parametrize(
    ("size", "exact"),
    [
        (40, False),  # a page would waste more than the class does
        (1 << 20, False),
        (3 << 18, False),  # exactly a quarter of 1 MiB wasted
        ((3 << 18) - 1, True),
        ((1 << 26) + 1, True),
    ],
)
def test_blocks_are_exact_over_a_quarter_of_waste_or_64_mebibytes(size: int, exact: bool) -> None:
    assert is_exact(size) == exact


def test_there_are_11_coarse_classes_each_four_times_the_one_before() -> None:
    pool = MemoryPool(classes="coarse")
    capacities = [pool.table[pool.allocate(4**k) * RECORD_WORDS + CAPACITY] for k in range(3, 14)]
    assert capacities == [4**k for k in range(3, 14)]
    blocks = [pool.allocate(size) for size in (65, 257, 5000, (3 << 20) + 1)]
    got = [pool.table[block * RECORD_WORDS + CAPACITY] for block in blocks]
    assert got == [256, 1024, 2 * PAGE, 4 << 20]  # 5000 would waste more than a quarter of 16384
    pool.check()


def test_another_table_of_classes_is_refused() -> None:
    with pytest.raises(PoolError, match="classes must be one of fine, coarse, got 'finer'"):
        MemoryPool(classes="finer")


def test_classes_change_while_blocks_of_both_tables_are_in_use() -> None:
    pool = MemoryPool()
    fine = pool.allocate(100)
    pool.state.coarse = 1
    coarse = pool.allocate(100)
    pool.recycle(fine)
    assert pool.allocate(100) not in (fine, coarse)
    pool.state.coarse = 0
    assert pool.allocate(100) == fine
    pool.check()


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 5000, 9000, 200_000, 700_000, 70 << 20])
def test_addresses_are_aligned_and_blocks_are_recycled(size: int) -> None:
    pool = MemoryPool()
    block = pool.allocate(size)
    address = pool.address(block)
    assert address % 64 == 0
    pool.release(block)
    assert pool.address(pool.allocate(size)) != address  # deferred: not before a safe point
    pool.safe_point()
    assert pool.address(pool.allocate(size)) == address
    assert pool.statistics().reused_requests == 1
    assert pool.statistics().reused_bytes == size


def test_an_exact_block_serves_requests_that_waste_at_most_a_quarter() -> None:
    pool = MemoryPool()
    block = pool.allocate(70 << 20)
    pool.release(block)
    pool.safe_point()
    assert pool.allocate(150 * PAGE + (1 << 20)) != block
    assert pool.allocate(65 << 20) == block


def test_best_fit_takes_the_smallest_exact_block() -> None:
    pool = MemoryPool()
    blocks = [pool.allocate(n << 20) for n in (90, 70, 80)]
    for block in blocks:
        pool.release(block)
    pool.safe_point()
    assert pool.allocate(72 << 20) == blocks[2]


def test_blocks_of_one_slab_do_not_overlap() -> None:
    pool = MemoryPool()
    arrays = [pool.empty((size,), "int64") for size in [1, 7, 8, 9, 100] * 300]
    for number, array in enumerate(arrays):
        array[:] = number
    assert all((array == number).all() for number, array in enumerate(arrays))


def test_references_are_counted() -> None:
    pool = MemoryPool()
    block = pool.allocate(100)
    pool.retain(block)
    pool.release(block)
    pool.safe_point()
    assert pool.statistics().live_blocks == 1
    pool.release(block)
    pool.safe_point()
    assert pool.statistics().live_blocks == 0


def test_a_recycled_block_is_free_at_once_if_nobody_else_has_it() -> None:
    pool = MemoryPool()
    block = pool.allocate(100)
    pool.retain(block)
    pool.recycle(block)
    assert pool.allocate(100) != block
    pool.recycle(block)
    assert pool.allocate(100) == block


@pytest.mark.parametrize("block", [0, 1, 5000])
def test_releasing_what_is_not_live_is_refused_and_harmless(block: int) -> None:
    pool = MemoryPool()
    pool.release(pool.allocate(8))
    with pytest.raises(PoolError, match="release each reference exactly once"):
        pool.release(block)
    pool.safe_point()
    assert pool.statistics().live_blocks == 0


def test_the_last_view_keeps_the_block() -> None:
    pool = MemoryPool()
    view = pool.empty((4, 4), np.float32)[1:].T
    view[...] = 3
    gc.collect()
    pool.safe_point()
    other = pool.empty((4, 4), np.float32)
    other[...] = 5
    assert (view == 3).all()
    del view
    pool.safe_point()
    assert pool.statistics().live_blocks == 1


def test_arrays_outlive_their_pool() -> None:
    array = MemoryPool().empty((1000,), np.float32)
    gc.collect()
    array[:] = 2
    assert array.sum() == 2000


def test_zero_sizes_and_rank_zero() -> None:
    pool = MemoryPool()
    assert pool.empty((0, 3), np.float32).shape == (0, 3)
    assert pool.empty((), np.int64).shape == ()


def test_statistics_count_live_waste_and_fragmentation() -> None:
    pool = MemoryPool()
    first, second = pool.allocate(100), pool.allocate(1000)
    found = pool.statistics()
    assert (found.live_bytes, found.waste_bytes, found.requests) == (1100, 28 + 24, 2)
    pool.release(first)
    pool.release(second)
    assert pool.statistics().deferred_blocks == 2
    pool.safe_point()
    found = pool.statistics()
    assert (found.live_bytes, found.free_bytes, found.largest_free_bytes) == (0, 1152, 1024)
    assert found.fragmentation == pytest.approx(1024 / 1152)


def test_the_limit_trims_before_it_fails() -> None:
    pool = MemoryPool(limit=4 << 20)
    blocks = [pool.allocate(192 << 10) for _ in range(16)]  # too small to become what is wanted
    for block in blocks:
        pool.release(block)
    pool.safe_point()
    assert pool.allocate(2 << 20)
    assert pool.statistics().trims == 1
    with pytest.raises(PoolError, match=r"reserved 2097152.*raise the limit \(4194304\)"):
        pool.allocate(3 << 20)
    assert pool.allocate(1 << 20)


def test_the_error_lists_free_blocks_and_tells_of_deferred_ones() -> None:
    pool = MemoryPool(limit=1 << 20)
    kept, freed = pool.allocate(64), pool.allocate(64)
    pool.release(freed)
    pool.safe_point()
    pool.release(kept)
    with pytest.raises(PoolError, match=r"free blocks: 1 x 64\); call safe_point\(\) to recycle 1"):
        pool.allocate(1 << 20)


def test_the_error_of_a_pool_without_limit_advises_no_limit() -> None:
    pool = MemoryPool()
    with pytest.raises(PoolError) as caught:
        pool.allocate(1 << 62)
    assert "limit" not in str(caught.value)
    assert pool.allocate(64)


def test_trim_gives_back_slabs_and_mappings_without_live_blocks() -> None:
    pool = MemoryPool()
    small = [pool.allocate(64) for _ in range(10)]
    large, kept = pool.allocate(1 << 20), pool.allocate(1 << 19)
    assert pool.trim() == 0
    pool.release(large)
    for block in small[1:]:
        pool.release(block)
    pool.safe_point()
    assert pool.trim() == 1 << 20
    pool.release(small[0])
    pool.recycle(kept)
    pool.safe_point()
    assert pool.trim() == (1 << 18) + (1 << 19)
    found = pool.statistics()
    assert (found.reserved_bytes, found.free_bytes, found.largest_free_bytes) == (0, 0, 0)
    assert pool.allocate(64)


@pytest.mark.parametrize("size", [64, 1000, PAGE, 5 * PAGE // 4, 1 << 17])
def test_pages_that_lie_free_in_slabs_in_use_go_back_and_come_again(size: int) -> None:
    pool = MemoryPool()
    blocks = [pool.allocate(size) for _ in range(2 * SLAB_BYTES // size)]
    kept = blocks[:: len(blocks) // 2]
    for block in set(blocks) - set(kept):
        pool.recycle(block)
    before = pool.statistics()
    gone = pool.trim()
    found = pool.statistics()
    assert found.reserved_bytes == before.reserved_bytes - gone
    assert gone > before.reserved_bytes - len(kept) * max(PAGE, 2 * size) - SLAB_BYTES
    pool.check()
    again = [pool.allocate(size) for _ in range(len(blocks) - len(kept))]
    assert len({pool.address(b) for b in [*again, *kept]}) == len(blocks)
    assert pool.statistics().reserved_bytes <= before.reserved_bytes
    pool.check()
    for block in [*again, *kept]:
        pool.recycle(block)
    pool.trim()
    assert pool.statistics().reserved_bytes == 0
    pool.check()


def test_pages_of_one_class_serve_smaller_ones() -> None:
    pool = MemoryPool(limit=SLAB_BYTES * SLAB_SHARE)
    pages = [pool.allocate(PAGE) for _ in range(SLAB_BYTES // PAGE)]
    for page in pages[1:]:
        pool.recycle(page)
    pool.trim()
    assert pool.statistics().reserved_bytes == PAGE
    for _ in range(2 * PAGE // 64):
        pool.allocate(64)
    assert pool.statistics().reserved_bytes == 3 * PAGE


@pytest.fixture
def watchful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pools look for idle memory while they are small."""
    monkeypatch.setattr("jitdialects.runtime.pool.trim.UNSEEN", 8 << 20)


@pytest.mark.usefixtures("watchful")
def test_idle_blocks_go_back_when_the_pool_would_grow_around_them() -> None:
    """Each size comes once: what is live at a time never exceeds 8 MiB."""
    pool = MemoryPool()
    most = 0
    for step in range(200):
        block = pool.allocate((8 << 20) - step * 10 * PAGE)
        most = max(most, pool.statistics().reserved_bytes)
        pool.recycle(block)
    assert most <= 12 << 20
    assert pool.statistics().looks < 100
    pool.check()


@pytest.mark.usefixtures("watchful")
def test_blocks_that_were_used_last_stay() -> None:
    pool = MemoryPool()
    small = [pool.allocate((1 << 20) + n * PAGE) for n in range(30)]
    for block in small:
        pool.recycle(block)
        pool.allocate(64)
    pool.recycle(pool.allocate(25 << 20))  # would be 56 MiB, of which at most 31 were live at once
    assert pool.statistics().reserved_bytes < 48 << 20
    assert pool.allocate((1 << 20) + 29 * PAGE) == small[29]


@pytest.mark.usefixtures("watchful")
@pytest.mark.parametrize("wanted", [11 << 19, 11 << 20])
def test_a_free_block_is_made_into_one_of_another_size_where_the_pool_would_grow(
    wanted: int,
) -> None:
    """Pages are not had anew: what was written to them before is still there."""
    pool = MemoryPool()
    block = pool.allocate(10 << 20)
    ctypes.c_uint8.from_address(pool.address(block)).value = 7
    pool.recycle(block)
    other = pool.allocate(wanted)
    assert other == block and ctypes.c_uint8.from_address(pool.address(other)).value == 7
    ctypes.memset(pool.address(other), 1, wanted)
    found = pool.statistics()
    assert found.waste_bytes == 0 and found.reserved_bytes == wanted
    pool.check()
    pool.recycle(other)
    assert pool.allocate(wanted) == other


def test_a_free_block_is_not_cut_down_to_a_small_part_of_it() -> None:
    """pytorch/pytorch#95827 (case 121)."""
    pool = MemoryPool(limit=101 << 20)
    block = pool.allocate(100 << 20)
    pool.recycle(block)
    pool.allocate(1 << 20)
    assert pool.allocate(100 << 20) == block


def test_blocks_are_kept_as_they_are_where_the_system_refuses_to_change_them() -> None:
    class Refusing(CountedMemory):
        def remap(self, address: int, before: int, size: int) -> int | None:
            return None

    pool = MemoryPool(limit=20 << 20, memory=Refusing())
    pool.recycle(pool.allocate(15 << 20))
    assert pool.allocate(20 << 20)
    assert pool.statistics().reserved_bytes == 20 << 20
    pool.check()
    assert pool.statistics().reserved_bytes <= 63 << 20


@pytest.mark.usefixtures("watchful")
def test_repeated_bursts_keep_their_memory() -> None:
    pool = MemoryPool()
    for _ in range(5):
        blocks = [pool.allocate((1 << 20) + n * 3 * PAGE) for n in range(50)]
        for block in blocks:
            pool.recycle(block)
        pool.recycle(pool.allocate(100))
    assert pool.statistics().fresh_requests == 51


def test_a_larger_block_serves_where_nothing_else_is_left() -> None:
    """pytorch/pytorch#189504 (case 122): no failure while a block that fits lies free."""
    pool = MemoryPool(limit=PAGE)
    blocks = [pool.allocate(PAGE // 8) for _ in range(8)]
    pool.recycle(blocks[3])
    assert pool.allocate(64) == blocks[3]
    with pytest.raises(PoolError, match="free blocks: none"):
        pool.allocate(64)
    assert pool.statistics().failures == 1
    pool.check()


def test_records_of_free_blocks_serve_other_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitdialects.runtime.pool.store.MAX_RECORDS", 1000)
    pool = MemoryPool()
    blocks = [pool.allocate(64) for _ in range(900)]
    for block in blocks[10:]:
        pool.recycle(block)
    more = [pool.allocate(5000) for _ in range(800)]
    pool.check()
    with pytest.raises(PoolError, match="blocks are in use; release some"):
        more.extend(pool.allocate(5000) for _ in range(300))
    pool.check()
    for block in more:
        pool.recycle(block)
    assert pool.allocate(1 << 20)


def test_threads_get_distinct_blocks() -> None:
    pool = MemoryPool()
    wrong: list[int] = []

    def work(number: int) -> None:
        for size in [1, 30, 500, 3000] * 50:
            array = pool.empty((size,), "int64")
            array[:] = number
            if (array != number).any():
                wrong.append(number)
            del array
            pool.safe_point()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pool.safe_point()
    assert not wrong
    assert pool.statistics().live_blocks == 0


def test_a_forked_child_uses_its_own_copy() -> None:
    pool = MemoryPool()
    array = pool.empty((10,), np.float32)
    array[:] = 1
    child = os.fork()
    if not child:
        array[:] = 2
        other = pool.empty((10,), np.float32)
        os._exit(0 if other.ctypes.data != array.ctypes.data else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (array == 1).all()


def test_case_127_a_block_waits_for_whoever_still_reads_it() -> None:
    """pytorch/pytorch#188655, cupy/cupy#8068: released by one thread, read by another."""
    pool = MemoryPool()
    array = pool.empty((1000,), np.float32)
    array[:] = 1
    reading, read = threading.Event(), threading.Event()
    seen: list[float] = []

    def reader(x: np.ndarray) -> None:
        reading.set()
        read.wait()
        seen.append(float(x.sum()))

    thread = threading.Thread(target=reader, args=(array[::2],))
    thread.start()
    reading.wait()
    del array  # freed early
    pool.safe_point()
    refilled = [pool.empty((1000,), np.float32) for _ in range(5)]
    for other in refilled:
        other[:] = 7
    read.set()
    thread.join()
    assert seen == [500]
    del thread
    pool.safe_point()
    assert pool.statistics().live_blocks == len(refilled)


def test_case_127_a_released_block_waits_for_the_safe_point() -> None:
    """pytorch/pytorch#188655: even at the limit, and then the error says what would help."""
    pool = MemoryPool(limit=1 << 20)
    block = pool.allocate(1 << 20)
    pool.release(block)
    with pytest.raises(PoolError, match="call safe_point"):
        pool.allocate(1 << 20)
    pool.safe_point()
    assert pool.allocate(1 << 20) == block


def test_a_recycled_block_never_shows_through_a_live_array() -> None:
    """The buffer of a value that is still read is not handed out again (a lost update otherwise)."""
    pool = MemoryPool()
    kept = pool.empty((256,), np.float32)
    kept[:] = 0.25
    for _ in range(20):
        pool.empty((256,), np.float32)[:] = -1.0
        pool.safe_point()
    assert (kept == 0.25).all()


@pytest.mark.parametrize("limit", [1 << 16, 1 << 20])
def test_slabs_of_all_small_classes_fit_a_small_limit(limit: int) -> None:
    pool = MemoryPool(limit=limit)
    sizes = [1 << n for n in range(6, 13)]
    blocks = [pool.allocate(size) for size in sizes for _ in range(3)]
    assert len({pool.address(block) for block in blocks}) == len(blocks)
    assert pool.statistics().reserved_bytes <= limit
    for block in blocks:
        pool.release(block)


def test_a_limit_that_is_no_number_is_refused() -> None:
    with pytest.raises(PoolError, match="limit must be at least 1 byte, got 'much'"):
        MemoryPool(limit="much")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("size", [2**63, 2**64 + 64, 2**90])
def test_requests_beyond_the_address_space_are_refused(size: int) -> None:
    pool = MemoryPool()
    with pytest.raises(PoolError, match=f"{size} bytes do not fit in the memory"):
        pool.allocate(size)
    assert pool.statistics().reserved_bytes == 0


def test_shapes_that_overflow_beside_a_zero_are_refused() -> None:
    pool = MemoryPool()
    with pytest.raises(PoolError, match="no array can have the shape"):
        pool.empty((2**62, 0), np.float32)
    pool.safe_point()
    assert pool.statistics().live_blocks == 0
