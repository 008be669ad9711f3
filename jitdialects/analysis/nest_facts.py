"""What the schedule rules ask of a `loop.nest`, collected once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, FixedBitwidthType, VectorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from jitdialects.analysis.body import Body, body_of
from jitdialects.analysis.bounds import constant_extent, extent_at_most, trip_count
from jitdialects.analysis.lanes import Lanes, lanes_along
from jitdialects.analysis.machine import Level
from jitdialects.analysis.memory import Access, is_fresh, memref_type, root_of
from jitdialects.dialects.loop import PARALLEL, NestOp

_INSTRUCTIONS = frozenset(
    f"math.{name}"
    for name in ("absf", "absi", "ceil", "copysign", "floor", "fma", "roundeven", "sqrt", "trunc")
)
"""Operations of `math` that are one instruction; the others are tens."""


@dataclass(frozen=True)
class NestFacts:
    """What the rules ask. Extents count iterations per axis, `None` if they are not static.

    `at_most` bounds the innermost one. `contiguous`: along the innermost axis, which is parallel, accesses
    go to neighbours or stay; memory of an iteration's own is not looked at. `shares`: along one of the axes something
    is read over and over inside loops. `private_bytes`: memory that an iteration allocates. `accumulators`: "none", "scalars" or "arrays" among the memory that the body
    allocates. `along`: an iteration further, something that it loads lies as many elements further. `read_bytes`,
    `written_bytes`: of the largest memory that was not allocated here, None if not static; `row`: elements of the last
    axis of what it reads, likewise. `sweeps`: reductions side by side, where accumulators are arrays. `streams`: accesses to memory that was not allocated here. `functions`: operations that become
    tens of others. `partial`: what an iteration computes goes to memory of the function itself, to be joined behind the
    nest. `divisions`: of floats, for which a loop waits whatever else is in it.
    """

    kinds: tuple[str, ...]
    extents: tuple[int | None, ...]
    at_most: int | None
    contiguous: bool
    encloses_loops: bool
    accumulators: str
    streams: int
    element_bytes: int
    operations: int
    functions: int
    shares: bool
    private_bytes: int
    lane_bytes: int
    along: bool
    read_bytes: int | None
    written_bytes: int | None
    row: int | None
    sweeps: int
    partial: bool
    divisions: int = 0


def facts_of(nest: NestOp) -> NestFacts:
    """Collect the facts; the body is looked at once, and once more for its lanes."""
    body = body_of(nest.body.block)
    outside = [access for access in body.accesses if not is_fresh(root_of(access.base))]
    bounds = list(zip(nest.lower, nest.upper, nest.step_values, strict=True))
    extents = [constant_extent(low, high) for low, high, _ in bounds]
    lanes = lanes_along(nest.ivs[-1])
    read = [access for access in outside if not access.is_store]
    accumulators = _accumulators(body)
    return NestFacts(
        kinds=nest.kind_names,
        extents=tuple(
            None if extent is None else trip_count(0, extent, step)
            for extent, (_, _, step) in zip(extents, bounds, strict=True)
        ),
        at_most=extent_at_most(*bounds[-1][:2]),
        contiguous=nest.kind_names[-1] == PARALLEL and _is_contiguous(body.accesses, lanes),
        encloses_loops=any(op.regions for op in body.others) or bool(body.loops),
        accumulators=accumulators,
        shares=_shares(nest, outside, lanes),
        private_bytes=_private_bytes(body),
        lane_bytes=_lane_bytes(body),
        along=any(map(lanes.is_contiguous_access, read)),
        read_bytes=_largest(read),
        written_bytes=_largest([access for access in outside if access.is_store]),
        row=_row(read),
        sweeps=_sweeps(nest) if accumulators == "arrays" else 0,
        partial=_is_partial(nest, body),
        streams=len(outside),
        element_bytes=max((_bytes(access.value_type) for access in body.accesses), default=4),
        operations=len(body.accesses) + len(body.others) + len(body.loops),
        functions=sum(map(_is_function, body.others)),
        divisions=sum(op.name == "arith.divf" for op in body.others),
    )


def _is_function(op: Operation) -> bool:
    """Whether `op` becomes tens of others."""
    of_math = op.name.startswith("math.") and op.name not in _INSTRUCTIONS
    return of_math or op.name == "loop.elementary"


def _is_contiguous(accesses: Sequence[Access], lanes: Lanes) -> bool:
    return all(
        lanes.is_contiguous_access(access)
        or (not access.is_store and lanes.is_uniform_access(access))
        or is_fresh(root_of(access.base))
        for access in accesses
    )


def _shares(nest: NestOp, outside: Sequence[Access], innermost: Lanes) -> bool:
    inside = [a for a in outside if not a.is_store and a.op.parent is not nest.body.block]
    return bool(inside) and any(
        lanes.is_uniform_access(access)
        for lanes in (innermost, *map(lanes_along, nest.ivs[:-1]))
        for access in inside
    )


def _private_bytes(body: Body) -> int:
    return sum(_size(op.results[0]) for op in body.others if op.name == "memref.alloca")


def _lane_bytes(body: Body) -> int:
    """Arrays that are written element by element along the same loop are in use at the same time."""
    arrays: dict[Block, set[SSAValue]] = {}
    for access in body.accesses:
        block = access.op.parent
        along = block is not None and access.indices and access.indices[-1] in block.args
        if block is not None and along and access.is_store and is_fresh(access.base):
            arrays.setdefault(block, set()).add(access.base)
    return max((sum(map(_size, together)) for together in arrays.values()), default=0)


def _size(memory: SSAValue) -> int:
    """Bytes of a memref that the body allocates."""
    type = memref_type(memory)
    return _bytes(type.get_element_type()) * prod(type.get_shape())


def _largest(accesses: Sequence[Access]) -> int | None:
    """Bytes of the largest memref."""
    sizes = [_static_size(base) for base in {access.base for access in accesses}]
    return None if None in sizes else max((size or 0 for size in sizes), default=0)


def _static_size(memory: SSAValue) -> int | None:
    return None if DYNAMIC_INDEX in memref_type(memory).get_shape() else _size(memory)


def _row(read: Sequence[Access]) -> int | None:
    """The last axis of the memref of most axes."""
    shapes = [memref_type(access.base).get_shape() for access in read if access.indices]
    last = max(shapes, key=len)[-1] if shapes else 0
    return None if last == DYNAMIC_INDEX else last


def _sweeps(nest: NestOp) -> int:
    """Nests in the body itself that reduce what was not allocated here."""
    reductions = (
        op for op in nest.body.block.ops if isinstance(op, NestOp) and op.kind_names[0] != PARALLEL
    )
    return sum(
        any(not is_fresh(root_of(access.base)) for access in body_of(op.body.block).accesses)
        for op in reductions
    )


def _is_partial(nest: NestOp, body: Body) -> bool:
    """Whether what an iteration stores itself, not in loops, stays in the function."""
    block = nest.body.block
    own = {op.results[0] for op in body.others if op.name == "memref.alloca"}
    stores = [access for access in body.accesses if access.is_store and access.op.parent is block]
    stored = {access.base for access in stores} - own
    return bool(stored) and all(is_fresh(root_of(base)) for base in stored)


def _accumulators(body: Body) -> str:
    ranks = [
        memref_type(op.results[0]).get_num_dims()
        for op in body.others
        if op.name == "memref.alloca"
    ]
    return "none" if not ranks else "arrays" if any(ranks) else "scalars"


def _bytes(type: Attribute) -> int:
    if isinstance(type, VectorType):
        return _bytes(cast("VectorType[Attribute]", type).get_element_type())
    return max(1, type.bitwidth // 8) if isinstance(type, FixedBitwidthType) else 8


def lanes_for(facts: NestFacts, level: Level) -> int:
    """Lanes of the widest element in a register."""
    return max(2, level.lanes * 4 // max(4, facts.element_bytes))


def next_power_of_two(number: int) -> int:
    """The smallest power of two that is not below `number`."""
    return 1 << max(0, number - 1).bit_length()
