"""The command line: conversion by content, exit codes, one line for each error."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jitdialects.bytecode.program import Program
from jitdialects.tools.jit_asm import main

DATA = Path(__file__).parents[1] / "data"
GOOD = "func @f(%0) -> 1 {\n^entry:\n  %1 = exp %0\n  return %1\n}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.jasm").write_text(GOOD)
    return tmp_path


def failed(capsys: pytest.CaptureFixture[str], code: int, *args: str) -> str:
    """The one line on standard error."""
    assert main(args) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_there_and_back(folder: Path) -> None:
    assert main(["good.jasm", "-o", "good.jbc"]) == 0
    assert main(["good.jbc", "-o", "again.jasm", "--strip-locations"]) == 0
    assert (folder / "again.jasm").read_text() == GOOD


def test_locations_travel_through_the_file(folder: Path, capfd: pytest.CaptureFixture) -> None:
    assert main(["good.jasm", "-o", "good.jbc"]) == 0
    assert main(["good.jbc"]) == 0
    assert '%1 = exp %0 loc("good.jasm":3:3)' in capfd.readouterr().out


def test_the_corpus(folder: Path) -> None:
    assert main([str(DATA / "format1.jbc"), "-o", "out.jasm"]) == 0
    assert main(["out.jasm", "-o", "out.jbc"]) == 0
    assert (folder / "out.jbc").read_bytes() == (DATA / "format1.jbc").read_bytes()


def test_check_writes_nothing(folder: Path, capfd: pytest.CaptureFixture) -> None:
    assert main(["good.jasm", "--check", "-o", "out.jbc"]) == 0
    assert not (folder / "out.jbc").exists()
    assert capfd.readouterr().out == ""


def test_standard_input_and_output() -> None:
    command = [sys.executable, "-m", "jitdialects.tools.jit_asm", "-", "-o", "-"]
    done = subprocess.run(command, input=GOOD.encode(), capture_output=True, check=True)
    program = Program.from_bytes(done.stdout)
    assert program == Program.from_text(GOOD)
    assert str(program.functions[0].blocks[0].instructions[0].location) == "<stdin>:3:3"


def test_errors_in_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.jasm").write_text(GOOD.replace("exp", "exo"))
    message = "bad.jasm:3:8: error: unknown opcode 'exo'; did you mean 'exp'?\n"
    assert failed(capsys, 1, "bad.jasm") == message


def test_errors_in_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = (DATA / "format1.jbc").read_bytes()
    (folder / "bad.jbc").write_bytes(data[:-1])
    assert failed(capsys, 1, "bad.jbc", "--check").startswith("bad.jbc: error: byte ")
    (folder / "bad.jbc").write_bytes(data[:9].replace(b"\r\n", b"\n"))
    assert "wrong magic" in failed(capsys, 1, "bad.jbc", "--check")
    (folder / "bad.jbc").write_bytes(b"\xff\xfe")
    assert "neither a .jbc file (wrong magic) nor UTF-8" in failed(capsys, 1, "bad.jbc")


def test_files_that_cannot_be_used(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert failed(capsys, 2, "nope.jasm") == "nope.jasm: error: No such file or directory\n"
    assert "Is a directory" in failed(capsys, 2, str(folder))
    message = failed(capsys, 2, "good.jasm", "-o", os.path.join("no", "where.jbc"))
    assert message.startswith(os.path.join("no", "where.jbc") + ": error: No such file")


def test_bytes_do_not_go_to_a_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["good.jasm"]) == 2
    assert "name a file with -o" in capsys.readouterr().err
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("args", [[], ["a", "b"], ["a", "--frobnicate"]])
def test_wrong_usage(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 2
    assert "usage: jit-asm" in capsys.readouterr().err


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "jit-asm model.jasm -o model.jbc" in capsys.readouterr().out
