"""The dataflow of one block as fusion sees it: which operations compute, and what lies on paths between them.

Three kinds of operations:

- a *core* computes and ends in exactly one group;
- a *copied* one costs no more than reading its result again (one number, a broadcast, a reshape that only
  adds or drops axes of size 1, cheap arithmetic on rank 0): each group that reads it has a copy, and paths
  lead through it;
- anything else (views, control flow, operations of strangers) stays where it is, a node on its own.

Sets of operations are integers with a bit per position, so that unions and paths cost nothing to ask for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Block, Operation, OpResult, SSAValue

from jitdialects.analysis.liveness import reads_of
from jitdialects.analysis.splats import splat_of
from jitdialects.bytecode.operators import ELEMENTARY
from jitdialects.dialects.interfaces import Elementwise, Reduction, ShapeOnly, has_trait
from jitdialects.dialects.tssa_types import shape_of

DEAR = frozenset({"tssa.divide", "tssa.sqrt", "tssa.remainder", "tssa.floor_divide"})
"""Elementwise operations that cost more than reading their result again, beside elementary functions."""
_FUNCTIONS = frozenset(f"tssa.{name}" for name in ELEMENTARY)


def is_dear(op: Operation) -> bool:
    """Whether `op` is elementwise and takes tens of cycles."""
    return op.name in DEAR or op.name in _FUNCTIONS


def is_computing(op: Operation) -> bool:
    """Whether `op` ends in a group: it writes a buffer of its own, unlike reshape, transpose, extract."""
    if not op.name.startswith("tssa.") or op.name == "tssa.group" or not op.results:
        return False
    return not has_trait(op, ShapeOnly) or op.name == "tssa.broadcast"


def is_pointwise(op: Operation) -> bool:
    """Whether element i of the result needs only element i (or one broadcast to it) of the operands."""
    return has_trait(op, Elementwise) or op.name == "tssa.broadcast"


def is_constant(op: Operation) -> bool:
    """Whether `op` is one number everywhere, known without reading any buffer."""
    return op.name == "tssa.size" or splat_of(op) is not None


def adds_unit_axes(op: Operation) -> bool:
    """Whether `op` is a reshape that only adds or drops axes of size 1, of a value computed beside it."""
    if op.name != "tssa.reshape":
        return False
    source = op.operands[0]
    if not isinstance(source, OpResult) or source.op.parent is not op.parent:
        return False
    if [s for s in shape_of(source) if s != 1] != [s for s in shape_of(op.results[0]) if s != 1]:
        return False
    return adds_unit_axes(source.op) or (is_computing(source.op) and not is_copied(source.op))


def is_copied(op: Operation) -> bool:
    """Whether computing `op` again costs no more than reading its result."""
    if is_constant(op) or op.name == "tssa.broadcast":
        return True
    if adds_unit_axes(op):
        return True
    return has_trait(op, Elementwise) and not is_dear(op) and not shape_of(op.results[0])


def reduced_axes(op: Operation) -> tuple[int, ...]:
    """The axes that a reduction takes away."""
    axes = op.properties.get("axes")
    return tuple(map(int, axes.get_values())) if isinstance(axes, DenseArrayBase) else ()


def needs_checks(op: Operation) -> bool:
    """Whether `op` must stay behind the check that its run-time offsets are inside."""
    return op.name in ("tssa.extract", "tssa.insert") and any(
        not shape_of(value) for value in op.operands[1:]
    )


def takes_copies(op: Operation) -> bool:
    """Whether `op` reads an element at a time, so that what it reads can be computed there."""
    if not has_trait(op, Reduction):
        return is_pointwise(op)
    axes, value = reduced_axes(op), op.operands[0]
    if isinstance(value, OpResult) and value.op.name == "tssa.broadcast":
        return bool(axes) and repeats_rows_in_one_piece(value.op, axes)
    return bool(axes)


def repeats_rows_in_one_piece(broadcast: Operation, axes: Sequence[int]) -> bool:
    """Several reduced axes are gone over as one, of which there is no telling where one of them is: what is repeated
    must be repeated along all of them."""
    source, target = shape_of(broadcast.operands[0]), shape_of(broadcast.results[0])
    lead = len(target) - len(source)
    return (
        len(axes) < 2
        or source == target
        or all(source[axis - lead] == 1 for axis in axes if axis >= lead)
    )


def bits_of(mask: int) -> Iterator[int]:
    """The positions in a set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass(eq=False)
class Node:
    """One operation that is not only copied. Sets hold nodes, reached through copies."""

    op: Operation
    reads: int = 0
    readers: int = 0
    escapes: bool = False
    """A result is read in another block, or by nobody."""
    copied: bool = False
    """Copied into those who take copies, and here for those who do not."""


class FusionGraph:
    """The nodes of a block by position, and the paths between them."""

    def __init__(self, block: Block, copies: bool = True) -> None:
        self.block = block
        self.ops = list(block.ops)
        self.nodes: dict[int, Node] = {}
        self.position = {op: number for number, op in enumerate(self.ops)}
        self.before: list[int] = [0] * len(self.ops)
        """Per position, everything from which a path leads there."""
        copied = (
            {op for op in self.ops if is_computing(op) or op.name == "tssa.reshape"}
            if copies
            else set[Operation]()
        )
        self.copied = {op for op in copied if is_copied(op)}
        self.sources: dict[SSAValue, int] = {}
        """The nodes that a value of the block comes from, through copies."""
        self._inputs: dict[Operation, tuple[SSAValue, ...]] = {}
        self._add_nodes()

    def inputs(self, op: Operation) -> tuple[SSAValue, ...]:
        """The values that `op` reads, looked for through copies; cores and what comes from elsewhere."""
        if op not in self._inputs:
            through = takes_copies(op) or op in self.copied
            found: dict[SSAValue, None] = {}
            for value in op.operands:
                if through and isinstance(value, OpResult) and value.op in self.copied:
                    found.update(dict.fromkeys(self.inputs(value.op)))
                else:
                    found[value] = None
            self._inputs[op] = tuple(found)
        return self._inputs[op]

    def _add_nodes(self) -> None:
        rooted = self._rooted()
        keeper: int | None = None
        for number, op in enumerate(self.ops):
            takes = takes_copies(op) or op in self.copied
            reads = 0
            for value in reads_of(op):
                reads |= self._sources_for(value, takes)
            if op in self.copied:
                for result in op.results:
                    self.sources[result] = reads
                if op not in rooted:
                    continue
            keeps = not is_computing(op) and not has_trait(op, ShapeOnly)
            if keeper is not None and (keeps or needs_checks(op)):
                reads |= 1 << keeper
            if keeps:
                keeper = number
            self._add_node(number, op, reads)

    def _add_node(self, number: int, op: Operation, reads: int) -> None:
        node = self.nodes[number] = Node(op, reads, copied=op in self.copied)
        if not node.copied:
            for result in op.results:
                self.sources[result] = 1 << number
        before = reads
        for source in bits_of(reads):
            self.nodes[source].readers |= 1 << number
            before |= self.before[source]
        self.before[number] = before
        node.escapes = any(self._is_elsewhere(use.operation) for r in op.results for use in r.uses)
        node.escapes |= not any(r.first_use is not None for r in op.results)

    def _sources_for(self, value: SSAValue, takes: bool) -> int:
        if takes or not isinstance(value, OpResult) or value.op not in self.copied:
            return self.sources.get(value, 0)
        return self.node_of(value)

    def node_of(self, value: SSAValue) -> int:
        """The node whose result `value` is, as a set; empty for what comes from elsewhere."""
        number = self.position.get(value.op) if isinstance(value, OpResult) else None
        return 0 if number not in self.nodes else 1 << number

    def _is_elsewhere(self, user: Operation) -> bool:
        return self._in_block(user) is None

    def _in_block(self, user: Operation) -> Operation | None:
        """The operation of this block that `user` is or is inside of."""
        while user.parent is not self.block:
            above = user.parent_op()
            if above is None:
                return None
            user = above
        return user

    def _rooted(self) -> set[Operation]:
        """The copied operations that somebody reads who takes no copies, or nobody reads."""
        rooted: set[Operation] = set()
        for op in reversed(self.ops):
            if op not in self.copied:
                continue
            users = [self._in_block(use.operation) for r in op.results for use in r.uses]
            if not users or any(
                user is None or not (takes_copies(user) or user in self.copied) for user in users
            ):
                rooted.add(op)
        return rooted
