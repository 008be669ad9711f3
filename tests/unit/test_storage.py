"""The storage plan against a checker that shares no code with it.

The checker walks the function at random and keeps, for every 64 bytes of every memory, a tag of the value
written last. Whatever a group, a copy or the caller reads must still carry the tag of the value that was meant.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from differential.generator import SIZES, cases
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.parser import Parser

from jitdialects.analysis.storage import (
    Edge,
    Root,
    StoragePlan,
    is_at_most,
    is_never_negative,
    round_up,
)
from jitdialects.analysis.storage_check import wrong_with
from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Expr, Symbol
from jitdialects.dialects.context import make_context
from jitdialects.dialects.tssa_types import shape_of
from jitdialects.lowering.bytecode_to_vm import program_to_module
from jitdialects.lowering.convert_vm_to_tssa import ConvertVmToTssaPass
from jitdialects.lowering.tssa_bufferize import copy_what_cannot_be_viewed
from jitdialects.passes.tssa_dce import TssaDcePass
from jitdialects.passes.tssa_fuse import TssaFusePass

CONTEXT = make_context()
MAX_STEPS = 40


class Checker:
    """Memory by 64-byte lines: the arena, and one memory per argument and result."""

    def __init__(self, plan: StoragePlan, sizes: dict[str, int]) -> None:
        self.plan, self.sizes = plan, sizes
        self.arena = np.zeros(dims.evaluate(plan.arena_size, sizes) // 64, np.int64)
        self.fixed: dict[Root, np.ndarray] = {}
        self.tags: dict[Root, int] = {}
        self.next = 1
        for root in dict.fromkeys(plan.roots.values()):
            if root.place == "argument":
                self.write(root)

    def memory(self, root: Root) -> np.ndarray:
        storage = self.plan.storage[root]
        lines = -(-dims.evaluate(root.size, self.sizes) // 64)
        fixed = storage.fixed
        if fixed is not None:
            own = self.fixed.setdefault(fixed, np.zeros(lines, np.int64))
            assert len(own) == lines, "a root of another size in a caller's buffer"
            return own
        start = dims.evaluate(storage.offset, self.sizes)
        assert start % 64 == 0 and start // 64 + lines <= len(self.arena), "outside the arena"
        return self.arena[start // 64 : start // 64 + lines]

    def write(self, root: Root, tag: int | None = None) -> None:
        if tag is None:
            self.next += 1
            tag = self.next
        self.tags[root] = tag
        self.memory(root)[:] = tag

    def read(self, root: Root) -> int:
        assert (self.memory(root) == self.tags[root]).all(), "a live value was overwritten"
        return self.tags[root]

    def run(self, function: FuncOp, rng: random.Random) -> None:
        block = function.body.blocks[0]
        for _ in range(MAX_STEPS):
            for op in block.ops:
                for value in op.operands:
                    if value in self.plan.roots and op.name in ("tssa.group", "tensor.extract"):
                        self.read(self.plan.roots[value])
                if op.name == "tssa.group":
                    for value in op.operands:
                        root = self.plan.roots[value]
                        if root.place == "argument":
                            memory = self.plan.storage[root]
                            assert all(memory is not self.plan.storage_of(r) for r in op.results)
                    for result in op.results:
                        self.write(self.plan.roots[result])
                    for result in op.results:
                        self.read(self.plan.roots[result])
            edge = rng.choice(list(self.plan.edges_of(block)))
            self.move(edge)
            if edge.successor is None:
                return
            block = edge.successor

    def move(self, edge: Edge) -> None:
        want = {m.target: self.read(self.plan.roots[m.source]) for m in edge.moves}
        for step in self.plan.steps(edge):
            source = step.temporary or self.plan.roots[step.source]
            self.write(step.target, self.read(source))
        for target, tag in want.items():
            self.tags[target] = tag
            self.read(target)


def function_of(module: ModuleOp) -> FuncOp:
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    return function


def symbols_of(function: FuncOp, sizes: dict[str, int]) -> dict[str, int]:
    """Values for all symbols of a function; those of integer arguments are 2."""
    out = dict(sizes)
    for number, argument in enumerate(function.body.blocks[0].args):
        out[f"s{number}"] = 2
        for size in shape_of(argument):
            if isinstance(size, Expr):
                for atom, _ in size.terms:
                    if isinstance(atom, Symbol):
                        out.setdefault(atom.name, 3)
    return out


def check(function: FuncOp, sizes: Sequence[dict[str, int]], seed: int = 0) -> StoragePlan:
    copy_what_cannot_be_viewed(function)
    plan = StoragePlan(function)
    assert wrong_with(function, plan) is None
    for size in sizes:
        for walk in range(4):
            rng = random.Random(seed * 100 + walk)
            Checker(plan, symbols_of(function, size)).run(function, rng)
    return plan


@pytest.mark.parametrize("seed", range(6))
def test_no_live_value_is_overwritten_in_random_programs(seed: int) -> None:
    for number, case in enumerate(cases(40 + seed, 12)):
        module = program_to_module(case.program)
        ConvertVmToTssaPass(str(case.signature)).apply(CONTEXT, module)
        if number % 3:  # results that nobody reads are values too
            TssaDcePass().apply(CONTEXT, module)
        TssaFusePass(merge=number % 2 == 0).apply(CONTEXT, module)
        check(function_of(module), SIZES[:3], seed)


def parsed(text: str, merge: bool = True) -> FuncOp:
    module = Parser(CONTEXT, text).parse_module()
    module.verify()
    TssaFusePass(merge=merge).apply(CONTEXT, module)
    return function_of(module)


V, B = "tensor<8xf32>", "tensor<i1>"


def test_a_rotation_of_three_needs_one_temporary() -> None:
    plan = check(
        parsed(f"""
    func.func @f(%x: {V}, %y: {V}, %z: {V}, %g: {B}) -> ({V}, {V}, {V}) {{
      cf.br ^loop(%x, %y, %z : {V}, {V}, {V})
    ^loop(%a: {V}, %b: {V}, %d: {V}):
      %c = tensor.extract %g[] : {B}
      cf.cond_br %c, ^loop(%b, %d, %a : {V}, {V}, {V}), ^done
    ^done:
      func.return %a, %b, %d : {V}, {V}, {V}
    }}"""),
        [{}],
    )
    assert [len(edge.temporaries) for edge in plan.edges] == [0, 1, 0, 0]
    assert plan.arena_size == 64  # only the temporary: the homes are the caller's buffers


def test_returns_that_disagree_about_the_order_of_results() -> None:
    check(
        parsed(f"""
    func.func @f(%x: {V}, %g: {B}) -> ({V}, {V}) {{
      %a = tssa.exp %x : ({V}) -> {V}
      %b = tssa.abs %x : ({V}) -> {V}
      %c = tensor.extract %g[] : {B}
      cf.cond_br %c, ^left, ^right
    ^left:
      func.return %a, %b : {V}, {V}
    ^right:
      func.return %b, %a : {V}, {V}
    }}"""),
        [{}],
    )


def test_a_value_passed_twice_and_returned_twice() -> None:
    check(
        parsed(f"""
    func.func @f(%x: {V}, %g: {B}) -> ({V}, {V}) {{
      %a = tssa.exp %x : ({V}) -> {V}
      cf.br ^loop(%a, %a : {V}, {V})
    ^loop(%v: {V}, %w: {V}):
      %u = tssa.add %v, %w : ({V}, {V}) -> {V}
      %c = tensor.extract %g[] : {B}
      cf.cond_br %c, ^loop(%u, %v : {V}, {V}), ^done
    ^done:
      func.return %u, %u : {V}, {V}
    }}"""),
        [{}],
    )


def test_a_transposed_value_in_its_own_home() -> None:
    matrix = "tensor<4x4xf32>"
    plan = check(
        parsed(f"""
    func.func @f(%x: {matrix}, %g: {B}) -> {matrix} {{
      cf.br ^loop(%x : {matrix})
    ^loop(%v: {matrix}):
      %t = tssa.transpose %v {{permutation = array<i64: 1, 0>}} : ({matrix}) -> {matrix}
      %c = tensor.extract %g[] : {B}
      cf.cond_br %c, ^loop(%t : {matrix}), ^done
    ^done:
      func.return %v : {matrix}
    }}"""),
        [{}],
    )
    assert sum(len(edge.temporaries) for edge in plan.edges) == 1


def test_the_checker_notices_a_wrong_plan() -> None:
    function = parsed(
        f"""
    func.func @f(%x: {V}) -> tensor<f32> {{
      %a = tssa.exp %x : ({V}) -> {V}
      %s = tssa.sum %a {{axes = array<i64: 0>}} : ({V}) -> tensor<f32>
      %b = tssa.broadcast %s : (tensor<f32>) -> {V}
      %d = tssa.divide %a, %b : ({V}, {V}) -> {V}
      %t = tssa.sum %d {{axes = array<i64: 0>}} : ({V}) -> tensor<f32>
      func.return %t : tensor<f32>
    }}""",
        merge=False,
    )
    plan = StoragePlan(function)
    for storage in plan.storage.values():
        storage.offset = 0
    with pytest.raises(AssertionError, match="overwritten"):
        Checker(plan, {}).run(function, random.Random(0))
    wrong = wrong_with(function, plan)
    assert wrong is not None and "begins or ends elsewhere" in wrong


SOFTMAX_OF_EXP = """
    func.func @f(%x: tensor<4x8xf32>, %p: tensor<2x2xf32>) -> tensor<4x8xf32> {
      %a = tssa.insert %x, %p {offsets = #tssa.dims<[1, 1]>, steps = array<i64: 1, 1>}
        : (tensor<4x8xf32>, tensor<2x2xf32>) -> tensor<4x8xf32>
      %e = tssa.exp %a : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %s = tssa.sum %e {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
      %r = tssa.reshape %s : (tensor<4xf32>) -> tensor<4x1xf32>
      %b = tssa.broadcast %r : (tensor<4x1xf32>) -> tensor<4x8xf32>
      %d = tssa.divide %e, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %z = tssa.multiply %d, %a : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      func.return %z : tensor<4x8xf32>
    }"""


def one_storage(plan: StoragePlan, function: FuncOp, left: int, right: int) -> None:
    """Put the results of two groups into one memory, whatever that breaks."""
    groups = [op for op in function.body.block.ops if op.name == "tssa.group"]
    roots = [plan.roots[groups[number].results[0]] for number in (left, right)]
    plan.storage[roots[0]] = plan.storage[roots[1]]


def test_the_checker_notices_a_row_that_is_overwritten_while_it_is_needed() -> None:
    function = parsed(SOFTMAX_OF_EXP)
    plan = StoragePlan(function)
    assert wrong_with(function, plan) is None
    one_storage(plan, function, 0, 1)
    wrong = wrong_with(function, plan)
    assert wrong is not None and "read again after the result begins to be written" in wrong


def test_the_checker_notices_results_of_one_group_in_one_place() -> None:
    function = parsed(f"""
    func.func @f(%x: {V}) -> ({V}, {V}) {{
      %a = tssa.exp %x : ({V}) -> {V}
      %b = tssa.abs %a : ({V}) -> {V}
      func.return %a, %b : {V}, {V}
    }}""")
    plan = StoragePlan(function)
    group = function.body.block.first_op
    assert group is not None
    plan.storage[plan.roots[group.results[0]]] = plan.storage_of(group.results[1])
    wrong = wrong_with(function, plan)
    assert wrong is not None and "share bytes" in wrong


def test_the_checker_notices_a_product_in_place_and_a_small_arena() -> None:
    matrix = "tensor<4x4xf32>"
    function = parsed(f"""
    func.func @f(%x: {matrix}) -> {matrix} {{
      %a = tssa.exp %x : ({matrix}) -> {matrix}
      %b = tssa.matmul %a, %x : ({matrix}, {matrix}) -> {matrix}
      func.return %b : {matrix}
    }}""")
    plan = StoragePlan(function)
    plan.arena_size = 0
    wrong = wrong_with(function, plan)
    assert wrong is not None and "of an arena of 0 bytes" in wrong
    one_storage(plan, function, 0, 1)
    wrong = wrong_with(function, plan)
    assert wrong is not None and "a product reads more than once" in wrong


def test_views_have_the_root_of_what_they_see() -> None:
    function = parsed("""
    func.func @f(%x: tensor<4x2xf32>) -> tensor<8xf32> {
      %a = tssa.exp %x : (tensor<4x2xf32>) -> tensor<4x2xf32>
      %b = tssa.reshape %a : (tensor<4x2xf32>) -> tensor<8xf32>
      func.return %b : tensor<8xf32>
    }""")
    plan = StoragePlan(function)
    values: list[SSAValue] = [r for op in function.body.block.ops for r in op.results]
    assert plan.roots[values[0]] is plan.roots[values[1]]
    assert plan.storage_of(values[1]).fixed is plan.results[0]
    assert not isinstance(values[0], BlockArgument)


def test_what_is_known_about_sizes() -> None:
    n, m, s0 = (dims.symbol(x) for x in ("n", "m", "s0"))
    assert is_never_negative(dims.add(dims.scale(n, 4), dims.mul(n, m)))
    assert is_never_negative(dims.maximum(s0, 0))
    assert not is_never_negative(s0)
    assert not is_never_negative(dims.sub(n, 1))
    assert not is_never_negative(dims.apply("wrap", s0, n))
    assert is_at_most(dims.scale(n, 40), dims.scale(n, 2048))
    assert not is_at_most(n, m)
    assert round_up(65) == 128 and round_up(0) == 0
    assert round_up(dims.scale(n, 64)) == dims.scale(n, 64)
    assert dims.evaluate(round_up(dims.scale(n, 4)), {"n": 17}) == 128
