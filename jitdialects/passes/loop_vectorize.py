"""`loop-vectorize`: neighbouring iterations of a loop become the lanes of vectors.

    scf.for %j = %lb to %ub step %c1 {                scf.for %j = %lb to %main step %c8 {
      %x = memref.load %a[%j]                           %x = vector.load %a[%j] : vector<8xf32>
      %y = arith.mulf %x, %s                    ->      %y = arith.mulf %x, %sv : vector<8xf32>
      memref.store %y, %b[%j]                           vector.store %y, %b[%j]
    }                                                 }
                                                      scf.for %j = %main to %ub step %c8 { masked, at most once }

Any level: the loop may contain loops (a matmul's columns around its k loops), whose carried scalars become
carried vectors. A loop of exactly as many iterations as lanes leaves no loop, one of at most as many only the
masked part. Uniform values stay scalar and are broadcast where a vector needs them.

Takes the lanes from the schedule of a loop, or from the option `width` for all innermost loops without
a schedule. Never changes the order of a reduction: a loop that carries values is refused. A loop that
it refuses stays as it was and says why in its attribute `loop.remark`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from jitdialects.analysis.body import Body, body_of
from jitdialects.analysis.bounds import constant_extent, constant_of, extent_at_most
from jitdialects.analysis.dependence import carried_dependence
from jitdialects.analysis.lanes import Lanes, lanes_of
from jitdialects.analysis.memory import Access, access_of
from jitdialects.dialects.interfaces import is_elementwise, name_of
from jitdialects.dialects.interned import INDEX, splat_attr, vector_type
from jitdialects.dialects.loop import KIND, PARALLEL
from jitdialects.dialects.new_operation import new_operation
from jitdialects.dialects.schedules import Schedule
from jitdialects.dialects.upstream import ARITH_ON_VECTORS
from jitdialects.passes.index_math import Index, IndexMath, before
from jitdialects.passes.loop_rewrite import (
    copy_op,
    erase_with_bounds,
    is_innermost,
    is_parallel,
    loops_innermost_first,
    refuse,
    schedule_of,
    set_schedule,
)

_MAY_TRAP = frozenset(
    f"arith.{name}"
    for name in ("divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi")
)

# ---- legality: each of these is one reason to refuse


def carries_no_values(loop: scf.ForOp) -> bool:
    """No reduction: the order of its operations is meaning."""
    return len(loop.iter_args) == 0


def counts_by_one(loop: scf.ForOp) -> bool:
    """Iterations are neighbours, over `index`."""
    return constant_of(loop.step) == 1 and isinstance(loop.lb.type, IndexType)


def unknown_operation(body: Body) -> Operation | None:
    """An operation that has no form on vectors here."""
    for op in body.others:
        if not is_elementwise(op) and op.name not in ("arith.constant", "memref.dim"):
            return op
    return None


def has_scalar_accesses(body: Body) -> bool:
    """Nothing in it is a vector already."""
    return all(access.op.name.startswith("memref.") for access in body.accesses)


def has_uniform_bounds(body: Body, lanes: Lanes) -> bool:
    """Inner loops run equally often in all lanes."""
    return all(lanes.are_uniform(op.operands[:3]) for op in body.loops)


def has_unit_stride(body: Body, lanes: Lanes) -> bool:
    """Lanes load from neighbouring elements, or all from one."""
    return all(
        lanes.is_contiguous_access(access)
        or (not access.is_store and lanes.is_uniform_access(access))
        for access in body.accesses
    )


def uses_index_as_address(body: Body, lanes: Lanes) -> bool:
    """The induction variable enters addresses only, never data."""
    data = [access.stored for access in body.accesses if access.stored is not None]
    for op in body.others:
        if op.results and op.results[0] in lanes.varying:
            data += op.operands
    return lanes.growth.keys().isdisjoint(data)


def has_lane_types(body: Body, lanes: Lanes) -> bool:
    """Every value that differs between lanes has a type that vectors and memory share."""
    if not all(isinstance(value.type, IntegerType | AnyFloat) for value in lanes.varying):
        return False
    return not any(access.value_type == i1 for access in body.accesses)


def refusal(loop: scf.ForOp, body: Body, lanes: Lanes) -> str | None:
    """Why `loop` may not be vectorised, or `None`."""
    if not carries_no_values(loop):
        return "it carries values from iteration to iteration, and their order is meaning"
    if not counts_by_one(loop):
        return "its step is not 1"
    unknown = unknown_operation(body)
    if unknown is not None:
        return f"{name_of(unknown)} has no form on vectors"
    if not has_scalar_accesses(body):
        return "its body works on vectors already"
    if not has_uniform_bounds(body, lanes):
        return "the bounds of an inner loop depend on its index"
    if not has_unit_stride(body, lanes):
        return "an access is not at unit stride"
    if not uses_index_as_address(body, lanes):
        return "its index is used as a value"
    if not has_lane_types(body, lanes):
        return "a value that differs between lanes has no vector type"
    return None if is_parallel(loop) else carried_dependence(loop)


# ---- rewrite

Scope: TypeAlias = dict[SSAValue, SSAValue]


class Widener:
    """Writes the body of `loop` again with `width` lanes, as often as it is asked to."""

    def __init__(self, loop: scf.ForOp, lanes: Lanes, width: int) -> None:
        self.loop = loop
        self.lanes = lanes
        self.width = width
        self.math = IndexMath(before(loop))
        self.put: Callable[[Operation], None] = self.math.put
        self.outside: Scope = {}  # broadcasts in front of the loop, for all copies
        self.zeros: dict[Attribute, SSAValue] = {}
        self.scalars: Scope = {}  # copies of uniform values, and lane 0 of linear ones
        self.vectors: Scope = {}
        self.mask: SSAValue | None = None

    def type_of(self, element: Attribute) -> VectorType[Attribute]:
        """The vector of `element`s."""
        return vector_type(element, self.width)

    def write(self, iv: SSAValue, block: Block | None, active: SSAValue | None = None) -> None:
        """The body with lane 0 at `iv`, appended to `block` or in front of the loop.

        `active` is the number of lanes that exist, all of them by default.
        """
        self.put = self.math.put if block is None else block.add_op
        self.scalars = {self.loop.body.block.args[0]: iv}
        self.vectors = {}
        self.mask = None
        if active is not None:
            mask = new_operation(vector.CreateMaskOp, (active,), (self.type_of(i1),))
            self.put(mask)
            self.mask = mask.results[0]
        self._write_ops(self.loop.body.block)

    def _write_ops(self, block: Block) -> None:
        for op in block.ops:
            if op is block.last_op:
                break
            if op.regions:
                assert isinstance(op, scf.ForOp)
                self._write_loop(op)
            elif (access := access_of(op)) is not None:
                self._write_access(op, access)
            elif self.lanes.varying.isdisjoint(op.results):
                self._write_scalar(op)
            else:
                self._write_wide(op)

    def _write_scalar(self, op: Operation) -> None:
        """A copy, unless it is a sum of indices that are known: places in memory stay numbers, as other passes
        need them."""
        if op.name == "arith.addi" and isinstance(op.results[0].type, IndexType):
            left, right = (self.math.number(self.as_scalar(v)) for v in op.operands)
            if left == 0 or right == 0 or (isinstance(left, int) and isinstance(right, int)):
                self.scalars[op.results[0]] = self.math.value(self.math.add(left, right))
                return
        self.put(copy_op(op, self.scalars))

    def _write_wide(self, op: Operation) -> None:
        wide = new_operation(
            ARITH_ON_VECTORS.get(op.name, type(op)),
            operands=[self.as_vector(operand) for operand in op.operands],
            result_types=[self.type_of(result.type) for result in op.results],
            properties=op.properties,
            attributes=op.attributes,
        )
        self._bind(op, wide)

    def _bind(self, op: Operation, wide: Operation) -> None:
        self.put(wide)
        for old, new in zip(op.results, wide.results, strict=True):
            new.name_hint = old.name_hint
            self.vectors[old] = new

    def _write_access(self, op: Operation, access: Access) -> None:
        if self.lanes.is_uniform_access(access):
            self._write_scalar(op)
            return
        where = (self.as_scalar(access.base), *(self.as_scalar(index) for index in access.indices))
        type = self.type_of(access.value_type)
        mask = self.mask
        if access.stored is not None:
            value = self.as_vector(access.stored)
            if mask is None:
                self.put(new_operation(vector.StoreOp, (value, *where)))
            else:
                self.put(new_operation(vector.MaskedStoreOp, (*where, mask, value)))
        elif mask is None:
            self._bind(op, new_operation(vector.LoadOp, where, (type,)))
        else:
            masked = new_operation(vector.MaskedLoadOp, (*where, mask, self.zero(type)), (type,))
            self._bind(op, masked)

    def _write_loop(self, loop: scf.ForOp) -> None:
        old = loop.body.block
        wide = [argument in self.lanes.varying for argument in old.args[1:]]
        inits = [
            self.as_vector(init) if is_wide else self.as_scalar(init)
            for init, is_wide in zip(loop.iter_args, wide, strict=True)
        ]
        block = Block(arg_types=(loop.lb.type, *(init.type for init in inits)))
        for argument, new, is_wide in zip(old.args, block.args, (False, *wide), strict=True):
            new.name_hint = argument.name_hint
            (self.vectors if is_wide else self.scalars)[argument] = new
        outer_put, outer_vectors = self.put, self.vectors
        self.put, self.vectors = block.add_op, dict(outer_vectors)
        self._write_ops(old)
        yielded = old.last_op
        assert yielded is not None
        results = [
            self.as_vector(value) if is_wide else self.as_scalar(value)
            for value, is_wide in zip(yielded.operands, wide, strict=True)
        ]
        block.add_op(scf.YieldOp.create(operands=results))
        self.put, self.vectors = outer_put, outer_vectors
        new_loop = scf.ForOp.create(
            operands=(*(self.as_scalar(bound) for bound in loop.operands[:3]), *inits),
            result_types=[init.type for init in inits],
            regions=(Region(block),),
            attributes=loop.attributes,
        )
        self.put(new_loop)
        for result, new, is_wide in zip(loop.results, new_loop.results, wide, strict=True):
            new.name_hint = result.name_hint
            (self.vectors if is_wide else self.scalars)[result] = new

    def as_scalar(self, value: SSAValue) -> SSAValue:
        """The copy of a uniform or linear value (lane 0 of it)."""
        return self.scalars.get(value, value)

    def as_vector(self, value: SSAValue) -> SSAValue:
        """`value` in all lanes; a uniform one is broadcast, once per block or once in front of the loop."""
        if value in self.vectors:
            return self.vectors[value]
        if value in self.scalars:
            broadcast = self._broadcast(self.scalars[value])
            self.put(broadcast)
            self.vectors[value] = broadcast.results[0]
            return broadcast.results[0]
        if value not in self.outside:
            op = splat(value, self.type_of(value.type)) or self._broadcast(value)
            self.outside[value] = self.math.insert(op)
        return self.outside[value]

    def zero(self, type: VectorType[Attribute]) -> SSAValue:
        """What lanes that do not exist read."""
        if type not in self.zeros:
            zero = 0 if isinstance(type.element_type, IntegerType) else 0.0
            self.zeros[type] = self.math.insert(splat_constant(type, zero))
        return self.zeros[type]

    def _broadcast(self, value: SSAValue) -> Operation:
        return new_operation(vector.BroadcastOp, (value,), (self.type_of(value.type),))


def splat(value: SSAValue, type: VectorType[Attribute]) -> Operation | None:
    """The scalar constant `value` as a vector constant."""
    if not isinstance(value, OpResult) or value.op.name != "arith.constant":
        return None
    number = value.op.properties["value"]
    if not isinstance(number, IntegerAttr | FloatAttr):
        return None
    return splat_constant(type, number.value.data)


def splat_constant(type: VectorType[Attribute], number: float) -> Operation:
    """A vector constant with `number` in all lanes."""
    return new_operation(arith.ConstantOp, (), (type,), {"value": splat_attr(type, number)})


def hoist_constants(loop: scf.ForOp, body: Body) -> None:
    """Constants in the body move in front of `loop`: all copies of the body share them."""
    for op in body.others:
        if op.name == "arith.constant":
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(loop))


def vectorize(loop: scf.ForOp, body: Body, lanes: Lanes, width: int) -> None:
    """Replace `loop` by an unmasked part and a masked rest, each only if it may be needed."""
    hoist_constants(loop, body)
    widener = Widener(loop, lanes, width)
    math = widener.math
    lower, upper = math.number(loop.lb), math.number(loop.ub)
    most = extent_at_most(loop.lb, loop.ub)
    exact = constant_extent(loop.lb, loop.ub)
    schedule = schedule_of(loop).without("vector")
    if most is not None and most <= width and exact != width:
        rest, middle = exact, lower
    else:
        trips = math.trips(lower, upper, 1) if exact is None else max(exact, 0)
        rest = math.remui(trips, width)
        middle = math.add(lower, math.sub(trips, rest))
        if trips == width:
            widener.write(loop.lb, None)
        elif middle != lower:
            _add_loop(widener, lower, middle, schedule)
    if rest == 0:
        erase_with_bounds(loop)
    elif may_trap(body, lanes):
        loop.operands[0] = math.value(middle)
        set_schedule(loop, schedule.without("stream", "prefetch", "threads"))
    else:
        if isinstance(rest, int):
            widener.write(math.value(middle), None, math.value(rest))
        else:
            _add_loop(
                widener,
                middle,
                upper,
                schedule.without("unroll", "stream", "prefetch", "threads"),
                masked=True,
            )
        erase_with_bounds(loop)


def _add_loop(
    widener: Widener, lower: Index, upper: Index, schedule: Schedule, masked: bool = False
) -> None:
    """The loop from `lower` to `upper`, a vector per iteration, in front of the scalar one."""
    math, block = widener.math, Block(arg_types=(INDEX,))
    operands = (math.value(lower), math.value(upper), math.value(widener.width))
    iv = block.args[0]
    iv.name_hint = widener.loop.body.block.args[0].name_hint
    active = None
    if masked:
        inside = IndexMath(block.add_op)
        active = inside.value(inside.sub(operands[1], iv))
    widener.write(iv, block, active)
    block.add_op(scf.YieldOp.create())
    attributes = {KIND: StringAttr(PARALLEL)}
    loop = scf.ForOp.create(operands=operands, regions=(Region(block),), attributes=attributes)
    set_schedule(loop, schedule)
    math.put(loop)


def may_trap(body: Body, lanes: Lanes) -> bool:
    """A lane that does not exist could divide by zero: what is left over must stay scalar."""
    return any(op.name in _MAY_TRAP and op.operands[1] in lanes.varying for op in body.others)


@dataclass(frozen=True)
class LoopVectorizePass(ModulePass):
    """Turn neighbouring iterations of loops into the lanes of vectors."""

    name = "loop-vectorize"

    width: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.width < 0:
            raise PassFailedException(
                f"loop-vectorize: width {self.width} is negative; give a number of lanes, or 0 to go by "
                "the schedules"
            )
        for loop in loops_innermost_first(op):
            schedule = schedule_of(loop)
            width = schedule.vector
            if width == 0 and not schedule and self.width and is_innermost(loop):
                width = self.width
            if width < 2:
                continue
            body, lanes = body_of(loop.body.block), lanes_of(loop)
            reason = refusal(loop, body, lanes)
            if reason is None:
                vectorize(loop, body, lanes, width)
            else:
                set_schedule(loop, schedule.without("vector"))
                refuse(loop, schedule, self.name, reason)
