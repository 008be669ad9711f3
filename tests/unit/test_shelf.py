"""Results that machine code makes: in blocks of the pool, counted, given back, and never lost or used twice."""

import gc
import os
import re
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitdialects as jd
from jitdialects.runtime import native
from jitdialects.runtime.native import objects
from jitdialects.runtime.native.call_stub import RING
from jitdialects.runtime.native.stub_text import ENVIRONMENT
from jitdialects.runtime.pool import MemoryPool, default_pool
from jitdialects.runtime.pool.shelf import SHELVED
from jitdialects.runtime.tiers import TIMED_FIRST

F32 = np.float32


@pytest.fixture(autouse=True)
def low_threshold(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(jd.config, "threshold", 2)
    yield


def ramp(*shape: int) -> Any:
    return np.arange(int(np.prod(shape)), dtype=F32).reshape(shape)


def machine(pool: MemoryPool | None = None, *sizes: int) -> jd.VM:
    """A machine that serves x -> x + 1 by stubs, in blocks of `pool`: for these sizes, or for any, of which a
    sample goes through Python."""
    f = jd.jit(lambda x: x + 1)
    f(ramp(3))
    vm = jd.VM(f.program, jd.Policy(shapes="exact") if sizes else None, pool)
    for size in sizes or (3, 4, 5):
        for _ in range(3):
            vm.run("main", ramp(size))
            vm.wait()
        for _ in range(TIMED_FIRST + 1):
            vm.run("main", ramp(size))
    return vm


def lease_of(array: Any) -> str:
    return type(array.base).__name__


def shelved(pool: MemoryPool) -> int:
    """How many blocks lie on the shelf."""
    return int((pool.rows()[:, 2] == SHELVED).sum())


def test_numpys_functions_are_known_here() -> None:
    assert objects.array_maker()


def test_machine_code_reads_the_words_that_are_meant() -> None:
    names = {
        "array": "array",
        "call": "call",
        "decref": "decref",
        "free": "free",
        "incref": "incref",
        "lease.type": "lease",
        "malloc": "allocate",
        "new": "new_from_descriptor",
        "no.memory": "no_memory",
    }
    word = re.compile(r"%([a-z.]+)\.at = getelementptr i8, ptr %environment, i64 (\d+)")
    for text in ("arrays.ll", "vectorcall.ll"):
        found = word.findall(Path(native.__file__).with_name(text).read_text())
        if text == "arrays.ll":
            assert {name for name, _ in found} >= {"array", "free", "lease.type", "new"}
        for name, offset in found:
            assert int(offset) == 8 * ENVIRONMENT.index(names[name]), (text, name)


def test_results_that_are_kept_are_made_in_machine_code() -> None:
    vm, x = machine(default_pool, 6), ramp(6)
    kept = [vm.run("main", x * k)[0] for k in range(200)]
    assert sum(lease_of(a) == "NativeLease" for a in kept) > 180
    assert len({a.ctypes.data for a in kept}) == 200
    for k, array in enumerate(kept):
        assert (array == x * k + 1).all() and array.ctypes.data % 64 == 0
        assert array.flags.writeable and array.flags.c_contiguous and not array.flags.owndata
    default_pool.check()


def test_every_rank_and_size_is_an_ordinary_array() -> None:
    f = jd.jit(lambda x: x + 1)
    shapes = [(), (1,), (0,), (3, 5), (2, 3, 4), (0, 4), (1, 1, 7), (2050,), (40, 1000), (33000,)]
    for shape in shapes:
        x = ramp(*shape)
        for _ in range(4):
            f(x)
            f.wait()
        for array in [f(x) for _ in range(30)]:
            fresh = np.empty(shape, F32)
            assert array.shape == shape and array.dtype == F32 and (array == x + 1).all()
            assert not array.size or array.strides == fresh.strides
            for flag in ("C_CONTIGUOUS", "F_CONTIGUOUS", "ALIGNED", "WRITEABLE"):
                assert array.flags[flag] == fresh.flags[flag], (shape, flag)
    default_pool.check()


def test_statistics_count_what_machine_code_takes() -> None:
    pool = MemoryPool()
    vm, x = machine(pool, 30), ramp(30)
    gc.collect()
    pool.safe_point()
    before = pool.statistics()
    kept = [vm.run("main", x)[0] for _ in range(100)]
    after = pool.statistics()
    # up to four may be taken from the ring of results that nobody holds
    assert 96 <= after.requests - before.requests <= 100
    assert 96 * 120 <= after.requested_bytes - before.requested_bytes <= 100 * 120
    assert 96 <= after.live_blocks - before.live_blocks <= 100
    assert after.requests == after.reused_requests + after.fresh_requests
    del kept
    gc.collect()
    pool.safe_point()
    again = pool.statistics()
    assert again.live_blocks <= before.live_blocks + 4 and again.free_bytes > before.free_bytes
    kept = [vm.run("main", x)[0] for _ in range(90)]
    last = pool.statistics()
    assert last.fresh_requests == again.fresh_requests  # all of them in blocks of before
    assert last.reused_requests - again.reused_requests >= 86 and len(kept) == 90
    pool.check()


def test_the_indicators_see_them() -> None:
    vm, x = machine(default_pool, 6), ramp(6)
    before = jd.stats()["pool"]["requests"]
    kept = [vm.run("main", x)[0] for _ in range(50)]
    assert jd.stats()["pool"]["requests"] - before >= 46 and len(kept) == 50


def test_python_takes_blocks_back_before_it_asks_for_more() -> None:
    pool = MemoryPool()
    vm, x = machine(pool, 16), ramp(16)
    kept = [vm.run("main", x)[0] for _ in range(64)]
    del kept
    gc.collect()
    lying, reserved = shelved(pool), pool.statistics().reserved_bytes
    assert lying >= 60
    blocks = [pool.allocate(64) for _ in range(lying)]
    assert pool.statistics().reserved_bytes == reserved and shelved(pool) == 0
    for block in blocks:
        pool.recycle(block)
    pool.check()


def test_trim_gives_back_what_lies_on_the_shelf() -> None:
    pool = MemoryPool()
    vm = machine(pool, 30_000)
    kept = [vm.run("main", ramp(30_000))[0] for _ in range(20)]
    full = pool.statistics().reserved_bytes
    assert (kept[-1] == ramp(30_000) + 1).all()
    del kept
    gc.collect()
    assert shelved(pool) >= 5
    pool.safe_point()
    pool.trim()
    assert shelved(pool) == 0 and pool.statistics().reserved_bytes < full // 2
    assert (vm.run("main", ramp(30_000))[0] == ramp(30_000) + 1).all()
    pool.check()


def test_many_blocks_leave_the_shelf_at_once() -> None:
    pool = MemoryPool()
    vm, x = machine(pool, 8), ramp(8)
    kept = [vm.run("main", x)[0] for _ in range(20_000)]
    del kept
    gc.collect()
    free = pool.statistics().free_bytes
    assert shelved(pool) >= 18_000
    with pool._lock:
        pool.clear_shelf()
    assert shelved(pool) == 0 and pool.statistics().free_bytes == free
    pool.check()
    blocks = {pool.allocate(64) for _ in range(1000)}
    assert len(blocks) == 1000


def test_a_limit_holds_and_nothing_is_lost() -> None:
    pool = MemoryPool(limit=1 << 20)
    vm, x = machine(pool, 25_000), ramp(25_000)
    kept: list[Any] = []
    with pytest.raises(jd.PoolError):
        for _ in range(100):
            kept.append(vm.run("main", x)[0])
    assert 4 <= len(kept) <= 10 and pool.statistics().reserved_bytes <= 1 << 20
    assert all((a == x + 1).all() for a in kept)
    kept.clear()
    gc.collect()
    for _ in range(50):
        assert (vm.run("main", x)[0] == x + 1).all()
    pool.check()


def test_results_keep_their_pool_alive() -> None:
    pool = MemoryPool()
    vm = machine(pool)
    kept = [vm.run("main", ramp(9) * k)[0] for k in range(40)]
    gone = weakref.ref(pool)
    del pool, vm
    gc.collect()
    assert gone() is not None
    for k, array in enumerate(kept):
        assert (array == ramp(9) * k + 1).all()
    views = [a[2:5] for a in kept]
    del kept, array
    gc.collect()
    assert gone() is not None and (views[3] == (ramp(9) * 3 + 1)[2:5]).all()
    del views
    gc.collect()
    assert gone() is None


def test_a_closed_shelf_gives_nothing_and_gets_nothing() -> None:
    pool = MemoryPool()
    vm, x = machine(pool, 8), ramp(8)
    before = [vm.run("main", x)[0] for _ in range(40)]
    pool.debug = True
    after = [vm.run("main", x)[0] for _ in range(40)]
    assert all(lease_of(a) == "Lease" for a in after)
    live = pool.statistics().live_blocks
    del before
    gc.collect()
    assert pool.statistics().live_blocks == live  # until the safe point
    pool.safe_point()
    assert pool.statistics().live_blocks <= live - 36
    pool.debug = False
    kept = [vm.run("main", x)[0] for _ in range(40)]
    assert any(lease_of(a) == "NativeLease" for a in kept)
    pool.check()


def test_a_trace_has_the_blocks_of_machine_code(tmp_path: Path) -> None:
    pool = MemoryPool()
    vm, x = machine(pool, 8), ramp(8)
    before = [vm.run("main", x)[0] for _ in range(40)]
    gone = [vm.run("main", x)[0] for _ in range(40)]
    del gone
    pool.record(tmp_path / "trace")
    live = pool.statistics().live_blocks
    after = [vm.run("main", x)[0] for _ in range(10)]
    assert all(lease_of(a) == "Lease" for a in after[RING:])
    del before
    pool.safe_point()
    pool.stop_recording()
    events = [e for e in (tmp_path / "trace").read_text().splitlines() if e[0] in "+-"]
    assert sum(e[0] == "+" for e in events) >= live + 10 - RING
    assert sum(e[0] == "-" for e in events) >= 40 - RING
    pool.check()


def test_coarse_classes_hold_for_machine_code() -> None:
    pool = MemoryPool(classes="coarse")
    vm, x = machine(pool, 30), ramp(30)  # 120 bytes: 128 in the fine table, 256 in the coarse one
    kept = [vm.run("main", x)[0] for _ in range(40)]
    gaps = np.diff(sorted(a.ctypes.data for a in kept))
    assert any(lease_of(a) == "NativeLease" for a in kept) and gaps.min() >= 256
    pool.classes = "fine"
    kept = [vm.run("main", x * k)[0] for k in range(40)]
    assert all((a == x * k + 1).all() for k, a in enumerate(kept))
    pool.check()


def test_threads_share_a_shelf() -> None:
    pool = MemoryPool()
    vm = machine(pool)
    wrong: list[object] = []

    def work(seed: int) -> None:
        kept: list[tuple[Any, Any]] = []
        for turn in range(300):
            x = ramp(1 + (seed * 37 + turn * 11) % 200) + seed
            kept.append((x, vm.run("main", x)[0]))
            if turn % 7 == 0:
                pool.trim()
            if len(kept) > 20:
                wrong.extend(pair for pair in kept if not (pair[0] + 1 == pair[1]).all())
                del kept[::2]

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    pool.safe_point()
    pool.check()


def test_a_forked_child_goes_on() -> None:
    vm, x = machine(default_pool, 8), ramp(8)
    kept = [vm.run("main", x)[0] for _ in range(20)]
    child = os.fork()
    if not child:
        more = [vm.run("main", x * k)[0] for k in range(100)]
        good = all((a == x * k + 1).all() for k, a in enumerate(more))
        del kept[:]
        default_pool.check()
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert all((a == x + 1).all() for a in kept)
    default_pool.check()


def test_a_lease_is_made_by_machine_code_only() -> None:
    vm = machine()
    kept = [vm.run("main", ramp(8))[0] for _ in range(30)]
    lease = next(a.base for a in kept if lease_of(a) == "NativeLease")
    with pytest.raises(TypeError):
        type(lease)()
    assert "NativeLease" in repr(lease)


def test_a_block_on_the_shelf_is_nobodys_to_release() -> None:
    pool = MemoryPool()
    machine(pool, 6)
    block = int((pool.rows()[:, 2] == SHELVED).argmax())
    assert shelved(pool)
    for misuse in (pool.retain, pool.release, pool.recycle):
        with pytest.raises(jd.errors.PoolError, match="is not live"):
            misuse(block)
    pool.check()
