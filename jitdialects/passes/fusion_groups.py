"""Builds the `tssa.group`s that `tssa-fuse` has chosen, in an order in which each comes after what it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from jitdialects.analysis.fusion_graph import FusionGraph, bits_of, takes_copies
from jitdialects.analysis.fusion_legality import Candidate
from jitdialects.dialects.new_operation import new_operation
from jitdialects.dialects.tssa import GroupOp, YieldOp


def build_groups(graph: FusionGraph, groups: Sequence[Candidate]) -> None:
    """Put every node of the block back in order, those of a group inside it; copies that are left go."""
    homes = {position: group for group in groups for position in bits_of(group.members)}
    builder = _Builder(graph, homes)
    for op in graph.ops:
        op.detach()
    for unit in _in_order(graph, homes):
        builder.place(unit)
    builder.finish()


def copy_into_readers(graph: FusionGraph, copies: Mapping[Candidate, int]) -> None:
    """Give each group operations of its own for the nodes that it computes again; what nobody reads any more goes.
    The graph describes the block no longer."""
    for group, members in copies.items():
        own: dict[SSAValue, SSAValue] = {}
        for op in (graph.ops[position] for position in bits_of(members)):
            copy = _copy(op, [own.get(v, v) for v in op.operands])
            copy.results[0].name_hint = op.results[0].name_hint
            graph.block.insert_op_after(copy, op)
            own[op.results[0]] = copy.results[0]
        for op in group.ops:
            op.operands = [own.get(v, v) for v in op.operands]
    copied = {position for members in copies.values() for position in bits_of(members)}
    for op in (graph.ops[position] for position in sorted(copied, reverse=True)):
        if op.results[0].first_use is None:
            graph.block.erase_op(op)


def _in_order(graph: FusionGraph, homes: dict[int, Candidate]) -> list[Candidate | int]:
    """Groups and single nodes, each after what it reads; otherwise where its last operation was."""
    units: dict[int, Candidate | int] = {}
    key: dict[int, int] = {}  # position -> that of the last node of its unit
    for position in graph.nodes:
        group = homes.get(position)
        last = position if group is None else group.members.bit_length() - 1
        key[position] = last
        units[last] = position if group is None else group
    waits = {k: 0 for k in units}
    feeds: dict[int, set[int]] = {k: set() for k in units}
    for position, node in graph.nodes.items():
        for source in bits_of(node.reads):
            one, other = key[source], key[position]
            if one != other and other not in feeds[one]:
                feeds[one].add(other)
                waits[other] += 1
    ready = [k for k, count in waits.items() if not count]
    ready.sort()
    end = len(graph.ops) - 1
    order: list[Candidate | int] = []
    while ready:
        unit = heappop(ready)
        if unit != end:  # the terminator is last, whatever it reads
            order.append(units[unit])
        for other in feeds[unit]:
            waits[other] -= 1
            if not waits[other]:
                heappush(ready, other)
    if end in units:
        order.append(units[end])
    assert len(order) == len(units), "groups that depend on each other"
    return order


class _Builder:
    """Puts units at the end of the block, one after the other."""

    def __init__(self, graph: FusionGraph, homes: dict[int, Candidate]) -> None:
        self.graph, self.homes = graph, homes
        self.outer: dict[SSAValue, SSAValue] = {}
        """What stands for a value outside the groups."""
        self.reads = {op: tuple(op.operands) for op in graph.copied}

    def place(self, unit: Candidate | int) -> None:
        """Append a group or a node."""
        if isinstance(unit, Candidate):
            self.graph.block.add_op(self._group(unit))
        elif (
            self.graph.nodes[unit].op.parent is None
        ):  # else a copy that a group reads from outside
            self.graph.block.add_op(self.graph.nodes[unit].op)

    def finish(self) -> None:
        """Let everybody outside read the results of groups, and erase copies that nobody needs."""
        for value, result in self.outer.items():
            body = value.owner.parent if isinstance(value.owner, Operation) else None
            value.replace_uses_with_if(result, lambda use, b=body: use.operation.parent is not b)
        for op in reversed(self.graph.ops):
            if op.parent is None and op in self.graph.copied:
                op.erase()

    def _group(self, group: Candidate) -> GroupOp:
        body = Block()
        inner: dict[SSAValue, SSAValue] = {}
        inputs: list[SSAValue] = []

        def inside(value: SSAValue, copies: bool = True) -> SSAValue:
            if value in inner:
                return inner[value]
            if copies and isinstance(value, OpResult) and self._is_copied_into(value.op, group):
                copy = _copy(value.op, [inside(v) for v in self.reads[value.op]])
                body.add_op(copy)
                inner[value] = copy.results[0]
            else:
                inner[value] = body.insert_arg(value.type, len(body.args))
                inputs.append(self._outside(value))
            return inner[value]

        for op in group.ops:
            copies = takes_copies(op)
            op.operands = [inside(v, copies) for v in op.operands]
            body.add_op(op)
            inner[op.results[0]] = op.results[0]
        yields = [op.results[0] for op in group.yields]
        body.add_op(YieldOp(*yields))
        made = GroupOp(inputs, [], [v.type for v in yields], Region(body))
        for value, result in zip(yields, made.res, strict=True):
            result.name_hint = value.name_hint
        self.outer.update(zip(yields, made.res, strict=True))
        return made

    def _is_copied_into(self, op: Operation, group: Candidate) -> bool:
        """Whether a group has a copy of `op`: a reshape is one only beside what it reshapes."""
        if op not in self.graph.copied:
            return False
        if op.name == "tssa.reshape":
            return bool(self.graph.sources[op.results[0]] & group.members)
        return True

    def _outside(self, value: SSAValue) -> SSAValue:
        """The value as others see it; a copied operation that a group reads from outside is put here."""
        if (
            isinstance(value, OpResult)
            and value.op.parent is None
            and value.op in self.graph.copied
        ):
            op = value.op
            op.operands = [self._outside(v) for v in self.reads[op]]
            self.graph.block.add_op(op)
        return self.outer.get(value, value)


def _copy(op: Operation, operands: Sequence[SSAValue]) -> Operation:
    return new_operation(
        type(op),
        operands=operands,
        result_types=op.result_types,
        properties=op.properties,
        attributes=op.attributes,
    )
