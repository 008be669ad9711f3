"""Control flow whose outcome is known: the part of `tssa-simplify` that looks at `cf`.

    cf.cond_br %true, ^a(%x), ^b          ->    cf.br ^a(%x)
    cf.cond_br %c, ^a(%x), ^a(%x)         ->    cf.br ^a(%x)
    blocks that nothing leads to          ->    gone
    cf.br ^a(%x), the only way to ^a      ->    the operations of ^a, its argument replaced by %x
    an argument that is always %x         ->    %x

Each step removes a branch, a block or an argument and adds none, so it ends, also for blocks that
only lead to each other. Blocks reached by terminators other than `cf.br` and `cf.cond_br` are left
alone.
"""

from __future__ import annotations

from collections import Counter

from xdsl.dialects.cf import BranchOp, ConditionalBranchOp
from xdsl.ir import Block, BlockArgument, OpResult, Region, SSAValue

from jitdialects.analysis.dominance import postorder
from jitdialects.dialects.constants import constant_array
from jitdialects.passes.branches import Edge, edges, incoming, replace_branch, stop_passing


def simplify_control_flow(region: Region) -> Counter[str]:
    """Apply all steps until none does; how often each did, by name."""
    done: Counter[str] = Counter()
    if len(region.blocks) < 2:
        return done
    while True:
        step = Counter(
            decide_branches=_decide_branches(region),
            remove_unreachable_blocks=_remove_unreachable_blocks(region),
            merge_blocks=_merge_blocks(region),
            remove_settled_arguments=_remove_settled_arguments(region),
        )
        if not step.total():
            return done
        done += step


def decided(branch: ConditionalBranchOp) -> Edge | None:
    """The only way that the branch can take."""
    ways = edges(branch)
    assert ways is not None
    if ways[0] == ways[1]:
        return ways[0]
    condition = known_condition(branch.cond)
    return None if condition is None else ways[0 if condition else 1]


def known_condition(value: SSAValue) -> bool | None:
    """The value of an i1 that is read from a constant tensor or is an `arith.constant`."""
    if not isinstance(value, OpResult) or value.op.name != "tensor.extract":
        return None
    tensor = value.op.operands[0]
    if not isinstance(tensor, OpResult) or tensor.op.name != "tssa.constant":
        return None
    elements = constant_array(tensor.op).reshape(-1)
    return bool(elements[0]) if elements.size == 1 else None


def _decide_branches(region: Region) -> int:
    count = 0
    for block in region.blocks:
        branch = block.last_op
        way = decided(branch) if isinstance(branch, ConditionalBranchOp) else None
        if branch is not None and way is not None:
            replace_branch(branch, [way])
            count += 1
    return count


def _remove_unreachable_blocks(region: Region) -> int:
    reached = set(postorder(region))
    dead = [b for b in region.blocks if b not in reached]
    for block in dead:  # all references first: they may lead to and use each other
        region.detach_block(block)
        block.drop_all_references()
    for block in dead:
        block.erase()
    return len(dead)


def can_merge(block: Block) -> bool:
    """Whether `block` ends in a plain branch that is the only way to another block."""
    branch = block.last_op
    if not isinstance(branch, BranchOp):
        return False
    target = branch.successor
    region = block.parent_region()
    assert region is not None
    return target is not block and target is not region.first_block and target.has_one_use()


def _merge_blocks(region: Region) -> int:
    count = 0
    for block in list(region.blocks):
        while block.parent_region() is region and can_merge(block):
            branch = block.last_op
            assert isinstance(branch, BranchOp)
            target = branch.successor
            for argument, value in zip(target.args, tuple(branch.arguments), strict=True):
                argument.replace_all_uses_with(value)
            block.erase_op(branch)
            for op in list(target.ops):
                op.detach()
                block.add_op(op)
            region.erase_block(target)
            count += 1
    return count


def settled(argument: BlockArgument) -> SSAValue | None:
    """The one value that every way into the block passes for `argument`, itself apart. It dominates
    all of them, hence the block."""
    ways = incoming(argument.block)
    if not ways:
        return None
    values = {way[argument.index] for way in ways} - {argument}
    return values.pop() if len(values) == 1 else None


def _remove_settled_arguments(region: Region) -> int:
    count = 0
    for block in region.blocks:
        for argument in reversed(block.args):
            value = settled(argument)
            if value is None:
                continue
            stop_passing(argument.block.predecessors(), {argument})
            argument.replace_all_uses_with(value)
            block.erase_arg(argument)
            count += 1
    return count
