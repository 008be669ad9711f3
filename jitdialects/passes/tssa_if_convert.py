"""`tssa-if-convert`: a short branch on one truth value becomes a selection between what its sides compute.

      %c = tensor.extract %p[]                                  %a = tssa.add %x, %x
      cf.cond_br %c, ^then, ^else                               %b = tssa.negative %x
    ^then:  %a = tssa.add %x, %x                                %m = tssa.broadcast %p
            cf.br ^join(%a)                           ->        %v = tssa.where %m, %a, %b
    ^else:  %b = tssa.negative %x                               ... what ^join does with %v
            cf.br ^join(%b)
    ^join(%v): ...

A side may be missing: the branch then leads to the join itself (a triangle). Needs sides that no other branch leads to
and that hold nothing but pure operations right for any values. Never computes with the side that is not taken:
its NaN and infinities are selected away. Never runs both sides where one of them reduces, multiplies
matrices or may be large: that is work that a branch saves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.cf import BranchOp, ConditionalBranchOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from jitdialects.analysis.fusion_graph import is_constant, is_pointwise, takes_copies
from jitdialects.analysis.machine import Core
from jitdialects.analysis.roofline import VECTOR, Costs
from jitdialects.bytecode.dtypes import BOOL
from jitdialects.dialects.tssa import ELEMENTWISE_OPS, BroadcastOp
from jitdialects.dialects.tssa_types import shape_of, tensor_type
from jitdialects.passes.branches import Edge, edges, replace_branch
from jitdialects.passes.decided_branches import simplify_control_flow
from jitdialects.passes.judging_pass import JudgingPass
from jitdialects.passes.tssa_hoist import (
    is_free_of_effects,
    is_small,
    is_small_value,
    needs_no_check,
)


@dataclass(frozen=True)
class Choice:
    """A branch whose two ways meet again in `join`, after a block of their own or none."""

    branch: ConditionalBranchOp
    sides: tuple[Block, ...]
    join: Block
    passed: tuple[tuple[SSAValue, SSAValue], ...]
    """Per argument of the join what it is if the condition holds, and if not."""

    @property
    def ops(self) -> Iterator[Operation]:
        """What the sides compute."""
        return (op for side in self.sides for op in side.ops if op is not side.last_op)


def choice_of(branch: Operation | None) -> Choice | None:
    """The choice that `branch` makes; None where its ways do not meet at once."""
    if not isinstance(branch, ConditionalBranchOp):
        return None
    direct = edges(branch) or []
    first, second = (target for target, _ in direct)
    for sides in ((), (first,), (second,), (first, second)):
        ways = [_through(edge) if edge[0] in sides else edge for edge in direct]
        if None in ways or len(set(sides)) < len(sides):
            continue
        (join, left), (other, right) = (edge for edge in ways if edge is not None)
        if join is other and join not in sides:
            return Choice(branch, sides, join, tuple(zip(left, right, strict=True)))
    return None


def _through(edge: Edge) -> Edge | None:
    """Where a block without arguments leads, if it is one way only."""
    end = edge[0].last_op
    if edge[0].args or not isinstance(end, BranchOp):
        return None
    return end.successor, tuple(end.arguments)


# ---- legality ----------------------------------------------------------------------------------


def decides_by_a_tensor(choice: Choice) -> bool:
    """The condition is the one element of a tensor, which a selection can read."""
    value = choice.branch.cond
    return (
        isinstance(value, OpResult)
        and value.op.name == "tensor.extract"
        and not shape_of(value.op.operands[0])
    )


def belongs_to_the_branch(choice: Choice) -> bool:
    """Nobody else leads to a side."""
    return all(side.has_one_use() for side in choice.sides)


def cannot_fail(choice: Choice) -> bool:
    """All that the sides do is pure and right whatever the condition: no check, no part at a run-time offset."""
    return all(is_free_of_effects(op) and needs_no_check(op) for op in choice.ops)


def selects_between_equal_types(choice: Choice) -> bool:
    """Both values of an argument are tensors of one type."""
    return all(
        isa(left.type, TensorType[Attribute]) and left.type == right.type
        for left, right in choice.passed
    )


LEGAL = (
    (decides_by_a_tensor, "its condition is no element of a tensor"),
    (belongs_to_the_branch, "another branch leads to one of its sides"),
    (cannot_fail, "a side does what must not be done, or may fail, when the other is taken"),
    (selects_between_equal_types, "its sides end in values of different types"),
)


# ---- profitability -----------------------------------------------------------------------------


def why_no_profit(choice: Choice, core: Core) -> str | None:
    """Why the branch is to be preferred; None where both sides are cheaper.

    A branch costs half a misprediction, and a way through memory for what the join could compute beside the sides;
    a selection costs half of both sides, their inputs among it, and itself. Values of unknown size keep their branch:
    as 256 elements, two sides of one operation each would cost 64 cycles and the branch 52, so that hardly anything
    would be converted, and what would gain a cycle there is half of the work of a larger array.
    """
    if not all(is_pointwise(op) or is_constant(op) for op in choice.ops):
        return "a side does more than elementwise operations"
    results = [left for left, right in choice.passed if left is not right]
    if not all(map(is_small, choice.ops)) or not all(map(is_small_value, results)):
        return "its values may be large, and a branch computes one side only"
    costs = Costs(core)
    kept = sum(costs.bytes_of(left.type) for left in results)
    fused = sum(
        2 * costs.bytes_of(argument.type)
        for argument, (left, right) in zip(choice.join.args, choice.passed, strict=True)
        if left is not right and any(takes_copies(use.operation) for use in argument.uses)
    )
    inputs = sum(costs.bytes_of(value.type) for value in _read_by_one_side(choice))
    footprint = kept + fused + inputs
    branch = core.mispredicted / 2 + costs.cycles_to_move(fused, footprint)
    both = costs.cycles_of(op for op in choice.ops if not is_constant(op)) / 2
    both += kept / VECTOR + costs.cycles_to_move(inputs / 2, footprint)
    if both < branch:
        return None
    return f"both sides would cost {both:.0f} cycles, and the branch {branch:.0f}"


def _read_by_one_side(choice: Choice) -> set[SSAValue]:
    """What would not be read if the other side were taken."""
    made = {result for op in choice.ops for result in op.results}
    read = [{v for op in side.ops for v in op.operands} - made for side in choice.sides]
    return read[0] ^ read[1] if len(read) == 2 else {v for values in read for v in values}


# ---- the pass ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TssaIfConvertPass(JudgingPass):
    """See the module's docstring. There is a remark for each branch whose ways meet at once and that is kept."""

    name = "tssa-if-convert"

    def rewrite(self, function: FuncOp, core: Core) -> Iterable[str]:
        kept: dict[str, None] = {}
        while _convert_one(function, core, kept):
            kept.clear()
        return kept


def _convert_one(function: FuncOp, core: Core, kept: dict[str, None]) -> bool:
    """Convert the last choice that can be, inner ones before those around them, and join what it separated."""
    for block in reversed(function.body.blocks):
        choice = choice_of(block.last_op)
        if choice is None:
            continue
        why = next((why for holds, why in LEGAL if not holds(choice)), None)
        why = why or why_no_profit(choice, core)
        if why is None:
            convert(choice)
            simplify_control_flow(function.body)
            return True
        kept[f"a branch is not made a selection: {why}"] = None
    return False


def convert(choice: Choice) -> None:
    """Compute both sides in front of the branch and hand selections to the join."""
    branch, block = choice.branch, choice.branch.parent
    assert block is not None and isinstance(choice.branch.cond, OpResult)
    for op in list(choice.ops):
        op.detach()
        block.insert_op_before(op, branch)
    condition = choice.branch.cond.op.operands[0]
    values = [
        left if left is right else _select(condition, left, right, branch)
        for left, right in choice.passed
    ]
    replace_branch(branch, [(choice.join, tuple(values))])


def _select(condition: SSAValue, left: SSAValue, right: SSAValue, branch: Operation) -> SSAValue:
    """`left` where the condition holds, else `right`, in front of the branch."""
    block, shape = branch.parent, shape_of(left)
    assert block is not None
    if shape:
        wide = BroadcastOp.create(operands=[condition], result_types=[tensor_type(BOOL, shape)])
        block.insert_op_before(wide, branch)
        condition = wide.results[0]
    where = ELEMENTWISE_OPS["where"].create(
        operands=[condition, left, right], result_types=[left.type]
    )
    block.insert_op_before(where, branch)
    return where.results[0]
