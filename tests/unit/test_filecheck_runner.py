"""The FileCheck runner executes RUN lines as lit does, and its lint finds checks that check nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitdialects.dialects.context import make_context
from jitdialects.testing.filecheck import execute, lint, run_lines
from jitdialects.testing.roundtrip import check_round_trip

RUN = "// RUN: jit-opt %s | filecheck %s\n"
GOOD = RUN + "// CHECK: func.func @f\nfunc.func @f() {\n  func.return\n}\n"


def run(tmp_path: Path, text: str) -> list[int]:
    path = tmp_path / "test.mlir"
    path.write_text(text)
    return [execute(line, path).code for line in run_lines(text)]


def test_a_matching_file_passes_and_another_fails(tmp_path: Path) -> None:
    assert run(tmp_path, GOOD) == [0]
    assert run(tmp_path, GOOD.replace("CHECK: func.func @f", "CHECK: func.func @g")) == [1]


def test_an_early_command_that_fails_fails_the_pipe(tmp_path: Path) -> None:
    text = "// RUN: jit-opt %s -p no-such-pass | filecheck %s --allow-empty\n// CHECK-NOT: x\n"
    assert run(tmp_path, text) == [2]


def test_not_inverts_and_streams_join(tmp_path: Path) -> None:
    text = "// RUN: not jit-opt %s -p nope 2>&1 | filecheck %s\n// CHECK: unknown pass 'nope'\n"
    assert run(tmp_path, text) == [0]
    assert run(tmp_path, text.replace(" 2>&1", "")) == [1]


def test_lines_continue_over_a_backslash() -> None:
    assert run_lines("// RUN: a \\\n// RUN:   b\n// RUN: c\n") == ["a b", "c"]


def test_an_unknown_command_is_an_error_of_the_test(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="calls 'rm'"):
        run(tmp_path, "// RUN: rm %s\n")


@pytest.mark.parametrize(
    "line",
    [
        "// CHECK-NXT: x",
        "// CHECKNEXT: x",
        "// CHECK-NEXT x",
        "// CHECK x",
        "// CHECK : x",
        "// CHEK: x",
        "// CHECK_NEXT: x",
        "// CHECK-COUNT: x",
        "// check-next: x",
        "// OTHER-NEXT: x",
        "// RUN jit-opt %s | filecheck %s",
        "// RUN : jit-opt %s | filecheck %s",
    ],
)
def test_lint_rejects_a_directive_that_checks_nothing(line: str) -> None:
    """llvm/llvm-project#54679, #93674, llvm/circt#9286: with a typo or without its colon, it is prose."""
    (problem,) = lint(GOOD + line + "\n")
    assert problem.startswith("line 6: ")


@pytest.mark.parametrize(
    "line",
    [
        "// CHECK-NEXT: x",
        "// CHECK-COUNT-2: x",
        "// CHECK{LITERAL}: [[x]]",
        "// CHECK-SAME{LITERAL}: [[x]]",
        "// Note: prose with a colon",
        "// NaN stays NaN",
        "// Checks that x comes first",
        "func.func @g() // CHECK comes from elsewhere",
    ],
)
def test_lint_accepts_directives_and_prose(line: str) -> None:
    assert lint(GOOD + line + "\n") == []


def test_lint_rejects_files_that_run_or_check_nothing() -> None:
    assert lint("func.func @f() {}\n") == ["no RUN line: nothing executes this file"]
    assert lint("// RUN: jit-opt %s\n") == ["no RUN line pipes into filecheck: nothing is checked"]
    assert lint(RUN) == ["prefix CHECK is never used by a directive"]


def test_lint_knows_the_prefixes_of_run_lines() -> None:
    text = "// RUN: jit-opt %s | filecheck %s --check-prefixes=A,B\n// A: x\n// B-NEXT: y\n"
    assert lint(text) == []
    assert lint(text.replace("B-NEXT", "B-NXT")) != []


def test_round_trip_accepts_what_reads_back() -> None:
    check_round_trip("func.func @f(%x : i32) -> i32 {\n  func.return %x : i32\n}", make_context())
