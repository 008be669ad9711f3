"""`loop-distribute`: the innermost, parallel axis of a nest moves into the loops of its body.

    loop.nest (%j) = (%a) to (%b) kinds [parallel]           %acc = memref.alloca() : memref<32x512xf32>
        schedule <vector = 8, distribute = 512> {            loop.nest (%g) = ... kinds [reduction] {
      %acc = memref.alloca() : memref<32xf32>                  loop.nest (%l) = ... kinds [parallel] {
      loop.nest (%g) = ... kinds [reduction] {                   loop.nest (%k) = (%c0) to (%b - %a) kinds [parallel]
        loop.nest (%l) = ... kinds [parallel] {          ->          schedule <vector = 8> {
          loop.nest (%i) = ... kinds [reduction] {                  loop.nest (%i) = ... kinds [reduction] {
            %acc[%l] = %acc[%l] + %x[%i + %l, %j]                     %acc[%l, %k] = %acc[%l, %k] + %x[%i + %l, %a + %k]
      ...                                                      ...

What walked down columns now walks along rows: loop distribution with scalar expansion (Allen, Kennedy, "Optimizing
Compilers for Modern Architectures", 2001, sections 5.3 and 6.2). Each straight run of the body, together with
the reductions in it that contain no loop, gets a loop along the axis; memory that the body allocates has an element per
iteration. Points that differ in a parallel axis do not meet, so any order of them is right; inside one of
them everything keeps its order. If the axis was to be shared out to threads, the parallel loops around reductions are.

Needs: the axis is parallel and of step 1, has at most as many iterations as `distribute` says, the bounds of inner loops
do not depend on it, no value is carried from one run to another, and a stack that has room. A nest that it
refuses stays as it was and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from jitdialects.analysis.bounds import extent_at_most
from jitdialects.analysis.lanes import Lanes, lanes_along
from jitdialects.analysis.memory import access_of, has_known_effect, is_pure, memref_type
from jitdialects.dialects.interfaces import name_of
from jitdialects.dialects.interned import INDEX
from jitdialects.dialects.loop import PARALLEL, REDUCTION, NestOp
from jitdialects.dialects.schedules import Schedule
from jitdialects.passes.index_math import Index, IndexMath, before
from jitdialects.passes.loop_rewrite import copy_op, nest_schedule, nests_innermost_first, refuse

MAX_STACK_BYTES = 4 * 1024 * 1024
"""Expanded memory of a function: it lives on the stack of whatever thread calls it."""


def is_whole(op: Operation) -> bool:
    """A reduction that contains no loop stays inside the axis: its accumulator can be a register."""
    return isinstance(op, NestOp) and REDUCTION in op.kind_names and not _has_loops(op)


def is_around_reductions(nest: NestOp) -> bool:
    """Its points may run in any order, and there is much to do in each of them."""
    is_parallel = REDUCTION not in nest.kind_names
    inside = (op for op in nest.body.block.ops if isinstance(op, NestOp))
    return is_parallel and any(REDUCTION in op.kind_names for op in inside)


def _has_loops(nest: NestOp) -> bool:
    return any(op.regions for op in nest.body.block.ops)


# ---- legality


def is_parallel_by_one(nest: NestOp) -> bool:
    """The innermost axis may run in any order, index by index."""
    return nest.kind_names[-1] == PARALLEL and nest.step_values[-1] == 1


def has_room(nest: NestOp, count: int) -> bool:
    """The axis never has more than `count` iterations."""
    most = extent_at_most(nest.lower[-1], nest.upper[-1])
    return most is not None and most <= count


def unknown_operation(block: Block) -> Operation | None:
    """An operation whose effects are not known, or a region that is no nest."""
    for op in block.ops:
        if isinstance(op, NestOp):
            unknown = unknown_operation(op.body.block)
            if unknown is not None:
                return unknown
        elif op.regions or not has_known_effect(op):
            return op
    return None


def has_uniform_bounds(block: Block, lanes: Lanes) -> bool:
    """Inner loops run equally often at every point of the axis."""
    nests = [op for op in block.ops if isinstance(op, NestOp)]
    return all(
        lanes.are_uniform(op.operands) and has_uniform_bounds(op.body.block, lanes) for op in nests
    )


def is_made_outside(op: Operation, lanes: Lanes) -> bool:
    """The same at every point of the axis, and made in front of the loops along it. (A load stays in its run.)"""
    return not op.regions and is_pure(op) and lanes.are_uniform(op.operands)


def carries_no_values(block: Block, lanes: Lanes, past: frozenset[Operation] = frozenset()) -> bool:
    """What a run makes is used in it, memory aside, and not outside. `past`: what other runs have made."""
    run: set[Operation] = set()
    for op in block.ops:
        if isinstance(op, NestOp) and not is_whole(op):
            past, run = past | run, set()
            if any(value.owner in past for value in op.operands):
                return False
            if not carries_no_values(op.body.block, lanes, past):
                return False
        elif any(value.owner in past for value in _operands_inside(op)):
            return False
        elif is_made_outside(op, lanes):
            if any(value.owner in run for value in op.operands):
                return False
        elif not is_expanded(op):
            run.add(op)
    return True


def _operands_inside(op: Operation) -> list[SSAValue]:
    inside = [v for region in op.regions for b in region.blocks for o in b.ops for v in o.operands]
    return [*op.operands, *inside]


def is_expanded(op: Operation) -> bool:
    """Memory that each point of the axis has for itself."""
    return op.name == "memref.alloca"


def refusal(nest: NestOp, count: int, lanes: Lanes) -> str | None:
    """Why the innermost axis of `nest` may not move inside, or `None`."""
    block = nest.body.block
    if not is_parallel_by_one(nest):
        return "its innermost axis is no parallel one of step 1"
    if not has_room(nest, count):
        return f"it may have more than {count} iterations"
    unknown = unknown_operation(block)
    if unknown is not None:
        return f"{name_of(unknown)} is not known to be safe in another order"
    if not has_uniform_bounds(block, lanes):
        return "the bounds of an inner loop depend on its index"
    if not carries_no_values(block, lanes):
        return "a value that is made in front of a loop is used behind it"
    return None


# ---- rewrite


@dataclass
class Distributor:
    """Writes the body of `nest` without its innermost axis."""

    nest: NestOp
    lanes: Lanes
    count: int
    lower: Index
    extent: SSAValue
    zero: SSAValue
    threads: int = 0
    """Points of a chunk, for parallel loops around reductions."""
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Outside the axis: copies of what does not depend on it, and expanded memory."""
    bytes: int = 0

    def write(self, block: Block, put: Callable[[Operation], None]) -> None:
        """The operations of `block`, its terminator aside."""
        run: list[Operation] = []
        for op in block.ops:
            if op is block.last_op:
                break
            if is_expanded(op):
                put(self._expanded(op))
            elif isinstance(op, NestOp) and not is_whole(op):
                self._flush(run, put)
                self._write_nest(op, put)
            elif is_made_outside(op, self.lanes):
                put(copy_op(op, self.values))
            else:
                run.append(op)
        self._flush(run, put)

    def _expanded(self, op: Operation) -> Operation:
        type = memref_type(op.results[0])
        shape = (*type.get_shape(), self.count)
        new = memref.AllocaOp.get(type.get_element_type(), alignment=64, shape=shape)
        self.values[op.results[0]] = new.memref
        self.bytes += stack_bytes(op) * self.count
        return new

    def _write_nest(self, nest: NestOp, put: Callable[[Operation], None]) -> None:
        block = Block(arg_types=[INDEX] * nest.rank)
        self.values.update(zip(nest.ivs, block.args, strict=True))
        schedule = nest_schedule(nest).without(
            "vector", "unroll", "jam", "stream", "prefetch", "threads"
        )
        threads = self.threads
        if threads and is_around_reductions(nest):
            schedule, self.threads = replace(schedule, threads=threads), 0
        self.write(nest.body.block, block.add_op)
        self.threads = threads
        put(_like(nest, self.values, block, schedule))

    def _flush(self, run: list[Operation], put: Callable[[Operation], None]) -> None:
        """A loop along the axis with the operations of `run`."""
        if not run:
            return
        block = Block(arg_types=[INDEX])
        place = block.args[0]
        inside = IndexMath(block.add_op)
        values = dict(self.values)
        values[self.nest.ivs[-1]] = inside.value(inside.add(self.lower, place))
        self._copy(run, values, place, block.add_op)
        schedule = nest_schedule(self.nest).without(
            "distribute", "tile", "order", "jam", "stream", "threads"
        )
        put(NestOp([self.zero], [self.extent], [1], [PARALLEL], block, schedule))
        run.clear()

    def _copy(
        self,
        run: Sequence[Operation],
        values: dict[SSAValue, SSAValue],
        place: SSAValue,
        put: Callable[[Operation], None],
    ) -> None:
        for op in run:
            if isinstance(op, NestOp):
                block = Block(arg_types=[INDEX] * op.rank)
                values.update(zip(op.ivs, block.args, strict=True))
                body = [inner for inner in op.body.block.ops if inner.name != "loop.yield"]
                self._copy(body, values, place, block.add_op)
                put(_like(op, values, block, nest_schedule(op)))
                continue
            new = copy_op(op, values)
            access = access_of(op)
            if access is not None and is_expanded_memory(access.base):
                new.operands = (*new.operands, place)
            put(new)


def is_expanded_memory(base: SSAValue) -> bool:
    """Allocated by the body."""
    return not isinstance(base.owner, Block) and is_expanded(base.owner)


def stack_bytes(alloca: Operation) -> int:
    """What the memory takes before it is expanded."""
    type = memref_type(alloca.results[0])
    size = max(1, getattr(type.get_element_type(), "bitwidth", 64) // 8)
    for extent in type.get_shape():
        size *= extent
    return size


def _like(
    nest: NestOp, values: dict[SSAValue, SSAValue], block: Block, schedule: Schedule
) -> NestOp:
    """`nest` with another body, under `values`."""
    lower, upper = ([values.get(v, v) for v in bounds] for bounds in (nest.lower, nest.upper))
    return NestOp(lower, upper, nest.step_values, nest.kind_names, block, schedule)


def distribute(nest: NestOp, lanes: Lanes, count: int) -> int:
    """Move the innermost axis of `nest` inside; returns the bytes of stack that this takes."""
    math = IndexMath(before(nest))
    lower, upper = math.number(nest.lower[-1]), math.number(nest.upper[-1])
    extent = math.value(math.sub(upper, lower))
    most = extent_at_most(nest.lower[-1], nest.upper[-1])
    assert most is not None
    threads = nest_schedule(nest).threads
    writer = Distributor(nest, lanes, min(count, most), lower, extent, math.value(0), threads)
    block = Block(arg_types=[INDEX] * (nest.rank - 1))
    writer.values.update(zip(nest.ivs[:-1], block.args, strict=True))
    writer.write(nest.body.block, math.put if nest.rank == 1 else block.add_op)
    if nest.rank > 1:
        outer = NestOp(
            nest.lower[:-1],
            nest.upper[:-1],
            nest.step_values[:-1],
            nest.kind_names[:-1],
            Region(block),
        )
        math.put(outer)
    Rewriter.erase_op(nest)
    return writer.bytes


class LoopDistributePass(ModulePass):
    """Move the innermost axis of nests into the loops of their bodies."""

    name = "loop-distribute"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            taken = 0
            for nest in nests_innermost_first(function):
                schedule = nest_schedule(nest)
                count = schedule.distribute
                if not count:
                    continue
                lanes = lanes_along(nest.ivs[-1])
                reason = refusal(nest, count, lanes)
                needed = _needed(nest.body.block) * count
                if reason is None and taken + needed > MAX_STACK_BYTES:
                    reason = "its memory would fill the stack"
                if reason is None:
                    taken += distribute(nest, lanes, count)
                else:
                    refuse(nest, schedule, self.name, reason)


def _needed(block: Block) -> int:
    """Bytes that the body allocates."""
    inside = sum(_needed(op.body.block) for op in block.ops if isinstance(op, NestOp))
    return inside + sum(stack_bytes(op) for op in block.ops if is_expanded(op))
