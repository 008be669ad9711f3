"""Faults in memory pools that users of other libraries reported, as traces; recording, replaying, `jit-pool`.

A number in a docstring is that of the case in our collection.
"""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import jitdialects as jd
from jitdialects.errors import PoolError
from jitdialects.runtime.pool import MemoryPool
from jitdialects.runtime.pool.system import CountedMemory
from jitdialects.runtime.pool.trace import Event, Replay, read, replay, write
from jitdialects.testing import pool_traces as traces
from jitdialects.testing.pool_traces import GIB, KIB, MIB
from jitdialects.tools import jit_pool

CLASSES = "fine", "coarse"


def counted(classes: str = "fine", limit: int | None = None) -> MemoryPool:
    return MemoryPool(limit, classes, memory=CountedMemory())


def run(events: list[Event], pool: MemoryPool) -> Replay:
    found = replay(events, pool)
    pool.check()
    return found


def growth(events: list[Event], parts: int, pool: MemoryPool) -> list[int]:
    """Reserved bytes at the end of each of so many parts of a trace."""
    out: list[int] = []

    def counted() -> Iterator[Event]:
        for number, event in enumerate(events, 1):
            yield event
            if number % (len(events) // parts) == 0:
                out.append(pool.state.reserved_bytes)

    replay(counted(), pool)
    return out


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("trace", list(traces.traces()), ids=lambda t: t.case)
def test_a_pool_has_little_more_than_was_live_at_once(trace: traces.Trace, classes: str) -> None:
    found = run(trace.events(), counted(classes, trace.limit))
    assert not found.failures
    assert found.overhead <= 1.55


@pytest.mark.parametrize("classes", CLASSES)
def test_case_118_two_thousand_shapes_do_not_add_up_and_trim_frees(classes: str) -> None:
    """jax-ml/jax#11923, #10828, #2072."""
    pool = counted(classes)
    found = run(traces.many_shapes(), pool)
    assert found.peak_reserved <= 84 * MIB
    pool.trim()
    assert pool.statistics().reserved_bytes == 0


@pytest.mark.parametrize("classes", CLASSES)
def test_case_119_memory_is_flat_where_caches_are_cleared_each_step(classes: str) -> None:
    """jax-ml/jax#19429."""
    reserved = growth(traces.cleared_each_step(), 10, counted(classes))
    assert max(reserved) <= 172 * MIB  # half more than is live at once
    assert max(reserved[5:]) <= 1.1 * max(reserved[:5])


@pytest.mark.parametrize("classes", CLASSES)
def test_case_121_a_small_request_never_takes_the_large_block(classes: str) -> None:
    """pytorch/pytorch PR#95827."""
    pool = counted(classes)
    large = pool.allocate(4 * GIB)
    pool.recycle(large)
    assert pool.allocate(10 * KIB) != large
    assert pool.allocate(4 * GIB) == large
    assert run(traces.large_then_small(), counted(classes)).peak_reserved < 4 * GIB + 2 * MIB


def test_case_122_what_is_free_is_searched_then_trimmed_before_a_request_fails() -> None:
    """pytorch/pytorch#189504; these requests are mapped and written to."""
    limit = 16 * MIB
    assert not run(traces.fits_what_is_free(limit), MemoryPool(limit)).failures
    pool = MemoryPool(limit)
    held = [pool.allocate(7 * MIB), pool.allocate(3 * MIB)]
    pool.recycle(pool.allocate(4 * MIB))
    with pytest.raises(PoolError, match=r"free blocks: none\); release arrays, raise the limit"):
        pool.allocate(8 * MIB)
    assert pool.statistics().live_blocks == len(held)
    pool.recycle(held[0])
    assert pool.allocate(8 * MIB)


def test_case_122_arrays_that_are_gone_make_room_before_a_request_fails() -> None:
    """pytorch/pytorch#189504: also where no safe point came since."""
    pool = MemoryPool(16 * MIB)
    array = pool.empty((12 * MIB,), np.uint8)
    with pytest.raises(PoolError, match="live 12582912 in 1 block"):
        pool.empty((11 * MIB,), np.uint8)
    del array
    assert pool.empty((11 * MIB,), np.uint8).size
    released = pool.allocate(4 * MIB)
    pool.release(released)  # somebody may compute with it until a safe point
    with pytest.raises(PoolError, match="call safe_point"):
        pool.empty((14 * MIB,), np.uint8)


def test_case_125_a_second_run_beside_held_chunks_grows_once() -> None:
    """microsoft/onnxruntime PR#4062."""
    reserved = growth(traces.pattern_while_chunks_are_held(), 20, counted())
    assert len(set(reserved[2:])) == 1


@pytest.mark.parametrize("classes", CLASSES)
def test_case_126_a_new_shape_each_time_does_not_add_up(classes: str) -> None:
    """microsoft/onnxruntime#5796."""
    reserved = growth(traces.a_new_shape_each_time(), 10, counted(classes))
    assert max(reserved) <= 240 * MIB


@pytest.mark.parametrize("classes", CLASSES)
def test_two_hours_end_with_4_gib_free_and_256_mib_are_had(classes: str) -> None:
    pool, events = counted(classes, traces.TWO_HOURS_LIMIT), traces.two_hours()
    run(events[:-1], pool)
    before = pool.statistics()
    assert before.free_bytes > 4 * GIB and before.largest_free_bytes < 5 * MIB
    assert before.reserved_bytes + 256 * MIB > traces.TWO_HOURS_LIMIT
    (first, *_) = pool.advice()
    assert "trim() gives back most of" in first
    assert any("coarse classes" in text for text in pool.advice()) == (classes == "fine")
    found = run(events[-1:], pool)
    assert not found.failures and found.failed_when_recorded == 1
    assert pool.statistics().reserved_bytes <= traces.TWO_HOURS_LIMIT


# ---- what an error advises -----------------------------------------------------------------------


def message(pool: MemoryPool, size: int) -> str:
    with pytest.raises(PoolError) as caught:
        pool.allocate(size)
    return caught.value.message.rpartition("; ")[2]


def test_case_128_an_error_advises_nothing_that_is_done_already() -> None:
    """pytorch/pytorch#173049."""
    plain, debugged = "; raise", "JITDIALECTS_POOL_DEBUG"
    assert "limit" not in message(MemoryPool(), 1 << 60)
    assert "limit" in message(MemoryPool(MIB), 2 * MIB)
    assert debugged in message(MemoryPool(MIB), 2 * MIB)
    assert debugged not in message(MemoryPool(MIB, debug=True), 2 * MIB)
    assert plain not in message(MemoryPool(MIB), 2 * MIB)
    pool = MemoryPool(MIB)
    assert "safe_point" not in message(pool, 2 * MIB)
    pool.release(pool.allocate(8))
    assert "call safe_point() to recycle 1 released block(s)" in message(pool, 2 * MIB)


@pytest.mark.parametrize("classes", CLASSES)
def test_case_128_coarse_classes_are_advised_to_those_who_have_fine_ones(classes: str) -> None:
    """pytorch/pytorch#173049: and only where enough lies free in pieces."""
    pool = MemoryPool(MIB, classes)
    blocks = [pool.allocate(64) for _ in range(MIB // 64 - 100)]
    assert "coarse" not in message(pool, MIB // 2)
    for block in blocks[1::2]:  # every page keeps a block in use
        pool.recycle(block)
    assert ("POOL_CLASSES=coarse" in message(pool, MIB // 4)) == (classes == "fine")


def test_an_error_lists_what_is_live_largest_first_and_who_has_it() -> None:
    pool = MemoryPool(4 * MIB, debug=True)
    small, large = pool.empty((100,), np.uint8), pool.empty((MIB,), np.uint8)
    with pytest.raises(
        PoolError, match=r"live 1048676 in 2 .*: 1048576 bytes \(.*test_pool_traces.py"
    ):
        pool.allocate(4 * MIB)
    pool.debug = False
    with pytest.raises(PoolError, match="1 x 1048576, 1 x 100, free"):
        pool.allocate(4 * MIB)
    del small, large


def test_a_healthy_pool_needs_no_advice() -> None:
    pool = MemoryPool()
    assert pool.advice() == []
    pool.recycle(pool.allocate(8 * MIB))
    assert pool.advice() == []


# ---- recording -----------------------------------------------------------------------------------


def test_a_recorded_run_replays_as_it_was(tmp_path: Path) -> None:
    path, pool = tmp_path / "a.trace", MemoryPool()
    before = pool.allocate(5000)
    pool.record(path)
    arrays = [pool.empty((n,), np.float32) for n in range(1, 9000, 31)]
    del arrays[::2]
    gc.collect()
    pool.safe_point()
    pool.recycle(before)
    pool.stop_recording()
    pool.allocate(77)
    events = list(read(path))
    assert events[0] == ("+", before, 5000) and events[-1] == ("-", before, 0)
    assert len(events) == 2 + 291 + 146
    other = counted()
    found = replay(events, other)
    assert found.requests == 292
    assert other.statistics().live_bytes == sum(a.nbytes for a in arrays)
    assert type(pool) is MemoryPool


def test_a_failed_request_is_recorded_and_tried_again(tmp_path: Path) -> None:
    path, pool = tmp_path / "a.trace", MemoryPool(MIB)
    pool.record(path)
    with pytest.raises(PoolError):
        pool.allocate(3 * MIB)
    pool.stop_recording()
    assert list(read(path)) == [("!", 0, 3 * MIB)]
    assert replay(read(path), counted(limit=2 * MIB)).failures[0].size == 3 * MIB
    assert not replay(read(path), counted()).failures


def test_owners_are_in_the_trace_in_debug_mode(tmp_path: Path) -> None:
    path, pool = tmp_path / "a.trace", MemoryPool(debug=True)
    pool.record(path)
    block = pool.allocate(8)
    pool.stop_recording()
    assert f"+{block} 8 {__file__}:" in path.read_text()
    assert list(read(path)) == [("+", block, 8)]


def test_a_trace_that_cannot_be_written_ends_with_one_warning_and_is_counted() -> None:
    pool = MemoryPool()
    pool.record("/dev/full")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(10_000):
            pool.recycle(pool.allocate(8))
        pool.stop_recording()
    assert [str(w.message) for w in caught] == [
        "jitdialects: the pool's trace /dev/full ends early: No space left on device"
    ]
    assert pool.statistics().trace_failures == 1
    assert type(pool) is MemoryPool


def test_a_trace_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    pool = MemoryPool()
    with pytest.raises(PoolError, match="cannot record to .*: No such file or directory"):
        pool.record(tmp_path / "none" / "a.trace")
    assert pool.allocate(8)


def test_a_trace_of_the_process_that_cannot_be_begun_is_a_warning(tmp_path: Path) -> None:
    from jitdialects.runtime.pool import default_pool

    default_pool.allocate(8)
    before = jd.stats()["pool"]["trace_failures"]
    try:
        with pytest.warns(RuntimeWarning, match="pool_trace: .*none/a.trace: No such file"):
            jd.config.pool_trace = tmp_path / "none" / "a.trace"
        assert jd.stats()["pool"]["trace_failures"] == before + 1
    finally:
        jd.config.pool_trace = None


def test_a_forked_child_does_not_write_to_the_trace(tmp_path: Path) -> None:
    path, pool = tmp_path / "a.trace", MemoryPool()
    pool.record(path)
    first = pool.allocate(8)
    child = os.fork()
    if not child:
        try:
            for _ in range(5000):
                pool.recycle(pool.allocate(64))
            pool.stop_recording()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    second = pool.allocate(9)
    pool.stop_recording()
    assert list(read(path)) == [("+", first, 8), ("+", second, 9)]


def test_the_process_pool_follows_its_options(tmp_path: Path) -> None:
    from jitdialects.runtime.pool import default_pool

    default_pool.allocate(8)
    path = tmp_path / "of %p.trace"
    try:
        jd.config.pool_classes, jd.config.pool_limit = "coarse", 8 * GIB
        jd.config.pool_debug, jd.config.pool_trace = True, path
        assert (default_pool.classes, default_pool.limit, default_pool.debug) == (
            "coarse",
            8 * GIB,
            True,
        )
        jd.VM(jd.Program.from_text("func @main(%0) -> 1 {\n^e:\n %1 = exp %0\n return %1\n}")).run(
            "main", np.ones(70, np.float32)
        )
    finally:
        jd.config.pool_classes, jd.config.pool_limit = "fine", None
        jd.config.pool_debug, jd.config.pool_trace = False, None
    assert (default_pool.classes, default_pool.limit, default_pool.debug) == ("fine", None, False)
    (trace,) = tmp_path.iterdir()
    assert trace.name == f"of {os.getpid()}.trace"
    assert " 280 exp at <text>:3:2" in trace.read_text()


# ---- jit-pool ------------------------------------------------------------------------------------


def test_jit_pool_replays_under_another_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two hours.trace"
    write(path, traces.two_hours())
    arguments = ["replay", str(path), "--no-map", "--classes", "coarse", "--limit", "4608MiB"]
    assert jit_pool.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "of which 1 failed when recorded" in printed
    assert "failures          none" in printed and "fragmentation     0.00" in printed
    assert jit_pool.main([*arguments[:-1], "1GiB"]) == 1
    printed = capsys.readouterr().out
    assert "bytes do not fit within the limit of 1073741824 bytes" in printed
    assert "  and " in printed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "first line must be 'jitdialects pool trace 1'"),
        ("jitdialects pool trace 2\n", "first line must be"),
        ("jitdialects pool trace 1\n+1 x\n", ":2: no event of a pool: '+1 x'"),
        (
            "jitdialects pool trace 1\n# all is well\n\n+1 8\n-1 8\n",
            ":5: no event of a pool: '-1 8'",
        ),
        ("jitdialects pool trace 1\n*1 8\n", ":2: no event"),
        ("jitdialects pool trace 1\n!-8\n", ":2: no event"),
    ],
)
def test_jit_pool_names_the_line_that_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    path = tmp_path / "a.trace"
    path.write_text(text)
    assert jit_pool.main(["replay", str(path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ") and said in error and error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["replay"],
        ["replay", "x", "--limit", "much"],
        ["replay", "x", "--limit", ""],
        ["replay", "/"],
    ],
)
def test_jit_pool_with_wrong_usage_exits_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert jit_pool.main(arguments) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_unknown_blocks_and_comments_of_a_trace_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    path.write_text("jitdialects pool trace 1\n-5\n# note\n+1 100 add at a.jasm:1:1\n-1\n")
    found = replay(read(path), MemoryPool())
    assert (found.requests, found.peak_live) == (1, 100)
