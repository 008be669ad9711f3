"""LLVM IR text: constants exact, phis, attributes, and operations without a form refused by name."""

from __future__ import annotations

import pytest
from xdsl.parser import Parser

from jitdialects.dialects.context import make_context
from jitdialects.errors import CompileError
from jitdialects.runtime.engines.codegen import emit_object
from jitdialects.runtime.engines.llvm_text import llvm_ir


def text_of(source: str, *attributes: str) -> str:
    module = Parser(make_context(), source).parse_module()
    module.verify()
    ir = llvm_ir(module, attributes)
    emit_object(ir, "x86-64-v1")  # LLVM reads it
    return ir


def test_block_arguments_become_phis() -> None:
    ir = text_of("""
llvm.func @f(%n: i64) -> i64 {
  %zero = llvm.mlir.constant(0 : i64) : i64
  llvm.br ^loop(%zero : i64)
^loop(%i: i64):
  %one = llvm.mlir.constant(1 : i64) : i64
  %next = llvm.add %i, %one : i64
  %more = llvm.icmp "slt" %next, %n : i64
  llvm.cond_br %more, ^loop(%next : i64), ^end
^end:
  llvm.return %next : i64
}""")
    assert "phi i64 [ 0, %b0 ], [ %v" in ir
    assert ir.count("phi") == 1


def test_floats_keep_every_bit() -> None:
    ir = text_of("""
llvm.func @f() -> f32 {
  %a = llvm.mlir.constant(-0.0 : f32) : f32
  %b = llvm.mlir.constant(0.1 : f32) : f32
  %c = llvm.mlir.constant(0x7F800000 : f32) : f32
  %d = llvm.mlir.constant(dense<[1.0, 2.0]> : vector<2xf32>) : vector<2xf32>
  %e = llvm.fadd %d, %d : vector<2xf32>
  %s = llvm.fadd %a, %b : f32
  %t = llvm.fadd %s, %c : f32
  llvm.return %t : f32
}""")
    assert "fadd float 0x8000000000000000, 0x3FB99999A0000000" in ir
    assert ", 0x7FF0000000000000" in ir
    assert "<float 0x3FF0000000000000, float 0x4000000000000000>" in ir


def test_functions_carry_their_attributes() -> None:
    ir = text_of(
        'llvm.func @f() attributes {passthrough = ["cold", ["key", "value"]]} { llvm.return }',
        "nounwind",
    )
    assert 'define void @f() nounwind cold "key"="value" {' in ir


def test_names_are_quoted_where_needed() -> None:
    assert '@"a\\20b"' in text_of('llvm.func @"a b"() { llvm.return }')


def test_a_declared_intrinsic_is_declared_once() -> None:
    ir = text_of("""
llvm.func @f(%x: vector<4xf32>) -> vector<4xf32> {
  %a = llvm.intr.fma(%x, %x, %x) : (vector<4xf32>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>
  %b = llvm.intr.fma(%a, %a, %x) : (vector<4xf32>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>
  llvm.return %b : vector<4xf32>
}""")
    assert (
        ir.count("declare <4 x float> @llvm.fma.v4f32(<4 x float>, <4 x float>, <4 x float>)") == 1
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("func.func @f() { func.return }", "func.func at the top of the module is no llvm.func"),
        (
            "llvm.func @f(%x: i64) { %y = arith.addi %x, %x : i64\n llvm.return }",
            "arith.addi has no form in LLVM IR; lower it first",
        ),
        ("llvm.func @f(%x: f80) { llvm.return }", "type f80 has no form"),
        (
            """llvm.func @f(%c: i1, %x: i64, %y: i64) {
              llvm.cond_br %c, ^e(%x : i64), ^e(%y : i64)
            ^e(%z: i64):
              llvm.return
            }""",
            "passes different values to one block",
        ),
    ],
)
def test_do_not_print_what_has_no_form(source: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        text_of(source)


@pytest.mark.parametrize("body", ["nonsense", "%b = add i64 %a, 1\n %a = add i64 1, 1\n ret void"])
def test_text_that_llvm_refuses_is_a_compile_error(body: str) -> None:
    with pytest.raises(CompileError, match="LLVM refuses the IR text"):
        emit_object(f"define void @f() {{ {body} }}", "x86-64-v1")


def test_unknown_levels_are_named() -> None:
    with pytest.raises(CompileError, match="unknown feature level 'x86-64-v9'; known: x86-64-v1"):
        emit_object("define void @f() { ret void }", "x86-64-v9")
