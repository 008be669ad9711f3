"""`tssa-sink-constants`: a number is made in the block that reads it.

    %half = tssa.constant {value = dense<0.5> ...}            cf.br ^loop(%x)
    cf.br ^loop(%x)                                 ->      ^loop(%v):
  ^loop(%v):                                                  %half = tssa.constant {value = dense<0.5> ...}
    %w = tssa.multiply %v, %half                              %w = tssa.multiply %v, %half

A constant of another block would be a group of its own, written to memory there and read here around every
loop; one of the same block is part of the group that reads it and costs nothing. For that reason it runs
after `tssa-cse`, which merges along the dominator tree. Needs nothing but SSA. Never moves what has
operands, a table of different numbers, or an operation with an effect.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region
from xdsl.passes import ModulePass

from jitdialects.analysis.splats import splat_of


def is_free_inside_a_group(op: Operation) -> bool:
    """One number everywhere, known without reading memory."""
    return op.name == "tssa.size" or splat_of(op) is not None


def readers_elsewhere(op: Operation) -> dict[Block, list[Operation]]:
    """The operations of other blocks that read `op`, by block."""
    found: dict[Block, list[Operation]] = {}
    for use in op.results[0].uses:
        block = use.operation.parent
        if block is not None and block is not op.parent:
            found.setdefault(block, []).append(use.operation)
    return found


def sink(op: Operation) -> None:
    """Give every other block that reads `op` its own copy, and drop `op` if nobody is left."""
    for block, readers in readers_elsewhere(op).items():
        copy = op.clone()
        copy.results[0].name_hint = op.results[0].name_hint
        first = next(each for each in block.ops if each in readers)
        block.insert_op_before(copy, first)
        op.results[0].replace_uses_with_if(
            copy.results[0], lambda use, b=block: use.operation.parent is b
        )
    if op.results[0].first_use is None and op.parent is not None:
        op.parent.erase_op(op)


class TssaSinkConstantsPass(ModulePass):
    """See the module's docstring."""

    name = "tssa-sink-constants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for region in [r for each in op.walk() for r in each.regions if len(r.blocks) > 1]:
            self._sink_in(region)

    def _sink_in(self, region: Region) -> None:
        for op in [o for block in region.blocks for o in block.ops if is_free_inside_a_group(o)]:
            sink(op)
