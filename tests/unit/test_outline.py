"""Parts of functions as functions: valid programs, the right registers in and out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import programs

import jitdialects as jd
from jitdialects.bytecode.operators import OPERATORS
from jitdialects.bytecode.outline import headers, outline_loop, outline_stretch
from jitdialects.bytecode.program import Program
from jitdialects.bytecode.verifier import verify
from jitdialects.errors import BytecodeError

NEWTON = """
#0 = float 0.5
func @main(%0, %1) -> 1 {
^entry:
  %2 = abs %0
  br ^step
^step:
  %3 = divide %0, %2
  %4 = add %2, %3
  destroy %3
  %5 = const #0
  %2 = multiply %4, %5
  destroy %4, then %5
  %6 = max %2
  %7 = greater %6, %1
  destroy %6
  cond_br %7, ^step, ^done
^done:
  return %2
}
""".replace("destroy %4, then %5", "destroy %4\n  destroy %5")
TWO_EXITS = """
func @main(%0, %1) -> 1 {
^entry:
  br ^head
^head:
  cond_br %0, ^body, ^left
^body:
  cond_br %1, ^head, ^right
^left:
  return %0
^right:
  return %1
}
"""
TWO_ENTRIES = """
func @main(%0, %1) -> 1 {
^entry:
  cond_br %0, ^a, ^b
^a:
  cond_br %1, ^b, ^done
^b:
  br ^a
^done:
  return %0
}
"""


def test_a_loop_takes_what_it_reads_and_gives_what_is_read_behind_it() -> None:
    program = Program.from_text(NEWTON)
    main = program.functions[0]
    assert headers(main) == {1}
    loop = outline_loop(program, main, 1)
    assert loop is not None
    assert (loop.inputs, loop.outputs, loop.exit) == ((0, 1, 2), (2,), 2)
    assert set(loop.dead) == set(range(main.registers)) - {2}
    verify(loop.program)
    x = np.linspace(1, 9, 5, dtype=np.float32)
    (whole,) = jd.VM(program).run("main", x, 3.5)
    (part,) = jd.VM(loop.program).run("main.step", x, 3.5, x)
    assert whole.tobytes() == part.tobytes()


def test_a_stretch_reads_and_gives_registers_of_its_block() -> None:
    program = Program.from_text(NEWTON)
    part = outline_stretch(program, program.functions[0], 1, 1, 5)
    assert part is not None
    verify(part.program)
    assert (part.inputs, part.outputs) == ((2, 3), (2,))
    assert set(part.dead) == {3, 4, 5}
    assert [c.value for c in part.program.constants] == [0.5]


def test_do_not_outline_what_nobody_reads() -> None:
    program = Program.from_text("func @main(%0) -> 1 {\n^b:\n  %1 = exp %0\n  return %0\n}\n")
    assert outline_stretch(program, program.functions[0], 0, 0, 1) is None


@pytest.mark.parametrize(
    ("text", "found"), [(TWO_EXITS, {1}), (TWO_ENTRIES, set())], ids=["two exits", "two entries"]
)
def test_do_not_outline_loops(text: str, found: set[int]) -> None:
    program = Program.from_text(text)
    main = program.functions[0]
    assert headers(main) == found
    assert all(outline_loop(program, main, block) is None for block in range(len(main.blocks)))


def test_callees_and_constants_come_along_once() -> None:
    program = Program.from_text("""
#0 = float 1.0
#1 = float 2.0
func @unused(%0) -> 1 {
^b:
  return %0
}
func @main(%0) -> 1 {
^b:
  %1 = const #1
  %2 = call @twice(%1)
  %3 = call @twice(%2)
  %4 = multiply %3, %0
  return %4
}
func @twice(%0) -> 1 {
^b:
  %1 = const #1
  %2 = multiply %0, %1
  return %2
}
""")
    part = outline_stretch(program, program.functions[1], 0, 0, 4)
    assert part is not None
    assert [f.name for f in part.program.functions] == ["main.b.0", "twice"]
    assert [c.value for c in part.program.constants] == [2.0]
    assert jd.VM(part.program).run("main.b.0", 3.0)[0] == 24.0


@settings(max_examples=60, deadline=None)
@given(programs())
def test_parts_of_any_program_are_valid(program: Program) -> None:
    try:
        verify(program)
    except BytecodeError:
        return
    for function in program.functions:
        for header in headers(function):
            loop = outline_loop(program, function, header)
            if loop is not None:
                verify(loop.program)
                assert not set(loop.dead) & set(loop.outputs)
        for number, block in enumerate(function.blocks):
            body = block.instructions[:-1]
            if all(i.opcode in (*OPERATORS, "const", "move", "destroy") for i in body):
                part = outline_stretch(program, function, number, len(body) // 3, len(body))
                if part is not None and _is_reached(program, function.name, number):
                    verify(part.program)


def _is_reached(program: Program, name: str, block: int) -> bool:
    """In code that is not, a register may be read that is never written."""
    function = program.function(name)
    assert function is not None
    seen, work = set[int](), [0]
    while work:
        at = work.pop()
        if at not in seen:
            seen.add(at)
            work += function.blocks[at].instructions[-1].targets
    return block in seen
