"""What two shapes changed: lines that differ, not names; exit codes; one line for each error."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitdialects.tools.jit_diff import difference, main

GELU = str(Path(__file__).parents[2] / "examples" / "gelu.jasm")
FIXED, ANY = "main(f32[64], float, float)", "main(f32[n], float, float)"


def failed(capsys: pytest.CaptureFixture[str], code: int, *args: str) -> str:
    """The one line on standard error."""
    assert main(args) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_what_a_shape_changed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([GELU, FIXED, ANY, "--stage", "loop", "--context", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"--- {FIXED} (loop)", f"+++ {ANY} (loop)"]
    assert any(line.startswith("-") and "arith.constant 64" in line for line in lines)
    assert any(line.startswith("+") and "memref.dim" in line for line in lines)
    assert not any("math.tanh" in line for line in lines)


@pytest.mark.parametrize("stage", ["bytecode", "vm", "tssa", "scf", "llvm", "llvm-ir", "asm"])
def test_every_stage(stage: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([GELU, FIXED, FIXED, "--stage", stage, "--exit-code"]) == 0
    assert capsys.readouterr().out == "no differences\n"


def test_names_of_values_count_only_if_asked() -> None:
    left, right = "%0 = add\n%1 = mul %0\n", "%a = add\n%b = mul %a\n"
    assert list(difference(left, right, "l", "r", 3, exact=False)) == []
    assert list(difference(left, right, "l", "r", 3, exact=True)) == [
        "--- l",
        "+++ r",
        "@@ -1,2 +1,2 @@",
        "-%0 = add",
        "-%1 = mul %0",
        "+%a = add",
        "+%b = mul %a",
    ]


def test_ranges_are_those_of_diff() -> None:
    lines = list(difference("a\nb\nc\n", "a\nc\n", "l", "r", 0, exact=True))
    assert lines[2:] == ["@@ -2 +1,0 @@", "-b"]


def test_two_folders_of_a_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, size in (("a", "8"), ("b", "9")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "00-vm.mlir").write_text("same\n")
        (folder / f"0{size}-loop-tile.mlir").write_text(f"loop {size}\n")
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert main([*folders, "--exit-code"]) == 1
    assert "-loop 8\n+loop 9\n" in capsys.readouterr().out
    assert main([*folders, "--stage", "vm", "--exit-code"]) == 0
    capsys.readouterr()
    assert "no stage 'x' in both; there are vm, loop-tile" in failed(
        capsys, 2, *folders, "--stage", "x"
    )


def test_wrong_programs_and_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.jasm"
    bad.write_text("func @f(%0) -> 1 {\n^b:\n  %1 = exq %0\n}\n")
    assert f"{bad}:3:8: error: unknown opcode 'exq'" in failed(capsys, 1, str(bad), FIXED, ANY)
    assert "takes 3 argument(s)" in failed(capsys, 2, GELU, FIXED, "main(f32[n])")
    assert "no function @f" in failed(capsys, 2, GELU, "f(f32[n])", "f(f32[8])")
    assert "no stage 'x'; there are bytecode, vm" in failed(
        capsys, 2, GELU, FIXED, ANY, "--stage", "x"
    )
    assert "takes a program and two signatures" in failed(capsys, 2, GELU)
    assert "takes a program and two signatures" in failed(capsys, 2, GELU, FIXED)
    assert "nowhere: error: No such file" in failed(capsys, 2, "nowhere", FIXED, ANY)
    assert "column 11" in failed(capsys, 2, GELU, FIXED, "main(f32[n")
