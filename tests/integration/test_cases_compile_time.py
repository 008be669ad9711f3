"""Faults in compile time that users of other compilers reported.

The reference in a docstring says which report. What is counted are calls of functions, which do not depend on
how busy the machine is.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from types import FrameType

import pytest

from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import parse
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


def calls(program: Program) -> int:
    """Calls of functions that lowering the program takes."""
    count = 0

    def called(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        lower_program(program, SIGNATURE, "x86-64-v3")
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
