"""Predicates of fusion without a pass, remarks, and what is counted as fused."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.parser import Parser

from jitdialects.analysis.fusion_facts import count_operators
from jitdialects.dialects.context import make_context
from jitdialects.passes.tssa_fuse import (
    Candidate,
    TssaFusePass,
    can_be_inside,
    contraction_comes_first,
    feeds_pointwise_members_only,
    has_no_use_outside,
    have_one_iteration_space,
    is_duplicable,
    is_fusion_legal,
    is_fusion_profitable,
)

CONTEXT = make_context()
V = "tensor<8xf32>"


def parse(body: str, results: str = V, returned: str = "%z") -> tuple[ModuleOp, list[Operation]]:
    """A module with one function of `body` over %x and %y, and the operations of the body."""
    text = f"func.func @f(%x: {V}, %y: {V}) -> {results} {{\n{body}\n"
    text += f"func.return {returned} : {results} }}"
    module = Parser(CONTEXT, text).parse_module()
    module.verify()
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    return module, list(function.body.block.ops)[:-1]


def group_of(*members: Operation) -> Candidate:
    """A candidate with these members, the root first."""
    group = Candidate(members[0])
    for member in members:
        group.add(member)
    return group


CHAIN = f"""
    %a = tssa.exp %x : ({V}) -> {V}
    %b = tssa.add %a, %y : ({V}, {V}) -> {V}
    %z = tssa.abs %b : ({V}) -> {V}"""


def test_a_chain_is_legal_and_profitable() -> None:
    _, (a, b, z) = parse(CHAIN)
    assert is_fusion_legal(b, group_of(z))
    assert is_fusion_profitable(b, group_of(z), max_ops=64, max_inputs=12)
    assert is_fusion_legal(a, group_of(z, b))


def test_profit_ends_with_the_registers_not_with_legality() -> None:
    _, (a, b, z) = parse(CHAIN)
    group = group_of(z, b)
    assert is_fusion_legal(a, group)
    assert not is_fusion_profitable(a, group, max_ops=2, max_inputs=12)
    assert not is_fusion_profitable(a, group, max_ops=64, max_inputs=1)


def test_a_use_outside_is_illegal_unless_duplicable() -> None:
    _, (a, b, z) = parse(CHAIN)
    assert has_no_use_outside(b, group_of(z))
    assert not has_no_use_outside(a, group_of(z))
    assert not is_fusion_legal(a, group_of(z))
    assert not is_duplicable(a)


def test_each_predicate_alone() -> None:
    _, ops = parse(f"""
    %s = tssa.sum %x {{axes = array<i64: 0>}} : ({V}) -> tensor<f32>
    %m = tssa.matmul %x, %y : ({V}, {V}) -> tensor<f32>
    %n = tssa.negative %m : (tensor<f32>) -> tensor<f32>
    %b = tssa.broadcast %n : (tensor<f32>) -> {V}
    %z = tssa.add %b, %x : ({V}, {V}) -> {V}""")
    sum, product, negative, broadcast, add = ops
    assert not can_be_inside(sum)
    assert can_be_inside(product)
    assert not have_one_iteration_space(group_of(add).root, group_of(negative))
    assert have_one_iteration_space(negative, group_of(add, broadcast))  # one number
    assert contraction_comes_first(product, group_of(negative))
    assert not contraction_comes_first(product, group_of(add, broadcast, negative))
    assert feeds_pointwise_members_only(product, group_of(negative))
    assert is_duplicable(broadcast)
    assert is_duplicable(negative)
    assert not is_duplicable(product)


def test_a_refusal_leaves_a_sentence() -> None:
    module, _ = parse(f"""
    %a = tssa.exp %x : ({V}) -> {V}
    %s = tssa.sum %a {{axes = array<i64: 0>}} : ({V}) -> tensor<f32>
    %b = tssa.broadcast %s : (tensor<f32>) -> {V}
    %z = tssa.divide %a, %b : ({V}, {V}) -> {V}""")
    fuse = TssaFusePass()
    fuse.apply(CONTEXT, module)
    module.verify()
    refusals = [remark.split(": ") for remark in fuse.remarks]
    assert sorted(refusals) == [
        [
            "tssa.exp is not merged into the group of tssa.divide",
            "its result is used outside too and is not worth computing twice",
        ],
        [
            "tssa.exp is not merged into the group of tssa.sum",
            "its consumer reads it at other indices than it writes",
        ],
        [
            "tssa.sum is not merged into the group of tssa.divide",
            "it is a group of its own",
        ],
    ]
    assert not TssaFusePass().remarks


@pytest.mark.parametrize(("merge", "expected"), [(True, (3, 3)), (False, (3, 0))])
def test_operators_in_groups_of_two_or_more_are_fused(
    merge: bool, expected: tuple[int, int]
) -> None:
    module, _ = parse(CHAIN)
    TssaFusePass(merge=merge).apply(CONTEXT, module)
    assert count_operators(module) == expected


def test_casts_broadcasts_and_constants_are_not_counted() -> None:
    module, _ = parse(f"""
    %c = tssa.constant {{value = dense<1> : tensor<i64>}} : () -> tensor<i64>
    %d = tssa.cast %c : (tensor<i64>) -> tensor<f32>
    %e = tssa.broadcast %d : (tensor<f32>) -> {V}
    %z = tssa.add %x, %e : ({V}, {V}) -> {V}""")
    TssaFusePass().apply(CONTEXT, module)
    assert count_operators(module) == (1, 0)


def test_limits_are_kept_in_long_chains() -> None:
    lines = [f"%v0 = tssa.add %x, %y : ({V}, {V}) -> {V}"]
    lines += [f"%v{i} = tssa.add %v{i - 1}, %y : ({V}, {V}) -> {V}" for i in range(1, 200)]
    module, _ = parse("\n".join(lines), returned="%v199")
    TssaFusePass().apply(CONTEXT, module)
    module.verify()
    sizes = [
        len(list(op.regions[0].block.ops)) - 1 for op in module.walk() if op.name == "tssa.group"
    ]
    assert sum(sizes) == 200
    assert max(sizes) == 64
