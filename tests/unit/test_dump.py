"""Dumped stages: folders with any signature, and folders that cannot be written."""

from pathlib import Path

import pytest

from jitdialects.runtime import dump
from jitdialects.runtime.cache import CacheKey
from jitdialects.runtime.messages import CompileReply


def key(arguments: str) -> CacheKey:
    return CacheKey("0123456789abcdef", f"main({arguments})", "x86-64-v3", "1")


def reply() -> CompileReply:
    return CompileReply(library=b"", entry="jd_entry", stages={"00-vm": "builtin.module {}"})


def test_names_of_many_arguments_fit_the_file_system(tmp_path: Path) -> None:
    many = ", ".join(["f32[n,784]"] * 100)
    one = dump.write(tmp_path, key(many), reply())
    other = dump.write(tmp_path, key(many + ", float"), reply())
    assert one != other
    assert (one / "00-vm.mlir").read_text() == "builtin.module {}"


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.warns(
        RuntimeWarning, match=r"stages of main\(float\) are not dumped: .*; set JITD"
    ):
        dump.write(tmp_path / "file", key("float"), reply())
