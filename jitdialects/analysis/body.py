"""The body of a loop, collected in one walk: what legality predicates ask about it."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.ir import Block, Operation

from jitdialects.analysis.memory import Access, access_of, has_known_effect

_TERMINATORS = frozenset({"scf.yield", "loop.yield"})


@dataclass(slots=True)
class Body:
    """The operations of a block and of the blocks inside it, sorted by what they are.

    `others` holds what is neither an access, nor a loop, nor a terminator without results.
    """

    accesses: list[Access] = field(default_factory=list[Access])
    loops: list[scf.ForOp] = field(default_factory=list[scf.ForOp])
    others: list[Operation] = field(default_factory=list[Operation])

    @property
    def unknown_effect(self) -> Operation | None:
        """The first operation whose effects on memory are not known."""
        return next((op for op in self.others if not has_known_effect(op)), None)


def body_of(block: Block) -> Body:
    """Collect everything in `block`."""
    body = Body()
    _collect(block, body)
    return body


def _collect(block: Block, body: Body) -> None:
    for op in block.ops:
        if op.regions:
            if isinstance(op, scf.ForOp):
                body.loops.append(op)
            else:
                body.others.append(op)
            for region in op.regions:
                for inner in region.blocks:
                    _collect(inner, body)
        elif (access := access_of(op)) is not None:
            body.accesses.append(access)
        elif op.name not in _TERMINATORS:
            body.others.append(op)
