"""The `vm` dialect: import and export are inverse, text round trips, refusals."""

from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from strategies import programs
from xdsl.dialects import test as test_dialect
from xdsl.dialects.builtin import ArrayAttr, FloatAttr, ModuleOp, StringAttr, f32
from xdsl.ir import Block, Region
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from jitdialects.bytecode.program import Constant, Location, Program
from jitdialects.dialects import vm
from jitdialects.dialects.context import make_context
from jitdialects.dialects.vm_attributes import NO_REGISTERS, ConstantAttr, from_attribute
from jitdialects.errors import BytecodeError
from jitdialects.lowering.bytecode_to_vm import module_to_program, program_to_module

CORPUS = Program.load(Path(__file__).parents[1] / "data" / "format1.jbc")


def parse(text: str) -> ModuleOp:
    return Parser(make_context(), text).parse_module()


def printed(module: ModuleOp, **options: bool) -> str:
    out = StringIO()
    Printer(out, **options).print_op(module)
    return out.getvalue()


def locations(program: Program) -> list[Location | None]:
    return [i.location for f in program.functions for b in f.blocks for i in b.instructions]


def test_the_text_that_a_person_reads() -> None:
    module = program_to_module(
        Program.from_text(
            """
            #0 = float 0.0
            #1 = f32[2,2] [1.0, -0.0, 0x7fc00001, nan]
            func @main(%0) -> 1 {
            ^entry:
              %1 = const #1
              %2 = matmul %0, %1
              %3 = sum %2 {axis = -1, keepdims = true}
              %4 = getitem %2, %3 {index = [0:$1, ..., newaxis]}
              %4 = reshape %4, %3 {shape = [$1, -1]}
              %4 = transpose %4 {axes = (1, 0)}
              %4 = max %4
              %4 = cast %4 {dtype = bool}
              %4 = move %4
              cond_br %3, ^entry, ^exit
            ^exit:
              switch %3 [1: ^entry, -2: ^exit, default: ^exit_2]
            ^exit_2:
              %5, %6 = call @helper(%2, %3)
              call @none()
              destroy %5
              return %2
            }
            func @helper(%0, %1) -> 2 {
            ^a:
              return %0, %1
            }
            func @none() -> 0 {
            ^a:
              return
            }
            """
        )
    )
    module.verify()
    assert str(module) == (
        """builtin.module {
  vm.pool ["float 0.0", "f32[2,2] [1.0, -0.0, 0x7fc00001, nan]"]
  vm.func @main(1) -> 1 registers 7 blocks ["entry", "exit", "exit_2"] {
  ^entry:
    vm.const r1 = 1
    vm.apply r2 = matmul(r0, r1)
    vm.apply r3 = sum(r2) {axis = -1 : i64, keepdims = true}
    vm.apply r4 = getitem(r2, r3) {index = #vm.index<"[0:$1, ..., newaxis]">}
    vm.apply r4 = reshape(r4, r3) {shape = #vm.shape<"[$1, -1]">}
    vm.apply r4 = transpose(r4) {axes = array<i64: 1, 0>}
    vm.apply r4 = max(r4) {axis = none, keepdims = false}
    vm.apply r4 = cast(r4) {dtype = "bool"}
    vm.move r4 = r4
    vm.cond_br r3, ^entry, ^exit
  ^exit:
    vm.switch r3 [1: ^entry, -2: ^exit, default: ^exit_1]
  ^exit_1:
    vm.call r5, r6 = @helper(r2, r3)
    vm.call @none()
    vm.destroy r5
    vm.return(r2)
  }
  vm.func @helper(2) -> 2 registers 2 {
  ^a:
    vm.return(r0, r1)
  }
  vm.func @none(0) -> 0 registers 0 {
  ^a:
    vm.return()
  }
}"""
    )


def test_the_corpus_comes_back() -> None:
    module = program_to_module(CORPUS)
    module.verify()
    again = module_to_program(module)
    assert again == CORPUS
    assert locations(again) == locations(CORPUS)
    assert again.to_bytes() == CORPUS.to_bytes()


def test_the_text_comes_back_with_locations() -> None:
    text = CORPUS.to_text().replace(r"dossier \u00e9/model \"2\"", "model 2")
    program = Program.from_text(text)  # xDSL's parser takes no escapes in the file of a location
    again = module_to_program(parse(printed(program_to_module(program), print_debuginfo=True)))
    assert again == program
    assert locations(again) == locations(program)


def test_the_generic_syntax_comes_back() -> None:
    module = program_to_module(Program.from_text("func @f() -> 0 {\n^bb0:\n return\n}"))
    assert parse(printed(module, print_generic_format=True)).is_structurally_equivalent(module)


@settings(max_examples=25, deadline=None)
@given(programs())
def test_import_and_export_are_inverse(program: Program) -> None:
    module = program_to_module(program)
    module.verify()
    again = module_to_program(module)
    assert again == program
    assert locations(again) == locations(program)
    reparsed = parse(str(module))
    assert reparsed.is_structurally_equivalent(module)
    assert module_to_program(reparsed) == program


def test_discardable_attributes_survive() -> None:
    text = """
      vm.func @f(1) -> 0 registers 2 attributes {hot} {
      ^entry:
        vm.move r1 = r0 attributes {x = 1 : i64}
        vm.apply r1 = sum(r1) {axis = none, keepdims = false} attributes {y}
        vm.destroy r1 attributes {z}
        vm.return() attributes {w}
      }"""
    module = parse(text)
    module.verify()
    assert str(parse(str(module))) == str(module)
    for word in ("{hot}", "{x = 1 : i64}", "{y}", "{z}", "{w}"):
        assert f"attributes {word}" in str(module)


# ---- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("vm.apply r1 = exo(r0)\nvm.return()", "unknown opcode"),
        ("vm.apply r1 = exp(r0, r0)\nvm.return()", "takes 1 operand"),
        ("vm.apply r1 = sum(r0)\nvm.return()", "needs the attribute 'axis'"),
        ("vm.apply r1 = cast(r0) {dtype = f32}\nvm.return()", "not an attribute that bytecode has"),
        ("vm.apply r1 = exp(r9)\nvm.return()", "no register %9"),
        ("vm.apply r1 = exp(r1)\nvm.return()", "not defined on every path"),
        ("vm.return(r0)", "takes 0 operand"),
        ("vm.move r1 = r0", "terminator"),
        ('"test.op"() : () -> ()\nvm.return()', "only vm instructions"),
    ],
)
def test_refused_function(body: str, words: str) -> None:
    with pytest.raises(VerifyException, match=words):
        parse("vm.func @f(1) -> 0 registers 2 {\n^entry:\n" + body + "\n}").verify()


def test_block_names_must_fit_the_blocks() -> None:
    text = 'vm.func @f(0) -> 0 registers 0 blocks ["a", "b"] {\n^a:\nvm.return()\n}'
    with pytest.raises(VerifyException, match="1 blocks but 2 block names"):
        parse(text).verify()


def test_instructions_stand_in_functions() -> None:
    with pytest.raises(VerifyException, match="parent"):
        parse("vm.move r1 = r0").verify()


def test_a_successor_in_another_function() -> None:
    other = Region(Block([test_dialect.TestOp()]))
    branch = vm.BrOp.create(
        properties={"writes": NO_REGISTERS, "reads": NO_REGISTERS},
        successors=[other.block],
    )
    function = program_to_module(Program.from_text("func @f() -> 0 {\n^a:\n return\n}")).body.block
    block = function.ops.first.body.block
    block.insert_op_before(branch, block.last_op)
    block.erase_op(block.last_op)
    with pytest.raises(VerifyException, match="another region"):
        function.ops.first.function()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("vm.pool []\nvm.pool []", "'vm.pool' is not part of a vm module"),
        ('"test.op"() : () -> ()', "'test.op' is not part of a vm module"),
        (
            "vm.func @f(0) -> 0 registers 1 {\n^a:\nvm.const r0 = 0\nvm.return()\n}",
            "no constant #0",
        ),
        ("vm.func @f(0) -> 0 registers 0 {\n^a:\nvm.call @g()\nvm.return()\n}", "no function @g"),
    ],
)
def test_refused_module(text: str, words: str) -> None:
    module = parse(text)
    module.verify()
    with pytest.raises(BytecodeError, match=words):
        module_to_program(module)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('vm.pool ["f16[] [1]"]', "unknown dtype 'f16'"),
        ('vm.pool ["int 1 2"]', "expected the end"),
        ('"test.op"() {a = #vm.index<"[a]">} : () -> ()', "expected an index"),
        ('"test.op"() {a = #vm.shape<"[:]">} : () -> ()', "expected a number"),
        ("vm.func @f(0) -> 0 registers 0 {\n^a:\nvm.move x = r0\n}", "a register such as r0"),
        ("vm.func @f(0) -> 0 registers 0 {\n^a:\nvm.cond_br x, ^a, ^a\n}", "a register such as"),
    ],
)
def test_refused_text(text: str, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        parse(text)


def test_attributes_have_bitwise_equality() -> None:
    zero, minus = (ConstantAttr(Constant.of(x)) for x in (0.0, -0.0))
    assert zero != minus
    assert ConstantAttr(Constant.of(float("nan"))) == ConstantAttr(Constant.of(float("nan")))
    text = f'"test.op"() {{a = {zero}}} : () -> ()'
    assert parse(text).ops.first.attributes["a"] == zero


def test_attributes_that_bytecode_has_not() -> None:
    for attribute in (FloatAttr(1.0, f32), ArrayAttr([StringAttr("a")])):
        with pytest.raises(VerifyException):
            from_attribute(attribute)
