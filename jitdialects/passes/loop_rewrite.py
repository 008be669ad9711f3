"""Surgery on `scf.for` that several loop passes share."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter


def defined_outside(value: SSAValue, loop: Operation) -> bool:
    """True if `value` exists before `loop` starts."""
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent
    while block is not None:
        around = block.parent_op()
        if around is loop:
            return False
        block = around.parent if around is not None else None
    return True


def add_iter_args(loop: scf.ForOp, inits: Sequence[SSAValue]) -> scf.ForOp:
    """`loop` with more loop-carried values, appended; the caller adds them to the terminator.

    The body moves to the new loop and its block gets the arguments; `loop` is erased.
    """
    body = loop.detach_region(loop.body)
    for init in inits:
        body.block.insert_arg(init.type, len(body.block.args))
    carried = (*loop.iter_args, *inits)
    new = scf.ForOp.create(
        operands=(*loop.operands, *inits),
        result_types=[value.type for value in carried],
        regions=(body,),
        attributes=loop.attributes,
    )
    Rewriter.replace_op(loop, new, new.results[: len(loop.results)])
    return new
