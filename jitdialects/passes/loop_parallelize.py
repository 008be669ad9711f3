"""`loop-parallelize`: the iterations of a loop are shared out to threads, in chunks.

    scf.for %i = %lb to %ub step %s { B(%i) } {loop.kind = "parallel", loop.schedule = #loop.schedule<threads = T>}
    ->
    loop.parallel (%b, %e) = (%lb) to (%ub) chunk (%c) : index {
      scf.for %i = %b to %e step %s { B(%i) }
    }

A chunk is a whole number of iterations that visits about T points, those of the loops inside counted: `%c` is
`%s` times T / (%s * points inside), at least one iteration. Loops side by side: those that contain most loops count,
so the rows of a product and not the copy of a panel in front of them. What bounds of loops inside are computed from
moves in front where it does not depend on the loop. Whether there are chunks at all is decided when the
loop runs. A loop of one iteration leaves the threads to the loops inside. Nothing is computed in another order or another way: B runs with the same indices. What B allocates
on the stack belongs to its chunk. A sum over the loop would be another order: a loop that carries values is
refused.

Takes T from the schedule of a loop, or from the option `threads` for all outermost loops without a schedule.
A loop that it refuses stays as it was and says why in its attribute `loop.remark`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, IntegerType, ModuleOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from jitdialects.analysis.bounds import (
    constant_extent,
    constant_of,
    constant_trip_count,
    extent_at_most,
)
from jitdialects.analysis.dependence import carried_dependence
from jitdialects.dialects.interned import INDEX
from jitdialects.dialects.loop import ParallelOp, YieldOp
from jitdialects.passes.index_math import Index, IndexMath, before
from jitdialects.passes.loop_rewrite import (
    defined_outside,
    is_parallel,
    loops_innermost_first,
    refuse,
    schedule_of,
    set_schedule,
)

_DIVISIONS = frozenset({"arith.divui", "arith.remui", "arith.divsi", "arith.remsi"})
_HOISTED = (
    _DIVISIONS
    | {
        f"arith.{name}"
        for name in ("constant", "addi", "subi", "muli", "minsi", "maxsi", "andi", "shrui", "shrsi")
    }
    | {"arith.cmpi", "arith.select"}
)

# ---- legality: each of these is one reason to refuse


def carries_no_values(loop: scf.ForOp) -> bool:
    """No reduction: the order of its operations is meaning."""
    return len(loop.iter_args) == 0


def steps_upwards(loop: scf.ForOp) -> bool:
    """Over `index`, by a positive constant: a chunk is a number of steps."""
    step = constant_of(loop.step)
    return isinstance(loop.lb.type, IndexType) and step is not None and step > 0


def is_outermost_region(loop: scf.ForOp) -> bool:
    """No region of threads is around it: one in another would run in one thread."""
    around: Operation | None = loop.parent_op()
    while around is not None:
        if isinstance(around, ParallelOp):
            return False
        around = around.parent_op()
    return True


def dependence(loop: scf.ForOp) -> str | None:
    """What one iteration may need of another; nothing if they were declared independent."""
    return None if is_parallel(loop) else carried_dependence(loop)


def refusal(loop: scf.ForOp) -> str | None:
    """Why `loop` may not run on several threads, or `None`."""
    if not carries_no_values(loop):
        return "it carries values from iteration to iteration, and their order is meaning"
    if not steps_upwards(loop):
        return "its step is not a positive constant of type index"
    if not is_outermost_region(loop):
        return "a loop around it runs on several threads already"
    return dependence(loop)


# ---- profitability


def may_have_two_chunks(loop: scf.ForOp, points: int, inside: Index) -> bool:
    """Not if there is one iteration, or the number of points is known and below two chunks."""
    step, extent = constant_of(loop.step), constant_extent(loop.lb, loop.ub)
    if step is None or extent is None:
        return True
    return extent > step and (not isinstance(inside, int) or extent * max(inside, 1) >= 2 * points)


# ---- points of the loops inside


def loops_in(block: Block) -> list[scf.ForOp]:
    return [op for op in block.ops if isinstance(op, scf.ForOp)]


def depth(loop: scf.ForOp) -> int:
    """Loops inside each other, `loop` counted."""
    return 1 + max(map(depth, loops_in(loop.body.block)), default=0)


def loops_that_count(block: Block) -> list[scf.ForOp]:
    """Of the loops side by side in `block`, those that contain most."""
    depths = [(depth(loop), loop) for loop in loops_in(block)]
    most = max((number for number, _ in depths), default=0)
    return [loop for number, loop in depths if number == most]


def points_inside(loop: scf.ForOp, around: Sequence[scf.ForOp], math: IndexMath) -> Index:
    """Points of the loops in `loop` for one index, as far as they are known in front of `around[0]`.

    Loops side by side count together where they contain loops (the register tiles of a product); of the innermost
    ones, the first and what joins it.
    """
    found = loops_that_count(loop.body.block)
    points: Index = 0
    at = 0
    while at < len(found):
        first = last = found[at]
        while at + 1 < len(found) and found[at + 1].lb is last.ub:
            at += 1
            last = found[at]
        at += 1
        inside = points_inside(first, (*around, first), math)
        points = math.add(points, math.mul(extent_inside(first, last.ub, around, math), inside))
        if not loops_in(first.body.block):
            break
    return points if found else 1


def extent_inside(
    loop: scf.ForOp, upper: SSAValue, around: Sequence[scf.ForOp], math: IndexMath
) -> Index:
    """Indices from the start of `loop` to `upper`; 1 where it goes through one step of a loop around it, whose
    indices are counted, or nothing is known."""
    if any(loop.lb is other.body.block.args[0] for other in around):
        return 1
    exact = constant_extent(loop.lb, upper)
    if exact is not None:
        return max(exact, 0)
    outermost = around[0]
    if all(hoist(bound, outermost) for bound in (loop.lb, upper)):
        return math.trips(math.number(loop.lb), math.number(upper), 1)
    most = extent_at_most(loop.lb, upper)
    if most is None:
        return 1
    total = end_of(upper)
    return most if total is None or not hoist(total, outermost) else math.minsi(most, total)


def end_of(upper: SSAValue) -> SSAValue | None:
    """The size N if `upper` is min(..., N), maybe less something: the end of a block, all of a short axis."""
    while isinstance(upper, OpResult) and upper.op.name == "arith.subi":
        upper = upper.op.operands[0]
    if not isinstance(upper, OpResult) or upper.op.name != "arith.minsi":
        return None
    return next((value for value in upper.op.operands if _is_size(value)), None)


def _is_size(value: SSAValue) -> bool:
    return isinstance(value, OpResult) and value.op.name == "memref.dim"


def may_hoist(value: SSAValue, loop: scf.ForOp) -> bool:
    """It exists in front of `loop`, or is arithmetic that could be there and goes wrong nowhere."""
    if defined_outside(value, loop):
        return True
    op = value.owner
    if isinstance(op, Block) or not isinstance(value.type, IndexType | IntegerType):
        return False
    if op.name in _DIVISIONS and not (constant_of(op.operands[1]) or 0) > 0:
        return False
    return op.name in _HOISTED and all(may_hoist(operand, loop) for operand in op.operands)


def hoist(value: SSAValue, loop: scf.ForOp) -> bool:
    """Move what computes `value` in front of `loop`; False if it cannot be there."""
    if not may_hoist(value, loop):
        return False
    if not defined_outside(value, loop):
        op, block = value.owner, loop.parent
        assert isinstance(op, Operation) and block is not None
        for operand in op.operands:
            hoist(operand, loop)
        op.detach()
        block.insert_op_before(op, loop)
    return True


# ---- rewrite


def chunk_of(loop: scf.ForOp, points: int, inside: Index, math: IndexMath) -> Index:
    """Indices of a chunk that visits about `points` points, `inside` for each: a multiple of the step."""
    step = constant_of(loop.step)
    assert step is not None
    inside = math.mul(inside, step)
    if isinstance(inside, int):
        return step * max(1, points // max(inside, 1))
    iterations = math.divui(points, math.maxsi(inside, 1))
    return math.mul(math.maxsi(iterations, 1), step)


def parallelize(loop: scf.ForOp, points: int) -> None:
    """Put `loop` into a `loop.parallel`, if it may have two chunks."""
    math = IndexMath(before(loop))
    inside = points_inside(loop, (loop,), math)
    if not may_have_two_chunks(loop, points, inside):
        return
    chunk = math.value(chunk_of(loop, points, inside, math))
    block = Block(arg_types=(INDEX, INDEX))
    region = ParallelOp.create(operands=(loop.lb, loop.ub, chunk), regions=(Region(block),))
    math.put(region)
    loop.detach()
    loop.operands = (*block.args, loop.step)
    block.add_ops((loop, YieldOp.create()))


def hand_down(loop: scf.ForOp, points: int) -> bool:
    """A loop of one iteration leaves `points` to the loops inside that count; False if it has more, or there are none."""
    found = loops_that_count(loop.body.block) if constant_trip_count(loop) == 1 else []
    inside = [each for each in found if is_parallel(each)]
    for each in inside:
        set_schedule(each, replace(schedule_of(each), threads=points))
    return bool(inside)


@dataclass(frozen=True)
class LoopParallelizePass(ModulePass):
    """Share the iterations of loops out to threads."""

    name = "loop-parallelize"

    threads: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.threads < 0:
            raise PassFailedException(
                f"loop-parallelize: threads {self.threads} is negative; give the points of a chunk, or 0 to go "
                "by the schedules"
            )
        for loop in reversed(loops_innermost_first(op)):  # those around others first
            schedule = schedule_of(loop)
            points = schedule.threads
            if points == 0 and not schedule and self.threads and not _is_inside_a_loop(loop):
                points = self.threads
            if points == 0:
                continue
            set_schedule(loop, schedule.without("threads"))
            reason = refusal(loop)
            if reason is not None:
                refuse(loop, schedule, self.name, reason)
            elif not hand_down(loop, points):
                parallelize(loop, points)


def _is_inside_a_loop(loop: scf.ForOp) -> bool:
    around = loop.parent_op()
    while around is not None:
        if isinstance(around, scf.ForOp):
            return True
        around = around.parent_op()
    return False
