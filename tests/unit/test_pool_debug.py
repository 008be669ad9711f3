"""The pool in debug mode: use after release, overruns, double release, leaks, and who did it."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jitdialects as jd
from jitdialects.errors import PoolError
from jitdialects.runtime.pool import PAGE, MemoryPool
from jitdialects.runtime.pool.watched import WatchedPool

PROGRAM = """\
func @main(%0, %1) -> 1 {
^entry:
  %2 = add %0, %1
  %3 = multiply %2, %2
  return %3
}
"""


def memory(pool: MemoryPool, block: int, size: int) -> np.ndarray:
    """The bytes of a block, whoever has it."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(pool.address(block)))


SIZES = [1, 100, PAGE, 70_000, 150_000, 1 << 20]


@pytest.mark.parametrize("size", SIZES)
def test_what_nobody_wrote_to_is_nan(size: int) -> None:
    pool = MemoryPool(debug=True)
    for _ in range(3):
        array = pool.empty((size // 8 + 1,), np.float64)
        assert np.isnan(array).all() and np.isnan(array.view(np.float32)).all()
        array[:] = 1
        del array
        pool.safe_point()
    pool.check()


@pytest.mark.parametrize("size", SIZES)
def test_a_write_after_release_is_found_when_the_block_is_used_again(size: int) -> None:
    pool = MemoryPool(debug=True)
    block = pool.allocate(size)
    pool.recycle(block)
    memory(pool, block, size)[size // 2] = 7
    with pytest.raises(
        PoolError, match=rf"test_pool_debug.py:\d+ \({size} bytes\) released .* after"
    ):
        pool.allocate(size)
    assert pool.allocate(size) == block  # told once; the pool goes on
    pool.check()


def test_a_write_after_release_is_found_by_a_check() -> None:
    pool = MemoryPool(debug=True)
    block = pool.allocate(100)
    pool.recycle(block)
    memory(pool, block, 100)[16] = 0
    with pytest.raises(PoolError, match="written to afterwards, at byte 16"):
        pool.check()
    pool.check()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("late", [False, True])
def test_an_overrun_is_found_when_the_block_is_released(size: int, late: bool) -> None:
    pool = MemoryPool(debug=True)
    block = pool.allocate(size)
    memory(pool, block, size + 1)[size] = 0
    with pytest.raises(PoolError, match=f"got {size} bytes and wrote to byte {size}"):
        if late:
            pool.release(block)
            pool.safe_point()
        else:
            pool.recycle(block)
    pool.check()
    assert pool.allocate(size) == block


def test_a_double_release_names_who_had_the_block() -> None:
    pool = MemoryPool(debug=True)
    block = pool.allocate(100)
    pool.recycle(block)
    with pytest.raises(
        PoolError, match=r"not live \(the last to have it was .*test_pool_debug.py:"
    ):
        pool.release(block)


def test_writing_all_of_a_block_is_no_fault() -> None:
    pool = MemoryPool(debug=True)
    for size in [*range(1, 200, 7), *SIZES] * 2:
        block = pool.allocate(size)
        memory(pool, block, size)[:] = 0
        pool.recycle(block)
    pool.trim()
    pool.check()
    assert pool.statistics().live_blocks == 0


def test_memory_that_went_back_to_the_system_is_not_taken_for_written_to() -> None:
    pool = MemoryPool(debug=True)
    blocks = [pool.allocate(size) for size in [40, 3000, 3000, 9000] * 200]
    for round in range(3):
        for block in blocks[1::2]:
            pool.recycle(block)
        pool.trim()
        pool.check()
        blocks[1::2] = [pool.allocate(700 * round + 10) for _ in blocks[1::2]]
    pool.check()


def test_debugging_begins_and_ends_while_blocks_are_in_use() -> None:
    pool = MemoryPool()
    before, free = pool.allocate(100), pool.allocate(100)
    pool.recycle(free)
    pool.debug = True
    watched = pool.allocate(30)
    pool.recycle(before)
    pool.check()
    pool.debug = False
    pool.recycle(watched)
    assert type(pool) is MemoryPool and "debug" not in str(pool.allocate)
    pool.check()


# ---- who ---------------------------------------------------------------------------------------


def test_leaks_name_operator_and_location(tmp_path: Path) -> None:
    pool = MemoryPool(debug=True)
    path = tmp_path / "model.jasm"
    vm = jd.VM(jd.Program.from_text(PROGRAM, str(path)), jd.Policy(threshold=10**6), pool)
    result = vm.run("main", np.ones(50, np.float32), np.ones(50, np.float32))
    (leak,) = pool.leaks()
    assert (leak.size, leak.owner and leak.owner.operator) == (200, "multiply")
    assert str(leak.owner).endswith("model.jasm:4:3")
    mine = pool.empty((3,), np.float64)
    assert [str(leak.owner) for leak in pool.leaks()][1].startswith(__file__)
    del result, mine
    gc.collect()
    assert pool.leaks() == []


def test_leaks_of_compiled_code_name_its_signature() -> None:
    pool = MemoryPool(debug=True)
    vm = jd.VM(jd.Program.from_text(PROGRAM), jd.Policy(threshold=1), pool)
    x = np.ones(50, np.float32)
    vm.run("main", x, x)
    vm.wait()
    result = vm.run("main", x, x)
    (leak,) = pool.leaks()
    assert leak.owner and leak.owner.operator == "compiled main(f32[50], f32[50])"
    assert result[0].tolist() == [4.0] * 50
    pool.check()


def test_without_debug_leaks_have_sizes_only() -> None:
    pool = MemoryPool()
    block = pool.allocate(10)
    pool.release(pool.allocate(20))
    (leak,) = pool.leaks()
    assert (leak.block, leak.size, leak.age, leak.owner) == (block, 10, None, None)


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_is_live_at_the_end_is_told() -> None:
    script = """if True:
        import numpy as np
        from jitdialects.runtime.pool import default_pool
        dropped = default_pool.empty((10,), np.float32)
        del dropped
        kept = default_pool.empty((1000,), np.float32)
        """
    done = run(script, JITDIALECTS_POOL_DEBUG="1")
    assert done.returncode == 0
    assert "1 block(s), 4000 bytes, still live at the end" in done.stderr
    assert "4000 bytes, 0 request(s) ago: <string>:6" in done.stderr
    assert run(script).stderr == ""


def test_an_option_that_is_not_allowed_is_an_error_of_the_first_request() -> None:
    script = """if True:
        import jitdialects as jd
        from jitdialects.runtime.pool import default_pool
        for _ in range(2):
            try:
                default_pool.allocate(8)
            except jd.ConfigError as error:
                print(error)
        jd.config.pool_limit = "1MiB"
        default_pool.allocate(8)
        print(default_pool.limit)
        """
    done = run(script, JITDIALECTS_POOL_LIMIT="little")
    wrong = "JITDIALECTS_POOL_LIMIT='little': needs a number of bytes"
    first, second, limit = done.stdout.splitlines()
    assert first.startswith(wrong) and second == first and limit == str(1 << 20)


def test_a_request_that_began_before_debug_mode_is_not_taken_for_an_overrun() -> None:
    """It waited for the lock meanwhile."""
    pool = MemoryPool(debug=True)
    pool.recycle(pool.allocate(256))
    late = MemoryPool.allocate(pool, 500)
    memory(pool, late, 500)[:] = 7
    pool.recycle(late)
    assert pool.ledger is not None
    assert not pool.ledger.faults


def test_a_request_that_ends_after_debug_mode_is_not_taken_for_a_late_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another thread ended it, and used the block, between the two halves of the request."""
    pool = MemoryPool(debug=True)
    pool.recycle(pool.allocate(256))
    allocate = MemoryPool.allocate

    def meanwhile(self: MemoryPool, size: int) -> int:
        monkeypatch.undo()
        pool.debug = False
        other = pool.allocate(300)
        memory(pool, other, 300)[:] = 7
        pool.recycle(other)
        return allocate(self, size)

    monkeypatch.setattr(MemoryPool, "allocate", meanwhile)
    block = WatchedPool.allocate(pool, 256)
    pool.recycle(block)
