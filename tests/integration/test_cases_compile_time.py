"""Faults in compile time that users of other compilers reported.

The reference in a docstring says which report. What is counted are calls of functions, which do not depend on
how busy the machine is.
"""

from __future__ import annotations

import inspect
import math
import sys
import traceback
from collections.abc import Callable
from types import FrameType

import pytest
from xdsl.printer import Printer

from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import Signature, parse
from jitdialects.lowering.pipelines import lower_program

SIGNATURE = parse("main(f32[n], f32[n])")


def written(steps: list[str], returned: str) -> Program:
    return Program.from_text(
        "\n".join(["func @main(%0, %1) -> 1 {", "^entry:", *steps, f"  return {returned}", "}"])
    )


def straight_line(length: int) -> Program:
    """Each operator reads the one before; functions between them, so that groups stay short."""
    names = ("multiply", "add", "exp", "subtract", "maximum")
    steps = [
        f"  %{k + 2} = {name} %{k + 1}" + ("" if name == "exp" else ", %0")
        for k, name in ((k, names[k % len(names)]) for k in range(length))
    ]
    return written(steps, f"%{length + 1}")


def independent(length: int) -> Program:
    """Operators that read nothing of each other, and sums of pairs of them."""
    half = length // 2
    steps = [
        f"  %{k + 2} = {('multiply', 'exp')[k % 2]} %0{(', %1', '')[k % 2]}" for k in range(half)
    ]
    sums = [f"  %{half + k + 2} = add %{half + k + 1}, %{k + 2}" for k in range(half)]
    return written(steps + sums, f"%{2 * half + 1}")


def switch(branches: int) -> Program:
    """As many branches, each with two operators."""
    targets = ", ".join(f"{k}: ^b{k}" for k in range(branches))
    lines = [f"  switch %0 [{targets}, default: ^b0]"]
    for k in range(branches):
        lines += [
            f"^b{k}:",
            f"  %2 = {('multiply', 'add')[k % 2]} %1, %1",
            "  %3 = exp %2",
            "  br ^end",
        ]
    return written([*lines, "^end:"], "%3")


def calls(program: Program, signature: Signature = SIGNATURE) -> int:
    """Calls of functions that lowering the program takes."""
    count = 0

    def called(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        lower_program(program, signature, "x86-64-v3")
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("build", [straight_line, independent])
def test_compile_time_grows_in_proportion(build: Callable[[int], Program]) -> None:
    """jax-ml/jax#2777, #1223: fifteen unrolled steps took six minutes; inducer/loopy#178: a minute for 500
    independent statements."""
    calls(build(10))  # what is made once
    few, many = calls(build(40)), calls(build(160))
    assert math.log(many / few, 4) < 1.3


def test_compile_time_grows_in_proportion_to_the_branches_of_a_switch() -> None:
    """jax-ml/jax#4453: many branches took more than in proportion."""
    signature = parse("main(i64[], f32[n])")
    calls(switch(4), signature)
    few, many = calls(switch(10), signature), calls(switch(40), signature)
    assert math.log(many / few, 4) < 1.2


def test_nothing_is_printed_that_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """pytorch/pytorch PR#120520: what only debugging reads was collected in every compile."""
    lower_program(straight_line(3), SIGNATURE, "x86-64-v3")

    def refuse(*_: object) -> None:
        raise AssertionError("somebody prints, or asks for a stack")

    monkeypatch.setattr(Printer, "print_op", refuse)
    monkeypatch.setattr(traceback, "extract_stack", refuse)
    monkeypatch.setattr(inspect, "stack", refuse)
    assert not lower_program(straight_line(5), SIGNATURE, "x86-64-v3")[1].stages
    with pytest.raises(AssertionError, match="somebody prints"):
        lower_program(straight_line(5), SIGNATURE, "x86-64-v3", dump=True)
