"""The three judges of fusion without a pass, remarks, and what is counted as fused."""

from __future__ import annotations

import sys

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from jitdialects.analysis.fusion_facts import count_operators
from jitdialects.analysis.fusion_graph import FusionGraph, bits_of, is_copied
from jitdialects.analysis.fusion_legality import (
    Candidate,
    Kind,
    can_be_next_to_each_other,
    candidate_of,
    union,
    why_illegal,
)
from jitdialects.analysis.fusion_recompute import Recomputation
from jitdialects.analysis.machine import CORES, STEPS
from jitdialects.analysis.register_pressure import PressureJudge, pressure_of
from jitdialects.analysis.roofline import Costs, ProfitJudge
from jitdialects.analysis.row_stages import RowStages, recomputed, stages_of_candidate
from jitdialects.dialects.context import make_context
from jitdialects.passes.tssa_fuse import TssaFusePass

CONTEXT = make_context()
CORE = CORES["x86-64-v3"]
V, M, R = "tensor<8xf32>", "tensor<4x8xf32>", "tensor<4xf32>"


def parse(body: str, type: str = V, returned: str = "%z", results: str = V) -> ModuleOp:
    """A module with one function of `body` over %x and %y."""
    text = f"func.func @f(%x: {type}, %y: {type}) -> ({results}) {{\n{body}\n"
    text += f"func.return {returned} : {results} }}"
    module = Parser(CONTEXT, text).parse_module()
    module.verify()
    return module


def graph_of(module: ModuleOp) -> FusionGraph:
    """The graph of the function's only block."""
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    return FusionGraph(function.body.block)


def group(graph: FusionGraph, *positions: int) -> Candidate:
    """The nodes at these positions as one candidate, whether or not that is legal."""
    first, *rest = positions
    made = candidate_of(graph, first)
    for position in rest:
        made = union(made, candidate_of(graph, position))
    return made


CHAIN = f"""
    %a = tssa.exp %x : ({V}) -> {V}
    %b = tssa.add %a, %y : ({V}, {V}) -> {V}
    %z = tssa.abs %b : ({V}) -> {V}"""


def test_a_chain_is_legal_fits_and_pays() -> None:
    graph = graph_of(parse(CHAIN))
    left, right = group(graph, 0), group(graph, 1, 2)
    both, why = why_illegal(left, right)
    assert both is not None and not why
    assert both.kind is Kind.ELEMENTWISE
    assert [op.name for op in both.yields] == ["tssa.abs"]
    assert PressureJudge(CORE).why_too_much(both) is None
    assert ProfitJudge(CORE).why_no_profit(left, right, both) is None


def test_a_path_outside_forbids_a_group() -> None:
    graph = graph_of(parse(CHAIN))
    assert can_be_next_to_each_other(group(graph, 0), group(graph, 1))
    assert not can_be_next_to_each_other(group(graph, 0), group(graph, 2))
    assert not can_be_next_to_each_other(group(graph, 2), group(graph, 0))
    assert why_illegal(group(graph, 0), group(graph, 2))[1].startswith("an operation outside")


def test_what_is_read_outside_is_yielded() -> None:
    graph = graph_of(parse(CHAIN, returned="%z, %a", results=f"{V}, {V}"))
    assert [op.name for op in group(graph, 0, 1, 2).yields] == ["tssa.exp", "tssa.abs"]


def test_traffic_counts_inputs_and_results_once() -> None:
    graph = graph_of(parse(CHAIN))
    assert Costs(CORE).bytes_of(graph.ops[0].results[0].type) == 32
    assert ProfitJudge(CORE).traffic(group(graph, 0)) == 64
    assert ProfitJudge(CORE).traffic(group(graph, 0, 1, 2)) == 96  # x and y, and the result


def test_values_are_alive_from_first_to_last_use() -> None:
    graph = graph_of(parse(CHAIN))
    pressure = pressure_of(group(graph, 1, 2))
    assert pressure.vectors == 2  # both operands of the addition
    assert pressure.buffers == 3
    assert pressure_of(group(graph, 0, 1, 2)).vectors == 5  # an exponential with its temporaries


SOFTMAX = f"""
    %0 = tssa.max %x {{axes = array<i64: 1>}} : ({M}) -> {R}
    %1 = tssa.reshape %0 : ({R}) -> tensor<4x1xf32>
    %2 = tssa.broadcast %1 : (tensor<4x1xf32>) -> {M}
    %3 = tssa.subtract %x, %2 : ({M}, {M}) -> {M}
    %4 = tssa.exp %3 : ({M}) -> {M}
    %5 = tssa.sum %4 {{axes = array<i64: 1>}} : ({M}) -> {R}
    %6 = tssa.reshape %5 : ({R}) -> tensor<4x1xf32>
    %7 = tssa.broadcast %6 : (tensor<4x1xf32>) -> {M}
    %z = tssa.divide %4, %7 : ({M}, {M}) -> {M}"""


def test_copied_operations_are_not_nodes_and_paths_lead_through_them() -> None:
    graph = graph_of(parse(SOFTMAX, M, results=M))
    names = [graph.ops[number].name for number in graph.nodes]
    assert "tssa.broadcast" not in names and "tssa.reshape" not in names
    assert list(bits_of(graph.nodes[3].reads)) == [0]
    assert all(is_copied(graph.ops[number]) for number in (1, 2, 6, 7))


def test_softmax_keeps_the_exponentials_where_the_quotients_will_be() -> None:
    graph = graph_of(parse(SOFTMAX, M, results=M))
    rows = group(graph, 0, 3, 4, 5, 8)
    assert rows.kind is Kind.ROWS
    stages = stages_of_candidate(rows)
    assert reductions_of(stages) == [["tssa.max"], ["tssa.sum"], []]
    exponential = graph.ops[4].results[0]
    assert stages.kept == {exponential: 0}
    assert exponential in stages.sweeps[1].stores and exponential in stages.sweeps[2].loads
    assert not recomputed(rows)
    assert stages.last_load(graph.ops[0].operands[0]) == stages.first_store(0) == 1


def test_dear_elements_without_a_place_are_computed_again() -> None:
    body = f"""
    %t = tssa.tanh %x : ({M}) -> {M}
    %a = tssa.min %t {{axes = array<i64: 1>}} : ({M}) -> {R}
    %b = tssa.max %t {{axes = array<i64: 1>}} : ({M}) -> {R}"""
    graph = graph_of(parse(body, M, "%a, %b", f"{R}, {R}"))
    left, right = group(graph, 0, 1), group(graph, 2)
    both, _ = why_illegal(left, right)
    assert both is not None
    assert [op.name for op in recomputed(both)] == ["tssa.tanh"]
    why = ProfitJudge(CORE).why_no_profit(left, right, both)
    assert why is not None and "done again" in why


def reductions_of(stages: RowStages) -> list[list[str]]:
    """The names of the reductions of each sweep."""
    return [[op.name for op in sweep.reductions] for sweep in stages.sweeps]


def test_reductions_that_do_not_depend_on_each_other_share_a_sweep() -> None:
    body = f"""
    %t = tssa.tanh %x : ({M}) -> {M}
    %a = tssa.sum %t {{axes = array<i64: 1>}} : ({M}) -> {R}
    %b = tssa.max %t {{axes = array<i64: 1>}} : ({M}) -> {R}"""
    rows = group(graph_of(parse(body, M, "%a, %b", f"{R}, {R}")), 0, 1, 2)
    assert reductions_of(stages_of_candidate(rows)) == [["tssa.sum", "tssa.max"]]
    assert not recomputed(rows)


def test_accumulators_that_no_registers_are_left_for_take_another_sweep() -> None:
    names = ("max", "min", "sum", "prod", "sum", "sum")
    lines = [
        f"%r{k} = tssa.{name} %x {{axes = array<i64: 1>}} : ({M}) -> {R}"
        for k, name in enumerate(names)
    ]
    body = "\n".join(lines)
    graph = graph_of(parse(body, M, ", ".join(f"%r{k}" for k in range(6)), ", ".join([R] * 6)))
    assert reductions_of(stages_of_candidate(group(graph, *range(6)))) == [
        ["tssa.max"],  # two numbers for a lane, and the minimum takes two
        ["tssa.min", "tssa.sum"],
        ["tssa.prod", "tssa.sum", "tssa.sum"],
    ]


def test_reductions_of_different_types_take_a_sweep_each() -> None:
    body = f"""
    %w = tssa.cast %x : ({M}) -> tensor<4x8xi32>
    %a = tssa.sum %x {{axes = array<i64: 1>}} : ({M}) -> {R}
    %b = tssa.max %w {{axes = array<i64: 1>}} : (tensor<4x8xi32>) -> tensor<4xi32>"""
    graph = graph_of(parse(body, M, "%a, %b", f"{R}, tensor<4xi32>"))
    stages = stages_of_candidate(group(graph, 0, 1, 2))
    assert reductions_of(stages) == [["tssa.sum"], ["tssa.max"]]


def test_refusals_are_remarks_that_name_function_and_operations() -> None:
    module = parse(f"""
    %a = tssa.exp %x : ({V}) -> {V}
    %i = tssa.insert %a, %y {{offsets = #tssa.dims<[0]>, steps = array<i64: 1>}} : ({V}, {V}) -> {V}
    %z = tssa.add %a, %i : ({V}, {V}) -> {V}""")
    fuse = TssaFusePass()
    fuse.apply(CONTEXT, module)
    module.verify()
    around = "an operation outside depends on one and feeds the other"
    assert sorted(fuse.remarks) == [
        "@f: tssa.exp is not computed again where it is read: one of them is a group of its own",
        f"@f: tssa.exp is not merged with tssa.add: {around}",
        "@f: tssa.exp is not merged with tssa.insert: one of them is a group of its own",
        "@f: tssa.insert is not merged with tssa.add: one of them is a group of its own",
    ]
    assert not TssaFusePass().remarks


@pytest.mark.parametrize(("merge", "expected"), [(True, (3, 3)), (False, (3, 0))])
def test_operators_in_groups_of_two_or_more_are_fused(
    merge: bool, expected: tuple[int, int]
) -> None:
    module = parse(CHAIN)
    TssaFusePass(merge=merge).apply(CONTEXT, module)
    assert count_operators(module) == expected


def test_operators_of_row_wise_groups_and_of_several_results_count_once() -> None:
    module = parse(SOFTMAX, M, "%z, %4", f"{M}, {M}")
    TssaFusePass().apply(CONTEXT, module)
    assert count_operators(module) == (5, 5)


def test_casts_broadcasts_and_constants_are_not_counted() -> None:
    module = parse(f"""
    %c = tssa.constant {{value = dense<1> : tensor<i64>}} : () -> tensor<i64>
    %d = tssa.cast %c : (tensor<i64>) -> tensor<f32>
    %e = tssa.broadcast %d : (tensor<f32>) -> {V}
    %z = tssa.add %x, %e : ({V}, {V}) -> {V}""")
    TssaFusePass().apply(CONTEXT, module)
    assert count_operators(module) == (1, 0)


def test_the_work_for_a_long_block_grows_with_its_length() -> None:
    def calls(length: int) -> int:
        lines = [f"%v0 = tssa.add %x, %x : ({V}, {V}) -> {V}"]
        lines += [f"%v{i} = tssa.add %v{i - 1}, %x : ({V}, {V}) -> {V}" for i in range(1, length)]
        module = parse("\n".join(lines), returned=f"%v{length - 1}")
        count = 0

        def seen(frame: object, event: str, argument: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(seen)
        try:
            TssaFusePass().apply(CONTEXT, module)
        finally:
            sys.setprofile(None)
        return count

    assert calls(1000) < 5 * calls(250)  # 4 times as many operations; pairs of them would be 16


def test_a_long_chain_is_cut_where_the_decoded_operations_end() -> None:
    lines = [f"%v0 = tssa.tanh %x : ({V}) -> {V}"]
    lines += [f"%v{i} = tssa.tanh %v{i - 1} : ({V}) -> {V}" for i in range(1, 60)]
    module = parse("\n".join(lines), returned="%v59")
    TssaFusePass().apply(CONTEXT, module)
    module.verify()
    sizes = [
        len(list(op.regions[0].block.ops)) - 1 for op in module.walk() if op.name == "tssa.group"
    ]
    assert sum(sizes) == 60
    assert len(sizes) == 2
    assert max(sizes) * STEPS["tanh"] <= CORE.decoded


def offered(graph: FusionGraph, *groups: Candidate) -> Recomputation:
    """What is computed again, if these are the groups of the block."""
    homes = {position: each for each in groups for position in bits_of(each.members)}
    judges = PressureJudge(CORE), ProfitJudge(CORE)
    choice = Recomputation(graph, homes.__getitem__, *judges)
    for position in homes:
        choice.offer(position)
    return choice


T, S = "tensor<64x64x64xf32>", "tensor<64x64xf32>"
SUMS = f"""
    %a = tssa.abs %x : ({T}) -> {T}
    %s = tssa.sum %a {{axes = array<i64: 2>}} : ({T}) -> {S}
    %t = tssa.sum %a {{axes = array<i64: 1, 2>}} : ({T}) -> tensor<64xf32>"""


def test_a_cheap_value_is_computed_in_each_group_that_reads_it() -> None:
    graph = graph_of(parse(SUMS, T, "%s, %t", f"{S}, tensor<64xf32>"))
    second = group(graph, 2)
    choice = offered(graph, group(graph, 0, 1), second)
    assert choice.copies == {second: 1}
    assert not list(choice.remarks())
