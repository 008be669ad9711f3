"""Program text: exact round trips, and errors that name line and column."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import constants, programs

from jitdialects.bytecode import assembler
from jitdialects.bytecode.assembler import assemble, disassemble
from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.dtypes import FLOAT32, DType
from jitdialects.bytecode.lexer import Cursor
from jitdialects.bytecode.literals import constant_text, parse_constant
from jitdialects.bytecode.program import Constant, Location, Program
from jitdialects.errors import BytecodeError

CORPUS = Path(__file__).parents[1] / "data" / "format1.jasm"


def constant(text: str) -> Constant:
    cursor = Cursor(text, "c", 1)
    out = parse_constant(cursor)
    cursor.take("end")
    return out


def test_the_text_of_the_corpus_is_a_fixed_point() -> None:
    program = assemble(CORPUS.read_text(encoding="utf-8"), "format1.jasm")
    text = disassemble(program)
    again = assemble(text)
    assert again == program
    assert disassemble(again) == text
    assert assemble(disassemble(program, locations=False)) == program


@settings(max_examples=25, deadline=None)
@given(programs())
def test_round_trip(program: Program) -> None:
    again = Program.from_text(program.to_text())
    assert again == program
    for before, after in zip(_instructions(program), _instructions(again), strict=True):
        assert before.location is None or before.location == after.location


def _instructions(program: Program) -> list:
    return [i for f in program.functions for b in f.blocks for i in b.instructions]


@settings(max_examples=200, deadline=None)
@given(constants())
def test_constants_round_trip_to_the_bit(value: Constant) -> None:
    assert constant(constant_text(value)) == value


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("f32[] [0.1]", 0x3DCCCCCD),
        ("f32[] [-0.0]", 0x80000000),
        ("f32[] [1e-45]", 0x00000001),
        ("f32[] [inf]", 0x7F800000),
        ("f32[] [-inf]", 0xFF800000),
        ("f32[] [nan]", 0x7FC00000),
        ("f32[] [0xff800001]", 0xFF800001),
        ('f32[] "0x010080ff"', 0xFF800001),
        ("f32[] [1]", 0x3F800000),
        ("f32[] [3.4028235e+38]", 0x7F7FFFFF),
    ],
)
def test_bits_of_floats(text: str, bits: int) -> None:
    assert constant(text).value.view(np.uint32) == bits


def test_long_constants_are_bytes() -> None:
    value = np.random.default_rng(1).standard_normal((784, 512)).astype(np.float32)
    builder = ProgramBuilder()
    builder.constant(value)
    builder.function("f", 0).returns()
    program = builder.finish()
    text = program.to_text()
    assert Program.from_text(text) == program
    assert 'f32[784,512] "0x' in text


def test_an_instruction_without_loc_is_located_in_the_text() -> None:
    program = assemble("func @f() -> 0 {\n^entry:\n  return // done\n}", "p.jasm")
    assert _instructions(program)[0].location == Location("p.jasm", 3, 3)


def test_the_example_of_the_docstring() -> None:
    text = assembler.__doc__.split("one instruction to a line.")[1].split("Constants come")[0]
    helper = "func @helper(%0, %1) -> 2 {\n^entry:\n return %1, %0\n}\n"
    program = assemble("\n".join(line[4:] for line in text.split("\n")) + helper)
    assert program.function("main").blocks[0].instructions[1].location == Location("model.py", 3, 5)


HEAD = "#0 = int 1\nfunc @f(%0, %1) -> 1 {\n^entry:\n"
TAIL = "\n  return %0\n}\n"


@pytest.mark.parametrize(
    ("line", "column", "words"),
    [
        ("%2 = exo %0", 6, "unknown opcode 'exo'; did you mean 'exp'?"),
        ("%2 = frobnicate %0", 6, "unknown opcode 'frobnicate'"),
        ("%2 = exp %0, ", 14, "expected a register such as %0, found the end of the line"),
        ("%2 = exp %0 %1", 13, "expected the end of the line, found '1'"),
        ("%2 exp %0", 4, "expected '=', found 'exp'"),
        ("%2 = sum %0 {axes = 1}", 14, "sum has no attribute 'axes'; it has axis, keepdims"),
        ("%2 = exp %0 {axis = 1}", 14, "exp has no attribute 'axis'; it has none"),
        ("%2 = sum %0 {axis = 1, axis = 1}", 24, "given twice"),
        ("%2 = sum %0 {axis 1}", 19, "expected '=', found '1'"),
        ("%2 = sum %0 {axis = 1.5}", 21, "expected a decimal integer"),
        ("%2 = sum %0 {axis = true}", 1, "must be of type int or Ints or none"),
        ("%2 = sum %0 {keepdims = 1", 26, "expected ','"),
        ("%2 = getitem %0 {index = [=]}", 27, "expected an index"),
        ("%2 = getitem %0 {index = [0:1:]}", 31, "expected a number"),
        ("%2 = reshape %0 {shape = [a]}", 27, "expected a number"),
        ("%2 = reshape %0 {shape = 3}", 26, "expected '['"),
        ("%2 = cast %0", 1, "needs the attribute 'dtype'"),
        ("%2 = cast %0 {dtype = float16}", 1, "'float16' is not supported"),
        ("%2 = const 1", 12, "expected a constant such as #0, found '1'"),
        ("%2 = const #1", 1, "no constant #1"),
        ("%2 = call f(%0)", 11, "expected a function such as @main"),
        ("%2 = call @f %0", 14, "expected '('"),
        ("%2 = call @g(%0)", 1, "no function @g"),
        ("br ^nowhere", 4, "no block ^nowhere"),
        ("br ^entyr", 4, "did you mean 'entry'?"),
        ("br entry", 4, "expected a block such as ^entry"),
        ("cond_br %0, ^entry", 19, "expected ','"),
        ("switch %0 [1: ^entry]", 21, "expected ','"),
        ("%2 = exp %0 loc(3)", 17, "expected a string"),
        (r'%2 = exp %0 loc("\x":1:1)', 17, "not a JSON string"),
        ("%2 = exp %0 loc(\"a\":0:1)", None, "line or column 0"),
        ("%2 = exp %0 loc(\"a", 17, "unexpected '\"'"),
        ("%2 = exp ?", 10, "unexpected '?'"),
        ("%2 = exp %5", 1, "register %5 is not defined"),
        ("%" + "1" * 70 + " = exp %0", 1, "a number of 70 characters"),
    ],
)  # fmt: skip
def test_refused_line(line: str, column: int | None, words: str) -> None:
    with pytest.raises(BytecodeError) as error:
        assemble(HEAD + line + TAIL, "p.jasm")
    assert words in error.value.message
    if column is not None:
        assert str(error.value.location) == f"p.jasm:4:{column}"


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        ("", None, None),
        ("fun @f() -> 0 {", "1:1", "expected 'func @name(...)'"),
        ("#1 = int 1", "1:1", "expected #0, found #1"),
        ("func @f(%1) -> 0 {", "1:9", "parameters are the first registers"),
        ("func @f() 0 {", "1:11", "expected '->'"),
        ("func @f() -> 0", "1:15", "expected '{'"),
        ("func @f() -> 0 {\n  return\n}", "2:3", "outside a block"),
        ("func @f() -> 0 {\n^entry\n}", "2:7", "expected ':'"),
        ("func @f() -> 0 {\n^entry:\n  return\n", "4:1", "is not closed"),
        ("func @f() -> 0 {\n^entry:\n}", None, "does not end in a terminator"),
        ("func @f() -> 0 {\n}", None, "has no block"),
        ("func @f() -> 0 {\n^a:\n return\n^a:\n return\n}", "3:2", "two blocks ^a"),
        ("}", "1:1", "expected 'func"),
        ("#0 = f16[] [1]", "1:6", "unknown dtype 'f16'"),
        ("#0 = f32[2] [1.0]", "1:6", "has 8 bytes, got 4"),
        ("#0 = f32[-1] [1.0]", "1:6", "must not be negative"),
        ("#0 = f32[9999999999, 9999999999] []", "1:6", "limit of a constant"),
        ("#0 = f32[] [1e39]", "1:13", "too large for float32"),
        ("#0 = i32[1] [2147483648]", "1:14", "2147483648 is not an int32"),
        ("#0 = f64[] [1e999]", "1:13", "too large for float64"),
        ("#0 = float 1e999", "1:12", "too large for float64"),
        ("#0 = f32[] [0x1]", "1:13", "0x and 8 hex digits"),
        ("#0 = f32[] [true]", "1:13", "expected a number"),
        ("#0 = i64[] [1.0]", "1:13", "decimal integer"),
        ("#0 = i64[] [0x10]", "1:13", "decimal integer"),
        ("#0 = int 9223372036854775808", "1:10", "not an int64"),
        ("#0 = bool[] [1]", "1:14", "expected true or false"),
        ('#0 = f32[1] "0x0000"', "1:6", "has 4 bytes, got 2"),
        ('#0 = f32[1] "abc"', "1:13", "hex digits"),
        ('#0 = bool[1] "0x02"', "1:6", "bytes 0 or 1"),
        ("#0 = int 1 2", "1:12", "expected the end of the line"),
    ],
)
def test_refused_text(text: str, where: str | None, words: str | None) -> None:
    if words is None:
        assert assemble(text) == Program((), ())
        return
    with pytest.raises(BytecodeError) as error:
        assemble(text, "p.jasm")
    assert words in error.value.message
    assert where is None or str(error.value.location) == f"p.jasm:{where}"


@settings(max_examples=200, deadline=None)
@given(st.text() | st.text(alphabet='%#@^$0123fx=(){}[]:,."-> \n\\', max_size=60))
def test_any_text_is_a_program_or_a_bytecode_error(text: str) -> None:
    for source in (text, "#0 = " + text, HEAD + text + TAIL):
        try:
            assemble(source)
        except BytecodeError:
            continue


def test_windows_line_ends() -> None:
    assert assemble((HEAD + TAIL).replace("\n", "\r\n")) == assemble(HEAD + TAIL)


def test_constants_are_equal_by_all_of_their_bits() -> None:
    some = np.zeros((7, 9), np.float32)
    for position in range(some.size):
        other = some.copy()
        other.flat[position] = 1.0
        assert Constant.of(some) != Constant.of(other), "though a hash may not look there"
    assert Constant.of(some) == Constant.of(some.copy())
    assert hash(Constant.of(some)) == hash(Constant.of(np.asfortranarray(some)))
    assert Constant.of(some) != Constant.of(some.reshape(9, 7))
    assert Constant.of(some) != Constant.of(some.view(np.int32))
    assert Constant.of(0.0) != Constant.of(-0.0) and Constant.of(np.nan) == Constant.of(np.nan)
    assert Constant.of(np.zeros((0, 3))) == Constant.of(np.zeros((0, 3))) != some


def test_constants_of_make_private_read_only_copies() -> None:
    assert Constant.of(1, FLOAT32).value.dtype == np.float32
    assert Constant.of(True).dtype == DType("bool", weak=True)
    with pytest.raises(ValueError, match="read-only"):
        Constant.of([1, 2]).value[0] = 3
