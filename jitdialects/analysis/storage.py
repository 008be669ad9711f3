"""Which memory each tensor of a `tssa` function lives in.

A *root* is a value with memory of its own: the result of a group, a block argument, a function argument, or
(having no value) a result buffer of the function. Other values are views of a root. Roots that are never
alive together may share a *storage*; liveness is exact per block, and two roots may touch at one position:

- where a group overwrites an operand that it reads at the same index only (in place), or
- where a terminator hands a root to a block argument or a result buffer (no copy is needed then).

So results are computed in the caller's buffers, loop-carried values stay in one home buffer, and chains run
in place, wherever no live value is lost. Storages that are neither an argument nor a result buffer get a
slot of one arena: first fit among slots that are large enough for every value of the symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from jitdialects.analysis.liveness import Liveness, Occupied, Range, joined
from jitdialects.analysis.row_stages import stages_of_block
from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Apply, Dim, Symbol
from jitdialects.dialects.interfaces import (
    Contraction,
    Elementwise,
    Reduction,
    ShapeOnly,
    has_trait,
)
from jitdialects.dialects.tssa_types import buffer_element_type, shape_of, tensor_of

ALIGNMENT = 64
"""Bytes; a cache line, and the widest vector."""
_BYTES = {"i8": 1, "f32": 4, "i32": 4, "f64": 8, "i64": 8}


@dataclass(eq=False)
class Root:
    """A value with memory of its own. `value` is None for result buffers and temporaries of branches."""

    value: SSAValue | None
    tensor: TensorType[Attribute]
    ranges: list[Range] = field(default_factory=list[Range])
    place: Literal["argument", "result", "arena"] = "arena"
    number: int = -1
    """Which argument or result."""

    @cached_property
    def size(self) -> Dim:
        """Bytes."""
        element = buffer_element_type(self.tensor.get_element_type())
        return dims.scale(dims.product(shape_of(self.tensor)), _BYTES[str(element)])


class Storage:
    """One piece of memory and the roots that live in it, one after the other."""

    def __init__(self, root: Root) -> None:
        self.roots = [root]
        self.fixed = None if root.place == "arena" else root
        """The argument or result buffer that this memory is; None in the arena."""
        self.offset: Dim = 0
        """Bytes from the start of the arena, for storages in it."""
        self.occupied = Occupied[Root]()
        for range in joined(root.ranges):
            self.occupied.add(range, root)


@dataclass(frozen=True)
class Move:
    """At a terminator, `source` goes to the memory of `target`."""

    source: SSAValue
    target: Root


@dataclass(eq=False)
class Edge:
    """What moves on the way from `block` to a successor, or to the caller (`successor` None).

    `moves` happen at once; `temporaries` break cycles among them, in the order in which they are needed.
    """

    block: Block
    successor: Block | None
    moves: list[Move]
    temporaries: list[Root] = field(default_factory=list[Root])


def is_view(op: Operation) -> bool:
    """Whether the result of `op` is its operand's memory in another arrangement."""
    return has_trait(op, ShapeOnly) and op.name != "tssa.broadcast"


def is_whole(value: SSAValue) -> bool:
    """Whether `value` is all of its root's memory in C order. A reshape's operand is contiguous."""
    while not isinstance(value, BlockArgument):
        op = value.owner
        assert isinstance(op, Operation)
        if op.name == "tssa.group":
            return True
        if op.name != "tssa.reshape":
            return False
        value = op.operands[0]
    return True


class StoragePlan:
    """The storage of every root of a function whose computing operations are in groups."""

    def __init__(self, function: FuncOp) -> None:
        self.function = function
        self.roots: dict[SSAValue, Root] = {}
        """Of every tensor value, views included."""
        self.results: list[Root] = []
        self.edges: list[Edge] = []
        self.storage: dict[Root, Storage] = {}
        self.arena_size: Dim = 0
        self._live = Liveness(function.body)
        self._edges_of: dict[Block, list[Edge]] = {}
        self._arriving: dict[tuple[Root, Root], list[tuple[Edge, Move]]] = {}
        """By source and target."""
        self._collect()
        self._share()
        self._place()

    def storage_of(self, value: SSAValue) -> Storage:
        """The memory that `value` lives in or is a view of."""
        return self.storage[self.roots[value]]

    def edges_of(self, block: Block) -> Sequence[Edge]:
        """The edges that leave `block`, in the order of its successors."""
        return self._edges_of.get(block, ())

    # ---- roots and edges

    def _collect(self) -> None:
        function, live = self.function, self._live
        for block in function.body.blocks:
            for argument in block.args:
                self._add_root(argument)
            for op in block.ops:
                for result in op.results:
                    if isinstance(result.type, TensorType):
                        self._add_value(op, result)
        for number, argument in enumerate(function.body.blocks[0].args):
            self.roots[argument].place, self.roots[argument].number = "argument", number
        for number, type in enumerate(function.function_type.outputs):
            self.results.append(Root(None, tensor_of(type), [], "result", number))
        for block in function.body.blocks:
            terminator = block.last_op
            assert terminator is not None
            for edge in self._edges(block, terminator):
                self.edges.append(edge)
                self._edges_of.setdefault(block, []).append(edge)
                at = live.position[terminator]
                for move in edge.moves:
                    move.target.ranges.append((at, at))
                    way = self.roots[move.source], move.target
                    self._arriving.setdefault(way, []).append((edge, move))
        for root in (*self.roots.values(), *self.results):
            self.storage.setdefault(root, Storage(root))

    def _add_root(self, value: SSAValue) -> None:
        self.roots[value] = Root(value, tensor_of(value), list(self._live.ranges(value)))

    def _add_value(self, op: Operation, result: SSAValue) -> None:
        if is_view(op):
            root = self.roots[result] = self.roots[op.operands[0]]
            root.ranges.extend(self._live.ranges(result))
        else:
            self._add_root(result)

    def _edges(self, block: Block, terminator: Operation) -> Iterator[Edge]:
        if terminator.name == "func.return":
            moves = map(Move, terminator.operands, self.results)
            yield Edge(block, None, list(moves))
            return
        for successor, operands in successor_operands(terminator):
            targets = [self.roots[a] for a in successor.args]
            yield Edge(block, successor, list(map(Move, operands, targets)))

    # ---- sharing

    def _share(self) -> None:
        for edge in sorted(self.edges, key=lambda e: e.successor is not None):
            for move in edge.moves:
                if is_whole(move.source):
                    self._merge(self.roots[move.source], move.target)
        for op in self._live.position:
            if op.name == "tssa.group":
                for number, result in enumerate(op.results):
                    for value in op.operands:
                        if may_overwrite(op, number, value, self.roots):
                            self._merge(self.roots[value], self.roots[result])

    def _merge(self, left: Root, right: Root) -> None:
        one, other = self.storage[left], self.storage[right]
        if one is other or left.size != right.size:
            return
        if any(s.fixed is not None and s.fixed.place == "argument" for s in (one, other)):
            return
        if one.fixed is not None and other.fixed is not None:
            return
        small, large = sorted((one, other), key=lambda s: len(s.occupied.ranges))
        if self._conflict(small, large):
            return
        large.roots[:] = [*one.roots, *other.roots]
        large.fixed = one.fixed or other.fixed
        for range, root in small.occupied:
            large.occupied.add(range, root)
        for root in small.roots:
            self.storage[root] = large

    def _conflict(self, small: Storage, large: Storage) -> bool:
        """Whether a root of one of two storages would be lost if both were one memory."""
        touching: dict[tuple[Root, Root], set[int]] = {}
        for range, left in small.occupied:
            for (first, last), right in large.occupied.meeting(range):
                if first != last:
                    return True
                if (left, right) not in touching:
                    both = {*self._touches(left, right), *self._touches(right, left)}
                    touching[left, right] = both
                if first not in touching[left, right]:
                    return True
        return False

    def _touches(self, old: Root, new: Root) -> Iterator[int]:
        """Positions at which `old` may become `new` in the same memory."""
        if isinstance(new.value, OpResult):
            op, number = new.value.op, new.value.index
            at = self._live.position[op]
            for value in op.operands:
                if (
                    self.roots.get(value) is old
                    and all(last == at for first, last in old.ranges if first <= at <= last)
                    and may_overwrite(op, number, value, self.roots)
                ):
                    yield at
        for edge, move in self._arriving.get((old, new), ()):
            if is_whole(move.source):
                assert edge.block.last_op is not None
                yield self._live.position[edge.block.last_op]

    # ---- places

    def _place(self) -> None:
        for edge in self.edges:
            self._add_temporaries(edge)
        slots: list[tuple[Dim, Occupied[Storage]]] = []
        for storage in dict.fromkeys(self.storage.values()):
            if storage.fixed is not None:
                continue
            size = storage.roots[0].size
            for capacity, occupied in slots:
                if is_at_most(size, capacity) and not _meet(storage, occupied):
                    break
            else:
                occupied = Occupied[Storage]()
                slots.append((size, occupied))
            for range in storage.occupied.ranges:
                occupied.add(range, storage)
        for capacity, occupied in slots:
            for _, storage in occupied:
                storage.offset = self.arena_size
            self.arena_size = dims.add(self.arena_size, round_up(capacity))

    def _add_temporaries(self, edge: Edge) -> None:
        assert edge.block.last_op is not None
        at = self._live.position[edge.block.last_op]
        for step in self.steps(edge):
            if step.target.value is None and step.target.place == "arena":
                step.target.ranges.append((at, at))
                edge.temporaries.append(step.target)
                self.storage[step.target] = Storage(step.target)

    def steps(self, edge: Edge) -> list[Step]:
        """The copies that carry out an edge's moves, in an order in which none overwrites what a later one
        reads. Moves that leave a value where it is give no step."""
        pending = [
            Step(self.storage_of(m.source), m.source, None, m.target)
            for m in edge.moves
            if not (self.storage_of(m.source) is self.storage[m.target] and is_whole(m.source))
        ]
        temporaries = list(edge.temporaries)
        steps: list[Step] = []
        while pending:
            ready = next((s for s in pending if self._is_free(s.target, pending)), None)
            if ready is None:
                stuck = pending[0]
                root = temporaries.pop(0) if temporaries else Root(None, tensor_of(stuck.source))
                steps.append(Step(stuck.memory, stuck.source, None, root))
                pending[0] = Step(None, stuck.source, root, stuck.target)
            else:
                steps.append(ready)
                pending.remove(ready)
        return steps

    def _is_free(self, target: Root, pending: Iterable[Step]) -> bool:
        """Whether no pending step reads the memory of `target`."""
        return all(step.memory is not self.storage[target] for step in pending)


@dataclass(frozen=True)
class Step:
    """One copy: from `source` where it lies in `memory`, or from `temporary`, to `target`."""

    memory: Storage | None
    source: SSAValue
    temporary: Root | None
    target: Root


def successor_operands(
    terminator: Operation,
) -> Sequence[tuple[Block, Sequence[SSAValue]]]:
    """The successors of a `cf.br` or `cf.cond_br`, each with the values for its arguments."""
    match terminator.name:
        case "cf.br":
            return ((terminator.successors[0], terminator.operands),)
        case "cf.cond_br":
            then_block, else_block = terminator.successors
            split = 1 + len(then_block.args)
            return (
                (then_block, terminator.operands[1:split]),
                (else_block, terminator.operands[split:]),
            )
        case _:
            return ()


def may_overwrite(
    group: Operation, number: int, value: SSAValue, roots: dict[SSAValue, Root]
) -> bool:
    """Whether result `number` of `group` may take the place of operand `value`: every operand in that memory
    is all of it, has the result's shape and element type, and is read at the index that is written only; and,
    where the group goes over its rows several times, not after the result begins to be written.

    A product reads whole rows while it writes; a sum's result is smaller. An insertion copies nothing but
    its first operand.
    """
    body = group.regions[0].block
    last = body.last_op
    if last is None or len(last.operands) <= number or value not in roots:
        return False
    tensor = last.operands[number].type
    if any(has_trait(op, Contraction) for op in body.ops):
        return False
    stages = stages_of_block(body) if any(has_trait(op, Reduction) for op in body.ops) else None
    if stages is not None and number not in stages.elements:
        return False
    for inner, outer in zip(body.args, group.operands, strict=False):
        if roots.get(outer) is not roots[value]:
            continue
        if inner.type != tensor or not is_whole(outer):
            return False
        if stages is not None and stages.last_load(inner) > stages.first_store(number):
            return False
        for use in inner.uses:
            reader = use.operation
            in_step = has_trait(reader, Elementwise) or reader is last
            in_step |= stages is not None and has_trait(reader, Reduction)
            if not in_step and not (reader.name == "tssa.insert" and use.index == 0):
                return False
    return True


def _meet(storage: Storage, occupied: Occupied[Storage]) -> bool:
    """Whether a storage ever holds a value while others do."""
    return any(True for range in storage.occupied.ranges for _ in occupied.meeting(range))


def is_never_negative(size: Dim) -> bool:
    """Whether an expression is known to be at least 0, given that sizes are. Values of arguments (`s0`)
    can be anything."""
    if isinstance(size, int):
        return size >= 0
    return size.constant >= 0 and all(c > 0 and _atom_is_size(a) for a, c in size.terms)


def _atom_is_size(atom: Symbol | Apply) -> bool:
    if isinstance(atom, Symbol):
        return not (atom.name[0] == "s" and atom.name[1:].isdigit())
    known = [is_never_negative(a) for a in atom.arguments]
    return any(known) if atom.function == "max" else atom.function != "wrap" and all(known)


def is_at_most(size: Dim, capacity: Dim) -> bool:
    """Whether `size <= capacity` for every value of the symbols."""
    return is_never_negative(dims.sub(capacity, size))


def round_up(size: Dim) -> Dim:
    """The next multiple of the alignment."""
    if dims.is_multiple(size, ALIGNMENT):
        return size
    padded = dims.add(size, ALIGNMENT - 1)
    return dims.scale(dims.floordiv(padded, ALIGNMENT), ALIGNMENT)
