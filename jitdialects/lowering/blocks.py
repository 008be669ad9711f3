"""Splitting a block of a large region in time that does not depend on the region."""

from __future__ import annotations

from xdsl.ir import Block, Operation, Region


def split_before(op: Operation) -> Block:
    """The rest of the block of `op`, from `op` on, as a block of its own right behind it.

    As `Block.split_before`, which counts the blocks of the region up to this one: many splits took
    quadratic time. So the block leaves its region for as long as the split takes.
    """
    block = op.parent
    assert block is not None
    region, behind = block.parent, block.next_block
    assert region is not None
    apart = Region(region.detach_block(block))
    rest = block.split_before(op)
    pair = [apart.detach_block(block), apart.detach_block(rest)]
    if behind is None:
        region.add_block(pair)
    else:
        region.insert_block_before(pair, behind)
    return rest
