"""Docs run: `mlir` blocks pass jit-opt, the README's `python` blocks and commands do what they say.

A `mlir` block that begins with `// after <passes>` is what those passes make of the block before it.
Python blocks of a page share their names, top to bottom, as a reader would paste them.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from xdsl.tools import xdsl_opt

from jitdialects.tools import jit_asm, jit_opt, jit_pool, jit_run

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
README, NUMPY = ROOT / "README.md", ROOT / "docs" / "numpy-differences.md"
OBSERVING = ROOT / "docs" / "observing.md"
AFTER = re.compile(r"// after (\S+)\n")
TOOLS: dict[str, Callable[[Sequence[str] | None], object]] = {
    "jit-asm": jit_asm.main,
    "jit-opt": jit_opt.main,
    "jit-pool": jit_pool.main,
    "jit-run": jit_run.main,
    "xdsl-opt": lambda _: xdsl_opt.main(),
}


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page that are in `language`."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


# ---- mlir --------------------------------------------------------------------------------------


def through(text: str, folder: Path, passes: str = "") -> str:
    """What jit-opt prints."""
    path, output = folder / "block.mlir", io.StringIO()
    path.write_text(text)
    with redirect_stdout(output):
        code = jit_opt.main([str(path), "-p", passes, "--verify-each"])
    assert code == 0, text
    return output.getvalue()


def check_mlir(texts: list[str], folder: Path) -> None:
    """Every block parses and verifies; what claims to be a result is one."""
    for number, text in enumerate(texts):
        printed = through(text, folder)
        if after := AFTER.match(text):
            assert printed == through(texts[number - 1], folder, after[1]), after[0]


def test_mlir_blocks_pass_jit_opt(tmp_path: Path) -> None:
    found = {page: blocks(page, "mlir") for page in PAGES}
    assert found[README] and found[ROOT / "docs" / "architecture.md"]
    for texts in found.values():
        check_mlir(texts, tmp_path)


def test_the_check_sees_a_wrong_result(tmp_path: Path) -> None:
    before, after = blocks(README, "mlir")
    with pytest.raises(AssertionError, match="after tssa-fuse"):
        check_mlir([before, after.replace("tssa.tanh", "tssa.exp")], tmp_path)


# ---- python ------------------------------------------------------------------------------------


def run_python(page: Path, folder: Path) -> list[list[str]]:
    """The lines that each Python block of the page prints, run in a process of its own."""
    mark = "---- end of block"
    shutil.copytree(ROOT / "examples", folder / "examples")
    script = "".join(f"{block}\nprint({mark!r})\n" for block in blocks(page, "python"))
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [part.strip().splitlines() for part in done.stdout.split(mark + "\n")[:-1]]


def test_python_of_the_readme_runs(tmp_path: Path) -> None:
    jit, method, lazy, passes, runtime, sizes, pool = run_python(README, tmp_path)
    assert method == ["(2, 512)"]
    assert "compiled: main(f32[n0,784]" in "\n".join(jit) and 0 <= float(jit[-1]) <= 1
    x = np.linspace(-3, 3, 7)
    gelu = 0.5 * x * (1 + np.tanh(0.7978846 * (x + 0.044715 * x**3)))
    numbers = " ".join(lazy).strip("[] ").split()
    assert np.allclose([float(n) for n in numbers], gelu, atol=1e-6)
    assert "vector.load" in "\n".join(passes)
    (shares,) = runtime
    assert all(0 < float(share) < 1 for share in shares.split())
    promised = re.findall(r"^    print\(error\)  # (.*)$", README.read_text(), re.MULTILINE)
    assert sizes == promised
    ((reused, reserved),) = (line.split() for line in pool)
    assert 0.5 < float(reused) < 1 and int(reserved) < 1 << 22


def test_python_of_the_page_on_numpy_prints_what_it_says(tmp_path: Path) -> None:
    (printed,) = run_python(NUMPY, tmp_path)
    (promised,) = re.findall(r"^print\(.*?# (.*)$", blocks(NUMPY, "python")[0], re.MULTILINE)
    assert printed == [promised]


def test_python_of_the_page_on_observing_runs(tmp_path: Path) -> None:
    (printed,) = run_python(OBSERVING, tmp_path)
    assert re.fullmatch(r"\d+% since start, \d+% in the last minute", printed[0])
    assert printed[1] == "[]" and printed[2].startswith("<lambda>: @main")


# ---- commands ----------------------------------------------------------------------------------


def test_commands_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    lines = "".join(blocks(README, "sh")).splitlines()
    commands = [shlex.split(line, comments=True) for line in lines]
    assert {words[0] for words in commands} == set(TOOLS)
    for name, *arguments in commands:
        output = io.StringIO()
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        with redirect_stdout(output):
            assert not TOOLS[name](arguments), arguments
        assert output.getvalue() or "-o" in arguments, f"{name} {arguments} prints nothing"


# ---- links -------------------------------------------------------------------------------------


def test_links_and_paths_of_the_docs_lead_somewhere() -> None:
    for page in PAGES:
        text = page.read_text()
        links = {link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)}
        for link in links - {""}:
            assert link.startswith("https://") or (page.parent / link).exists(), f"{page}: {link}"
        for path in re.findall(
            r"`((?:docs|tests|examples|jitdialects|benchmarks)/[\w/.-]+)`", text
        ):
            assert os.path.lexists(ROOT / path), f"{page}: {path}"


def test_decisions_are_numbered_without_gaps() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    for number, page in enumerate(pages, 1):
        assert page.read_text().startswith(f"# {number}. ")
