"""Groups of elementwise operations, insertions and constant tables as loop nests.

A group without sums or products is one parallel nest over the shape of its result, or, where every buffer
is contiguous and nothing is repeated along some axes only, over its elements in memory order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    MemRefType,
    i1,
    i8,
    i64,
)
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from jitdialects.analysis.fusion_legality import through_broadcast, through_unit_axes
from jitdialects.analysis.splats import Table, numbers_of, splat_of
from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Shape
from jitdialects.dialects.interfaces import Elementwise, has_trait
from jitdialects.dialects.loop import PARALLEL
from jitdialects.dialects.tssa import GroupOp, InsertOp, SizeOp
from jitdialects.dialects.tssa_types import shape_of, tensor_of
from jitdialects.errors import CompileError
from jitdialects.lowering.emitter import IDENTITY, INDEX, WRAP, Emitter, collapse, memref_of
from jitdialects.lowering.scalar_rules import emit_scalar

MAX_TABLE = 256
"""Elements of a constant that is not one number; each becomes a store."""


def element_of(tensor: SSAValue) -> Attribute:
    """The type in which the elements of a tensor are computed."""
    return tensor_of(tensor).get_element_type()


Indices = tuple[SSAValue, ...]
_Element = tuple[SSAValue, Indices]


class Body:
    """The elements of the tensors in a group's body, computed where and when they are asked for."""

    def __init__(self, at: Emitter, group: GroupOp) -> None:
        self.at = at
        self.block = group.block
        self.outer: dict[SSAValue, SSAValue] = dict(zip(group.block.args, group.ins, strict=True))
        self.kept: dict[SSAValue, SSAValue] = {}
        """Tensors whose elements were computed and stored before, and in which buffers."""
        self._known: dict[_Element, SSAValue] = {}

    def define(self, tensor: SSAValue, indices: Sequence[SSAValue], element: SSAValue) -> None:
        """Say what `tensor[indices]` is."""
        self._known[tensor, tuple(indices)] = element

    def element(self, tensor: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
        """`tensor[indices]`, computed at the emitter's place unless it is known.

        A list of what is still to be computed, since bodies can be deeper than Python recurses.
        """
        goal = tensor, tuple(indices)
        known = self._known
        if goal in known:
            return known[goal]
        pending = [goal]
        while pending:
            key = pending[-1]
            missing = [k for k in self._reads(*key) if k not in known]
            if missing:
                pending.extend(reversed(missing))
                continue
            if key not in known:
                known[key] = self._compute(*key)
            pending.pop()
        return known[goal]

    def _reads(self, tensor: SSAValue, indices: Indices) -> list[_Element]:
        """The elements from which `tensor[indices]` is computed."""
        if isinstance(tensor, BlockArgument) or tensor in self.kept:
            return []
        op = tensor.owner
        assert isinstance(op, Operation)
        if op.name in ("tssa.broadcast", "tssa.reshape"):
            return [(op.operands[0], self.moved(op, indices))]
        return [(v, indices) for v in op.operands] if has_trait(op, Elementwise) else []

    def _compute(self, tensor: SSAValue, indices: Indices) -> SSAValue:
        if isinstance(tensor, BlockArgument):
            return load_element(self.at, self.outer[tensor], indices)
        if tensor in self.kept:
            return self.load_kept(tensor, indices)
        op = tensor.owner
        assert isinstance(op, Operation)
        operands = [self._known[key] for key in self._reads(tensor, indices)]
        if op.name in ("tssa.broadcast", "tssa.reshape"):
            return operands[0]
        if has_trait(op, Elementwise):
            return emit_scalar(self.at, op, operands, element_of(tensor))
        if isinstance(op, SizeOp):
            return self.at.emit(arith.IndexCastOp, (self.at.size(op.value.data[0]),), i64)
        number = splat_of(op)
        if number is not None:
            return self.at.constant(element_of(tensor), number)
        raise PassFailedException(
            f"{op.name} cannot be inside a group with others; run tssa-fuse to form groups"
        )

    def load_kept(self, tensor: SSAValue, indices: Indices) -> SSAValue:
        """An element that was computed and stored before."""
        return load_element(self.at, self.kept[tensor], indices)

    def moved(self, op: Operation, indices: Indices) -> Indices:
        """Where a broadcast, or a reshape that adds or drops axes of size 1, has its element from."""
        source, target = shape_of(op.operands[0]), shape_of(op.results[0])
        if op.name == "tssa.reshape":
            return through_unit_axes(indices, source, target, self.at.index(0))
        if not source:
            return ()
        return (
            indices
            if source == target
            else through_broadcast(indices, source, target, self.at.index(0))
        )

    def compute_scalars(self, shape: Shape) -> None:
        """Compute everything of rank 0 here, in front of the nest that uses it."""
        if not shape:
            return
        for tensor in self.outer:
            if not shape_of(tensor):
                self.element(tensor, ())
        for op in self.block.ops:
            if op.results and not shape_of(op.results[0]):
                self.element(op.results[0], ())


def load_element(at: Emitter, source: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
    """An element of a buffer in the type it is computed in; a plain scalar is its own element."""
    if not isinstance(source.type, MemRefType):
        return source
    value = at.load(source, indices)
    return at.compare("ne", value, at.constant(i8, 0)) if value.type == i8 else value


def store_element(
    at: Emitter, value: SSAValue, buffer: SSAValue, indices: Sequence[SSAValue]
) -> None:
    """Write an element; a bool takes a byte."""
    if value.type == i1 and memref_of(buffer).get_element_type() == i8:
        value = at.emit(arith.ExtUIOp, (value,), i8)
    at.store(value, buffer, indices)


def is_contiguous(buffer: SSAValue) -> bool:
    """Whether a memref has the identity layout."""
    return isinstance(buffer.type, MemRefType) and memref_of(buffer).layout == IDENTITY


def is_collapsible(group: GroupOp, shape: Shape) -> bool:
    """Whether the group's elements can be visited in memory order, as one axis."""
    if len(shape) < 2 or not all(map(is_contiguous, group.outs)):
        return False
    for inner, outer in zip(group.block.args, group.ins, strict=True):
        if shape_of(inner) and not (shape_of(inner) == shape and is_contiguous(outer)):
            return False
    return all(
        shape_of(op.operands[0]) in ((), shape_of(op.results[0]))
        for op in group.block.ops
        if op.name == "tssa.broadcast"
    )


def lower_elementwise(at: Emitter, group: GroupOp) -> None:
    """One parallel nest that computes and stores every element of the group's results."""
    results = group.terminator.operands
    outs = list(group.outs)
    shape = shape_of(results[0])
    body = Body(at, group)
    if is_collapsible(group, shape):
        count = dims.product(shape)
        flat: dict[SSAValue, SSAValue] = {}
        for buffer in (*body.outer.values(), *outs):
            if isinstance(buffer.type, MemRefType) and memref_of(buffer).get_shape():
                flat.setdefault(buffer, collapse(at, buffer, (count,)))
        body.outer = {inner: flat.get(outer, outer) for inner, outer in body.outer.items()}
        outs = [flat[out] for out in outs]
        shape = (count,)
    body.compute_scalars(shape)
    with at.nest(*over(at, shape)) as indices:
        store_results(body, results, outs, indices)


def store_results(
    body: Body, results: Sequence[SSAValue], outs: Sequence[SSAValue], indices: Indices
) -> None:
    """Write an element of each result. All are computed first: a result may take the place of an operand."""
    at, elements = body.at, list[SSAValue]()
    for result in results:
        source = body.outer.get(result)
        is_copy = source is not None and isinstance(source.type, MemRefType)
        elements.append(
            at.load(source, indices) if is_copy and source else body.element(result, indices)
        )
    for element, out in zip(elements, outs, strict=True):
        store_element(at, element, out, indices)


def over(at: Emitter, shape: Shape) -> tuple[list[SSAValue], list[SSAValue], list[str]]:
    """Bounds and kinds of a parallel nest over all indices of `shape`."""
    lower = [at.index(0) for _ in shape]
    return lower, [at.size(size) for size in shape], [PARALLEL] * len(shape)


def lower_insert(at: Emitter, group: GroupOp, op: InsertOp) -> None:
    """Copy the whole, unless the result takes its place, then write the part."""
    outer = Body(at, group).outer
    whole, part, *values = (outer[v] for v in op.operands)
    out = group.outs[0]
    if whole is not out:
        with at.nest(*over(at, shape_of(op.operands[0]))) as indices:
            at.store(at.load(whole, indices), out, indices)
    run_time = {
        f"{dims.RUN_TIME}{k}": at.emit(arith.IndexCastOp, (load_element(at, v, ()),), INDEX)
        for k, v in enumerate(values)
    }
    offsets = [at.size_here(offset, run_time) for offset in op.offsets.data]
    steps = op.steps.get_values()
    with at.nest(*over(at, shape_of(op.operands[1]))) as indices:
        target: list[SSAValue] = []
        for index, offset, step in zip(indices, offsets, steps, strict=True):
            if step != 1:
                index = at.emit(arith.MuliOp, (index, at.index(int(step))), index.type, WRAP)
            target.append(at.add(index, offset))
        at.store(at.load(part, indices), out, target)


def lower_table(at: Emitter, group: GroupOp, values: Table) -> None:
    """A constant that is not one number: a store for each element."""
    elements = numbers_of(values)
    if len(elements) > MAX_TABLE:
        raise CompileError(
            f"a constant of {len(elements)} elements is too large to compile (at most {MAX_TABLE}); "
            "pass it as an argument"
        )
    result = group.terminator.operands[0]
    sizes = [range(dims.evaluate(size, {})) for size in shape_of(result)]
    for index, value in zip(product(*sizes), elements, strict=True):
        element = at.constant(element_of(result), value)
        store_element(at, element, group.outs[0], [at.index(i) for i in index])
