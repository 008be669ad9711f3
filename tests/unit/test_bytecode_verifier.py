"""Each rule of the verifier refuses in one sentence that says who, what and the remedy."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from jitdialects.bytecode import definedness, verifier
from jitdialects.bytecode.attributes import (
    At,
    Attribute,
    Ellipsis,
    IndexSpec,
    Ints,
    NewAxis,
    OperandRef,
    ShapeSpec,
    Slice,
)
from jitdialects.bytecode.dtypes import FLOAT32, INT64, WEAK_INT, DType
from jitdialects.bytecode.operators import OPERATORS
from jitdialects.bytecode.program import (
    CORE_OPCODES,
    Block,
    Constant,
    Function,
    Instruction,
    Location,
    Program,
)
from jitdialects.bytecode.verifier import attribute_names, verify, verify_function
from jitdialects.errors import BytecodeError

RETURN = Instruction("return")
ONE = Constant.of(1)


def ins(
    opcode: str,
    results: tuple[int, ...] = (),
    operands: tuple[int, ...] = (),
    targets: tuple[int, ...] = (),
    **attributes: Attribute,
) -> Instruction:
    return Instruction(opcode, results, operands, attributes, targets)


def func(*instructions: Instruction, name: str = "f", parameters: int = 3) -> Function:
    """A function of one block, 6 registers and no results; `return` is added."""
    return Function(name, parameters, 0, 6, (Block("entry", (*instructions, RETURN)),))


def program(*functions: Function, constants: tuple[Constant, ...] = (ONE,)) -> Program:
    return Program(constants, functions)


def refused(subject: Program, *words: str) -> None:
    with pytest.raises(BytecodeError) as error:
        verify(subject)
    message = str(error.value)
    assert all(word in message for word in words), message
    assert "\n" not in message


def test_a_valid_program_passes() -> None:
    index = IndexSpec((Slice(OperandRef(1), None, 2), Ellipsis(), NewAxis(), At(-1)))
    verify(
        program(
            func(
                ins("const", (3,), constant=0),
                ins("getitem", (4,), (0, 3), index=index),
                ins("sum", (4,), (4,), axis=None, keepdims=False),
                ins("call", (), (0, 1, 2), callee="f"),
            )
        )
    )


def test_recursion_and_unreachable_blocks_are_legal() -> None:
    lost = Block("lost", (ins("exp", (5,), (5,)), RETURN))
    function = func(ins("call", (), (0, 1, 2), callee="f"))
    verify(program(replace(function, blocks=(*function.blocks, lost))))


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        (ins("exo", (1,), (0,)), "unknown opcode"),
        (ins("exp", (1,), (0, 1)), "takes 1 operand(s), got 2"),
        (ins("add", (1,), (0,)), "takes 2 operand(s), got 1"),
        (ins("getitem", (1,), (), index=IndexSpec(())), "takes 1 or more operand(s), got 0"),
        (ins("exp", (), (0,)), "takes 1 result(s), got 0"),
        (ins("exp", (1, 2), (0,)), "takes 1 result(s), got 2"),
        (ins("exp", (1,), (0,), (0,)), "takes 0 target(s), got 1"),
        (ins("const", (1,), (0,), constant=0), "takes 0 operand(s), got 1"),
        (ins("const", (), constant=0), "takes 1 result(s), got 0"),
        (ins("move", (1,), ()), "takes 1 operand(s), got 0"),
        (ins("destroy", (), (0, 1)), "takes 1 operand(s), got 2"),
        (ins("destroy", (1,), (0,)), "takes 0 result(s), got 1"),
        (ins("exp", (6,), (0,)), "no register %6"),
        (ins("exp", (1,), (-1,)), "no register %-1"),
        (ins("exp", (True,), (0,)), "no register %True"),
        (ins("call", (1, 1), (0, 1, 2), callee="f"), "writes a register twice"),
        (ins("exp", (1,), (0,), axis=1), "unknown attribute 'axis'; it has none"),
        (ins("sum", (1,), (0,), axis=-1), "needs the attribute 'keepdims'"),
        (
            ins("sum", (1,), (0,), axis="x", keepdims=False),
            "'axis' must be of type int or Ints or none",
        ),
        (
            ins("sum", (1,), (0,), axis=True, keepdims=False),
            "'axis' must be of type int or Ints or none",
        ),
        (ins("sum", (1,), (0,), axis=-1, keepdims=0), "'keepdims' must be of type bool"),
        (ins("sum", (1,), (0,), axis=2**63, keepdims=True), "not an int64"),
        (ins("size", (1,), (0,), axis=None), "'axis' must be of type int, got None"),
        (ins("cast", (1,), (0,), dtype="float16"), "dtype 'float16' is not supported"),
        (ins("transpose", (1,), (0,), axes=Ints((0, 0))), "a number twice"),
        (ins("transpose", (1,), (0,), axes=Ints((2**63,))), "not an int64"),
        (ins("transpose", (1,), (0,), axes=Ints(tuple(range(33)))), "33 entries"),
        (ins("reshape", (1,), (0,), shape=ShapeSpec((-2,))), "negative size"),
        (ins("reshape", (1,), (0,), shape=ShapeSpec((-1, -1))), "more than one -1"),
        (ins("reshape", (1,), (0,), shape=ShapeSpec((OperandRef(1),))), "operand $1"),
        (ins("reshape", (1,), (0, 1), shape=ShapeSpec((OperandRef(0),))), "from $1 on"),
        (ins("reshape", (1,), (0,), shape=ShapeSpec((1,) * 33)), "33 entries"),
        (ins("broadcast_to", (1,), (0,), shape=ShapeSpec((-1,))), "only reshape"),
        (ins("getitem", (1,), (0,), index=IndexSpec((Ellipsis(), Ellipsis()))), "more than one '"),
        (ins("getitem", (1,), (0,), index=IndexSpec((Slice(step=0),))), "step of 0"),
        (ins("getitem", (1,), (0,), index=IndexSpec((At(2**63),))), "not an int64"),
        (ins("getitem", (1,), (0,), index=IndexSpec((Slice(stop=OperandRef(2)),))), "operand $2"),
        (ins("getitem", (1,), (0,), index=IndexSpec((3,))), "use Slice, At"),
        (ins("setitem", (1,), (0, 1), index=IndexSpec((At(OperandRef(1)),))), "from $2 on"),
        (ins("getitem", (1,), (0,), index=ShapeSpec(())), "must be of type IndexSpec"),
        (ins("const", (1,), constant=1), "no constant #1; the pool has 1"),
        (ins("const", (1,), constant=-1), "no constant #-1"),
        (ins("call", (), (0, 1, 2), callee="g"), "no function @g"),
        (ins("call", (), (0,), callee="f"), "@f has 3 argument(s), got 1"),
        (ins("call", (3,), (0, 1, 2), callee="f"), "@f has 0 result(s), got 1"),
        (ins("exp", (4,), (3,)), "register %3 is not defined on every path"),
        (RETURN, "a terminator before the end"),
    ],
)
def test_refused_instruction(instruction: Instruction, words: str) -> None:
    refused(
        program(func(ins("move", (1,), (0,)), instruction)),
        "function @f, block ^entry, instruction 1",
        instruction.opcode,
        words,
    )


def test_the_location_comes_first() -> None:
    instruction = replace(ins("exp", (1,), (5,)), location=Location("m.py", 3, 5))
    with pytest.raises(BytecodeError, match="^m.py:3:5: function @f, block "):
        verify(program(func(instruction)))


@pytest.mark.parametrize(
    "location",
    [
        Location("m.py", 0),
        Location("m.py", 1, 0),
        Location("m.py", verifier.MAX_LINE + 1),
        Location("m" * (verifier.MAX_FILE_NAME + 1), 1),
    ],
)
def test_refused_location(location: Location) -> None:
    refused(program(func(replace(ins("move", (1,), (0,)), location=location))), "location")


def terminated(last: Instruction) -> Function:
    return Function("f", 1, 1, 2, (Block("entry", (last,)), Block("b", (RETURN_0,))))


RETURN_0 = ins("return", (), (0,))


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (ins("exp", (1,), (0,)), "does not end in a terminator"),
        (ins("return"), "takes 1 operand(s), got 0"),
        (ins("return", (1,), (0,)), "takes 0 result(s)"),
        (ins("br"), "takes 1 target(s), got 0"),
        (ins("br", (), (0,), (1,)), "takes 0 operand(s)"),
        (ins("br", (), (), (2,)), "no block 2; the function has 2"),
        (ins("br", (), (), (-1,)), "no block -1"),
        (ins("cond_br", (), (0,), (1,)), "takes 2 target(s), got 1"),
        (ins("cond_br", (), (), (1, 1)), "takes 1 operand(s), got 0"),
        (ins("switch", (), (0,), (1, 1)), "needs the attribute 'cases'"),
        (ins("switch", (), (0,), (1, 1), cases=Ints(())), "takes 1 target(s), got 2"),
        (ins("switch", (), (0,), (1, 1, 1), cases=Ints((3, 3))), "a number twice"),
        (ins("switch", (), (0,), (1, 1), cases=Ints((2**63,))), "not an int64"),
    ],
)
def test_refused_terminator(last: Instruction, words: str) -> None:
    refused(program(terminated(last)), "function @f, block ^entry", words)


def test_refused_functions() -> None:
    good = func()
    block = good.blocks[0]
    refused(program(good, good), "two functions are called @f")
    refused(program(replace(good, blocks=())), "has no block")
    refused(program(replace(good, blocks=(Block("b", ()),))), "does not end in a terminator")
    refused(program(replace(good, blocks=(block, block))), "two blocks ^entry")
    refused(program(replace(good, registers=2)), "3 parameters but 2 registers")
    refused(program(replace(good, results=-1)), "-1 results")
    refused(program(replace(good, parameters=True)), "True parameters")
    for name in ("", "1f", "a b", "<lambda>", "f" * 2000, "é"):
        refused(program(replace(good, name=name)), "name of a function")
        refused(program(replace(good, blocks=(replace(block, name=name),))), "name of a block")


def read_only(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


@pytest.mark.parametrize(
    ("dtype", "value", "words"),
    [
        (DType("float16"), read_only(np.zeros(2, np.float16)), "dtype float16"),
        (DType("float32", weak=True), read_only(np.float32([1])[0:1].reshape(())), "dtype float32"),
        (FLOAT32, read_only(np.zeros(2)), "declared float32 but holds float64"),
        (FLOAT32, read_only(np.zeros(2, ">f4")), "declared float32 but holds >f4"),
        (FLOAT32, np.float32(1), "declared float32 but holds"),
        (INT64, [1], "declared int64 but holds list"),
        (WEAK_INT, read_only(np.zeros(2, np.int64)), "rank 1; its rank must be 0"),
        (FLOAT32, np.zeros(2, np.float32), "read-only C-contiguous"),
        (FLOAT32, read_only(np.zeros((2, 2), np.float32).T), "read-only C-contiguous"),
        (INT64, read_only(np.zeros((1,) * 33, np.int64)), "33 axes"),
    ],
)
def test_refused_constants(dtype: DType, value: object, words: str) -> None:
    constant = Constant(dtype, value)
    refused(program(func(), constants=(ONE, constant)), "constant #1", words)


def test_huge_shapes_are_refused_even_when_empty() -> None:
    value = np.zeros((0, 2**31), np.float32)
    refused(program(func(), constants=(Constant.of(value),)), "limit of a constant")


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("MAX_FUNCTIONS", "functions"),
        ("MAX_CONSTANTS", "constants"),
        ("MAX_INSTRUCTIONS", "instructions"),
        ("MAX_REGISTERS", "registers"),
        ("MAX_BLOCKS", "blocks"),
        ("MAX_STATE", "registers times blocks"),
        ("MAX_OPERANDS", "values"),
    ],
)
def test_limits(limit: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, limit, 1)
    two = (Block("entry", (RETURN,)), Block("other", (RETURN,)))
    functions = (Function("f", 2, 0, 2, two), Function("g", 2, 0, 2, two))
    refused(program(*functions, constants=(ONE, ONE)), words, "the limit is 1")


def test_limit_of_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "MAX_OPERANDS", 3)
    wide = ins("getitem", (1,), (0, 1, 2, 0), index=IndexSpec(()))
    refused(program(func(wide)), "4 operand(s), the limit is 3")


# ---- registers defined on every path -----------------------------------------------------------


def graph(edges: Mapping[str, str], bodies: Mapping[str, str], registers: int = 4) -> Program:
    """A function with one parameter; blocks in the order of `edges`."""
    text = f"#0 = int 1\nfunc @f(%0) -> 0 registers {registers} {{\n"
    for block, targets in edges.items():
        text += f"^{block}:\n" + "".join(f"{i}\n" for i in bodies.get(block, "").split(";") if i)
        names = [f"^{t}" for t in targets.split()]
        text += ["return", *(f"br {n}" for n in names[:1]), f"cond_br %0, {', '.join(names)}"][
            len(names)
        ]
        text += "\n"
    return Program.from_text(text + "}\n")


DIAMOND = {"entry": "left right", "left": "join", "right": "join", "join": ""}


def undefined(edges: Mapping[str, str], bodies: Mapping[str, str], block: str) -> None:
    with pytest.raises(BytecodeError, match=rf"block \^{block}, .* not defined on every path"):
        graph(edges, bodies)


def test_defined_in_both_arms() -> None:
    graph(DIAMOND, {"left": "%1 = const #0", "right": "%1 = move %0", "join": "%2 = exp %1"})


def test_defined_in_one_arm_only() -> None:
    undefined(DIAMOND, {"left": "%1 = const #0", "join": "%2 = exp %1"}, "join")


def test_destroyed_in_one_arm() -> None:
    bodies = {"entry": "%1 = move %0", "left": "destroy %1", "join": "%2 = exp %1"}
    undefined(DIAMOND, bodies, "join")


def test_destroy_of_what_is_undefined() -> None:
    undefined(DIAMOND, {"join": "destroy %1"}, "join")


def test_read_after_destroy_in_the_same_block() -> None:
    undefined(DIAMOND, {"join": "%1 = move %0;destroy %1;%2 = exp %1"}, "join")


def test_destroyed_around_a_loop() -> None:
    loop = {"entry": "loop", "loop": "loop exit", "exit": ""}
    bodies = {"entry": "%1 = const #0", "loop": "%2 = exp %1;destroy %1"}
    undefined(loop, bodies, "loop")


def test_a_loop_may_define_for_its_exit() -> None:
    loop = {"entry": "loop", "loop": "loop exit", "exit": ""}
    graph(loop, {"loop": "%1 = const #0", "exit": "%2 = exp %1"})


def test_a_loop_may_not_read_what_it_defines_later() -> None:
    loop = {"entry": "loop", "loop": "loop exit", "exit": ""}
    undefined(loop, {"loop": "%2 = exp %1;%1 = const #0"}, "loop")


def test_the_entry_may_be_a_loop() -> None:
    undefined({"entry": "entry exit", "exit": ""}, {"entry": "%2 = exp %1;%1 = const #0"}, "entry")


def test_tangled_control_flow_is_refused_rather_than_checked_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(definedness, "MAX_STEPS", 50)
    chain = {f"b{n}": f"b{n + 1} b{max(n - 1, 0)}" for n in range(40)} | {"b40": ""}
    bodies = {f"b{n}": f"destroy %{n + 1}" for n in range(40)}
    bodies["b0"] = ";".join(f"%{n + 1} = move %0" for n in range(40))
    with pytest.raises(BytecodeError, match="too tangled"):
        graph(chain, bodies, registers=50)


def test_functions_can_be_verified_alone() -> None:
    verify_function(func(ins("const", (3,), constant=9), ins("call", (), (), callee="elsewhere")))
    with pytest.raises(BytecodeError, match="not defined"):
        verify_function(func(ins("exp", (3,), (3,))))


def test_every_attribute_of_the_table_has_a_type() -> None:
    for opcode in (*OPERATORS, *CORE_OPCODES):
        for name in attribute_names(opcode):
            assert verifier.attribute_types(opcode, name)
