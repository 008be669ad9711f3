"""`tssa-hoist`: what a loop computes anew every time, from values of outside, is computed once in front of it.

    ^loop(%v):                                                  %e = tssa.exp %w
      %e = tssa.exp %w                                          cf.br ^loop(%x)
      %n = tssa.add %v, %e                        ->          ^loop(%v):
      ... cf.cond_br %c, ^loop(%n), ^exit                       %n = tssa.add %v, %e

Loops are those of the control-flow graph that one branch enters. Moves sums, products and dear elementwise
operations with what they are computed from. Never moves what has an effect or may end the call
(`tssa.check_bounds`), what depends on a value of the loop, or cheap operations for their own sake: the group
that reads them does them again for less than a pass over memory. A loop may take no step, so what is not
done whenever it is entered must be small.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import is_side_effect_free

from jitdialects.analysis.control_loops import Loop, loops_of
from jitdialects.analysis.fusion_graph import is_dear
from jitdialects.bytecode import dims
from jitdialects.dialects.interfaces import Contraction, Reduction, has_trait
from jitdialects.dialects.tssa_types import DimsAttr, shape_of

SMALL = 4096
"""Elements of an operand or result; fewer are done for nothing in about a microsecond."""


# ---- legality ----------------------------------------------------------------------------------


def is_free_of_effects(op: Operation) -> bool:
    """A pure operation on tensors: it can neither fail nor be seen."""
    return op.name.startswith("tssa.") and not op.regions and is_side_effect_free(op)


def needs_no_check(op: Operation) -> bool:
    """Whether `op` is right anywhere. A part at a run-time offset lies within its tensor only behind the
    `tssa.check_bounds` that stands in front of it."""
    offsets = op.properties.get("offsets")
    return not isinstance(offsets, DimsAttr) or all(map(dims.is_settled, offsets.data))


def invariants(op: Operation, loop: Loop) -> list[Operation] | None:
    """`op` and the operations of the loop that it is computed from, operands first; None where one of them
    may not move."""
    found: dict[Operation, None] = {}
    work = [(op, False)]
    while work:
        each, is_ready = work.pop()
        if is_ready:
            found[each] = None
            continue
        if not is_free_of_effects(each) or not needs_no_check(each):
            return None
        work.append((each, True))
        for operand in each.operands:
            if not loop.defines(operand):
                continue
            if isinstance(operand, BlockArgument) or not isinstance(operand.owner, Operation):
                return None
            if operand.owner not in found:
                work.append((operand.owner, False))
    return list(found)


# ---- profitability -----------------------------------------------------------------------------


def is_small(op: Operation) -> bool:
    """Whether all that `op` touches is small for every size."""
    return all(map(is_small_value, (*op.operands, *op.results)))


def is_small_value(value: SSAValue) -> bool:
    """Whether a tensor is small for every size."""
    count = dims.product(shape_of(value))
    return isinstance(count, int) and count <= SMALL


def is_worth_moving(op: Operation, loop: Loop) -> bool:
    """It costs more than reading its result again, and is done whenever the loop is entered, or small."""
    costs = is_dear(op) or has_trait(op, Reduction) or has_trait(op, Contraction)
    return costs and (op.parent is loop.head or is_small(op))


class TssaHoistPass(ModulePass):
    """See the module's docstring."""

    name = "tssa-hoist"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for region in [r for each in op.walk() for r in each.regions if len(r.blocks) > 1]:
            for loop in loops_of(region):
                hoist(loop)


def hoist(loop: Loop) -> None:
    """Move what is worth it to the end of the block in front of the loop."""
    before, region = loop.entry.last_op, loop.entry.parent
    assert before is not None and region is not None
    for block in [b for b in region.blocks if b in loop.blocks]:
        for op in list(block.ops):
            if (
                op.parent is not block
                or not is_free_of_effects(op)
                or not is_worth_moving(op, loop)
            ):
                continue
            for each in invariants(op, loop) or ():
                each.detach()
                loop.entry.insert_op_before(each, before)
