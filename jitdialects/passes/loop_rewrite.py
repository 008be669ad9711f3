"""What several loop passes share: finding loops, reading and dropping schedules, surgery."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from jitdialects.analysis.bounds import constant_trip_count, is_multiple_of
from jitdialects.dialects.loop import KIND, PARALLEL, REMARK, SCHEDULE, NestOp, ScheduleAttr
from jitdialects.dialects.new_operation import new_operation
from jitdialects.dialects.schedules import Schedule
from jitdialects.passes.index_math import Index, IndexMath


def loops_innermost_first(module: Operation) -> list[scf.ForOp]:
    """All `scf.for` in `module`, each after those inside it."""
    return [op for op in with_regions_inside(module) if isinstance(op, scf.ForOp)]


def nests_innermost_first(module: Operation) -> list[NestOp]:
    """All nests in `module`, each after those inside it."""
    return [op for op in with_regions_inside(module) if isinstance(op, NestOp)]


def nests_in_order(module: Operation) -> Iterator[NestOp]:
    """All nests in `module`, in the order of the text: each before those inside it."""
    for region in module.regions:
        for block in region.blocks:
            for op in block.ops:
                if op.regions:
                    if isinstance(op, NestOp):
                        yield op
                    yield from nests_in_order(op)


def with_regions_inside(op: Operation) -> Iterator[Operation]:
    """The operations inside `op` that have regions, each after those inside it.

    (`Operation.walk` goes through as many generators for each operation as it is deep.)
    """
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                if inner.regions:
                    yield from with_regions_inside(inner)
                    yield inner


def nest_schedule(nest: NestOp) -> Schedule:
    """The schedule of `nest`, empty if it has none."""
    return nest.schedule.data if nest.schedule is not None else Schedule()


def ops_to_change(block: Block) -> Iterator[Operation]:
    """The operations of `block`; each may be erased, and others put around it, when its turn has come,
    but not the one behind it.

    (A `tuple` of them asks for their number first, and that walks through them too.)
    """
    following = block.first_op
    while (op := following) is not None:
        following = op.next_op
        yield op


def is_innermost(loop: scf.ForOp) -> bool:
    """It contains no `scf.for`."""
    return not any(isinstance(op, scf.ForOp) for op in with_regions_inside(loop))


def is_parallel(loop: scf.ForOp) -> bool:
    """Its iterations were declared independent."""
    kind = loop.attributes.get(KIND)
    return isinstance(kind, StringAttr) and kind.data == PARALLEL


def schedule_of(loop: scf.ForOp) -> Schedule:
    """What `loop` asks for; an empty schedule if it asks for nothing."""
    attribute = loop.attributes.get(SCHEDULE)
    return attribute.data if isinstance(attribute, ScheduleAttr) else Schedule()


def set_schedule(loop: scf.ForOp, schedule: Schedule) -> None:
    """Replace the schedule of `loop`; an empty one leaves no attribute."""
    if schedule:
        loop.attributes[SCHEDULE] = ScheduleAttr(schedule)
    else:
        loop.attributes.pop(SCHEDULE, None)


def refuse(loop: Operation, schedule: Schedule, pass_name: str, reason: str) -> None:
    """Leave a remark on a loop that stays as it is; raise if somebody asked for its schedule."""
    if schedule.asked:
        raise PassFailedException(f"{pass_name}: {schedule.asked}: {reason}")
    loop.attributes[REMARK] = StringAttr(f"{pass_name}: {reason}")


def split(loop: scf.ForOp, factor: int, math: IndexMath) -> tuple[Index, Index]:
    """Where the last whole group of `factor` iterations ends, and how many iterations follow it.

    Correct for every positive step, also one so large that `factor * step` wraps: then the first part is empty.
    """
    lower, upper, step = (math.number(bound) for bound in loop.operands[:3])
    if isinstance(step, int) and all(is_multiple_of(b, factor * step) for b in (loop.lb, loop.ub)):
        return upper, 0
    exact = constant_trip_count(loop)
    trips = math.trips(lower, upper, step) if exact is None else exact
    rest = math.remui(trips, factor)
    return math.add(lower, math.mul(math.sub(trips, rest), step)), rest


def erase_with_bounds(loop: scf.ForOp) -> None:
    """Erase `loop`, and the arithmetic that was there for its bounds only."""
    unused = list(loop.operands[:3])
    Rewriter.erase_op(loop)
    while unused:
        value = unused.pop()
        op = value.owner
        if isinstance(op, Block) or op.parent is None or value.first_use is not None:
            continue
        if op.name.startswith("arith.") and len(op.results) == 1:
            unused += op.operands
            Rewriter.erase_op(op)


def defined_outside(value: SSAValue, loop: Operation) -> bool:
    """True if `value` exists before `loop` starts."""
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent
    while block is not None:
        around = block.parent_op()
        if around is loop:
            return False
        block = around.parent if around is not None else None
    return True


def copy_op(op: Operation, values: dict[SSAValue, SSAValue]) -> Operation:
    """A copy of `op`, which has no regions, under `values`; its results are added to them."""
    new = new_operation(
        type(op),
        operands=[values.get(operand, operand) for operand in op.operands],
        result_types=[result.type for result in op.results],
        properties=op.properties,
        attributes=op.attributes,
        location=op.location,
    )
    for old, result in zip(op.results, new.results, strict=True):
        if old.name_hint is not None:
            result.name_hint = old.name_hint
        values[old] = result
    return new


def clone_op(op: Operation, values: dict[SSAValue, SSAValue]) -> Operation:
    """A copy of `op` with everything inside, under `values`; all results and arguments are added to them.

    (`Operation.clone` goes through everything twice; it does what has branches inside.)
    """
    if any(region.first_block is not region.last_block for region in op.regions):
        return op.clone(values)
    new = copy_op(op, values)
    for region in op.regions:
        new.add_region(Region([_clone_block(block, values) for block in region.blocks]))
    return new


def _clone_block(block: Block, values: dict[SSAValue, SSAValue]) -> Block:
    new = Block(arg_types=[argument.type for argument in block.args])
    for old, argument in zip(block.args, new.args, strict=True):
        argument.name_hint = old.name_hint
        values[old] = argument
    for op in block.ops:
        new.add_op(clone_op(op, values) if op.regions else copy_op(op, values))
    return new


def add_iter_args(loop: scf.ForOp, inits: Sequence[SSAValue]) -> scf.ForOp:
    """`loop` with more loop-carried values, appended; the caller adds them to the terminator.

    The body moves to the new loop and its block gets the arguments; `loop` is erased.
    """
    body = loop.detach_region(loop.body)
    for init in inits:
        body.block.insert_arg(init.type, len(body.block.args))
    carried = (*loop.iter_args, *inits)
    new = scf.ForOp.create(
        operands=(*loop.operands, *inits),
        result_types=[value.type for value in carried],
        regions=(body,),
        attributes=loop.attributes,
    )
    Rewriter.replace_op(loop, new, new.results[: len(loop.results)])
    return new
