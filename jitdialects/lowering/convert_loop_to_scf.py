"""`convert-loop-to-scf`: each axis of a nest becomes one `scf.for`.

    loop.nest (%i, %j) = (%a, %b) to (%m, %n) step (1, 4) kinds [parallel, reduction]
        schedule <vector = 8, jam = [6, 1]> { body }
    ->
    scf.for %i = %a to %m step %c1 {
      scf.for %j = %b to %n step %c4 { body } {loop.kind = "reduction", loop.schedule = #loop.schedule<vector = 8>}
    } {loop.kind = "parallel", loop.schedule = #loop.schedule<jam = [6]>}

Each loop keeps its kind, and the part of the schedule that is about it: `jam` entries go to their axis with `rest`,
`vector`, `unroll` and `stream` to the innermost, `pack` and `threads` to the outermost. `tile` and `order` speak about whole nests and end here: run
`loop-tile` and `loop-interchange` before. Needs nothing else; never changes a body.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from jitdialects.dialects.interned import INDEX, index_attr
from jitdialects.dialects.loop import KIND, SCHEDULE, NestOp, ScheduleAttr
from jitdialects.dialects.schedules import Schedule
from jitdialects.passes.loop_rewrite import nest_schedule, nests_innermost_first


def schedule_of_axis(schedule: Schedule, axis: int, rank: int) -> Schedule:
    """What `schedule` says about one axis of `rank`, as a schedule for a single loop."""
    jam = schedule.jam[axis] if schedule.jam else 1
    innermost = axis == rank - 1
    return Schedule(
        vector=schedule.vector if innermost else 0,
        jam=(jam,) if jam > 1 else (),
        rest=schedule.rest if jam > 1 else 0,
        unroll=schedule.unroll if innermost else 0,
        pack=schedule.pack if axis == 0 else 0,
        stream=schedule.stream if innermost else 0,
        prefetch=schedule.prefetch if innermost else 0,
        threads=schedule.threads if axis == 0 else 0,
        asked=schedule.asked,
    )


def nest_to_loops(nest: NestOp, steps: Mapping[int, SSAValue]) -> None:
    """Replace `nest` by nested loops; `steps` has a value for each step.

    The body's block is moved, not copied: it becomes the body of the innermost loop.
    """
    schedule = nest_schedule(nest)
    lower, upper, kinds, sizes = nest.lower, nest.upper, nest.kind_names, nest.step_values
    innermost = nest.body.detach_block(nest.body.block)
    if innermost.last_op is not None:
        innermost.erase_op(innermost.last_op)
    blocks = [Block(arg_types=(INDEX,)) for _ in innermost.args[1:]] + [innermost]
    for block in blocks[:-1]:
        iv = innermost.args[0]
        iv.replace_all_uses_with(block.args[0])
        innermost.erase_arg(iv)
    inside: list[scf.ForOp] = []
    for axis in reversed(range(len(blocks))):
        blocks[axis].add_ops((*inside, scf.YieldOp.create()))
        loop = scf.ForOp.create(
            operands=(lower[axis], upper[axis], steps[sizes[axis]]),
            regions=(Region(blocks[axis]),),
            attributes=_attributes(kinds[axis], schedule_of_axis(schedule, axis, len(blocks))),
        )
        inside = [loop]
    Rewriter.replace_op(nest, inside, ())


def _attributes(kind: str, schedule: Schedule) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {KIND: StringAttr(kind)}
    if schedule:
        attributes[SCHEDULE] = ScheduleAttr(schedule)
    return attributes


class ConvertLoopToScfPass(ModulePass):
    """Turn loop.nest into nested scf.for that carry their kind and schedule."""

    name = "convert-loop-to-scf"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        steps: dict[Block, dict[int, SSAValue]] = {}
        for nest in nests_innermost_first(op):
            nest_to_loops(nest, _step_constants(nest, steps))


def _step_constants(
    nest: NestOp, known: dict[Block, dict[int, SSAValue]]
) -> Mapping[int, SSAValue]:
    """Constants for the steps of `nest`, at the top of the function that it is in."""
    block = nest.parent
    while block is not None and isinstance(around := block.parent_op(), NestOp | scf.ForOp):
        block = around.parent
    assert block is not None
    constants = known.setdefault(block, {})
    for step in nest.step_values:
        if step not in constants:
            constant = arith.ConstantOp.create(
                result_types=(INDEX,), properties={"value": index_attr(step)}
            )
            Rewriter.insert_op(constant, InsertPoint.at_start(block))
            constants[step] = constant.result
    return constants
