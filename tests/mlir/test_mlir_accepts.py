"""What our conversions to the llvm dialect print is accepted by MLIR's own mlir-opt.

For every case below tests/filecheck/lowering whose RUN line goes down to the llvm dialect, and for the
operations of upstream.py: the command runs here, mlir-opt verifies the output. Run with `make test-mlir`; the program comes with the extra `mlir`.
"""

from __future__ import annotations

import shlex
import subprocess
import sysconfig
from pathlib import Path

import pytest

from jitdialects.testing.filecheck import execute, run_lines

FILECHECK = Path(__file__).parents[1] / "filecheck"
OPERATIONS = FILECHECK / "dialects" / "upstream"
MLIR_OPT = Path(sysconfig.get_path("purelib")) / "mlir" / "bin" / "mlir-opt"
TO_LLVM = ("-to-llvm", "llvm-emit-packed-entry", "llvm-outline-parallel")
OURS_REMAIN = "convert-loop-to-llvm"
"""Of this pass: a `loop.parallel` stays until `llvm-outline-parallel`."""


def pipelines() -> list[tuple[Path, str]]:
    """(file, command) of each RUN line that must succeed and ends in operations that MLIR knows."""
    found: list[tuple[Path, str]] = []
    for path in sorted([*(FILECHECK / "lowering").rglob("*.mlir"), *OPERATIONS.glob("*.mlir")]):
        for line in run_lines(path.read_text()):
            command = line.split("|")[0].strip()
            words = shlex.split(command)
            if words[0] != "jit-opt" or "-t" in words or path.parent.name == OURS_REMAIN:
                continue
            if path.parent == OPERATIONS or is_to_llvm(words):
                found.append((path, command))
    return found


def is_to_llvm(words: list[str]) -> bool:
    """True if the last pass of `-p` ends in the llvm dialect."""
    last = words[words.index("-p") + 1].split(",")[-1].split("{")[0] if "-p" in words else ""
    return last.endswith(TO_LLVM) or last == "reconcile-unrealized-casts"


@pytest.mark.parametrize(
    ("path", "command"), pipelines(), ids=lambda v: v.stem if isinstance(v, Path) else ""
)
def test_mlir_opt_accepts(path: Path, command: str) -> None:
    if not MLIR_OPT.exists():
        pytest.fail(f"{MLIR_OPT} is missing: install the extra, pip install -e '.[mlir]'")
    ours = execute(command, path)
    assert ours.code == 0, ours.errors
    theirs = subprocess.run(
        [MLIR_OPT, "--allow-unregistered-dialect"],
        input=ours.output,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert theirs.returncode == 0, f"{theirs.stderr}\n--- of\n{ours.output}"


def test_there_are_cases() -> None:
    assert len(pipelines()) > 10
