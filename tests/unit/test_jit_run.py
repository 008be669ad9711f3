"""jit-run: both tiers, summaries, and one sentence for what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jitdialects.bytecode.program import Program
from jitdialects.tools.jit_run import main, parse_input, same_bits, summary

TEXT = """\
func @main(%0, %1) -> 1 {
^entry:
  %2 = multiply %0, %1
  %3 = tanh %2
  return %3
}
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "p.jasm"
    path.write_text(TEXT)
    return str(path)


def test_both_tiers_run_and_agree(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([program, "random:f32[5,3]", "0.5", "--repeat", "3"]) == 0
    output = capsys.readouterr().out
    assert "interpreted and compiled results have the same bits" in output
    assert "result 0: float32 (5, 3) from " in output
    assert "reuse_rate" in output


def test_binary_program_and_array_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Program.from_text(TEXT).save(tmp_path / "p.jbc")
    np.save(tmp_path / "x.npy", np.zeros(2, np.float32))
    arguments = [str(tmp_path / "p.jbc"), str(tmp_path / "x.npy"), "1", "--tier", "interpreted"]
    assert main(arguments) == 0
    assert "result 0: float32 (2,) [0.0, 0.0]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["PROGRAM", "random:f32[5]"], 1, "error: @main takes 2 argument(s), got 1"),
        (["PROGRAM", "random:f32[5]", "random:f32[4]"], 1, ":3:3: error: multiply: shapes (5,)"),
        (["PROGRAM", "--function", "f"], 1, "the program has no function @f (it has: @main)"),
        (["PROGRAM", "random:f32[n]", "1"], 2, "input 'random:f32[n]': the dtype is"),
        (["PROGRAM", "random:f16[2]", "1"], 2, "write for example random:f32[64,784]"),
        (["PROGRAM", "missing.npy", "1"], 2, "cannot read 'missing.npy'"),
        (["PROGRAM", "random:f32[99999999999]", "1"], 2, "more than 1073741824 random numbers"),
        (["PROGRAM", "--repeat", "0"], 2, "--repeat 0: at least one call is needed"),
        (["PROGRAM", "--record-trace", "/nowhere/x"], 2, "cannot write '/nowhere/x': No such file"),
        (["PROGRAM", "word", "1"], 2, "input 'word' is neither an .npy file"),
        (["missing.jbc"], 2, "cannot open 'missing.jbc': No such file or directory"),
    ],
)
def test_a_mistake_is_one_sentence(
    arguments: list[str],
    code: int,
    sentence: str,
    program: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([program if a == "PROGRAM" else a for a in arguments]) == code
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1


def test_what_cannot_be_compiled_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.jasm"
    path.write_text("func @main(%0) -> 1 {\n^entry:\n  %1 = call @main(%0)\n  return %1\n}\n")
    assert main([str(path), "1", "--tier", "compiled"]) == 1
    assert "error: " in capsys.readouterr().err


def test_inputs() -> None:
    rng = np.random.default_rng(0)
    assert parse_input("3", rng) == 3 and isinstance(parse_input("3", rng), int)
    assert parse_input("0.5", rng) == 0.5
    assert parse_input("true", rng) is True
    for text, dtype in (("f64", np.float64), ("i32", np.int32), ("bool", np.bool_)):
        assert parse_input(f"random:{text}[3]", rng).dtype == dtype
    array = parse_input("random:i64[2,0]", rng)
    assert isinstance(array, np.ndarray) and array.shape == (2, 0) and array.dtype == np.int64


def test_bits_distinguish_zeros_and_not_nans() -> None:
    x = np.array([0.0, np.nan], np.float32)
    assert same_bits((x,), (np.array([0.0, -np.nan], np.float32),))
    assert not same_bits((x,), (np.array([-0.0, np.nan], np.float32),))
    assert not same_bits((x,), (x.astype(np.float64),))


def test_summaries() -> None:
    assert summary(np.array([True] * 9)) == "bool (9,) 9 true"
    assert summary(np.arange(10)) == "int64 (10,) from 0 to 9, mean 4.5"
