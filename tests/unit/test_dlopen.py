"""Loading shared libraries: once written, private, closed, and without a folder that may execute."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from jitdialects.runtime.engines.codegen import emit_object
from jitdialects.runtime.engines.dlopen import DlopenEngine, DlopenLibrary, LoadError
from jitdialects.runtime.engines.elf_link import link


def library(value: int) -> bytes:
    return link([emit_object(f"define i64 @f() {{ ret i64 {value} }}", "x86-64-v1")])


def result(loaded: DlopenLibrary) -> int:
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
    assert result(engine.load(library(1), "add")) == 1  # from memory
    assert list(folder.iterdir()) == []


def test_loads_from_memory_where_no_file_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    engine = DlopenEngine(tmp_path / "file" / "below")
    loaded = [engine.load(library(i), "kernel") for i in range(5)]
    assert [result(each) for each in loaded] == [0, 1, 2, 3, 4]


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
