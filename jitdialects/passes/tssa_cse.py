"""`tssa-cse`: the same operation on the same operands is done once.

    %a = tssa.add %x, %y                      %a = tssa.add %x, %y
    %b = tssa.add %y, %x            ->        %c = tssa.exp %a
    %c = tssa.exp %b

The first one must dominate the second; blocks are walked along the dominator tree. Attributes are
compared bit by bit, hence 0.0 and -0.0 stay apart. Operands of commutative operators of the table
may come in either order. Never merges operations with side effects or regions; a region isolated
from above is a world of its own.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import is_side_effect_free

from jitdialects.analysis.dominance import dominator_tree
from jitdialects.bytecode.operators import OPERATORS

COMMUTATIVE = frozenset(f"tssa.{o.name}" for o in OPERATORS.values() if o.commutative)


def is_mergeable(op: Operation) -> bool:
    """Whether the operation is a function of its operands and attributes."""
    return bool(op.results) and not op.regions and is_side_effect_free(op)


def identity_of(op: Operation) -> Hashable:
    """Equal for two mergeable operations if and only if they are known to give the same results."""
    operands = [id(v) for v in op.operands]
    if op.name in COMMUTATIVE:
        operands.sort()
    return (
        op.name,
        tuple(operands),
        tuple(op.result_types),
        frozenset(op.properties.items()),
        frozenset(op.attributes.items()),
    )


@dataclass(frozen=True)
class TssaCsePass(ModulePass):
    """See the module's docstring."""

    name = "tssa-cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for region in [r for each in op.walk() for r in each.regions if r.first_block]:
            merge_region(region)


def merge_region(region: Region) -> None:
    """Merge within one region; nested ones are not entered."""
    children = dominator_tree(region)
    assert region.first_block is not None
    known: dict[Hashable, tuple[SSAValue, ...]] = {}
    # An explicit stack; the second entry lists what leaves scope after the blocks below.
    stack: list[tuple[Block, list[Hashable] | None]] = [(region.first_block, None)]
    while stack:
        block, added = stack.pop()
        if added is not None:
            for key in added:
                del known[key]
            continue
        stack.append((block, _merge_block(block, known)))
        stack.extend((child, None) for child in children[block])


def _merge_block(block: Block, known: dict[Hashable, tuple[SSAValue, ...]]) -> list[Hashable]:
    """Merge the operations of one block with `known` ones; gives the keys that it added."""
    added: list[Hashable] = []
    for op in block.ops:
        if not is_mergeable(op):
            continue
        key = identity_of(op)
        earlier = known.get(key)
        if earlier is None:
            known[key] = tuple(op.results)
            added.append(key)
            continue
        for old, new in zip(op.results, earlier, strict=True):
            old.replace_all_uses_with(new)
        block.erase_op(op)
    return added
