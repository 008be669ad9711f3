"""Checks a storage plan against the function that it is for, without asking how it was made.

A forward dataflow: which values are *intact*, that is, their memory still holds them. Writing a value ends
all others whose bytes it covers; where paths meet, intact is what is so on all of them. Every read must find its
value intact; results of one group lie apart; the result of a group covers an operand only if each element was
read for the last time when it is written; arguments are never written; the arena has room.

Bytes are compared for given values of the symbols, so a plan is checked for several. `wrong_with` is what tests and
`tssa-bufferize{check=true}` ask.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from jitdialects.analysis.row_stages import stages_of_block
from jitdialects.analysis.storage import ALIGNMENT, Edge, Root, StoragePlan, is_view
from jitdialects.bytecode import dims
from jitdialects.dialects.interfaces import Contraction, Elementwise, Reduction, has_trait
from jitdialects.dialects.tssa_types import shape_of

Bytes = tuple[str, int, int, int]
"""Kind of memory, its number, first byte, byte behind the last."""
SAMPLES = (1, 2, 7, 33, 100)
"""Values of all symbols for which a plan is checked."""


def wrong_with(function: FuncOp, plan: StoragePlan) -> str | None:
    """A sentence on the first thing that is wrong with `plan`, for some sizes; None if nothing is."""
    names = {
        name
        for root in (*plan.roots.values(), *plan.results)
        for name in dims.symbols_of(root.size)
    }
    names |= {n for s in plan.storage.values() for n in dims.symbols_of(s.offset)}
    names |= dims.symbols_of(plan.arena_size)
    for number in SAMPLES:
        check = _Check(function, plan, {name: number + k for k, name in enumerate(sorted(names))})
        for problem in check.problems():
            return problem
    return None


class _Check:
    """One function, one plan, one set of sizes."""

    def __init__(self, function: FuncOp, plan: StoragePlan, sizes: Mapping[str, int]) -> None:
        self.function, self.plan, self.sizes = function, plan, sizes
        self.intact: dict[Block, set[Root]] = {}

    def bytes_of(self, root: Root) -> Bytes:
        """Where a root lies."""
        storage = self.plan.storage[root]
        size = max(0, dims.evaluate(root.size, self.sizes))
        if storage.fixed is not None:
            return storage.fixed.place, storage.fixed.number, 0, size
        start = dims.evaluate(storage.offset, self.sizes)
        return "arena", 0, start, start + size

    def meet(self, left: Root, right: Root) -> bool:
        """Whether two roots have a byte in common."""
        a, b = self.bytes_of(left), self.bytes_of(right)
        return a[:2] == b[:2] and max(a[2], b[2]) < min(a[3], b[3])

    def problems(self) -> Iterator[str]:
        """Everything that is wrong, once the states of all blocks are known."""
        yield from self._room()
        blocks = list(self.function.body.blocks)
        self.intact = {blocks[0]: {self.plan.roots[a] for a in blocks[0].args}}
        work = [blocks[0]]
        while work:
            block = work.pop()
            state = set(self.intact[block])
            for op in block.ops:
                list(self._step(op, state))
            for edge in self.plan.edges_of(block):
                out, target = set(state), edge.successor
                list(self._move(edge, out))
                if target is None:
                    continue
                known = self.intact.get(target)
                met = out if known is None else known & out
                if met != known:
                    self.intact[target] = met
                    work.append(target)
        for block, before in self.intact.items():
            state = set(before)
            for op in block.ops:
                yield from self._step(op, state)
            for edge in self.plan.edges_of(block):
                yield from self._move(edge, set(state))

    def _room(self) -> Iterator[str]:
        arena = dims.evaluate(self.plan.arena_size, self.sizes)
        for root in (*self.plan.roots.values(), *self.plan.results):
            kind, _, first, end = self.bytes_of(root)
            if kind == "arena" and (first % ALIGNMENT or first < 0 or end > arena):
                yield f"{_name(root)} lies at {first}..{end} of an arena of {arena} bytes"

    def _step(self, op: Operation, state: set[Root]) -> Iterator[str]:
        """Reads, then writes, of one operation; `state` afterwards."""
        moves = op.successors or op.name == "func.return"
        read = () if moves else op.operands[1:] if is_view(op) else op.operands
        for root in (self.plan.roots[v] for v in read if v in self.plan.roots):
            if root not in state:
                yield f"{op.name} reads {_name(root)}, which was overwritten"
        if op.name != "tssa.group":
            return
        written = [self.plan.roots[result] for result in op.results]
        for left, right in combinations(written, 2):
            if self.meet(left, right):
                yield f"results {_name(left)} and {_name(right)} of one group share bytes"
        for number, root in enumerate(written):
            if self.bytes_of(root)[0] == "argument":
                yield f"{_name(root)} is written over an argument"
            for value in op.operands:
                source = self.plan.roots.get(value)
                if source is not None and self.meet(source, root):
                    why = self._why_not_in_place(op, number, source, root)
                    if why:
                        yield f"{_name(root)} takes the place of {_name(source)}, which {why}"
        for root in written:
            state.difference_update([r for r in state if self.meet(r, root)])
        state.update(written)

    def _why_not_in_place(
        self, group: Operation, number: int, source: Root, target: Root
    ) -> str | None:
        """Why an operand must not be covered by a result while the group runs."""
        body = group.regions[0].block
        last = body.last_op
        assert last is not None
        if self.bytes_of(source) != self.bytes_of(target):
            return "begins or ends elsewhere"
        if any(has_trait(op, Contraction) for op in body.ops):
            return "a product reads more than once"
        arguments = [
            a
            for a, v in zip(body.args, group.operands, strict=False)
            if self.plan.roots.get(v) is source
        ]
        rows = any(has_trait(op, Reduction) for op in body.ops)
        for argument in arguments:
            if argument.type != last.operands[number].type or not _is_all(
                group.operands[argument.index]
            ):
                return "is read under another shape"
            for use in argument.uses:
                reader = use.operation
                first_of_insert = reader.name == "tssa.insert" and use.index == 0
                along = has_trait(reader, Elementwise) or has_trait(reader, Reduction)
                if not (along or first_of_insert or reader is last):
                    return f"{reader.name} reads at other indices"
            if rows:
                stages = stages_of_block(body)
                if shape_of(last.operands[number]) != stages.shape:
                    return "has as many elements as the rows only by chance"
                if stages.last_load(argument) > stages.first_store(number):
                    return "is read again after the result begins to be written"
        return None

    def _move(self, edge: Edge, state: set[Root]) -> Iterator[str]:
        """What moves along an edge; `state` at its end."""
        holds: dict[Root, Root] = {root: root for root in state}
        want = {move.target: self.plan.roots[move.source] for move in edge.moves}
        copied: set[Root] = set()
        for step in self.plan.steps(edge):
            origin = step.temporary or self.plan.roots[step.source]
            tag = holds.get(origin)
            if tag is None:
                yield f"a copy reads {_name(origin)}, which was overwritten"
                continue
            for root in [r for r in holds if self.meet(r, step.target)]:
                del holds[root]
            holds[step.target] = tag
            copied.add(step.target)
        for target, source in want.items():
            stays = target not in copied and self.bytes_of(target) == self.bytes_of(source)
            held = holds.get(source if stays else target)
            if held is not source and self.bytes_of(target)[2:] != (0, 0):
                yield f"{_name(target)} should become {_name(source)}, which was overwritten"
        state.clear()
        state.update(root for root, tag in holds.items() if tag is root)
        state.update(want)


def _is_all(value: SSAValue) -> bool:
    """Whether a value is all of its root in C order: reached through reshapes only."""
    while isinstance(value, OpResult) and is_view(value.op):
        if value.op.name != "tssa.reshape":
            return False
        value = value.op.operands[0]
    return isinstance(value.type, TensorType)


def _name(root: Root) -> str:
    if root.value is None:
        return f"result buffer {root.number}" if root.place == "result" else "a temporary"
    kind = "argument" if isinstance(root.value, BlockArgument) else "value"
    return f"{kind} %{root.value.name_hint or root.value.type}"
