"""Loops of a control-flow graph, and how many steps they take.

A loop is what runs again around a *head* that one branch enters. The number of steps is known where the head asks
whether a counter is less than a number: a constant, or a size.

    ^entry:  cf.br ^head(%zero, ...)
    ^head(%t, ...):  %c = tssa.less %t, %n;  %e = tensor.extract %c[];  cf.cond_br %e, ^body, ^exit
    ^body:  ...;  %u = tssa.add %t, %one;  cf.br ^head(%u, ...)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.cf import ConditionalBranchOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from jitdialects.analysis.dominance import postorder
from jitdialects.analysis.splats import splat_of
from jitdialects.analysis.storage import successor_operands
from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Dim
from jitdialects.dialects.tssa import SizeOp


@dataclass(frozen=True)
class Loop:
    """Blocks that run around `head`, and the one block outside that leads there, by a branch of its own."""

    head: Block
    entry: Block
    blocks: frozenset[Block]

    def defines(self, value: SSAValue) -> bool:
        """Whether `value` is made inside."""
        owner = value.owner
        return (owner.parent if isinstance(owner, Operation) else owner) in self.blocks


def loops_of(region: Region) -> Iterator[Loop]:
    """The loops of a control-flow graph, outer ones after what is inside them."""
    order = {block: position for position, block in enumerate(postorder(region))}
    before: dict[Block, list[Block]] = {}
    for block in order:
        for target in block.last_op.successors if block.last_op is not None else ():
            before.setdefault(target, []).append(block)
    for head, place in order.items():
        back = [b for b in before.get(head, ()) if order[b] <= place]
        outside = [b for b in before.get(head, ()) if order[b] > place]
        inside, work = {head}, list(back)
        while work:
            block = work.pop()
            if block not in inside:
                inside.add(block)
                work.extend(before.get(block, ()))
        if back and len(outside) == 1 and outside[0] not in inside:
            entry = outside[0]
            if entry.last_op is not None and len(entry.last_op.successors) == 1:
                yield Loop(head, entry, frozenset(inside))


def steps_of(loop: Loop) -> Dim | None:
    """How often the body runs, if nothing but the counter ends the loop; None where that is not seen."""
    branch = loop.head.last_op
    if not isinstance(branch, ConditionalBranchOp) or branch.else_block in loop.blocks:
        return None
    test = _operation(branch.cond, "tensor.extract")
    less = _operation(test.operands[0], "tssa.less") if test is not None else None
    if less is None or any(_leaves(block, loop) for block in loop.blocks - {loop.head}):
        return None
    counter, end = less.operands[0], _number(less.operands[1])
    if not isinstance(counter, BlockArgument) or counter.block is not loop.head or end is None:
        return None
    start, step = _start_and_step(counter, loop)
    if start is None or not isinstance(step, int) or step < 1:
        return None
    return dims.floordiv(dims.add(dims.sub(end, start), step - 1), step)


def _leaves(block: Block, loop: Loop) -> bool:
    return block.last_op is None or any(b not in loop.blocks for b in block.last_op.successors)


def _start_and_step(counter: BlockArgument, loop: Loop) -> tuple[Dim | None, Dim | None]:
    """What a counter is at first, and what is added to it on every way back."""
    start: Dim | None = None
    steps: set[Dim | None] = set()
    for block in (loop.entry, *loop.blocks):
        assert block.last_op is not None
        for target, values in successor_operands(block.last_op):
            if target is not loop.head:
                continue
            if block is loop.entry:
                start = _number(values[counter.index])
            else:
                add = _operation(values[counter.index], "tssa.add")
                is_counted = add is not None and add.operands[0] is counter
                steps.add(_number(add.operands[1]) if is_counted and add is not None else None)
    return start, steps.pop() if len(steps) == 1 else None


def _operation(value: SSAValue, name: str) -> Operation | None:
    """The operation that makes `value`, if it has this name."""
    owner = value.owner
    return owner if isinstance(owner, Operation) and owner.name == name else None


def _number(value: SSAValue) -> Dim | None:
    """A constant, or a size."""
    owner = value.owner
    if isinstance(owner, SizeOp):
        return owner.value.data[0]
    number = splat_of(owner) if isinstance(owner, Operation) else None
    return number if isinstance(number, int) else None
