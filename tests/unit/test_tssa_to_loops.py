"""Meaning: tensor passes down to loops against the oracle, executed by `tests/loop_eval.py`.

Everything is interpreted loop by loop with checked accesses, so the code generator takes no part. exp and tanh
are not (their steps come later): programs here have exactly rounded operators and sums.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import oracle
import pytest
from differential.generator import SIZES, cases
from differential.harness import assert_same
from loop_eval import interpret
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from jitdialects.analysis.dominance import check_dominance
from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Expr, Symbol
from jitdialects.bytecode.operators import ELEMENTARY
from jitdialects.bytecode.program import Program
from jitdialects.dialects.context import make_context
from jitdialects.dialects.tssa_types import DimsAttr, dtype_of, shape_of
from jitdialects.lowering.bytecode_to_vm import program_to_module
from jitdialects.lowering.convert_tssa_to_loop import ConvertTssaToLoopPass
from jitdialects.lowering.convert_vm_to_tssa import ConvertVmToTssaPass
from jitdialects.lowering.tssa_bufferize import TssaBufferizePass
from jitdialects.passes.tssa_fuse import TssaFusePass

CONTEXT = make_context()
F32 = np.float32


class Lowered:
    """A tensor function as loops, and how to call it with arrays."""

    def __init__(self, module: ModuleOp, merge: bool = True) -> None:
        (function,) = module.ops
        assert isinstance(function, FuncOp)
        self.module = module
        self.formals = [(dtype_of(t), shape_of(t)) for t in function.function_type.inputs]
        self.results = [(dtype_of(t), shape_of(t)) for t in function.function_type.outputs]
        self.weak = ["tssa.weak" in a.data for a in function.arg_attrs or ()] or (
            [False] * len(self.formals)
        )
        for each in (TssaFusePass(merge=merge), TssaBufferizePass(), ConvertTssaToLoopPass()):
            each.apply(CONTEXT, module)
            module.verify()
            check_dominance(module)
        arena = function.attributes["tssa.arena"]
        assert isinstance(arena, DimsAttr)
        (self.arena,) = arena.data
        self.name = function.sym_name.data

    def run(self, arguments: Sequence[object]) -> list[np.ndarray]:
        """Call on arrays and Python scalars; the arguments must come back unchanged."""
        symbols: dict[str, int] = {}
        passed: list[object] = []
        for number, (argument, weak) in enumerate(zip(arguments, self.weak, strict=True)):
            array = np.asarray(argument)
            if not array.ndim and array.dtype == np.int64:
                symbols[f"s{number}"] = int(array)
            for size, expression in zip(array.shape, self.formals[number][1], strict=True):
                if isinstance(expression, Expr) and isinstance(expression.terms[0][0], Symbol):
                    symbols.setdefault(expression.terms[0][0].name, size)
            passed.append(argument if weak else array.view(_stored(array.dtype)))
        outs = [
            np.full([dims.evaluate(s, symbols) for s in shape], 77, _stored(dtype.numpy))
            for dtype, shape in self.results
        ]
        arena = np.full(dims.evaluate(self.arena, symbols), 0x55, np.int8)
        before = [np.array(p) for p in passed]
        interpret(self.module, self.name, *passed, *outs, arena)
        for old, new in zip(before, passed, strict=True):
            assert old.tobytes() == np.array(new).tobytes(), "an argument was written"
        return [out.view(d.numpy) for out, (d, _) in zip(outs, self.results, strict=True)]


def _stored(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.int8) if dtype == np.bool_ else dtype


def parsed(text: str) -> Lowered:
    module = Parser(CONTEXT, text).parse_module()
    module.verify()
    return Lowered(module)


def compiled(program: Program, signature: str, merge: bool = True) -> Lowered:
    module = program_to_module(program)
    ConvertVmToTssaPass(signature).apply(CONTEXT, module)
    return Lowered(module, merge)


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    """Values of very different size, so that every order of summation gives other bits."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-4, 4, shape)
    return np.asarray(values, F32)


# ---- sums, maxima, products: the orders --------------------------------------------------------

VECTOR = "tensor<?xf32, #tssa.dims<[n]>>"
LENGTHS = (0, 1, 31, 32, 33, 4095, 4096, 4097, 8192 + 5, 5 * 4096 + 70)


def test_sum_has_the_order_of_the_contract_at_every_edge() -> None:
    lowered = parsed(f"""
    func.func @main(%x: {VECTOR}) -> tensor<f32> {{
      %s = tssa.sum %x {{axes = array<i64: 0>}} : ({VECTOR}) -> tensor<f32>
      func.return %s : tensor<f32>
    }}""")
    for n in LENGTHS:
        x = floats(n, seed=n)
        assert_same(lowered.run([x]), [oracle.ordered_sum(x[None]).reshape(())], f"{n}")


@pytest.mark.parametrize("n", [0, 1, 10, 31, 32, 33, 64, 70, 4096, 4097])
def test_sum_of_a_static_length(n: int) -> None:
    lowered = parsed(f"""
    func.func @main(%x: tensor<2x{n}xf32>) -> tensor<2xf32> {{
      %s = tssa.sum %x {{axes = array<i64: 1>}} : (tensor<2x{n}xf32>) -> tensor<2xf32>
      func.return %s : tensor<2xf32>
    }}""")
    x = floats(2, n, seed=n)
    assert_same(lowered.run([x]), [oracle.ordered_sum(x)], f"{n}")


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_the_sum_of_zeros_is_plus_zero(zero: float) -> None:
    lowered = parsed(f"""
    func.func @main(%x: {VECTOR}) -> tensor<f32> {{
      %s = tssa.sum %x {{axes = array<i64: 0>}} : ({VECTOR}) -> tensor<f32>
      func.return %s : tensor<f32>
    }}""")
    for n in (0, 1, 33):
        (got,) = lowered.run([np.full(n, zero, F32)])
        assert not np.signbit(got), n


def test_dot_has_the_order_of_sums_with_fma() -> None:
    lowered = parsed(f"""
    func.func @main(%x: {VECTOR}, %y: {VECTOR}) -> tensor<f32> {{
      %s = tssa.matmul %x, %y : ({VECTOR}, {VECTOR}) -> tensor<f32>
      func.return %s : tensor<f32>
    }}""")
    for n in (0, 1, 32, 33, 4097):
        x, y = floats(n, seed=n), floats(n, seed=n + 1)
        assert_same(lowered.run([x, y]), [oracle.matmul(x, y)], f"{n}")


def test_product_has_blocks_of_512_and_starts_at_minus_zero() -> None:
    left, right = "tensor<2x?xf32, #tssa.dims<[2, k]>>", "tensor<?x3xf32, #tssa.dims<[k, 3]>>"
    lowered = parsed(f"""
    func.func @main(%x: {left}, %y: {right}) -> tensor<2x3xf32> {{
      %s = tssa.matmul %x, %y : ({left}, {right}) -> tensor<2x3xf32>
      func.return %s : tensor<2x3xf32>
    }}""")
    for k in (0, 1, 511, 512, 513, 1030):
        x, y = floats(2, k, seed=k), floats(k, 3, seed=k + 1)
        assert_same(lowered.run([x, y]), [oracle.matmul(x, y)], f"{k}")
    tiny = np.full((2, 1), -1e-30, F32)  # -1e-60 rounds to -0.0, which adding +0.0 would lose
    got = lowered.run([tiny, np.full((1, 3), 1e-30, F32)])
    assert_same(got, [oracle.matmul(tiny, np.full((1, 3), 1e-30, F32))], "-0.0")


@pytest.mark.parametrize(("shape", "text"), [((), "f32"), ((5,), "5xf32"), ((3, 41), "3x41xf32")])
def test_maximum_over_all_axes(shape: tuple[int, ...], text: str) -> None:
    axes = ", ".join(map(str, range(len(shape))))
    lowered = parsed(f"""
    func.func @main(%x: tensor<{text}>) -> tensor<f32> {{
      %s = tssa.max %x {{axes = array<i64{": " + axes if axes else ""}>}} : (tensor<{text}>) -> tensor<f32>
      func.return %s : tensor<f32>
    }}""")
    x = floats(*shape)
    assert_same(lowered.run([x]), [np.max(x)], text)
    x[(0,) * len(shape)] = np.nan
    assert np.isnan(lowered.run([x])[0])


# ---- what users of other systems ran into ------------------------------------------------------


def text_program(text: str) -> Program:
    return Program.from_text(text)


def test_a_write_before_a_read_stays_before_it() -> None:
    """s[:2] = 1, then s * 2 and the old s: fusion must not carry the reader over the writer."""
    program = text_program("""
#0 = float 1.0
func @main(%0) -> 2 {
^entry:
  %1 = const #0
  %2 = setitem %0, %1 {index = [:2]}
  %3 = add %2, %2
  %4 = add %0, %0
  return %3, %4
}""")
    x = floats(5)
    changed = x.copy()
    changed[:2] = 1
    for merge in (True, False):
        got = compiled(program, "main(f32[n])", merge).run([x])
        assert_same(got, [changed + changed, x + x], "order")


def test_the_sum_of_a_product_keeps_its_inputs() -> None:
    program = text_program("""
func @main(%0, %1) -> 1 {
^entry:
  %2 = matmul %0, %1
  %3 = sum %2 {axis = -1}
  %4 = sum %3
  return %4
}""")
    x, y = floats(4, 3), floats(3, 5, seed=1)
    want = oracle.ordered_sum(oracle.ordered_sum(oracle.matmul(x, y))[None]).reshape(())
    assert_same(compiled(program, "main(f32[n,k], f32[k,m])").run([x, y]), [want], "sum")


@pytest.mark.parametrize("shapes", [((0,), (0,)), ((0, 5), (5, 3)), ((3, 0), (0, 4))])
def test_axes_of_size_zero(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    program = text_program("""
func @main(%0, %1) -> 1 {
^entry:
  %2 = add %0, %0
  %3 = matmul %2, %1
  return %3
}""")
    x, y = (np.zeros(s, F32) for s in shapes)
    signature = "main(f32[n], f32[n])" if x.ndim == 1 else "main(f32[n,k], f32[k,m])"
    want = np.zeros(x.shape[:-1] + y.shape[1:], F32)
    assert_same(compiled(program, signature).run([x, y]), [want], "empty")


def test_the_result_is_no_scratch_space_for_its_operand() -> None:
    """x - x * 0.001 with the caller's buffer as only temporary."""
    program = text_program("""
#0 = float 0.001
func @main(%0) -> 1 {
^entry:
  %1 = const #0
  %2 = multiply %0, %1
  %3 = subtract %0, %2
  return %3
}""")
    x = np.ones(5, F32)
    for merge in (True, False):
        got = compiled(program, "main(f32[n])", merge).run([x])
        assert_same(got, [x - x * F32(0.001)], "scratch")


def test_a_value_read_after_its_update_is_not_recycled() -> None:
    """x <- x + (y - x) * 0.5, read by the next kernel, then another value of the same size."""
    program = text_program("""
#0 = float 0.5
func @main(%0, %1) -> 3 {
^entry:
  %2 = subtract %1, %0
  %3 = const #0
  %4 = multiply %2, %3
  %5 = add %0, %4
  %6 = sum %5
  %7 = multiply %5, %5
  %8 = sum %7
  %9 = negative %0
  return %5, %9, %8
}""")
    x, y = floats(9), floats(9, seed=1)
    lerp = x + (y - x) * F32(0.5)
    want = [lerp, -x, oracle.ordered_sum((lerp * lerp)[None]).reshape(())]
    for merge in (True, False):
        assert_same(compiled(program, "main(f32[n], f32[n])", merge).run([x, y]), want, "lerp")


def test_views_of_strided_arguments_have_the_values_of_the_interpreter() -> None:
    program = text_program("""
func @main(%0) -> 2 {
^entry:
  %1 = getitem %0 {index = [:, 1:2]}
  %2 = transpose %0
  %3 = reshape %2 {shape = [-1]}
  return %1, %3
}""")
    wide = floats(6, 8)
    for x in (wide[::2, ::-1], wide.T, wide[::-1, 1::3]):
        got = compiled(program, "main(f32[n,m]:strided)").run([x])
        assert_same(got, [x[:, 1:2], x.T.reshape(-1)], "strided")


def test_buffers_of_two_branches() -> None:
    program = text_program("""
func @main(%0, %1) -> 1 {
^entry:
  cond_br %1, ^left, ^right
^left:
  %2 = reshape %0 {shape = [2, -1]}
  %3 = add %2, %2
  %4 = sum %3 {axis = -1}
  br ^join
^right:
  %2 = reshape %0 {shape = [2, -1]}
  %3 = multiply %2, %2
  %4 = sum %3 {axis = -1}
  br ^join
^join:
  return %4
}""")
    x = floats(10)
    lowered = compiled(program, "main(f32[10], bool[])")
    for taken in (True, False):
        rows = (x + x if taken else x * x).reshape(2, 5)
        got = lowered.run([x, np.array(taken)])
        assert_same(got, [oracle.ordered_sum(rows)], f"{taken}")


def test_a_loop_that_swaps_its_values() -> None:
    program = text_program("""
#0 = int 1
#1 = int 0
func @main(%0, %1, %2) -> 2 {
^entry:
  br ^head
^head:
  %3 = const #1
  %4 = greater %2, %3
  cond_br %4, ^body, ^done
^body:
  %5 = add %0, %1
  %0 = move %1
  %1 = move %5
  %6 = const #0
  %7 = subtract %2, %6
  %2 = move %7
  br ^head
^done:
  return %0, %1
}""")
    lowered = compiled(program, "main(i64[n], i64[n], i64[])")
    for steps in (0, 1, 2, 7):
        a, b = np.array([0, 1]), np.array([1, 3])
        got = lowered.run([a, b, np.array(steps)])
        for _ in range(steps):
            a, b = b, a + b
        assert_same(got, [a, b], f"{steps} steps")


# ---- random programs ---------------------------------------------------------------------------


@pytest.mark.parametrize("merge", [True, False])
def test_random_programs_keep_their_bits(merge: bool) -> None:
    done = 0
    for case in cases(91, 40):
        used = {i.opcode for f in case.program.functions for b in f.blocks for i in b.instructions}
        if used & set(ELEMENTARY):
            continue
        lowered = compiled(case.program, str(case.signature), merge)
        for sizes in (SIZES[0], SIZES[3]):
            arguments = case.arguments(sizes)
            want = [v.array for v in oracle.run_program(case.program, arguments)]
            assert_same(lowered.run(arguments), want, f"{case.program.to_text()}\n{sizes}")
        done += 1
    assert done >= 10
