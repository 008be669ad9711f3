"""The work of passes grows with the size of the program: calls are counted, since times are noise."""

from __future__ import annotations

import sys

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import parse
from jitdialects.dialects.context import make_context
from jitdialects.lowering.pipelines import lower_program
from jitdialects.lowering.tssa_bufferize import TssaBufferizePass
from jitdialects.passes.tssa_cse import TssaCsePass
from jitdialects.passes.tssa_simplify import TssaSimplifyPass


class Reached(Exception):
    """The stage before the pass is done."""


def after(stage: str, program: Program) -> ModuleOp:
    """What a stage of the list behind jit-default gives."""
    made: list[ModuleOp] = []

    def observe(name: str, module: ModuleOp) -> None:
        if name == stage:
            made.append(module)
            raise Reached

    with pytest.raises(Reached):
        lower_program(program, parse("main(i64[], f32[n])"), "x86-64-v3", observe=observe)
    return made[0]


def switch(branches: int) -> Program:
    """One of many branches with an operator or two."""
    targets = ", ".join(f"{k}: ^b{k}" for k in range(branches))
    lines = ["func @main(%0, %1) -> 1 {", "^entry:", f"  switch %0 [{targets}, default: ^b0]"]
    for k in range(branches):
        name = ("multiply", "add", "subtract")[k % 3]
        lines += [
            f"^b{k}:",
            f"  %2 = {name} %1, %1",
            f"  %3 = {('exp', 'abs')[k % 2]} %2",
            "  br ^end",
        ]
    return Program.from_text("\n".join([*lines, "^end:", "  return %3", "}"]))


def calls(chosen: ModulePass, stage: str, program: Program) -> int:
    """How many functions a pass calls on what `stage` has made of a program."""
    module, context = after(stage, program), make_context()
    count = 0

    def seen(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        chosen.apply(context, module)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    ("chosen", "stage"),
    [
        (TssaSimplifyPass(), "tssa-fold-constants"),
        (TssaCsePass(), "tssa-if-convert"),
        (TssaBufferizePass(), "tssa-fuse"),
    ],
    ids=["simplify", "cse", "bufferize"],
)
def test_four_times_as_many_branches_take_four_times_the_work(
    chosen: ModulePass, stage: str
) -> None:
    """jax-ml/jax#4453: the block at the end of a switch has as many predecessors as there are branches."""
    assert calls(chosen, stage, switch(480)) < 4.4 * calls(chosen, stage, switch(120))
