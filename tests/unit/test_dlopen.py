"""Loading shared libraries: every engine the same, files private and written once, and which engine is taken."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.config import config
from jitdialects.runtime.cache import KernelCache
from jitdialects.runtime.engines import Engine, LoadedLibrary, choice, mapped
from jitdialects.runtime.engines.choice import ChosenEngine
from jitdialects.runtime.engines.codegen import emit_object
from jitdialects.runtime.engines.dlopen import (
    DlopenEngine,
    LoadError,
    MemoryEngine,
    open_libraries,
)
from jitdialects.runtime.engines.elf_link import link
from jitdialects.runtime.engines.mapped import MappedEngine, MappedLibrary
from jitdialects.runtime.service import CompileService


def library(value: int) -> bytes:
    return link([emit_object(f"define i64 @f() {{ ret i64 {value} }}", "x86-64-v1")])


def result(loaded: LoadedLibrary) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int64)(loaded.address("f"))()


def test_writes_a_library_once(tmp_path: Path) -> None:
    engine = DlopenEngine(tmp_path / "cache")
    data = library(1)
    first = engine.store(data, "add")
    modified = first.stat().st_mtime_ns
    assert engine.store(data, "add") == first
    assert first.stat().st_mtime_ns == modified
    assert [p.name for p in engine.folder.iterdir()] == [first.name]
    assert engine.folder.stat().st_mode & 0o777 == 0o700


def test_replaces_a_damaged_file(tmp_path: Path) -> None:
    engine = DlopenEngine(tmp_path / "cache")
    data = library(5)
    path = engine.store(data, "add")
    path.write_bytes(data[:100])
    assert result(engine.load(data, "add")) == 5
    assert path.read_bytes() == data


def test_equal_names_stay_apart(tmp_path: Path) -> None:
    engine = DlopenEngine(tmp_path / "cache")
    loaded = [engine.load(library(i), "kernel") for i in range(5)]
    assert [result(each) for each in loaded] == [0, 1, 2, 3, 4]


def test_odd_names_stay_in_the_folder(tmp_path: Path) -> None:
    engine = DlopenEngine(tmp_path / "cache")
    assert engine.store(library(1), "../../a b/<c>").parent == engine.folder


def test_a_folder_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    engine = DlopenEngine(folder)
    with pytest.raises(LoadError, match="may be written by others"):
        engine.store(library(1), "add")
    assert list(folder.iterdir()) == []


# ---- every engine ------------------------------------------------------------------------------


@pytest.fixture(params=["file", "memory", "mapped"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """The engine of a process that is told which."""
    monkeypatch.setattr(config, "engine", request.param)
    return ChosenEngine()


def mapped_code() -> int:
    """Pieces of executable memory in this process."""
    return sum(" r-xp " in line for line in Path("/proc/self/maps").read_text().splitlines())


def test_libraries_of_equal_names_stay_apart(engine: Engine) -> None:
    loaded = [engine.load(library(i), "kernel") for i in range(5)]
    assert [result(each) for each in loaded] == [0, 1, 2, 3, 4]


EVERYTHING = """
@count = internal global i64 0
@table = internal constant [4 x i64] [i64 3, i64 5, i64 7, i64 11]
@pointers = internal constant [2 x ptr] [ptr @table, ptr @count]
@offered = global i64 42

declare double @cos(double)
declare double @fma(double, double, double)

define internal i64 @helper(i64 %i) noinline {
  %at = getelementptr i64, ptr @table, i64 %i
  %value = load i64, ptr %at
  ret i64 %value
}

define i64 @f() {
  %old = load i64, ptr @count
  %new = add i64 %old, 1
  store i64 %new, ptr @count
  %slot = getelementptr ptr, ptr @pointers, i64 1
  %pointer = load ptr, ptr %slot
  %seen = load i64, ptr %pointer
  %index = and i64 %seen, 3
  %prime = call i64 @helper(i64 %index)
  %more = load i64, ptr @offered
  %sum = add i64 %prime, %more
  ret i64 %sum
}

define double @g(double %x) {
  %c = call double @cos(double %x)
  %d = call double @fma(double %c, double 2.0, double 1.0)
  ret double %d
}
"""


def test_tables_globals_and_functions_of_other_libraries(engine: Engine) -> None:
    loaded = engine.load(link([emit_object(EVERYTHING, "x86-64-v1")]), "everything")
    assert [result(loaded) for _ in range(4)] == [47, 49, 53, 45]
    cosine = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(loaded.address("g"))
    assert cosine(0.0) == 3.0
    assert ctypes.c_int64.from_address(loaded.address("offered")).value == 42


def test_unloading_gives_everything_back(engine: Engine) -> None:
    data = link([emit_object(EVERYTHING, "x86-64-v1")])
    engine.load(data, "first").close()
    code, open_files = mapped_code(), len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        engine.load(data, "again").close()
    assert (mapped_code(), len(os.listdir("/proc/self/fd"))) == (code, open_files)
    kept = engine.load(data, "kept")
    assert mapped_code() == code + 1
    assert result(kept) == 47, "its globals are new"
    kept.close()


def test_many_libraries_at_once(engine: Engine) -> None:
    """More than paths that can be told apart by how often they say that they stay where they are."""
    data = [library(i) for i in range(4)]
    loaded = [engine.load(data[i % 4], "kernel") for i in range(600)]
    assert [result(each) for each in loaded] == [0, 1, 2, 3] * 150
    for each in loaded:
        each.close()


def test_missing_symbols_and_closed_libraries_of_every_engine(engine: Engine) -> None:
    loaded = engine.load(library(1), "add")
    with pytest.raises(LoadError, match="library add has no symbol 'g'"):
        loaded.address("g")
    loaded.close()
    loaded.close()
    with pytest.raises(LoadError, match="library add is closed"):
        loaded.address("f")


@pytest.mark.parametrize("data", [b"", b"no library at all" * 10, library(1)[:100]])
def test_every_engine_refuses_what_is_no_library(engine: Engine, data: bytes) -> None:
    with pytest.raises(LoadError, match="no engine loads nothing"):
        engine.load(data, "nothing")


def test_every_engine_refuses_what_no_library_has(engine: Engine) -> None:
    text = (
        "declare i64 @jd_nobody()\ndefine i64 @f() {\n %x = call i64 @jd_nobody()\n ret i64 %x\n}"
    )
    with pytest.raises(LoadError, match="jd_nobody"):
        engine.load(link([emit_object(text, "x86-64-v1")]), "undefined")


def test_programs_run_with_every_engine(engine: Engine) -> None:
    f = jd.jit(lambda x: jnp.tanh(x) @ x)
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
    expected = f(x)
    vm = jd.VM(f.program, jd.Policy(threshold=1), service=CompileService(KernelCache(engine)))
    for _ in range(3):
        (y,) = vm.run("main", x)
        assert y.tobytes() == expected.tobytes()
        vm.wait()
    assert vm.functions["main"].profile.served == 2


# ---- which engine ------------------------------------------------------------------------------


@pytest.fixture
def unusable(tmp_path: Path) -> Callable[[], Engine]:
    """Makes an engine whose folder cannot be."""
    (tmp_path / "file").touch()
    return lambda: DlopenEngine(tmp_path / "file" / "below")


def test_what_does_not_work_here_is_not_tried_again(unusable: Callable[[], Engine]) -> None:
    asked: list[str] = []

    class Counted:
        def load(self, data: bytes, name: str, file: object = None) -> LoadedLibrary:
            asked.append(name)
            return unusable().load(data, name)

    engine = ChosenEngine({"file": Counted, "memory": MemoryEngine, "mapped": MappedEngine})
    loaded = [engine.load(library(i), f"number {i}") for i in range(3)]
    assert [result(each) for each in loaded] == [0, 1, 2]
    assert asked == ["number 0"]


def test_without_files_and_memory_files_memory_is_mapped(
    unusable: Callable[[], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError("not here")

    monkeypatch.setattr(os, "memfd_create", refuse)
    engine = ChosenEngine({"file": unusable, "memory": MemoryEngine, "mapped": MappedEngine})
    loaded = engine.load(library(7), "seven")
    assert isinstance(loaded, MappedLibrary)
    assert result(loaded) == 7


def test_where_memory_may_not_be_executed_either_there_is_one_sentence(
    unusable: Callable[[], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = ChosenEngine({"file": unusable, "mapped": MappedEngine})
    real = mapped._libc()

    class Strict:
        mmap, munmap = real.mmap, real.munmap

        @staticmethod
        def mprotect(*_: object) -> int:
            ctypes.set_errno(errno.EACCES)
            return -1

    monkeypatch.setattr(mapped, "_libc", Strict)
    before = mapped_code()
    with pytest.raises(
        LoadError, match="no engine loads x .file: .*mapped: .*may not be executed: Perm"
    ):
        engine.load(library(1), "x")
    assert mapped_code() == before


def test_many_libraries_do_without_the_dynamic_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()  # no library of another test is closed meanwhile
    monkeypatch.setattr(choice, "MANY", open_libraries() + 2)
    engine = ChosenEngine()
    loaded = [engine.load(library(i), "kernel") for i in range(4)]
    assert [isinstance(each, MappedLibrary) for each in loaded] == [False, False, True, True]
    loaded[0].close()
    assert not isinstance(engine.load(library(1), "kernel"), MappedLibrary)


# ---- files -------------------------------------------------------------------------------------


def test_missing_symbols_and_closed_libraries(tmp_path: Path) -> None:
    loaded = DlopenEngine(tmp_path / "cache").load(library(1), "add")
    with pytest.raises(LoadError, match="library add has no symbol 'g'"):
        loaded.address("g")
    loaded.close()
    loaded.close()
    with pytest.raises(LoadError, match="library add is closed"):
        loaded.address("f")


def test_refuses_what_is_no_library(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="cannot load nothing"):
        DlopenEngine(tmp_path / "cache").load(b"not a library", "nothing")
