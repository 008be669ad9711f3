"""What branches hand to block arguments, for passes that look at or drop such arguments.

Only `cf.br` and `cf.cond_br` are understood. A block that another terminator leads to gives `None`:
keep away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

from xdsl.dialects.cf import BranchOp, ConditionalBranchOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

Edge: TypeAlias = tuple[Block, tuple[SSAValue, ...]]
"""A block and the values passed to it."""


def edges(branch: Operation) -> list[Edge] | None:
    """Per successor, the block and the values passed to it; None for an unknown terminator."""
    if isinstance(branch, BranchOp):
        return [(branch.successor, tuple(branch.arguments))]
    if isinstance(branch, ConditionalBranchOp):
        return [
            (branch.then_block, tuple(branch.then_arguments)),
            (branch.else_block, tuple(branch.else_arguments)),
        ]
    return None


def incoming(block: Block) -> list[tuple[SSAValue, ...]] | None:
    """The values passed to `block`, one tuple per edge; None if an edge is not understood or
    `block` is an entry, whose arguments come from outside."""
    region = block.parent_region()
    if region is None or region.first_block is block:
        return None
    out: list[tuple[SSAValue, ...]] = []
    for branch in {use.operation for use in block.uses}:
        passed = edges(branch)
        if passed is None:
            return None
        out.extend(values for target, values in passed if target is block)
    return out


def stop_passing(blocks: Iterable[Block], dropped: Collection[BlockArgument]) -> None:
    """Rewrite the branches at the end of `blocks` so that nothing is passed for `dropped` any more."""
    for block in dict.fromkeys(blocks):
        branch = block.last_op
        passed = edges(branch) if branch is not None else None
        if branch is None or passed is None:
            continue
        kept = [
            (target, tuple(v for v, a in zip(values, target.args, strict=True) if a not in dropped))
            for target, values in passed
        ]
        if kept != passed:
            replace_branch(branch, kept)


def replace_branch(branch: Operation, targets: Sequence[Edge]) -> None:
    """Put a branch to `targets` (one or two) in the place of `branch`; a condition stays as it
    is."""
    new: Operation
    if len(targets) == 1:
        new = BranchOp(targets[0][0], *targets[0][1])
    else:
        assert isinstance(branch, ConditionalBranchOp)
        (then, passed), (otherwise, rest) = targets
        new = ConditionalBranchOp(branch.cond, then, passed, otherwise, rest)
    block = branch.parent_block()
    assert block is not None
    block.erase_op(branch)
    block.add_op(new)
