"""Compiled code on disk: found by the next process, refused where it is not what was written, and never in
the way of a call."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cache_helpers import call, compiled, files, folder, fresh, keep, key_of, plus
from quiet import quiet

import jitdialects as jd
from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.program import Program
from jitdialects.config import FEATURE_LEVELS, config
from jitdialects.errors import CompileError
from jitdialects.runtime.cache import CacheKey, KernelCache, default_cache
from jitdialects.runtime.cache import disk as disk_module
from jitdialects.runtime.cache.disk import DiskLevel
from jitdialects.runtime.cache.entry_file import decode, encode
from jitdialects.runtime.identity import constant_order, feature_level
from jitdialects.runtime.messages import CompileReply, encode_error
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.service import CompileService
from jitdialects.runtime.vm import VM

__all__ = ["folder"]


def counts(cache: KernelCache) -> dict[str, int]:
    """What the disk level has counted."""
    assert cache.disk is not None
    return dict(cache.disk.events.counts)


def no_compiler(request: bytes) -> bytes:
    raise AssertionError("nothing is to be compiled")


def warm(program: Program, **policy: object) -> VM:
    """A machine of a process that has just begun, and can compile nothing."""
    return VM(program, Policy(**policy), service=CompileService(fresh(), no_compiler))  # pyright: ignore[reportArgumentType]


# ---- what is found -------------------------------------------------------------------------------


def test_another_process_finds_the_code_at_its_first_call(folder: Path) -> None:
    keep(fresh(), plus(2))
    vm = warm(plus(2))
    assert vm.run("main", np.ones(8, np.float32))[0].tolist() == [3.0] * 8
    assert vm.functions["main"].profile.counted == 1
    (entry,) = vm.service.cache
    assert entry.source == "disk"
    assert all(p.stat().st_mode & 0o77 == 0 for p in (folder / "kernels", *files(folder)))


def test_the_library_is_loaded_from_the_entry_itself(folder: Path) -> None:
    keep(fresh(), plus(3))
    cache = fresh()
    assert cache.recall(key_of(plus(3)))
    (file,) = files(folder)
    assert str(file) in Path("/proc/self/maps").read_text()


def test_general_code_is_found_for_sizes_that_were_never_met(folder: Path) -> None:
    keep(fresh(), plus(), "main(f32[n])")
    assert warm(plus()).run("main", np.ones(5, np.float32))[0].tolist() == [2.0] * 5
    vm = warm(plus(), shapes="exact", threshold=10**8)
    vm.run("main", np.ones(5, np.float32))
    assert len(vm.service.cache) == 0


def test_who_wants_the_interpreter_gets_it(folder: Path) -> None:
    keep(fresh(), plus())
    vm = warm(plus(), threshold=10**9)
    assert vm.run("main", np.ones(8, np.float32))[0].tolist() == [2.0] * 8
    assert len(vm.service.cache) == 0


def test_exact_code_goes_before_general_code(folder: Path) -> None:
    exact = keep(fresh(), plus())
    general = keep(fresh(), plus(), "main(f32[n])")
    assert fresh().recall(exact) == [exact]
    assert fresh().recall(replace(exact, signature="main(f32[9])")) == [general]
    assert fresh().recall(replace(exact, signature="main(f64[9])")) == []


def test_constants_are_those_of_the_program_at_hand(folder: Path) -> None:
    """Programs with equal code count their constants differently."""

    def program(before: int) -> Program:
        builder = ProgramBuilder()
        for number in range(before):
            builder.constant(np.full(100, 50 + number, np.float32))
        main = builder.function("main", 1)
        values = main.constant(np.arange(100, dtype=np.float32))
        main.returns(main.apply("add", main.parameters[0], values))
        return builder.finish()

    first, second = program(0), program(3)
    key = key_of(first, "main(f32[100])")
    assert key == key_of(second, "main(f32[100])")
    data = compiled(first.to_bytes(), key.signature)
    reply = CompileReply.decode(data)
    assert reply.constants
    fresh().keep(key, data, reply, first.constants, constant_order(first, "main"))
    got = warm(second).run("main", np.zeros(100, np.float32))[0]
    assert got.tolist() == list(range(100))


def test_without_a_folder_or_room_nothing_is_kept(folder: Path, monkeypatch) -> None:
    for option in ("cache_dir", "disk_cap"):
        with monkeypatch.context() as patch:
            patch.setattr(config, option, None if option == "cache_dir" else 0)
            cache = fresh()
            assert call(cache, keep(cache, plus())) == [2.0] * 8
            assert not cache.recall(key_of(plus())) and files(folder) == []


def test_code_serves_every_cpu_that_has_what_it_uses(folder: Path) -> None:
    program = plus()
    own = key_of(program)
    data = compiled(program.to_bytes())
    reply = CompileReply.decode(data)
    made_for = {level: replace(own, features=level) for level in FEATURE_LEVELS}
    narrow = replace(reply, level="x86-64-v1")
    fresh().keep(made_for["x86-64-v4"], data, narrow)  # wide vectors allowed, none used
    for level in FEATURE_LEVELS:
        assert fresh().recall(made_for[level]) == [made_for["x86-64-v4"]]
    shutil.rmtree(folder)
    fresh().keep(made_for["x86-64-v3"], data, replace(reply, level="x86-64-v3"))
    assert fresh().recall(made_for["x86-64-v2"]) == []
    assert fresh().recall(made_for["x86-64-v4"]) == [made_for["x86-64-v3"]]


# ---- what is refused -----------------------------------------------------------------------------


def damage(file: Path, how: str) -> str:
    """Spoil an entry; what it is counted as."""
    data = file.read_bytes()
    file.unlink()
    if how == "empty":
        file.write_bytes(b"")
    elif how == "cut off":
        file.write_bytes(data[: len(data) // 2])
    elif how == "a bit":
        file.write_bytes(data[:5000] + bytes([data[5000] ^ 4]) + data[5001:])
    elif how == "another entry":
        stored = decode(data)
        other = replace(stored.key, fingerprint="0" * 32)
        file.write_bytes(encode(other, stored.level, stored.frame, stored.reply.library))
    elif how == "a folder":
        file.mkdir()
        (file / "inside").touch()
    elif how == "a link":
        (file.parent / "elsewhere").write_bytes(data)
        file.symlink_to(file.parent / "elsewhere")
    elif how == "a pipe":
        os.mkfifo(file)
    else:
        file.write_bytes(data)
        file.chmod(0o666)
        return "foreign owner"
    file.chmod(0o600, follow_symlinks=how != "a link") if how not in (
        "a link",
        "a folder",
    ) else None
    return {
        "empty": "truncated",
        "cut off": "truncated",
        "a bit": "checksum",
        "another entry": "misplaced",
    }.get(how, "unreadable")


@pytest.mark.parametrize(
    "how",
    [
        "empty",
        "cut off",
        "a bit",
        "another entry",
        "a folder",
        "a link",
        "a pipe",
        "open to others",
    ],
)
def test_a_damaged_entry_is_counted_said_once_and_replaced(folder: Path, how: str) -> None:
    """Cases 103 and 112."""
    key = keep(fresh(), plus())
    (file,) = files(folder)
    reason = damage(file, how)
    cache = fresh()
    with pytest.warns(RuntimeWarning, match="cache entry .* is not used and made again") as said:
        assert cache.recall(key) == []
    assert len(said) == 1 and counts(cache)[reason] == 1
    assert files(folder) == []
    keep(cache, plus())
    assert call(cache, key) == [2.0] * 8
    assert fresh().recall(key) == [key]


def test_an_entry_in_the_place_of_a_folder_is_replaced(folder: Path) -> None:
    key = key_of(plus())
    (folder / "kernels" / key.folder / key.file_name / "x").mkdir(parents=True, mode=0o700)
    (folder / "kernels").chmod(0o700)
    keep(fresh(), plus())
    assert fresh().recall(key) == [key]


def test_a_folder_that_others_may_write_to_is_not_used(folder: Path) -> None:
    key = keep(fresh(), plus())
    (folder / "kernels").chmod(0o777)
    cache = fresh()
    with pytest.warns(RuntimeWarning, match="may be written by others"):
        assert cache.recall(key) == []
    with quiet():
        assert call(cache, keep(cache, plus())) == [2.0] * 8  # compiled, and kept in memory only
    assert counts(cache)["foreign owner"] == 1


def test_a_warning_filter_does_not_break_a_call(folder: Path) -> None:
    key = keep(fresh(), plus())
    files(folder)[0].write_bytes(b"")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fresh().recall(key) == []


def test_one_kind_of_problem_is_said_once(folder: Path) -> None:
    cache = fresh()
    for number in range(5):
        key = keep(fresh(), plus(number))
    for file in files(folder):
        file.write_bytes(b"")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for number in range(5):
            cache.recall(key_of(plus(number)))
    assert len(said) == 1 and counts(cache)["truncated"] == 5
    assert key


# ---- where nothing can be written ------------------------------------------------------------------


def test_a_full_disk_costs_nothing_but_the_entry(folder: Path, monkeypatch) -> None:
    def full(path: str, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk_module, "_replace", full)
    cache = fresh()
    with pytest.warns(
        RuntimeWarning, match="not kept on disk: .*No space left.*JITDIALECTS_CACHE_DIR"
    ):
        key = keep(cache, plus())
    keep(cache, plus(5))
    assert call(cache, key) == [2.0] * 8 and counts(cache)["write failures"] == 2


def test_nothing_is_left_of_a_write_that_failed(folder: Path, monkeypatch) -> None:
    def refuse(old: str, new: str) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.warns(RuntimeWarning, match="Read-only"):
        keep(fresh(), plus())
    assert [p for p in folder.rglob("*") if p.is_file()] == []


def test_a_file_in_the_way_of_the_folder(folder: Path) -> None:
    folder.write_text("a file")
    cache = fresh()
    with pytest.warns(RuntimeWarning, match="not kept on disk"):
        assert call(cache, keep(cache, plus())) == [2.0] * 8
    assert cache.recall(key_of(plus())) == [] and folder.read_text() == "a file"


# ---- what cannot be compiled -----------------------------------------------------------------------


def failing(sentence: str, final: bool) -> tuple[CompileService, list[bytes]]:
    asked: list[bytes] = []

    def compile(request: bytes) -> bytes:
        asked.append(request)
        return encode_error(sentence, final=final)

    return CompileService(fresh(), compile), asked


@pytest.mark.parametrize(("final", "attempts"), [(True, 1), (False, 2)])
def test_a_failure_is_kept_if_every_attempt_would_fail(
    folder: Path, final: bool, attempts: int
) -> None:
    total = 0
    for _ in range(2):
        service, asked = failing("no such thing", final)
        key = key_of(plus())
        service.submit(key, lambda: b"request")
        service.wait()
        assert service.failures == {key: "no such thing"}
        total += len(asked)
    assert total == attempts


def test_a_failure_kept_is_no_code(folder: Path) -> None:
    key = key_of(plus())
    data = encode_error("recursion", final=True)
    fresh().keep(key, data, CompileReply.decode(data))
    assert fresh().recall(key) == []
    with pytest.raises(CompileError, match="recursion"):
        fresh().fetch(key)


# ---- several at once -------------------------------------------------------------------------------


def test_removing_everything_during_a_run(folder: Path) -> None:
    """Case 116."""
    stop = threading.Event()

    def remove() -> None:
        while not stop.is_set():
            shutil.rmtree(folder, ignore_errors=True)

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number in range(60):
                cache = fresh()
                key = keep(cache, plus(number % 3))
                assert call(cache, key) == [1.0 + number % 3] * 8
                other = fresh()
                if other.recall(key):
                    assert call(other, key) == [1.0 + number % 3] * 8
    finally:
        stop.set()
        remover.join()


def test_the_least_recently_used_goes_first(folder: Path, monkeypatch) -> None:
    keys = [keep(fresh(), plus(number)) for number in range(6)]
    for age, key in enumerate(keys):
        path = folder / "kernels" / key.folder / key.file_name
        os.utime(path, (time.time() - 5000 + age,) * 2)
    size = files(folder)[0].stat().st_size
    assert fresh().recall(keys[0]) == [keys[0]]  # used now
    monkeypatch.setattr(config, "disk_cap", 4 * size)
    disk = DiskLevel()
    disk.sweep()
    left = [key for key in keys if fresh().recall(key)]
    assert keys[0] in left and left[1:] == keys[-len(left) + 1 :] and len(left) == 3
    assert disk.events.counts["evictions"] == 3
    assert len(list((folder / "kernels" / keys[0].compiler).iterdir())) == 3  # no empty folders


def test_writing_keeps_below_the_cap(folder: Path, monkeypatch) -> None:
    keep(fresh(), plus(0))
    monkeypatch.setattr(config, "disk_cap", 5 * files(folder)[0].stat().st_size)
    cache = fresh()
    for number in range(1, 20):
        keep(cache, plus(number % 4 + number / 64))
        assert sum(f.stat().st_size for f in files(folder)) <= config.disk_cap * 7 // 6


def test_forgotten_temporary_files_are_removed(folder: Path, monkeypatch) -> None:
    keep(fresh(), plus())
    place = files(folder)[0].parent
    for name, age in ((".new-old", 7200), (".new-young", 60)):
        (place / name).touch()
        os.utime(place / name, (time.time() - age,) * 2)
    DiskLevel().sweep()
    assert {p.name for p in place.iterdir()} >= {".new-young"}
    assert not (place / ".new-old").exists()


WRITER = """
import sys, threading
from pathlib import Path
import cache_helpers as h
from jitdialects.config import config
from jitdialects.runtime.cache.disk import DiskLevel
config.cache_dir, config.disk_cap = Path(sys.argv[1]), 200_000
data = {n: (h.plus(n), Path(sys.argv[1] + str(n)).read_bytes()) for n in range(3)}
from jitdialects.runtime.messages import CompileReply
print("ready", flush=True)
for turn in range(int(sys.argv[2])):
    cache = h.fresh()
    n = turn % 3
    program, reply = data[n]
    key = h.key_of(program)
    cache.keep(key, reply, CompileReply.decode(reply))
    if turn % 5 == 4:
        cache.disk.sweep(20_000)
    other = h.fresh()
    if other.recall(key):
        assert h.call(other, key) == [1.0 + n] * 8
    assert not set(other.disk.events.counts) - {"hits", "misses"}, other.disk.events.counts
print("done", flush=True)
"""


def writer(folder: Path, turns: int) -> subprocess.Popen[str]:
    for number in range(3):
        Path(f"{folder}{number}").write_bytes(compiled(plus(number).to_bytes()))
    paths = (str(Path(__file__).parents[1]), *sys.path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONWARNINGS": "error"}
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), str(turns)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_processes_that_write_read_and_remove(folder: Path) -> None:
    """Case 109: no exception, no bad load, no warning."""
    running = [writer(folder, 100) for _ in range(2)]
    for process in running:
        out, _ = process.communicate(timeout=120)
        assert (process.returncode, out) == (0, "ready\ndone\n")


def test_writers_that_are_killed_leave_whole_entries(folder: Path) -> None:
    """Case 104; `benchmarks/runtime/cache.py` kills a hundred."""
    for turn in range(3):
        process = writer(folder, 10**6)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(0.02 * turn)
        process.send_signal(signal.SIGKILL)
        process.wait()
        for number in range(3):
            cache, key = fresh(), key_of(plus(number))
            if cache.recall(key):
                assert call(cache, key) == [1.0 + number] * 8
            assert not set(counts(cache)) - {"hits", "misses"}


def test_processes_compile_a_function_once_between_them(folder: Path) -> None:
    """A second service waits for the first, and takes its code."""
    data, started, go = compiled(plus().to_bytes()), threading.Event(), threading.Event()

    def slowly(request: bytes) -> bytes:
        started.set()
        go.wait()
        return data

    first = CompileService(fresh(), slowly)
    second = CompileService(fresh(), no_compiler)
    key = key_of(plus())
    first.submit(key, lambda: b"")
    started.wait()
    second.submit(key, lambda: b"")
    time.sleep(0.02)
    assert second.is_pending(key)
    go.set()
    first.wait()
    second.wait()
    assert not second.failures and call(second.cache, key) == [2.0] * 8


def test_a_lock_that_is_held_for_ever_is_not_waited_for(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(config, "compile_seconds", 0.02)
    key: CacheKey = key_of(plus())
    with fresh().compiling(key), fresh().compiling(key):
        pass


def test_who_asks_for_texts_of_stages_compiles(folder: Path, tmp_path: Path, monkeypatch) -> None:
    key = keep(fresh(), plus())
    monkeypatch.setattr(config, "dump", tmp_path / "stages")
    assert fresh().recall(key) == [] and not fresh().fetch(key)


def test_the_level_of_this_cpu_is_that_of_its_entries(folder: Path) -> None:
    assert keep(fresh(), plus()).file_name.endswith(f"{feature_level()[-2:]}.jdk")


def test_code_is_loaded_on_a_small_stack(folder: Path) -> None:
    """Case 113: no recursion."""
    keys = [keep(fresh(), plus(number)) for number in range(3)]
    found: list[CacheKey] = []
    before = threading.stack_size(256 << 10)
    try:
        cache = fresh()
        thread = threading.Thread(
            target=lambda: found.extend(k for x in keys for k in cache.recall(x))
        )
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert found == keys


def test_what_lies_beside_entries_is_not_needed(folder: Path) -> None:
    """Case 107: everything but entries may be missing."""
    key = keep(fresh(), plus())
    for path in [*folder.rglob("*")]:
        if path.is_file() and path.suffix != ".jdk":
            path.unlink()
    cache = fresh()
    assert cache.recall(key) == [key]
    keep(cache, plus(2))
    assert counts(cache) == {"hits": 1, "stores": 1}


def test_evicted_code_comes_back_from_disk(folder: Path) -> None:
    """A machine whose code was evicted neither compiles nor waits."""
    keep(fresh(), plus())
    vm = VM(plus(), Policy(threshold=1), service=CompileService(fresh(), no_compiler))
    ones = np.ones(8, np.float32)
    assert vm.run("main", ones)[0].tolist() == [2.0] * 8
    vm.service.cache._cap = 1
    keep(vm.service.cache, plus(7))
    assert vm.service.cache.find(key_of(plus())) is None
    assert vm.run("main", ones)[0].tolist() == [2.0] * 8
    assert vm.functions["main"].profile.counted == 2


def test_threads_call_code_that_is_evicted_and_comes_back(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(config, "threshold", 1)
    monkeypatch.setattr(config, "code_cap", 60_000)  # room for two or three
    functions = [jd.jit(lambda x, factor=factor: x * factor + x) for factor in range(8)]
    x, long = np.arange(333, dtype=np.float32), np.arange(100_003, dtype=np.float32)
    expected = [(f(x).copy(), f(long).copy()) for f in functions]
    jd.wait()
    before, wrong, until = default_cache.evictions, list[int](), time.monotonic() + 0.5

    def work(seed: int) -> None:
        choose = random.Random(seed)
        while time.monotonic() < until:
            number = choose.randrange(len(functions))
            short_result, long_result = expected[number]
            if not (functions[number](x) == short_result).all():
                wrong.append(number)
            if not (functions[number](long) == long_result).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    jd.wait()
    assert not wrong and default_cache.evictions > before + 10
    assert default_cache.bytes <= 60_000
