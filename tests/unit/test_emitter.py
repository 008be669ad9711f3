"""Sizes as values, refusals of the tensor lowerings, and one rule for every operator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loop_eval import interpret
from xdsl.dialects.builtin import ModuleOp, f32, i64
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import PassFailedException

from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import FUNCTIONS, Dim
from jitdialects.bytecode.operators import OPERATORS, Kind
from jitdialects.dialects.context import make_context
from jitdialects.errors import CompileError
from jitdialects.lowering.convert_tssa_to_loop import ConvertTssaToLoopPass
from jitdialects.lowering.emitter import Emitter
from jitdialects.lowering.loop_elementwise import MAX_TABLE
from jitdialects.lowering.scalar_rules import RULES
from jitdialects.lowering.tssa_bufferize import TssaBufferizePass
from jitdialects.passes.tssa_fuse import TssaFusePass

CONTEXT = make_context()
SIZES = """
func.func @f(%a: memref<?x4x?xf32> {tssa.dims = #tssa.dims<[n, 4, m]>}, %k: i64, %t: memref<i64>)
    -> index {
  %0 = arith.constant 0 : index
  func.return %0 : index
}
"""
N, M, S1, S2 = (dims.symbol(name) for name in ("n", "m", "s1", "s2"))
ATOMS: st.SearchStrategy[Dim] = st.sampled_from([N, M, S1, S2]) | st.integers(-3, 9)


def parse(text: str) -> tuple[ModuleOp, FuncOp]:
    module = Parser(CONTEXT, text).parse_module()
    module.verify()
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    return module, function


def value_of(size: Dim, n: int, m: int, s1: int, s2: int) -> int:
    """`size` computed by emitted code."""
    module, function = parse(SIZES)
    result = Emitter(function).size(size)
    last = function.body.block.last_op
    assert last is not None
    last.operands[0] = result
    module.verify()
    (value,) = interpret(module, "f", np.zeros((n, 4, m), np.float32), s1, np.array(s2))
    return value


@given(
    st.recursive(
        ATOMS,
        lambda inner: (
            st.builds(dims.add, inner, inner)
            | st.builds(dims.sub, inner, inner)
            | st.builds(dims.mul, inner, inner)
            | st.builds(dims.apply, st.sampled_from(["min", "max", "wrap"]), inner, inner)
            | st.builds(dims.floordiv, inner, st.integers(1, 70))
        ),
        max_leaves=6,
    ),
    st.integers(-9, 9),
    st.integers(-9, 9),
)
def test_every_expression_has_its_value(size: Dim, s1: int, s2: int) -> None:
    env = {"n": 3, "m": 0, "s1": s1, "s2": s2}
    assert value_of(size, 3, 0, s1, s2) == dims.evaluate(size, env)


def test_the_cases_above_name_every_function() -> None:
    assert set(FUNCTIONS) == {"min", "max", "wrap", "floordiv", "mul"}


def test_division_by_a_size_of_zero_does_not_trap() -> None:
    """Guards refuse such a call, but the size is computed before anybody asks for it."""
    assert value_of(dims.floordiv(N, M), 3, 0, 0, 0) == 3


def test_equal_sizes_and_constants_are_one_value() -> None:
    _, function = parse(SIZES)
    at = Emitter(function)
    assert at.size(dims.add(N, 1)) is at.size(dims.add(1, N))
    assert at.constant(i64, 3) is at.constant(i64, 3)
    assert at.constant(f32, 0.0) is not at.constant(f32, -0.0)


def test_an_unknown_size_is_refused_in_a_sentence() -> None:
    _, function = parse(SIZES)
    with pytest.raises(PassFailedException, match="no argument of @f has a size 'q'"):
        Emitter(function).size(dims.symbol("q"))


def test_every_elementwise_operator_has_a_rule() -> None:
    assert set(RULES) == {o.name for o in OPERATORS.values() if o.kind is Kind.ELEMENTWISE}


# ---- refusals ----------------------------------------------------------------------------------


def test_bufferization_asks_for_groups() -> None:
    module, _ = parse("""
    func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
      func.return %0 : tensor<8xf32>
    }""")
    with pytest.raises(PassFailedException, match="tssa.exp is not in a tssa.group; run tssa-fuse"):
        TssaBufferizePass().apply(CONTEXT, module)


def test_bufferization_asks_for_branches_of_cf() -> None:
    module, _ = parse("""
    func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
      "test.termop"() : () -> ()
    }""")
    with pytest.raises(PassFailedException, match="must end in cf.br, cf.cond_br or func.return"):
        TssaBufferizePass().apply(CONTEXT, module)


def test_loops_need_buffers() -> None:
    module, _ = parse("""
    func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = tssa.exp %x : (tensor<8xf32>) -> tensor<8xf32>
      func.return %0 : tensor<8xf32>
    }""")
    TssaFusePass().apply(CONTEXT, module)
    with pytest.raises(PassFailedException, match="run tssa-bufferize first"):
        ConvertTssaToLoopPass().apply(CONTEXT, module)


def test_a_large_table_is_left_to_the_interpreter() -> None:
    numbers = ", ".join(f"{i}.0" for i in range(MAX_TABLE + 1))
    type = f"tensor<{MAX_TABLE + 1}xf32>"
    module, _ = parse(f"""
    func.func @f() -> {type} {{
      %0 = tssa.constant {{value = dense<[{numbers}]> : {type}}} : () -> {type}
      func.return %0 : {type}
    }}""")
    TssaFusePass().apply(CONTEXT, module)
    TssaBufferizePass().apply(CONTEXT, module)
    with pytest.raises(CompileError, match="pass it as an argument"):
        ConvertTssaToLoopPass().apply(CONTEXT, module)
