"""The benchmarks start: every row at a tiny size, against NumPy. No time is looked at."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _run(*arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks", "--tiny", "--peers", "numpy", *arguments]
    found = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.parametrize(
    "row", ["gelu 1e3", "softmax 64x1000", "mlp, every batch", "mlp stream", "first call of gelu"]
)
def test_a_row_of_each_kind_runs_and_is_right(row: str) -> None:
    text = _run("--rows", row, "--threads", "1")
    assert "x best" in text
    assert "WRONG" not in text
    assert "| jitdialects | numpy |" in text
    assert "## Remarks" not in text


def test_the_list_names_rows_and_peers() -> None:
    text = _run("--list")
    assert "softmax 4096x1024 (2 threads)" in text
    assert "numpy" in text.splitlines()[-1]


@pytest.mark.parametrize("module", ["runtime", "compile_latency"])
def test_other_benchmarks_start(module: str) -> None:
    """Help imports every topic."""
    command = [sys.executable, "-m", f"benchmarks.{module}", "--help"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_unknown_rows_are_refused_with_one_sentence() -> None:
    command = [sys.executable, "-m", "benchmarks", "--rows", "no such row"]
    found = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert found.returncode != 0
    assert found.stderr.strip() == "no row has such a name; --list prints them"
