"""`tssa-dce`: removes operations and block arguments on which nothing depends.

    ^head(%i : tensor<i64>, %unused : tensor<f32>):           ^head(%i : tensor<i64>):
      %next = tssa.add %unused, %unused                 ->      ...
      ... cf.br ^head(%j, %next)                                cf.br ^head(%j)

Marks what side effects and terminators need, and sweeps the rest; so values that only feed
themselves around a loop go too. Works on any operation that is free of side effects, region by
region. Never removes a branch, a loop or an argument of an entry block.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator, is_side_effect_free

from jitdialects.dialects.interfaces import has_trait
from jitdialects.passes.branches import edges, incoming, stop_passing


def is_needed_for_itself(op: Operation) -> bool:
    """Terminators, and whatever may do more than give results."""
    return has_trait(op, IsTerminator) or not is_side_effect_free(op)


def is_removable_argument(argument: BlockArgument) -> bool:
    """Whether all that is passed for the argument is known."""
    return incoming(argument.block) is not None


@dataclass(frozen=True)
class TssaDcePass(ModulePass):
    """See the module's docstring."""

    name = "tssa-dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for region in reversed([r for each in op.walk() for r in each.regions]):  # inner ones first
            sweep(region, live_values(region))


def live_values(region: Region) -> set[SSAValue]:
    """The values in `region` that an operation needed for itself depends on."""
    work = [v for block in region.blocks for op in block.ops for v in _roots(op)]
    live: set[SSAValue] = set()
    while work:
        value = work.pop()
        if value in live:
            continue
        live.add(value)
        if isinstance(value, OpResult):
            work.extend(value.op.operands)
            work.extend(v for r in value.op.regions for v in _used_inside(r))
        elif isinstance(value, BlockArgument):
            work.extend(passed[value.index] for passed in incoming(value.block) or ())
    return live


def _roots(op: Operation) -> list[SSAValue]:
    """Operands that are needed whatever else is: for a branch, not what it passes on."""
    if not is_needed_for_itself(op):
        return []
    passed = edges(op)
    inside = [v for r in op.regions for v in _used_inside(r)]
    if passed is None:
        return [*op.operands, *inside]
    arguments = sum(len(values) for _, values in passed)
    return [*op.operands[: len(op.operands) - arguments], *inside]


def _used_inside(region: Region) -> list[SSAValue]:
    return [v for op in region.walk() for v in op.operands]


def sweep(region: Region, live: set[SSAValue]) -> None:
    """Erase what is not live: first every use, then the definitions, whatever the order of
    blocks."""
    dead = [
        op
        for block in region.blocks
        for op in block.ops
        if not is_needed_for_itself(op) and live.isdisjoint(op.results)
    ]
    arguments = {
        a for b in region.blocks for a in b.args if a not in live and is_removable_argument(a)
    }
    if arguments:
        stop_passing(region.blocks, arguments)
    for op in dead:
        op.detach()
        op.drop_all_references()
    for op in dead:
        op.erase(drop_references=False)
    for argument in sorted(arguments, key=lambda a: a.index, reverse=True):
        argument.block.erase_arg(argument)
