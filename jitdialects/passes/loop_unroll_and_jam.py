"""`loop-unroll-and-jam`: iterations of a parallel loop run side by side inside the loops that it contains.

    scf.for %i = %lb to %ub step %c1 {                scf.for %i = %lb to %ub step %c2 {
      %r = scf.for %k ... iter_args(%s = %z) {          %i1 = min(%i + 1, %ub - 1)
        %a = load A[%i, %k]                             %r:2 = scf.for %k ... iter_args(%s = %z, %t = %z) {
        %b = load B[%k]                         ->        %b = load B[%k]
        %t = fma(%a, %b, %s)                              fma(load A[%i, %k], %b, %s)
        yield %t                                          fma(load A[%i1, %k], %b, %t)
      }                                                   yield ...
      store %r, C[%i]                                   }
    }                                                   store C[%i]; store C[%i1]

What does not depend on the index is not copied: the copies share it. Where the factor does not divide the trip
count, rows past the end repeat the last one, which needs no branch; a body that reads what it writes would
notice, and gets a second loop for the rest instead. Needs iterations that are independent and inner
bounds that do not depend on the index; carries no values. The factor comes from the schedule of a loop; with
`rest` in it a second loop, of that factor, takes the iterations for which the first would do many twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from jitdialects.analysis.body import Body, body_of
from jitdialects.analysis.bounds import constant_of, constant_trip_count
from jitdialects.analysis.dependence import carried_dependence
from jitdialects.analysis.lanes import Lanes, lanes_of
from jitdialects.analysis.memory import (
    access_of,
    is_fresh,
    may_alias,
    root_of,
)
from jitdialects.analysis.row_groups import in_large_groups, small_groups
from jitdialects.dialects.interfaces import name_of
from jitdialects.passes.index_math import Index, IndexMath, before
from jitdialects.passes.loop_rewrite import (
    clone_op,
    copy_op,
    defined_outside,
    is_parallel,
    loops_innermost_first,
    refuse,
    schedule_of,
    set_schedule,
    split,
)

# ---- legality


def carries_no_values(loop: scf.ForOp) -> bool:
    """Copies of an iteration need nothing from each other."""
    return len(loop.iter_args) == 0


def counts_upwards(loop: scf.ForOp) -> bool:
    """The step is a positive constant, over `index`."""
    step = constant_of(loop.step)
    return step is not None and step > 0 and isinstance(loop.lb.type, IndexType)


def unknown_operation(body: Body) -> Operation | None:
    """An operation whose effects are not known, or with a region that is no loop."""
    return next((op for op in body.others if op.regions), body.unknown_effect)


def has_uniform_bounds(body: Body, lanes: Lanes) -> bool:
    """Inner loops run equally often in all copies."""
    return all(lanes.are_uniform(op.operands[:3]) for op in body.loops)


def refusal(loop: scf.ForOp, body: Body, lanes: Lanes) -> str | None:
    """Why iterations of `loop` may not run side by side, or `None`."""
    if not carries_no_values(loop):
        return "it carries values from iteration to iteration"
    if not counts_upwards(loop):
        return "its step is not a positive constant"
    unknown = unknown_operation(body)
    if unknown is not None:
        return f"{name_of(unknown)} cannot be copied side by side"
    if not has_uniform_bounds(body, lanes):
        return "the bounds of an inner loop depend on its index"
    return None if is_parallel(loop) else carried_dependence(loop)


def may_repeat(loop: scf.ForOp, body: Body) -> bool:
    """Doing an iteration twice is like doing it once: it reads nothing that it writes.

    Memory that each iteration allocates for itself does not count.
    """
    shared = [access for access in body.accesses if not _is_private(access.base, loop)]
    reads = {access.base for access in shared if not access.is_store}
    writes = {access.base for access in shared if access.is_store}
    return not any(may_alias(read, write) for read in reads for write in writes)


def _is_private(base: SSAValue, loop: scf.ForOp) -> bool:
    root = root_of(base)
    return is_fresh(root) and not defined_outside(root, loop)


# ---- rewrite


class Jammer:
    """Writes a body with a copy of everything that depends on the index for each of `ivs`."""

    def __init__(self, lanes: Lanes, iv: SSAValue, ivs: Sequence[SSAValue]) -> None:
        self.lanes = lanes
        self.copies: list[dict[SSAValue, SSAValue]] = [{iv: new} for new in ivs]
        self.waiting: list[Operation] = []

    def write(self, block: Block, put: Callable[[Operation], None]) -> None:
        """The operations of `block`, its terminator aside.

        Copies of a straight run stay together, copy by copy, which keeps few values alive at a time.
        """
        for op in block.ops:
            if op is block.last_op:
                break
            if op.regions:
                assert isinstance(op, scf.ForOp)
                self._flush(put)
                self._write_loop(op, put)
            elif self._differs(op):
                self.waiting.append(op)
            else:
                self._keep_order(op, put)
                self._write_shared(op, put)
        self._flush(put)

    def _differs(self, op: Operation) -> bool:
        values = (
            tuple(op.operands) or op.results
        )  # an alloca has no operands and differs all the same
        return not self.lanes.are_uniform(values)

    def _write_shared(self, op: Operation, put: Callable[[Operation], None]) -> None:
        new = copy_op(op, self.copies[0])
        put(new)
        self._share(op.results, new.results)

    def _share(self, old: Sequence[SSAValue], new: Sequence[SSAValue]) -> None:
        for copy in self.copies:
            copy.update(zip(old, new, strict=True))

    def _keep_order(self, op: Operation, put: Callable[[Operation], None]) -> None:
        """A shared access does not overtake a waiting store, a shared store nothing."""
        access = access_of(op)
        if access is not None and (access.is_store or any(not op.results for op in self.waiting)):
            self._flush(put)

    def _flush(self, put: Callable[[Operation], None]) -> None:
        for copy in self.copies:
            for op in self.waiting:
                put(copy_op(op, copy))
        self.waiting = []

    def _each(self, value: SSAValue, differs: bool) -> list[SSAValue]:
        copies = self.copies if differs else self.copies[:1]
        return [copy.get(value, value) for copy in copies]

    def _write_loop(self, loop: scf.ForOp, put: Callable[[Operation], None]) -> None:
        old = loop.body.block
        differs = [argument in self.lanes.varying for argument in old.args[1:]]
        inits = [
            value
            for init, each in zip(loop.iter_args, differs, strict=True)
            for value in self._each(init, each)
        ]
        block = Block(arg_types=(loop.lb.type, *(init.type for init in inits)))
        self._bind(old.args, block.args, [False, *differs])
        self.write(old, block.add_op)
        terminator = old.last_op
        assert terminator is not None
        yielded = [
            value
            for result, each in zip(terminator.operands, differs, strict=True)
            for value in self._each(result, each)
        ]
        block.add_op(scf.YieldOp.create(operands=yielded))
        bounds = [self.copies[0].get(bound, bound) for bound in loop.operands[:3]]
        new = scf.ForOp.create(
            operands=(*bounds, *inits),
            result_types=[init.type for init in inits],
            regions=(Region(block),),
            attributes=loop.attributes,
        )
        put(new)
        self._bind(loop.results, new.results, differs)

    def _bind(
        self, old: Sequence[SSAValue], new: Sequence[SSAValue], differs: Sequence[bool]
    ) -> None:
        values = iter(new)
        for value, each in zip(old, differs, strict=True):
            if not each:
                self._share((value,), (_named(next(values), value),))
                continue
            for copy in self.copies:
                copy[value] = _named(next(values), value)


def _named(new: SSAValue, old: SSAValue) -> SSAValue:
    new.name_hint = old.name_hint
    return new


def jam(loop: scf.ForOp, body: Body, lanes: Lanes, factor: int) -> None:
    """Run `factor` (at least 2) iterations of `loop` side by side."""
    math = IndexMath(before(loop))
    trips = constant_trip_count(loop)
    if trips == 0:
        Rewriter.erase_op(loop)
        return
    factor = factor if trips is None else min(factor, trips)
    step = math.number(loop.step)
    iv = loop.body.block.args[0]
    assert isinstance(step, int)
    if trips == factor:
        ivs = [math.value(math.add(math.number(loop.lb), step * r)) for r in range(factor)]
        Jammer(lanes, iv, ivs).write(loop.body.block, math.put)
        Rewriter.erase_op(loop)
        return
    whole = trips is not None and trips % factor == 0
    if whole or (step == 1 and may_repeat(loop, body)):
        last = None if whole else math.value(math.sub(math.number(loop.ub), 1))
        math.put(_jammed(loop, lanes, factor, math, math.number(loop.ub), last))
        Rewriter.erase_op(loop)
        return
    middle, _ = split(loop, factor, math)
    math.put(_jammed(loop, lanes, factor, math, middle, None))
    loop.operands[0] = math.value(middle)
    set_schedule(loop, schedule_of(loop).without("jam", "rest"))


def split_rest(loop: scf.ForOp, factor: int, rest: int) -> scf.ForOp | None:
    """Leave to `loop` what groups of `factor` iterations do best; returns a loop for groups of `rest` over the
    others, None if all that is left in `loop` goes into groups of `rest`, or none of it."""
    math = IndexMath(before(loop))
    lower, trips = math.number(loop.lb), constant_trip_count(loop)
    if trips is not None:
        first: Index = in_large_groups(trips, factor, rest)
        if first == 0 or first >= trips:
            jam = rest if first == 0 else factor
            set_schedule(loop, replace(schedule_of(loop), jam=(jam,), rest=0))
            return None
    else:
        extent = math.trips(lower, math.number(loop.ub), 1)
        small = math.lookup(small_groups(factor, rest), math.remui(extent, factor))
        left = math.maxsi(math.sub(extent, math.mul(small, rest)), 0)
        first = math.mul(math.divui(math.add(left, factor - 1), factor), factor)
    middle = math.add(lower, first)
    others = cast(scf.ForOp, clone_op(loop, {}))
    assert loop.parent is not None
    loop.parent.insert_op_after(others, loop)
    others.operands[0] = math.value(middle)
    loop.operands[1] = math.value(middle if trips is not None else math.minsi(middle, loop.ub))
    set_schedule(loop, schedule_of(loop).without("rest"))
    set_schedule(others, replace(schedule_of(loop), jam=(rest,), threads=0))  # few
    return others


def _jammed(
    loop: scf.ForOp,
    lanes: Lanes,
    factor: int,
    math: IndexMath,
    upper: Index,
    last: SSAValue | None,
) -> scf.ForOp:
    """The loop up to `upper` with `factor` copies; copies past `last`, if given, do that one again."""
    block = Block(arg_types=(loop.lb.type,))
    iv = _named(block.args[0], loop.body.block.args[0])
    inner = IndexMath(block.add_op)
    step = constant_of(loop.step) or 1
    ivs: list[SSAValue] = []
    for number in range(factor):
        index = inner.add(iv, number * step)
        if last is not None and number:
            index = inner.minsi(index, last)
        ivs.append(inner.value(index))
    Jammer(lanes, loop.body.block.args[0], ivs).write(loop.body.block, block.add_op)
    block.add_op(scf.YieldOp.create())
    operands = (loop.lb, math.value(upper), math.value(step * factor))
    new = scf.ForOp.create(operands=operands, regions=(Region(block),), attributes=loop.attributes)
    set_schedule(new, schedule_of(loop).without("jam", "rest"))
    return new


class LoopUnrollAndJamPass(ModulePass):
    """Run iterations of a parallel loop side by side inside the loops that it contains."""

    name = "loop-unroll-and-jam"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in loops_innermost_first(op):
            factor = _factor(loop)
            if factor < 2:
                continue
            body, lanes = body_of(loop.body.block), lanes_of(loop)
            reason = refusal(loop, body, lanes)
            if reason is not None:
                schedule = schedule_of(loop)
                set_schedule(loop, schedule.without("jam", "rest"))
                refuse(loop, schedule, self.name, reason)
                continue
            rest = schedule_of(loop).rest
            if 1 < rest < factor and constant_of(loop.step) == 1 and may_repeat(loop, body):
                others = split_rest(loop, factor, rest)
                if others is not None:
                    jam(others, body_of(others.body.block), lanes_of(others), rest)
                factor = _factor(loop)
            jam(loop, body, lanes, factor)


def _factor(loop: scf.ForOp) -> int:
    schedule = schedule_of(loop)
    return schedule.jam[0] if schedule.jam else 1
