"""`loop-parallelize`: the iterations of a loop are shared out to threads, in chunks.

    scf.for %i = %lb to %ub step %s { B(%i) } {loop.kind = "parallel", loop.schedule = #loop.schedule<threads = T>}
    ->
    loop.parallel (%b, %e) = (%lb) to (%ub) chunk (%c) : index {
      scf.for %i = %b to %e step %s { B(%i) }
    }

A chunk is a whole number of iterations that visits about T points, those of the loops inside counted: `%c` is
`%s` times T / (%s * points inside), at least one iteration. Whether there are chunks at all is decided when the
loop runs. Nothing is computed in another order or another way: B runs with the same indices. What B allocates
on the stack belongs to its chunk. A sum over the loop would be another order: a loop that carries values is
refused.

Takes T from the schedule of a loop, or from the option `threads` for all outermost loops without a schedule.
A loop that it refuses stays as it was and says why in its attribute `loop.remark`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, Operation, Region
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from jitdialects.analysis.bounds import constant_extent, constant_of
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


def may_have_two_chunks(loop: scf.ForOp, points: int) -> bool:
    """Not if the number of points is known and below two chunks."""
    known = constant_extent(loop.lb, loop.ub)
    for inner in chain_inside(loop):
        extent = constant_extent(inner.lb, inner.ub)
        known = None if known is None or extent is None else known * max(extent, 1)
    return known is None or known >= 2 * points


def chain_inside(loop: scf.ForOp) -> Iterator[scf.ForOp]:
    """The first loop inside, the first one inside that, and so on."""
    here: scf.ForOp | None = loop
    while here is not None:
        here = next((op for op in here.body.block.ops if isinstance(op, scf.ForOp)), None)
        if here is not None:
            yield here


# ---- rewrite


def points_per_index(loop: scf.ForOp, math: IndexMath) -> Index:
    """Points of the loops inside, as far as their bounds are known in front of `loop`."""
    points: Index = 1
    for inner in chain_inside(loop):
        if all(defined_outside(bound, loop) for bound in (inner.lb, inner.ub)):
            extent = math.trips(math.number(inner.lb), math.number(inner.ub), 1)
        else:
            extent = constant_extent(inner.lb, inner.ub) or 1
        points = math.mul(points, extent)
    return points


def chunk_of(loop: scf.ForOp, points: int, math: IndexMath) -> Index:
    """Indices of a chunk that visits about `points` points: a multiple of the step."""
    step = constant_of(loop.step)
    assert step is not None
    inside = math.mul(points_per_index(loop, math), step)
    if isinstance(inside, int):
        return step * max(1, points // max(inside, 1))
    iterations = math.divui(points, math.maxsi(inside, 1))
    return math.mul(math.maxsi(iterations, 1), step)


def parallelize(loop: scf.ForOp, points: int) -> None:
    """Put `loop` into a `loop.parallel`."""
    math = IndexMath(before(loop))
    chunk = math.value(chunk_of(loop, points, math))
    block = Block(arg_types=(INDEX, INDEX))
    region = ParallelOp.create(operands=(loop.lb, loop.ub, chunk), regions=(Region(block),))
    math.put(region)
    loop.detach()
    loop.operands = (*block.args, loop.step)
    block.add_ops((loop, YieldOp.create()))


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
            elif may_have_two_chunks(loop, points):
                parallelize(loop, points)


def _is_inside_a_loop(loop: scf.ForOp) -> bool:
    around = loop.parent_op()
    while around is not None:
        if isinstance(around, scf.ForOp):
            return True
        around = around.parent_op()
    return False
