"""How the values in a loop's body differ between neighbouring iterations.

Each value is *uniform* (the same in all lanes), *linear* (an index that grows by a constant from lane to lane)
or *varying* (anything else). One pass over the body in order; loop-carried values of inner loops
are iterated to a fixpoint, since what one iteration yields the next one starts from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from jitdialects.analysis.bounds import constant_of
from jitdialects.analysis.memory import Access, innermost_stride
from jitdialects.dialects.loop import NestOp

_GROWTH = frozenset({"arith.addi", "arith.subi", "arith.muli"})


@dataclass
class Lanes:
    """`growth` of linear values per iteration; the `varying` values. All other values are uniform."""

    growth: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    varying: set[SSAValue] = field(default_factory=set[SSAValue])

    def is_uniform(self, value: SSAValue) -> bool:
        return value not in self.varying and value not in self.growth

    def are_uniform(self, values: Iterable[SSAValue]) -> bool:
        """Each of the values is."""
        return self.varying.isdisjoint(values) and self.growth.keys().isdisjoint(values)

    def is_uniform_access(self, access: Access) -> bool:
        """All lanes go to one element."""
        return self.are_uniform(access.indices)

    def is_contiguous_access(self, access: Access) -> bool:
        """Lane `l` goes to the element `l` places after that of lane 0."""
        if not access.indices or innermost_stride(access.base) != 1:
            return False
        *outer, last = access.indices
        return last not in self.varying and self.growth.get(last) == 1 and self.are_uniform(outer)


def lanes_of(loop: scf.ForOp) -> Lanes:
    """Classify every value in the body of `loop` against its induction variable."""
    return lanes_along(loop.body.block.args[0])


def lanes_along(iv: BlockArgument) -> Lanes:
    """Classify every value in the block of `iv` against `iv`, which grows by one per iteration."""
    lanes = Lanes()
    lanes.growth[iv] = 1
    _classify(iv.block, lanes)
    return lanes


def _classify(block: Block, lanes: Lanes) -> None:
    for op in block.ops:
        if op.regions:
            _classify_inside(op, lanes)
        elif op.name == "memref.alloca":
            lanes.varying.update(op.results)  # memory of each iteration's own
        elif lanes.are_uniform(op.operands):
            continue
        elif (growth := _growth(op, lanes)) is None:
            lanes.varying.update(op.results)
        elif growth:
            lanes.growth[op.results[0]] = growth


def _classify_inside(op: Operation, lanes: Lanes) -> None:
    if isinstance(op, scf.ForOp):
        _classify_loop(op, lanes)
    elif isinstance(op, NestOp):
        if not lanes.are_uniform(op.operands):
            lanes.varying.update(op.ivs)
        _classify(op.body.block, lanes)
    else:
        lanes.varying.update(op.results)  # not looked into


def _classify_loop(loop: scf.ForOp, lanes: Lanes) -> None:
    block = loop.body.block
    carried = block.args[1:]
    for argument, init in zip(carried, loop.iter_args, strict=True):
        if not lanes.is_uniform(init):
            lanes.varying.add(argument)
    while True:
        _classify(block, lanes)
        terminator = block.last_op
        assert terminator is not None
        late = [
            argument
            for argument, yielded in zip(carried, terminator.operands, strict=True)
            if lanes.is_uniform(argument) and not lanes.is_uniform(yielded)
        ]
        if not late:
            break
        lanes.varying.update(late)
    for argument, result in zip(carried, loop.results, strict=True):
        if argument in lanes.varying:
            lanes.varying.add(result)


def _growth(op: Operation, lanes: Lanes) -> int | None:
    """By how much the result of index arithmetic grows from lane to lane."""
    if op.name not in _GROWTH:
        return None
    [result] = op.results
    if not isinstance(result.type, IndexType):
        return None
    left, right = op.operands
    if left in lanes.varying or right in lanes.varying:
        return None
    a, b = lanes.growth.get(left, 0), lanes.growth.get(right, 0)
    if op.name == "arith.addi":
        return a + b
    if op.name == "arith.subi":
        return a - b
    number = constant_of(left if b else right)
    return None if number is None or (a and b) else (a + b) * number
