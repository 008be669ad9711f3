"""Faults in loops and branches that users of other compilers reported.

The reference in a docstring says which report.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from differential.harness import Compiled, assert_same, by_oracle, interpreted
from loop_eval import interpret
from xdsl.parser import Parser
from xdsl.passes import ModulePass

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import parse
from jitdialects.dialects.context import make_context
from jitdialects.lowering.pipelines import lower_program
from jitdialects.passes.loop_unroll import LoopUnrollPass
from jitdialects.passes.loop_vectorize import LoopVectorizePass

CONTEXT = make_context()
COUNT = """
func.func @count(%from: index, %to: index, %hits: memref<16xi64>) {
  %one = arith.constant 1 : index
  %offset = arith.constant 8 : index
  %increment = arith.constant 1 : i64
  scf.for %i = %from to %to step %one {
    %at = arith.addi %i, %offset : index
    %old = memref.load %hits[%at] : memref<16xi64>
    %new = arith.addi %old, %increment : i64
    memref.store %new, %hits[%at] : memref<16xi64>
  } {loop.kind = "parallel"}
  func.return
}
"""


def hits(first: int, last: int, *passes: ModulePass) -> list[int]:
    """How often each iteration of `for i in first..last` runs, after `passes`."""
    module = Parser(CONTEXT, COUNT).parse_module()
    for each in passes:
        each.apply(CONTEXT, module)
    counted = np.zeros(16, np.int64)
    interpret(module, "count", first, last, counted)
    return counted.tolist()


def program_of(function: Callable[..., object], *arguments: object) -> Program:
    f = jd.jit(function)
    f(*arguments)
    return f.program


def agree(code: Compiled, program: Program, *arguments: object) -> None:
    want = interpreted(program, arguments)
    assert_same(by_oracle(program, arguments), want, f"by definition {arguments}")
    assert_same(code.run(arguments), want, f"compiled {arguments}")


FACTORS = (LoopUnrollPass(factor=4), LoopUnrollPass(factor=6), LoopVectorizePass(width=4))


@pytest.mark.parametrize("each", FACTORS, ids=str)
@pytest.mark.parametrize(
    ("first", "last"), [(-3, 4), (0, 0), (2, -2), (-8, -8), (0, 4), (0, 7), (-8, 8), (5, 6)]
)
def test_every_iteration_runs_once(each: ModulePass, first: int, last: int) -> None:
    """llvm/llvm-project#223232, #223233, Xilinx/mlir-aie#1556: bounds known only when it runs, trip counts
    of 0, negative bounds, factors above the trip count."""
    assert hits(first, last, each) == [int(first <= k - 8 < last) for k in range(16)]


def test_loops_of_no_steps_and_negative_bounds() -> None:
    """llvm/llvm-project#223232 and #223233, from the front door."""

    def walk(first, last, x):
        return jd.fori_loop(first, last, lambda i, v: v * 0.5 + i, x)

    x = np.arange(9, dtype=np.float32)
    program = program_of(walk, 0, 1, x)
    code = Compiled(program, parse("main(int, int, f32[n])"))
    for first, last in [(5, 1), (0, 0), (-3, -3), (-3, 4), (-8, -1), (2, 9)]:
        agree(code, program, first, last, x)


def test_sums_of_shifted_slices() -> None:
    """numba/numba#8007: b += pad[i:i+h, j:j+w] over a 5x5 window was wrong in parallel."""

    def smooth(pad):
        def row(i, out):
            return jd.fori_loop(0, 5, lambda j, out: out + pad[i : i + 12, j : j + 20], out)

        return jd.fori_loop(0, 5, row, jnp.zeros((12, 20), jnp.float32))

    pad = np.random.default_rng(0).standard_normal((16, 24)).astype(np.float32)
    program = program_of(smooth, pad)
    agree(Compiled(program, parse("main(f32[16,24])")), program, pad)
    agree(Compiled(program, parse("main(f32[n,m])")), program, pad)


@pytest.mark.parametrize("fuse", [True, False])
def test_each_branch_has_its_temporaries(fuse: bool) -> None:
    """apache/tvm#20191: what one branch allocated was used in the other."""

    def choose(c, x):
        def chain(scale):
            y = (x * scale).reshape(-1, 2).T
            return (jnp.exp(y) @ y.T).reshape(-1) + scale

        return jd.cond(c, lambda: chain(2.0), lambda: chain(-0.5)), x.sum()

    x = np.linspace(-1, 1, 12, dtype=np.float32)
    program = program_of(choose, True, x)
    code = Compiled(program, parse("main(pybool, f32[12])"), fuse=fuse)
    for c in (True, False):
        agree(code, program, c, x)


def test_many_branches_cost_in_proportion() -> None:
    """jax-ml/jax#4453: a switch of n branches took time that grew faster than n. Counted, not timed."""

    def pick(n: int) -> Program:
        branches = [lambda x, k=k: x * (k + 1) - k for k in range(n)]
        return program_of(lambda i, x: jd.switch(i, branches, x), 1, np.ones(3, np.float32))

    def operations(n: int) -> tuple[int, int, int]:
        program = pick(n)
        module, facts = lower_program(program, parse("main(int, f32[3])"), "x86-64-v3", dump=True)
        fused = next(text for stage, text in facts.stages.items() if "tssa-fuse" in stage)
        written = sum(len(b.instructions) for f in program.functions for b in f.blocks)
        return written, fused.count("\n"), sum(1 for _ in module.walk())

    few, some, many = operations(4), operations(8), operations(16)
    for small, middle, large in zip(few, some, many, strict=True):
        assert large - middle <= 2.1 * (middle - small)


def test_shapes_that_grow_around_a_loop_are_interpreted_and_explained() -> None:
    """A carried value of another shape has no one type: the interpreter goes on, and says why."""

    def shrink(x):
        return jd.while_loop(lambda v: v.sum() > 10, lambda v: v[1:], x)

    f = jd.jit(shrink)
    x = np.arange(8, dtype=np.float32)
    for _ in range(12):
        assert f(x[::-1].copy()).tolist() == [4, 3, 2, 1, 0]
    f.wait()
    assert "has shape" in jd.explain(f) and "on one path" in jd.explain(f)
