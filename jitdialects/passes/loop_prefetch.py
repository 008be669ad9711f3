"""`loop-prefetch`: what a loop reads along its axis is announced some iterations ahead.

    scf.for %i = %lb to %ub step %c16 {                  scf.for %i = %lb to %ub step %c16 {
      %v = vector.load %x[%i] : vector<16xf32>     ->      memref.prefetch %x[%i + 2048], read, locality<3>, data
      ...                                                  %v = vector.load %x[%i] : vector<16xf32>
    } {loop.schedule = #loop.schedule<prefetch = 8192>}    ... }

A core has only so many instructions in flight: the more of them there are for each load, the fewer loads wait for
memory at a time, and the hardware fetches few lines ahead on its own. One prefetch for each line of 64 bytes, none for
memory that the function allocates: it is in a cache. A line that does not exist does no harm. Runs last, after
`loop-stream`, whose loop for small results needs none.

A loop that it refuses stays as it was and says why in its attribute `loop.remark`.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import FixedBitwidthType, ModuleOp
from xdsl.passes import ModulePass

from jitdialects.analysis.bounds import constant_of
from jitdialects.analysis.dependence import linear_form
from jitdialects.analysis.memory import (
    Access,
    access_of,
    innermost_stride,
    is_fresh,
    memref_type,
    root_of,
)
from jitdialects.dialects.upstream_memref import PrefetchOp
from jitdialects.passes.index_math import IndexMath, before
from jitdialects.passes.loop_rewrite import (
    loops_innermost_first,
    refuse,
    schedule_of,
    set_schedule,
)

LINE = 64
"""Bytes that come together."""

# ---- legality: each of these is one reason to leave a load alone


def comes_from_outside(access: Access) -> bool:
    """It reads what this function did not allocate."""
    return not access.is_store and not is_fresh(root_of(access.base))


def goes_along(access: Access, loop: scf.ForOp) -> bool:
    """One iteration further is `step` neighbours further."""
    if not access.indices or innermost_stride(access.base) != 1:
        return False
    iv = loop.body.block.args[0]
    *outer, last = (linear_form(index)[0] for index in access.indices)
    return last.get(iv) == 1 and all(iv not in terms for terms in outer)


def counts_upwards(loop: scf.ForOp) -> bool:
    """By a positive constant: what is ahead will be read."""
    return (constant_of(loop.step) or 0) > 0


# ---- the rewrite


def element_bytes(access: Access) -> int:
    """Of the memref."""
    element = memref_type(access.base).get_element_type()
    return max(1, element.bitwidth // 8) if isinstance(element, FixedBitwidthType) else 8


def reads_of(loop: scf.ForOp) -> Iterator[Access]:
    """Loads in the body itself, from outside."""
    for op in loop.body.block.ops:
        access = access_of(op)
        if access is not None and comes_from_outside(access):
            yield access


def announce(access: Access, distance: int) -> None:
    """Prefetch what `access` will read `distance` bytes further, in front of it."""
    math, width = IndexMath(before(access.op)), element_bytes(access)
    *outer, last = access.indices
    for offset in range(0, access.lanes * width, LINE):
        ahead = math.value(math.add(last, (distance + offset) // width))
        math.put(PrefetchOp(access.base, (*outer, ahead)))


class LoopPrefetchPass(ModulePass):
    """Announce what loops read."""

    name = "loop-prefetch"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in loops_innermost_first(op):
            schedule = schedule_of(loop)
            if schedule.prefetch == 0:
                continue
            set_schedule(loop, schedule.without("prefetch"))
            reads = list(reads_of(loop))
            along = [access for access in reads if goes_along(access, loop)]
            if not counts_upwards(loop):
                refuse(loop, schedule, self.name, "its step is not a positive constant")
            elif not along and reads:
                refuse(loop, schedule, self.name, "nothing that it reads lies along it")
            for access in along if counts_upwards(loop) else ():
                announce(access, schedule.prefetch)
