"""The builder, and the destroys that follow from liveness."""

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import programs

from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.dtypes import BOOL, FLOAT32, INT64, WEAK_BOOL, WEAK_FLOAT, WEAK_INT
from jitdialects.bytecode.lifetimes import insert_destroys
from jitdialects.bytecode.program import Function, Location, Program
from jitdialects.bytecode.verifier import verify
from jitdialects.errors import BytecodeError


def text(program: Program) -> str:
    return program.to_text()


def test_constants_are_shared_when_their_bits_are_equal() -> None:
    builder = ProgramBuilder()
    one = builder.constant(1.0)
    assert builder.constant(1.0) == one
    assert builder.constant(1.0, FLOAT32) != one
    assert builder.constant(np.float32(1.0)) == builder.constant(1.0, FLOAT32)
    assert builder.constant(0.0) != builder.constant(-0.0)
    assert builder.constant(float("nan")) == builder.constant(float("nan"))
    assert builder.constant(True) != builder.constant(1)


def test_dtypes_of_constants() -> None:
    builder = ProgramBuilder()
    for value in (True, 1, 1.0, np.bool_(True), np.int64(1), np.float32(1)):
        builder.constant(value)
    builder.function("f", 0).returns()
    pool = builder.finish().constants
    expected = [WEAK_BOOL, WEAK_INT, WEAK_FLOAT, BOOL, INT64, FLOAT32]
    assert [c.dtype for c in pool] == expected


def test_constants_are_copies() -> None:
    array = np.zeros((2, 3), np.float32).T
    builder = ProgramBuilder()
    builder.constant(array)
    builder.function("f", 0).returns()
    array[0, 0] = 7
    (constant,) = builder.finish().constants
    assert constant.value[0, 0] == 0
    assert constant.value.flags.c_contiguous and not constant.value.flags.writeable


def test_all_emitters() -> None:
    builder = ProgramBuilder()
    f = builder.function("f", parameters=2)
    x, n = f.parameters
    f.location = Location("model.py", 3, 5)
    one, two = f.block("one"), f.block("two")
    total = f.apply("sum", x, axis=-1)
    f.switch(n, {1: one, -2: two}, one)
    f.enter(one)
    assert f.current == one
    f.move(total, into=x)
    y, _ = f.call("g", x, results=2)
    f.branch_if(y, one, two)
    f.enter(two)
    f.returns(f.constant(2))
    g = builder.function("g", parameters=1)
    g.returns(*g.parameters, g.constant(2))
    program = builder.finish(insert_destroys=False)
    assert program.to_text() == (
        """#0 = int 2

func @f(%0, %1) -> 1 {
^entry:
  %2 = sum %0 {axis = -1} loc("model.py":3:5)
  switch %1 [1: ^one, -2: ^two, default: ^one] loc("model.py":3:5)
^one:
  %0 = move %2 loc("model.py":3:5)
  %3, %4 = call @g(%0) loc("model.py":3:5)
  cond_br %3, ^one, ^two loc("model.py":3:5)
^two:
  %5 = const #0 loc("model.py":3:5)
  return %5 loc("model.py":3:5)
}

func @g(%0) -> 2 {
^entry:
  %1 = const #0
  return %0, %1
}
"""
    )


def test_builder_refuses_a_wrong_number_of_registers_to_write() -> None:
    f = ProgramBuilder().function("f", 1)
    with pytest.raises(BytecodeError, match="call gives 2"):
        f.call("g", results=2, into=(0,))


def test_finish_verifies() -> None:
    builder = ProgramBuilder()
    f = builder.function("f", 0)
    f.returns(f.register())
    with pytest.raises(BytecodeError, match="not defined on every path"):
        builder.finish()


# ---- destroys ----------------------------------------------------------------------------------


def destroyed(source: str) -> str:
    """The body of the function, destroys inserted."""
    program = Program.from_text("#0 = int 1\n" + source)
    (function,) = (insert_destroys(f) for f in program.functions)
    after = Program(program.constants, (function,))
    verify(after)
    return "\n".join(after.to_text().split("\n")[3:-2]).replace("  ", "").replace("loc", "// ")


def lines(text: str) -> list[str]:
    return [line.split(" // ")[0].strip() for line in text.strip().split("\n")]


def check(source: str, expected: str) -> None:
    assert lines(destroyed(source)) == lines(expected)


def test_a_register_dies_after_its_last_use() -> None:
    check(
        """func @f(%0, %1) -> 1 {
        ^entry:
          %2 = add %0, %1
          %3 = exp %2
          return %3
        }""",
        """^entry:
          %2 = add %0, %1
          destroy %0
          destroy %1
          %3 = exp %2
          destroy %2
          return %3""",
    )


def test_results_and_overwritten_registers_are_not_destroyed() -> None:
    check(
        """func @f(%0) -> 2 {
        ^entry:
          %0 = exp %0
          return %0, %0
        }""",
        """^entry:
          %0 = exp %0
          return %0, %0""",
    )


def test_what_nobody_reads_dies_at_once() -> None:
    check(
        """func @f(%0, %1) -> 1 {
        ^entry:
          %2 = const #0
          return %1
        }""",
        """^entry:
          destroy %0
          %2 = const #0
          destroy %2
          return %1""",
    )


def test_an_explicit_destroy_counts() -> None:
    check(
        """func @f(%0, %1) -> 1 {
        ^entry:
          %2 = exp %0
          destroy %0
          %0 = exp %1
          return %0
        }""",
        """^entry:
          %2 = exp %0
          destroy %2
          destroy %0
          %0 = exp %1
          destroy %1
          return %0""",
    )


def test_a_condition_dies_in_both_successors() -> None:
    check(
        """func @f(%0, %1) -> 1 {
        ^entry:
          cond_br %0, ^a, ^b
        ^a:
          %1 = exp %1
          return %1
        ^b:
          return %1
        }""",
        """^entry:
          cond_br %0, ^a, ^b
        ^a:
          destroy %0
          %1 = exp %1
          return %1
        ^b:
          destroy %0
          return %1""",
    )


def test_a_register_that_dies_on_one_edge_only_gets_a_block_there() -> None:
    check(
        """func @f(%0, %1) -> 1 {
        ^entry:
          cond_br %0, ^use, ^exit
        ^use:
          %0 = exp %1
          br ^exit
        ^exit:
          return %0
        }""",
        """^entry:
          cond_br %0, ^use, ^entry.exit
        ^use:
          destroy %0
          %0 = exp %1
          destroy %1
          br ^exit
        ^exit:
          return %0
        ^entry.exit:
          destroy %1
          br ^exit""",
    )


def test_a_loop_keeps_what_it_reads_again() -> None:
    check(
        """func @f(%0, %1) -> 1 {
        ^entry:
          br ^loop
        ^loop:
          %2 = less %0, %1
          %0 = add %0, %1
          cond_br %2, ^loop, ^exit
        ^exit:
          return %0
        }""",
        """^entry:
          br ^loop
        ^loop:
          %2 = less %0, %1
          %0 = add %0, %1
          cond_br %2, ^loop.loop, ^exit
        ^exit:
          destroy %1
          destroy %2
          return %0
        ^loop.loop:
          destroy %2
          br ^loop""",
    )


def test_a_loop_to_the_entry_gets_a_new_entry() -> None:
    check(
        """func @f(%0, %1) -> 1 {
        ^entry:
          %2 = less %0, %0
          cond_br %2, ^entry, ^exit
        ^exit:
          return %0
        }""",
        """^entry.1:
          destroy %1
          br ^entry
        ^entry:
          %2 = less %0, %0
          cond_br %2, ^entry.entry, ^exit
        ^exit:
          destroy %2
          return %0
        ^entry.entry:
          destroy %2
          br ^entry""",
    )


def undestroyed(function: Function) -> list[str]:
    """Registers that hold a value at some return that does not hand it out, by simulation of paths."""
    problems: list[str] = []
    work = [(0, frozenset(range(function.parameters)))]
    seen = set(work)
    while work:
        block, defined = work.pop()
        for instruction in function.blocks[block].instructions:
            assert defined >= set(instruction.operands)
            if instruction.opcode == "destroy":
                defined -= set(instruction.operands)
            defined |= set(instruction.results)
        last = function.blocks[block].instructions[-1]
        if last.opcode == "return" and defined - set(last.operands):
            problems.append(f"block {block}: {sorted(defined - set(last.operands))}")
        for target in last.targets:
            if (target, defined) not in seen:
                seen.add((target, defined))
                work.append((target, defined))
    return problems


@settings(max_examples=25, deadline=None)
@given(programs())
def test_every_register_is_destroyed_exactly_where_it_dies(program: Program) -> None:
    functions = tuple(map(insert_destroys, program.functions))
    verify(Program(program.constants, functions))
    assert [undestroyed(f) for f in functions] == [[] for _ in functions]
