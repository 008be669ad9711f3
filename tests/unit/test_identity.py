"""The compiler's version: the same for the same compiler, wherever it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jitdialects.config import config
from jitdialects.runtime.identity import compiler_version

PACKAGE = Path(__file__).parents[2] / "jitdialects"
SCRIPT = "from jitdialects.runtime.identity import compiler_version; print(compiler_version())"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setattr(config, "cache_dir", tmp_path / "cache")
    return tmp_path / "cache"


def version() -> str:
    """As a process that has just begun would find it."""
    return compiler_version.__wrapped__()


def elsewhere(place: Path) -> str:
    """What an installation at `place` says, with a cache folder of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(place),
        "JITDIALECTS_CACHE_DIR": f"{place}/cache",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, cwd=place, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def test_the_same_files_elsewhere_are_the_same_compiler(tmp_path: Path) -> None:
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "jitdialects", ignore=skipped)
    assert elsewhere(tmp_path) == compiler_version()
    with (tmp_path / "jitdialects/passes/tssa_cse.py").open("a") as file:
        file.write("# changed\n")
    changed = elsewhere(tmp_path)
    assert changed != compiler_version()
    (tmp_path / "jitdialects/tools/jit_asm.py").unlink()  # makes no code
    assert elsewhere(tmp_path) == changed


def test_it_is_remembered_by_sizes_and_times(folder: Path) -> None:
    found = version()
    (memo,) = folder.iterdir()
    assert memo.name.startswith("compiler-") and memo.read_text() == found
    memo.write_text("0123456789abcdef")
    assert version() == "0123456789abcdef"


@pytest.mark.parametrize("content", [b"", b"0123", b"not hexadecimal!", b"\xff" * 16])
def test_a_damaged_memory_is_made_again(folder: Path, content: bytes) -> None:
    found = version()
    (memo,) = folder.iterdir()
    memo.write_bytes(content)
    assert version() == found and memo.read_text() == found


def test_without_a_folder_it_is_worked_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = version()
    folder.with_name("file").write_text("")
    for place in (None, folder.with_name("file") / "below"):
        monkeypatch.setattr(config, "cache_dir", place)
        assert version() == found
