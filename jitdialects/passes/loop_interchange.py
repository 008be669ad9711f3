"""`loop-interchange`: the axes of a nest in another order.

    loop.nest (%i, %j) = (%a, %b) to (%m, %n) step (1, 16) kinds [parallel, parallel] schedule <order = [1, 0]> { B }
    ->
    loop.nest (%j, %i) = (%b, %a) to (%n, %m) step (16, 1) kinds [parallel, parallel] { B }

The axes of a nest never bound one another, so an order is legal if the reduction axes keep theirs: points
that differ in a parallel axis do not meet, and each of them sees its reductions as before.
The order comes from the schedule of a nest, or from the option `order` for nests of that rank without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from jitdialects.dialects.loop import REDUCTION, NestOp
from jitdialects.passes.loop_rewrite import nest_schedule, nests_innermost_first, refuse


def is_permutation(order: Sequence[int], rank: int) -> bool:
    """Each axis occurs once."""
    return sorted(order) == list(range(rank))


def keeps_reductions_in_order(nest: NestOp, order: Sequence[int]) -> bool:
    """The reduction axes follow each other as before."""
    reductions = [axis for axis in order if nest.kind_names[axis] == REDUCTION]
    return reductions == sorted(reductions)


def interchange(nest: NestOp, order: Sequence[int]) -> None:
    """Put axis `order[0]` outermost, then `order[1]`, and so on."""
    schedule = nest_schedule(nest)
    body = nest.detach_region(nest.body)
    old = tuple(body.block.args)
    for axis in order:
        new = body.block.insert_arg(IndexType(), len(body.block.args))
        new.name_hint = old[axis].name_hint
        old[axis].replace_all_uses_with(new)
    for argument in old:
        body.block.erase_arg(argument)

    def permuted(values: Sequence[int]) -> tuple[int, ...]:
        return tuple(values[axis] for axis in order) if values else ()

    changed = NestOp(
        [nest.lower[axis] for axis in order],
        [nest.upper[axis] for axis in order],
        permuted(nest.step_values),
        [nest.kind_names[axis] for axis in order],
        body,
        replace(schedule, order=(), tile=permuted(schedule.tile), jam=permuted(schedule.jam)),
    )
    changed.attributes.update(nest.attributes)
    Rewriter.replace_op(nest, changed, ())


@dataclass(frozen=True)
class LoopInterchangePass(ModulePass):
    """Permute the axes of loop.nest; reductions keep their order."""

    name = "loop-interchange"

    order: tuple[int, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not is_permutation(self.order, len(self.order)):
            raise PassFailedException(
                f"loop-interchange: order {list(self.order)} is no permutation; name each axis once, from 0"
            )
        for nest in nests_innermost_first(op):
            schedule = nest_schedule(nest)
            order = schedule.order
            if not schedule and len(self.order) == nest.rank:
                order = self.order
            if not order:
                continue
            if keeps_reductions_in_order(nest, order):
                interchange(nest, order)
            else:
                refuse(nest, schedule, self.name, "two reduction axes would change places")
