"""`loop-stream`: a loop whose result is larger than the cache writes past it.

    scf.for %i = %lb to %ub step %s { ...; vector.store %v, %y[%i] } {loop.schedule = #loop.schedule<stream = B>}
    ->
    %large = bytes of %y > B and %y starts at a multiple of a vector
    scf.if %large {
      scf.for %i = %lb to %ub step %s { ...; vector.store %v, %y[%i] {nontemporal = true} }
      llvm.fence seq_cst
    } else {
      scf.for %i = %lb to %ub step %s { ...; vector.store %v, %y[%i] }
    }

A store through the cache reads each line before it is written, and drives out what others could still use;
one past it moves half as much. It must be aligned to a whole vector, and other threads see it only after
a fence. The fence waits for all stores: a loop inside others, which may be the end of each row, has one behind them. Sizes and addresses are compared in front of all loops around; where the size is known to be small
nothing changes. Runs after `loop-parallelize`, so that the fence is in the thread that has stored.

A loop that it refuses stays as it was and says why in its attribute `loop.remark`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import BoolAttr, FixedBitwidthType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from jitdialects.analysis.body import Body, body_of
from jitdialects.analysis.bounds import is_multiple_of
from jitdialects.analysis.dependence import linear_form
from jitdialects.analysis.memory import (
    Access,
    has_identity_layout,
    may_alias,
    memref_type,
)
from jitdialects.dialects.interned import INDEX
from jitdialects.dialects.loop import ParallelOp
from jitdialects.dialects.upstream_llvm import FenceOp
from jitdialects.passes.index_math import Index, IndexMath, before
from jitdialects.passes.loop_rewrite import (
    clone_op,
    defined_outside,
    loops_innermost_first,
    refuse,
    schedule_of,
    set_schedule,
)

SMALLEST, LARGEST = 16, 64
"""Bytes of a vector that machines store past the cache as one."""

# ---- legality: each of these is one reason to refuse


def vector_bytes(access: Access) -> int:
    """Bytes that a store writes as one vector; 0 for a scalar or what is not whole bytes."""
    if access.is_masked or not access.op.name.startswith("vector."):
        return 0
    element = memref_type(access.base).get_element_type()
    return access.lanes * element.bitwidth // 8 if isinstance(element, FixedBitwidthType) else 0


def stores_whole_vectors(stores: Sequence[Access]) -> bool:
    """Unmasked ones of a size that is stored as one."""
    return all(
        SMALLEST <= (size := vector_bytes(s)) <= LARGEST and size & (size - 1) == 0 for s in stores
    )


def starts_at_whole_vectors(store: Access) -> bool:
    """Counted from where its memref begins, the store is a multiple of its vector away."""
    if not has_identity_layout(store.base):
        return False
    lanes = store.lanes
    terms, number = linear_form(store.indices[-1])
    if number % lanes or not all(
        c % lanes == 0 or is_multiple_of(v, lanes) for v, c in terms.items()
    ):
        return False
    row = memref_type(store.base).get_shape()[-1]
    return len(store.indices) == 1 or row % lanes == 0 and row > 0


def writes_only(store: Access, body: Body) -> bool:
    """What is stored is not read in the loop: it would come from memory again."""
    return not any(not a.is_store and may_alias(a.base, store.base) for a in body.accesses)


def is_visible_outside(base: SSAValue, loop: Operation) -> bool:
    """The memref exists where its size and address are compared."""
    return defined_outside(base, loop)


def refusal(stores: Sequence[Access], body: Body, outermost: Operation) -> str | None:
    """Why these stores may not go past the cache, or `None`."""
    if not stores:
        return "it stores nothing"
    if not stores_whole_vectors(stores):
        return "a store is no whole vector of 16 to 64 bytes"
    if not all(map(starts_at_whole_vectors, stores)):
        return "a store may begin in the middle of a vector"
    if not all(writes_only(store, body) for store in stores):
        return "it reads what it writes"
    if not all(is_visible_outside(store.base, outermost) for store in stores):
        return "it writes memory that is made inside a loop"
    return None


# ---- profitability


def known_bytes(store: Access) -> int | None:
    """Bytes of the memref that is stored to, if its type says so."""
    total = vector_bytes(store) // store.lanes
    for size in memref_type(store.base).get_shape():
        if size < 0:
            return None
        total *= size
    return total


def may_be_large(stores: Sequence[Access], threshold: int) -> bool:
    """Some result could be larger than the threshold."""
    return any((size := known_bytes(s)) is None or size > threshold for s in stores)


# ---- rewrite


def outermost_around(loop: scf.ForOp) -> Operation:
    """The loop, or the outermost one that it is in without a branch between."""
    here: Operation = loop
    while isinstance(around := here.parent_op(), scf.ForOp | ParallelOp):
        here = around
    return here


def outermost_loop_around(op: Operation) -> Operation:
    """The outermost loop around `op` that one thread goes through; `op` itself if there is none."""
    while isinstance(around := op.parent_op(), scf.ForOp):
        op = around
    return op


def condition(stores: Sequence[Access], threshold: int, outermost: Operation) -> SSAValue:
    """Some result is large and all are aligned, as an i1 in front of `outermost`."""
    math = IndexMath(before(outermost))
    large: SSAValue | None = None
    addresses: Index = 0
    for base, store in {store.base: store for store in stores}.items():
        address = memref.ExtractAlignedPointerAsIndexOp.get(base)
        math.put(address)
        misplaced = math.andi(address.results[0], vector_bytes(store) - 1)
        addresses = math.ori(addresses, misplaced)
        size = known_bytes(store)
        if size is None:
            test = math.less(threshold, _bytes_of(store, math))
            large = test if large is None else math.insert(arith.OrIOp(large, test))
    aligned = math.equal(addresses, 0)
    return aligned if large is None else math.insert(arith.AndIOp(large, aligned))


def _bytes_of(store: Access, math: IndexMath) -> Index:
    total: Index = vector_bytes(store) // store.lanes
    for axis, size in enumerate(memref_type(store.base).get_shape()):
        if size < 0:
            operands = (store.base, math.value(axis))
            total = math.mul(
                total, math.insert(memref.DimOp.create(operands=operands, result_types=(INDEX,)))
            )
        else:
            total = math.mul(total, size)
    return total


def stream(loop: scf.ForOp, stores: Sequence[Access], threshold: int, outermost: Operation) -> None:
    """Put `loop` and a copy that stores past the cache into the branches of an `scf.if`."""
    large = condition(stores, threshold, outermost)
    around = loop.parent
    assert around is not None
    copy = cast(scf.ForOp, clone_op(loop, {}))
    set_schedule(copy, schedule_of(copy).without("prefetch"))
    past = scf.IfOp(large, (), Region(Block()), Region(Block()))
    around.insert_op_before(past, loop)
    loop.detach()
    for store in stores:
        store.op.properties["nontemporal"] = BoolAttr.from_bool(True)
    last = outermost_loop_around(past)
    if last is past:
        past.true_region.block.add_ops((loop, FenceOp(), scf.YieldOp()))
    else:  # one for all iterations of the loops around: it waits until everything is stored
        past.true_region.block.add_ops((loop, scf.YieldOp()))
        behind = scf.IfOp(large, (), Region(Block((FenceOp(), scf.YieldOp()))))
        assert last.parent is not None
        last.parent.insert_op_after(behind, last)
    past.false_region.block.add_ops((copy, scf.YieldOp()))


class LoopStreamPass(ModulePass):
    """Let loops with large results store past the cache."""

    name = "loop-stream"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in loops_innermost_first(op):
            schedule = schedule_of(loop)
            if schedule.stream == 0:
                continue
            set_schedule(loop, schedule.without("stream"))
            body = body_of(loop.body.block)
            stores = [access for access in body.accesses if access.is_store]
            outermost = outermost_around(loop)
            reason = refusal(stores, body, outermost)
            if reason is not None:
                refuse(loop, schedule, self.name, reason)
            elif may_be_large(stores, schedule.stream):
                stream(loop, stores, schedule.stream, outermost)
