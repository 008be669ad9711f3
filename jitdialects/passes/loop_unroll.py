"""`loop-unroll`: several iterations of a loop become one.

    %r = scf.for %i = %lb to %ub step %s iter_args(%v = %a) { B(%i, %v) }
    ->
    %m = scf.for %i = %lb to %main step %4s iter_args(%v = %a) { B(%i, .); B(%i + %s, .); B(%i + 2 %s, .); ... }
    %r = scf.for %i = %main to %ub step %s iter_args(%v = %m) { B(%i, %v) }

`%main` ends the last whole group of iterations; the second loop does what is left and is missing where nothing
can be. Loops of known count, no more than `factor`, dissolve. Iterations stay in order, so every loop may be
unrolled, whatever it does and carries: bounds and steps may be dynamic, trip counts zero or below the factor.
A constant step that is not positive is refused.

Takes the factor from the schedule of a loop, or from the option `factor` for all innermost loops without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from jitdialects.analysis.bounds import constant_of, constant_trip_count
from jitdialects.passes.index_math import Index, IndexMath, before
from jitdialects.passes.loop_rewrite import (
    clone_op,
    is_innermost,
    loops_innermost_first,
    refuse,
    schedule_of,
    set_schedule,
    split,
)


def counts_upwards(loop: scf.ForOp) -> bool:
    """The step is not known to be zero or negative."""
    step = constant_of(loop.step)
    return step is None or step > 0


def unroll(loop: scf.ForOp, factor: int) -> None:
    """Do `factor` (at least 2) iterations of `loop` at a time."""
    math = IndexMath(before(loop), loop.lb.type)
    trips = constant_trip_count(loop)
    if trips is not None and trips <= factor:
        results = _copies(loop, math, loop.lb, trips, loop.iter_args)
        Rewriter.replace_op(loop, (), results)
        return
    middle, rest = split(loop, factor, math)
    main = _main_loop(loop, factor, math, middle)
    math.put(main)
    if rest == 0:
        Rewriter.replace_op(loop, (), main.results)
        return
    loop.operands = (math.value(middle), loop.ub, loop.step, *main.results)
    set_schedule(loop, schedule_of(loop).without("unroll", "stream", "prefetch", "threads"))


def _main_loop(loop: scf.ForOp, factor: int, math: IndexMath, upper: Index) -> scf.ForOp:
    block = Block(arg_types=[argument.type for argument in loop.body.block.args])
    for new, old in zip(block.args, loop.body.block.args, strict=True):
        new.name_hint = old.name_hint
    inner = IndexMath(block.add_op, loop.lb.type)
    results = _copies(loop, inner, block.args[0], factor, block.args[1:])
    block.add_op(scf.YieldOp.create(operands=results))
    step = math.value(math.mul(math.number(loop.step), factor))
    main = scf.ForOp.create(
        operands=(loop.lb, math.value(upper), step, *loop.iter_args),
        result_types=[result.type for result in loop.results],
        regions=(Region(block),),
        attributes=loop.attributes,
    )
    set_schedule(main, schedule_of(loop).without("unroll"))
    return main


def _copies(
    loop: scf.ForOp, math: IndexMath, first: SSAValue, count: int, carried: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """`count` iterations from index `first` on, one after the other; returns what they carry on."""
    old = loop.body.block
    step = math.number(loop.step)
    for number in range(count):
        iv = math.value(math.add(math.number(first), math.mul(step, number)))
        copies: dict[SSAValue, SSAValue] = {}
        copies.update(zip(old.args, (iv, *carried), strict=True))
        for op in old.ops:
            if isinstance(op, scf.YieldOp):
                carried = [copies.get(value, value) for value in op.operands]
            else:
                math.put(clone_op(op, copies))
    return carried


@dataclass(frozen=True)
class LoopUnrollPass(ModulePass):
    """Do several iterations of a loop at a time, and the rest one by one."""

    name = "loop-unroll"

    factor: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.factor < 0:
            raise PassFailedException(
                f"loop-unroll: factor {self.factor} is negative; give a number of copies, or 0 to go by "
                "the schedules"
            )
        for loop in loops_innermost_first(op):
            schedule = schedule_of(loop)
            factor = schedule.unroll
            if factor == 0 and not schedule and is_innermost(loop):
                factor = self.factor
            if factor < 2:
                continue
            if counts_upwards(loop):
                unroll(loop, factor)
            else:
                set_schedule(loop, schedule.without("unroll"))
                refuse(loop, schedule, self.name, "its step is not positive")
