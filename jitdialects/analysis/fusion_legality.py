"""Which operations may be one group: the kinds of groups, and the dependences that forbid one.

A `Candidate` is a set of nodes of a `FusionGraph`. Its *kind* says how it becomes loops:

- *elementwise*: operations of one shape;
- *product*: one `tssa.matmul`, and operations of its shape after the whole sum;
- *rows*: reductions of one shape over the same neighbouring axes; operations of that full shape before and after
  them, and operations of the shape that is kept. Where kept axes lie behind the reduced ones (*columns*), operations
  of the full shape come before the reductions and are no results, and all of these go over it at once;
- *alone*: what reads at other indices than it writes (an insertion, a table of constants).

Each predicate below is one conjunct of legality and gives the reason for a refusal. Nothing here asks whether a
group would be worth its while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TypeVar

from xdsl.ir import Operation, OpResult, SSAValue

from jitdialects.analysis.fusion_graph import (
    FusionGraph,
    adds_unit_axes,
    bits_of,
    is_pointwise,
    reduced_axes,
    repeats_rows_in_one_piece,
)
from jitdialects.analysis.layout import has_neighbours_in_rows
from jitdialects.analysis.row_stages import is_swept_again, stages_of_candidate
from jitdialects.bytecode.dims import Shape
from jitdialects.dialects.interfaces import Contraction, Reduction, has_trait
from jitdialects.dialects.tssa_types import shape_of


class Kind(Enum):
    """How a group becomes loops."""

    ELEMENTWISE = "elementwise"
    PRODUCT = "product"
    ROWS = "rows"
    ALONE = "alone"


def kind_of_operation(op: Operation) -> Kind:
    """The kind of the group that `op` makes by itself."""
    if has_trait(op, Contraction):
        return Kind.PRODUCT
    if has_trait(op, Reduction):
        return Kind.ROWS if reduced_axes(op) else Kind.ALONE
    return Kind.ELEMENTWISE if is_pointwise(op) else Kind.ALONE


@dataclass(eq=False)
class Candidate:
    """Nodes that are, or could be, one group. Sets of nodes are as in the graph."""

    graph: FusionGraph
    members: int
    kind: Kind
    shape: Shape
    """Of what it works on: of the operand of its reductions, or of its results."""
    inputs: dict[SSAValue, None]
    """What it reads from outside, through copies."""
    before: int
    """Every node from which a path leads here."""
    readers: int
    """The nodes outside that read it."""
    exports: int
    """The members whose results somebody outside reads, or nobody."""
    reductions: list[Operation] = field(default_factory=list[Operation])
    products: list[Operation] = field(default_factory=list[Operation])
    parts: tuple[Candidate, ...] = ()
    """What was put together last."""

    @cached_property
    def ops(self) -> list[Operation]:
        """The members in program order, without copies."""
        return [self.graph.ops[position] for position in bits_of(self.members)]

    @property
    def yields(self) -> list[Operation]:
        """The members that are results of the group, in program order."""
        return [self.graph.ops[position] for position in bits_of(self.exports)]


def candidate_of(graph: FusionGraph, position: int) -> Candidate:
    """The node at `position` by itself."""
    node, op = graph.nodes[position], graph.ops[position]
    kind = kind_of_operation(op)
    return Candidate(
        graph,
        1 << position,
        kind,
        shape_of(op.operands[0] if kind is Kind.ROWS else op.results[0]),
        dict.fromkeys(graph.inputs(op)),
        graph.before[position],
        node.readers,
        1 << position if node.escapes or node.readers else 0,
        [op] if kind is Kind.ROWS else [],
        [op] if kind is Kind.PRODUCT else [],
    )


_STRONGEST = (Kind.ALONE, Kind.ROWS, Kind.PRODUCT, Kind.ELEMENTWISE)


def union(left: Candidate, right: Candidate) -> Candidate:
    """Both as one; whether that is legal is asked afterwards."""
    graph, members = left.graph, left.members | right.members
    chief, other = sorted((left, right), key=lambda c: _STRONGEST.index(c.kind))
    exports = left.exports | right.exports
    for position in bits_of(exports):
        node = graph.nodes[position]
        if not (node.escapes or node.readers & ~members):
            exports ^= 1 << position
    return Candidate(
        graph,
        members,
        chief.kind,
        chief.shape,
        {v: None for v in (*left.inputs, *right.inputs) if not graph.node_of(v) & members},
        (left.before | right.before) & ~members,
        (left.readers | right.readers) & ~members,
        exports,
        [*left.reductions, *right.reductions],
        [*left.products, *right.products],
        (chief, other),
    )


# ---- dependence: the order of groups -----------------------------------------------------------


def can_be_next_to_each_other(left: Candidate, right: Candidate) -> bool:
    """No path from one to the other leads through something that is in neither: that would have to run
    both before and after the group."""
    both = left.members | right.members
    return not (left.readers & right.before & ~both or right.readers & left.before & ~both)


# ---- dependence: inside a group ----------------------------------------------------------------


def is_no_loner(group: Candidate) -> bool:
    """An insertion reads at other indices than it writes; a table is written element by element."""
    return group.kind is not Kind.ALONE


def has_one_product_at_most(group: Candidate) -> bool:
    """Two products are two nests of their own depth."""
    return len(group.products) <= 1


def leaves_operands_of_products_alone(group: Candidate) -> bool:
    """A product reads whole rows and columns, many times over."""
    graph, members = group.graph, group.members
    return not any(
        (graph.sources.get(v, 0) | graph.node_of(v)) & members
        for op in group.products
        for v in op.operands
    )


def keeps_reductions_from_products(group: Candidate) -> bool:
    """The tiles of a product do not hold whole rows of the result."""
    return not (group.reductions and group.products)


def has_reductions_of_one_space(group: Candidate) -> bool:
    """All reductions take the same axes of one shape."""
    first = group.reductions[0]
    return all(
        shape_of(op.operands[0]) == group.shape
        and op.properties["axes"] == first.properties["axes"]
        for op in group.reductions[1:]
    )


def has_one_iteration_space(group: Candidate) -> bool:
    """Every operation is computed once for each index: all have one shape, or, beside reductions, the shape
    that they keep (with or without axes of size 1 for those that are reduced)."""
    if not group.reductions:
        return all(part.shape == group.shape for part in group.parts)
    shapes = {shape_of(op.results[0]) for op in group.ops} - {group.shape}
    return shapes <= kept_shapes(group)


def kept_shapes(group: Candidate) -> set[Shape]:
    """The shapes of values that there are once per row of a group of reductions."""
    if not group.reductions:
        return set()
    axes = reduced_axes(group.reductions[0])
    shape = group.shape
    kept = tuple(s for axis, s in enumerate(shape) if axis not in axes)
    return {kept, tuple(1 if axis in axes else s for axis, s in enumerate(shape))}


def reads_members_where_they_are_written(group: Candidate) -> bool:
    """Every member is read at the index at which it is computed, also through copies: a row's sum by the
    elements of its own row only."""
    return all(
        _index_read(op, value, group) is not None for op in group.ops for value in op.operands
    )


Index = tuple[int, ...]
"""Per axis the axis of the group's shape that it runs along; -1 for an axis that is at 0."""


def _own_index(op: Operation, group: Candidate) -> Index:
    """Where a member's elements are, in terms of the group's axes."""
    shape, full = shape_of(op.results[0]), group.shape
    if shape == full or not group.reductions:
        return tuple(-1 if s == 1 else axis for axis, s in enumerate(shape))
    axes = reduced_axes(group.reductions[0])
    if len(shape) == len(full):
        return tuple(-1 if s == 1 else axis for axis, s in enumerate(shape))
    kept = [axis for axis in range(len(full)) if axis not in axes]
    return tuple(-1 if full[axis] == 1 else axis for axis in kept)


def _index_read(op: Operation, value: SSAValue, group: Candidate) -> Index | None:
    """The index at which `op` reads `value`; None if a member is read elsewhere on the way."""
    index = _own_index(op, group)
    if has_trait(op, Reduction):
        index = tuple(-1 if s == 1 else axis for axis, s in enumerate(group.shape))
    elif has_trait(op, Contraction):
        return ()
    if op.name == "tssa.broadcast":
        index = through_broadcast(index, shape_of(value), shape_of(op.results[0]), -1)
    return _follow(value, index, group)


def _follow(value: SSAValue, index: Index, group: Candidate) -> Index | None:
    while isinstance(value, OpResult) and not group.graph.sources.get(value, 0) & ~group.members:
        source = value.op
        if source not in group.graph.copied:
            if source not in group.graph.position or not (
                group.members >> group.graph.position[source] & 1
            ):
                return index
            return index if index == _own_index(source, group) else None
        if not source.operands:
            return index
        if source.name == "tssa.broadcast":
            index = through_broadcast(
                index, shape_of(source.operands[0]), shape_of(source.results[0]), -1
            )
        elif adds_unit_axes(source):
            index = through_unit_axes(
                index, shape_of(source.operands[0]), shape_of(source.results[0]), -1
            )
        else:  # arithmetic on one number
            return index
        value = source.operands[0]
    return index


T = TypeVar("T")


def through_broadcast(index: Sequence[T], source: Shape, target: Shape, zero: T) -> tuple[T, ...]:
    """The index of the operand of a broadcast."""
    lead = len(target) - len(source)
    return tuple(zero if have == 1 else at for have, at in zip(source, index[lead:], strict=True))


def through_unit_axes(index: Sequence[T], source: Shape, target: Shape, zero: T) -> tuple[T, ...]:
    """The index of the operand of a reshape that adds or drops axes of size 1."""
    kept = iter([at for size, at in zip(target, index, strict=True) if size != 1])
    return tuple(zero if size == 1 else next(kept) for size in source)


def reduces_neighbouring_axes(group: Candidate) -> bool:
    """Several reduced axes are gone over as one."""
    axes = reduced_axes(group.reductions[0])
    return bool(axes) and axes[-1] - axes[0] + 1 == len(axes)


def reads_rows_in_one_piece(group: Candidate) -> bool:
    """Several reduced axes are gone over as one: nothing is repeated along some of them only."""
    axes = reduced_axes(group.reductions[0])
    return len(axes) < 2 or all(repeats_rows_in_one_piece(op, axes) for op in _broadcasts(group))


def is_over_columns(group: Candidate) -> bool:
    """Whether kept axes lie behind the reduced ones: what is reduced is not next to each other in memory."""
    return bool(group.reductions) and (reduced_axes(group.reductions[0])[-1] < len(group.shape) - 1)


def goes_over_columns_once(group: Candidate) -> bool:
    """From a row to the next one of the same columns there is as much in between as a row is long, and memory wants
    long segments of rows: no cache holds all rows of them until a second sweep. To read them twice is what two
    groups do as well."""
    if not is_over_columns(group) or not is_swept_again(group):
        return True
    return len(stages_of_candidate(group).sweeps) == 1


def _broadcasts(group: Candidate) -> Iterator[Operation]:
    """The broadcasts to the full shape on the way into members."""
    pending: list[Operation] = list(group.ops)
    while pending:
        op = pending.pop()
        if op.name == "tssa.broadcast" and shape_of(op.results[0]) == group.shape:
            yield op
        pending.extend(
            v.op for v in op.operands if isinstance(v, OpResult) and v.op in group.graph.copied
        )


def keeps_columns_in_rows(group: Candidate) -> bool:
    """Rows of columns become vectors, which something whose columns are not next to each other would prevent, unless
    a reduction reads it in any case."""

    def is_in_rows(part: Candidate) -> bool:
        values = (v for v in part.inputs if shape_of(v) and shape_of(v)[-1] != 1)
        return all(map(has_neighbours_in_rows, values))

    reducing = (part for part in group.parts if part.reductions)
    return not is_over_columns(group) or is_in_rows(group) or not all(map(is_in_rows, reducing))


def writes_no_columns(group: Candidate) -> bool:
    """Rows of columns are read several at a time, far from each other. To write like that is slower than to write
    all elements in the order of memory, past the cache if they are many, and to read them again."""
    return not is_over_columns(group) or not any(
        shape_of(op.results[0]) == group.shape for op in group.yields
    )


Predicate = Callable[[Candidate], bool]
_EVERYWHERE: tuple[tuple[Predicate, str], ...] = (
    (is_no_loner, "one of them is a group of its own"),
    (has_one_product_at_most, "there would be two products"),
    (
        leaves_operands_of_products_alone,
        "a product reads its operands at other indices than it writes",
    ),
    (keeps_reductions_from_products, "a product does not hold the rows that are reduced"),
)
_ROWS: tuple[tuple[Predicate, str], ...] = (
    (has_reductions_of_one_space, "their reductions run over different axes or shapes"),
    (has_one_iteration_space, "their shapes differ"),
    (
        reads_members_where_they_are_written,
        "one reads the other at another index than it is written at",
    ),
    (reduces_neighbouring_axes, "the reduced axes are not neighbours"),
    (reads_rows_in_one_piece, "something is repeated along some of the reduced axes only"),
    (
        goes_over_columns_once,
        "columns would be gone over again, when they are in no cache any more",
    ),
    (writes_no_columns, "elements that are results are written faster in the order of memory"),
    (keeps_columns_in_rows, "something would be read whose columns are not next to each other"),
)
_PLAIN: tuple[tuple[Predicate, str], ...] = ((has_one_iteration_space, "their shapes differ"),)


def why_illegal(left: Candidate, right: Candidate) -> tuple[Candidate | None, str]:
    """Both as one group, or None and the reason why they must not be."""
    if not can_be_next_to_each_other(left, right):
        return None, "an operation outside depends on one and feeds the other"
    both = union(left, right)
    for holds, why in (*_EVERYWHERE, *(_ROWS if both.kind is Kind.ROWS else _PLAIN)):
        if not holds(both):
            return None, why
    return both, ""
