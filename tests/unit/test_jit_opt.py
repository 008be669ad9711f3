"""jit-opt: exit codes, bytecode as input, and that it is xDSL's driver with nothing replaced by copy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jitdialects.bytecode.program import Program
from jitdialects.tools.jit_opt import JitOptMain, list_passes, main
from jitdialects.universe import JITDIALECTS_UNIVERSE

TEXT = "func @main(%0) -> 1 {\n^entry:\n  %1 = tanh %0\n  return %1\n}\n"


def test_the_constructor_is_xdsls() -> None:
    assert "__init__" not in vars(JitOptMain)


def test_text_and_binary_programs_give_the_same_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.jasm").write_text(TEXT)
    Program.from_text(TEXT).save(tmp_path / "p.jbc")
    outputs = []
    for name in ("p.jasm", "p.jbc"):
        assert main([str(tmp_path / name)]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert "vm.func @main(1) -> 1" in outputs[0]


def test_an_error_in_a_program_has_its_location(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.jasm"
    path.write_text(TEXT.replace("tanh", "tahn"))
    assert main([str(path)]) == 1
    assert capsys.readouterr().err.startswith(f"{path}:3:8: error: ")


def test_a_damaged_program_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.jbc"
    path.write_bytes(Program.from_text(TEXT).to_bytes()[:40])
    assert main([str(path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"{path}: error: ") and error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["missing.mlir"], "cannot open 'missing.mlir': No such file or directory"),
        (["-p", "tssa-fus"], "unknown pass 'tssa-fus'; did you mean 'tssa-fuse'?"),
        (["-p", "tssa-fuse{"], "Error parsing pass pipeline specification"),
        (["-p", "convert-vm-to-tssa"], 'convert-vm-to-tssa requires argument "signature"'),
        (["-p", "loop-unroll{factor=x}"], "pass 'loop-unroll{factor=\"x\"}': Incompatible types"),
        (["-t", "ptx"], "argument -t/--target: invalid choice: 'ptx'"),
        (["--verify-eahc"], "unknown option '--verify-eahc'; did you mean '--verify-each'?"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_exit_code_2(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"jit-opt: error: {sentence}") and error.count("\n") == 1


def test_every_pass_is_listed_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list-passes"]) == 0
    assert capsys.readouterr().out.strip() == list_passes()
    lines = list_passes().splitlines()
    assert [line.split()[0] for line in lines] == sorted(JITDIALECTS_UNIVERSE.all_passes)
    assert all(re.search(r"  ?\S.*\S\.$", line) for line in lines)
    assert "docstring" not in list_passes() and "see the module" not in list_passes()
    assert "\ntssa-dce                     removes operations and block arguments" in list_passes()


def test_verify_each_opens_the_pipeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.jasm").write_text(TEXT)
    arguments = [str(tmp_path / "p.jasm"), "-p", """jit-default{signature="main(f32[n])"}"""]
    assert main(arguments) == 0
    whole = capsys.readouterr().out
    assert main([*arguments, "--verify-each", "--print-ir-after-all"]) == 0
    single = capsys.readouterr()
    assert single.out == whole
    assert single.err.count("// ----- IR after ") > 10
    assert "// ----- IR after tssa-fuse ----- //" in single.err


def test_an_unknown_target_of_the_pipeline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.jasm").write_text(TEXT)
    passes = """jit-default{signature="main(f32[n])" target=gpu}"""
    for more in ([], ["--verify-each"]):
        assert main([str(tmp_path / "p.jasm"), "-p", passes, *more]) != 0
        assert "unknown target 'gpu'; known: cpu" in capsys.readouterr().err


def test_a_file_that_is_no_text_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.mlir"
    path.write_bytes(b"func.func @f() { \xff }")
    assert main([str(path)]) == 1
    assert capsys.readouterr().err == (
        f"{path}: error: byte 17 is not UTF-8 text; bytecode files end in .jbc, or use -f jbc\n"
    )


def test_input_that_is_nested_too_deeply_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.mlir"
    path.write_text('"builtin.module"() ({\n' * 3000 + "}) : () -> ()\n" * 3000)
    assert main([str(path)]) == 1
    assert capsys.readouterr().err == f"{path}: error: nested too deeply\n"
