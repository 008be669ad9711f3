"""`loop-hoist-accumulators`: accumulators leave memory and become values that loops carry.

    %acc = memref.alloca() : memref<f32>                    %r = scf.for ... iter_args(%s = %zero) -> (f32) {
    memref.store %zero, %acc[]                                %t = arith.addf %s, %x : f32
    scf.for ... {                                             scf.yield %t : f32
      %s = memref.load %acc[]                           ->  }
      %t = arith.addf %s, %x : f32                          use(%r)
      memref.store %t, %acc[]
    }
    %r = memref.load %acc[]
    use(%r)

Innermost loops first, so nested accumulators (a matmul's block and total) all go. In straight-line code
a load after a store to the same address takes the stored value, or the lanes that it needs of a stored vector (the
lanes of a sum, folded by halves), and an alloca that is only stored to disappears. Works on scalars and on `vector.load`/`vector.store`, on loops of any origin. The value of
every other address, and the order of all arithmetic, stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, VectorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from jitdialects.analysis.bounds import constant_of, constant_trip_count
from jitdialects.analysis.memory import (
    Access,
    access_of,
    has_known_effect,
    is_fresh,
    memref_type,
    overlap_possible,
    root_of,
)
from jitdialects.dialects.interned import i64_array
from jitdialects.dialects.new_operation import new_operation
from jitdialects.passes.loop_rewrite import add_iter_args, defined_outside, ops_to_change


@dataclass(frozen=True, slots=True)
class Address:
    """Where an access goes. Equal addresses are the same elements; constant indices are numbers."""

    base: SSAValue
    indices: tuple[SSAValue | int, ...]
    type: Attribute


@dataclass(slots=True)
class Effects:
    """What a block and the blocks inside it do to memory, in program order."""

    accesses: list[Access] = field(default_factory=list[Access])
    unknown: bool = False

    def add(self, other: Effects) -> None:
        self.accesses += other.accesses
        self.unknown |= other.unknown


def address_of(access: Access) -> Address:
    """The address of an unmasked access."""
    indices = ((constant_of(i), i) for i in access.indices)
    return Address(access.base, tuple(i if c is None else c for c, i in indices), access.value_type)


# ---- legality


def is_invariant(address: Address, loop: scf.ForOp) -> bool:
    """The loop goes to the same address in each iteration."""
    values = [i for i in address.indices if isinstance(i, SSAValue)]
    return all(defined_outside(value, loop) for value in (address.base, *values))


def is_read_first(accesses: Sequence[Access]) -> bool:
    """An iteration starts from what the one before it left."""
    return not accesses[0].is_store


def is_alone(address: Address, accesses: Sequence[Access], others: Sequence[Access]) -> bool:
    """No other access of the loop may touch the elements at `address`."""
    return not any(overlap_possible(accesses[0], other) for other in others)


def is_touchable(access: Access, loop: scf.ForOp) -> bool:
    """Reading and writing the place of `access` around the loop is safe even if the loop never runs.

    That holds for places known to lie inside memory allocated here, and for any address if the loop is
    known to run.
    """
    if (constant_trip_count(loop) or 0) > 0:
        return True
    return is_fresh(root_of(access.base)) and is_inside(access)


def is_inside(access: Access) -> bool:
    """All indices are constants within the static sizes of the memref."""
    sizes = memref_type(access.base).get_shape()
    for axis, (index, size) in enumerate(zip(access.indices, sizes, strict=True)):
        first, extent = constant_of(index), access.lanes if axis == len(sizes) - 1 else 1
        if first is None or not 0 <= first <= size - extent:
            return False
    return True


def accumulators_of(loop: scf.ForOp, effects: Effects) -> dict[Address, list[Access]]:
    """The addresses that can become loop-carried values, with their accesses in program order."""
    if effects.unknown:
        return {}
    here = [access for access in effects.accesses if access.op.parent is loop.body.block]
    written = {access.base for access in here if access.is_store}
    groups: dict[Address, list[Access]] = {}
    for access in here:
        if access.base in written and not access.is_masked:
            groups.setdefault(address_of(access), []).append(access)
    chosen: dict[Address, list[Access]] = {}
    for address, accesses in groups.items():
        if not any(access.is_store for access in accesses) or not is_invariant(address, loop):
            continue
        mine = {access.op for access in accesses}
        others = [access for access in effects.accesses if access.op not in mine]
        if (
            is_read_first(accesses)
            and is_touchable(accesses[0], loop)
            and is_alone(address, accesses, others)
        ):
            chosen[address] = accesses
    return chosen


# ---- rewrites


def hoist(loop: scf.ForOp, accumulators: dict[Address, list[Access]]) -> scf.ForOp:
    """Load each accumulator before `loop`, carry it, store it after; returns the new loop."""
    inits = [_load_before(loop, accesses[0]) for accesses in accumulators.values()]
    new = add_iter_args(loop, [init.results[0] for init in inits])
    block = new.body.block
    first = len(block.args) - len(inits)
    finals: list[SSAValue] = []
    for number, (init, accesses) in enumerate(zip(inits, accumulators.values(), strict=True)):
        store = next(access.op for access in reversed(accesses) if access.is_store)
        after = type(store).create(
            operands=(new.results[first - 1 + number], *init.operands), properties=store.properties
        )
        Rewriter.insert_op(after, InsertPoint.after(new))
        finals.append(_follow(block.args[first + number], accesses))
    terminator = block.last_op
    assert terminator is not None
    terminator.operands = (*terminator.operands, *finals)
    return new


def _load_before(loop: scf.ForOp, access: Access) -> Operation:
    """A copy of the load, in front of `loop`; indices that are constants inside are made outside."""
    point = InsertPoint.before(loop)
    operands = [access.base]
    for index in access.indices:
        number = constant_of(index)
        if number is not None and not defined_outside(index, loop):
            constant = arith.ConstantOp.create(
                result_types=(index.type,), properties={"value": IntegerAttr(number, IndexType())}
            )
            Rewriter.insert_op(constant, point)
            index = constant.result
        operands.append(index)
    load = new_operation(type(access.op), operands, (access.value_type,), access.op.properties)
    Rewriter.insert_op(load, point)
    return load


def _follow(value: SSAValue, accesses: Sequence[Access]) -> SSAValue:
    """Erase the accesses of one address that holds `value` at first; returns what it holds at last."""
    for access in accesses:
        if access.is_store:
            value = access.op.operands[0]
        else:
            access.op.results[0].replace_all_uses_with(value)
        Rewriter.erase_op(access.op)
    return value


def is_among(wanted: Address, at: Address) -> bool:
    """Everything at `wanted` is in the vector at `at`, as far as constants tell."""
    if at.base is not wanted.base or not at.indices or at.indices[:-1] != wanted.indices[:-1]:
        return False
    first, start = at.indices[-1], wanted.indices[-1]
    if not is_vector(at.type) or not isinstance(first, int) or not isinstance(start, int):
        return False
    return first <= start and start + lanes_of(wanted.type) <= first + lanes_of(at.type)


def lanes_of(type: Attribute) -> int:
    """Of a vector; 1 for a scalar."""
    return cast("VectorType[Attribute]", type).get_shape()[-1] if is_vector(type) else 1


def is_vector(type: Attribute) -> bool:
    """And not a scalar."""
    return isinstance(type, VectorType)


def offset_of(wanted: Address, at: Address) -> int:
    """The lane at which `wanted` begins, which `is_among` those at `at`."""
    first, start = at.indices[-1], wanted.indices[-1]
    assert isinstance(first, int) and isinstance(start, int)
    return start - first


def shuffle(left: SSAValue, right: SSAValue, type: Attribute, lanes: Sequence[int]) -> Operation:
    """Some lanes of two vectors."""
    return new_operation(vector.ShuffleOp, (left, right), (type,), {"mask": i64_array(*lanes)})


def part_of(value: SSAValue, at: Address, wanted: Address) -> Operation | None:
    """What is at `wanted`, as lanes of the vector `value`, which is at `at`; None if they are not all among these."""
    if not is_among(wanted, at):
        return None
    offset, type = offset_of(wanted, at), wanted.type
    if is_vector(type):
        return shuffle(value, value, type, range(offset, offset + lanes_of(type)))
    place = {"static_position": i64_array(offset)}
    return new_operation(vector.ExtractOp, (value,), (type,), place)


def with_part(value: SSAValue, at: Address, store: Access, written: Address) -> SSAValue | None:
    """The vector `value`, which is at `at`, after `store` to `written`, in front of it; None if that is no vector of
    some of its lanes. For memory of this function only, whose stores may then all go."""
    part, block = store.stored, store.op.parent
    if part is None or block is None or not is_vector(written.type):
        return None
    if at == written or not is_among(written, at) or not is_fresh(root_of(store.base)):
        return None
    offset, narrow, wide = offset_of(written, at), lanes_of(written.type), lanes_of(at.type)
    spread = shuffle(part, part, at.type, [*range(narrow), *[0] * (wide - narrow)])
    block.insert_op_before(spread, store.op)
    lanes = [wide + i - offset if offset <= i < offset + narrow else i for i in range(wide)]
    merged = shuffle(value, spread.results[0], at.type, lanes)
    block.insert_op_before(merged, store.op)
    return merged.results[0]


def forward_stores(block: Block, inside: Mapping[Operation, Effects]) -> Effects:
    """In straight-line code, a load takes the value of the last store to, or load from, its address.

    `inside` has the effects of the operations with regions. Returns what the block does after that.
    """
    effects = Effects()
    known: dict[Address, tuple[Access, SSAValue]] = {}

    def forget(written: Access) -> None:
        for address in [a for a, (access, _) in known.items() if overlap_possible(access, written)]:
            del known[address]

    def wider_vector(
        store: Access, written: Address
    ) -> tuple[Address, tuple[Access, SSAValue]] | None:
        for at, (access, value) in known.items():
            after = with_part(value, at, store, written)
            if after is not None:
                return at, (access, after)
        return None

    for op in ops_to_change(block):
        access = access_of(op)
        if access is None:
            if not op.regions and has_known_effect(op):
                continue
            nested = inside.get(op) or Effects(unknown=True)
            effects.add(nested)
            if nested.unknown:
                known.clear()
            for written in nested.accesses:
                if written.is_store:
                    forget(written)
            continue
        if not access.is_store and not access.is_masked:
            address = address_of(access)
            if address in known:
                Rewriter.replace_op(op, (), (known[address][1],))
                continue
            part = next(filter(None, (part_of(v, a, address) for a, (_, v) in known.items())), None)
            if part is not None:
                Rewriter.replace_op(op, part)
                continue
            known[address] = (access, op.results[0])
        elif access.is_store:
            written = None if access.is_masked else address_of(access)
            wider = written and wider_vector(access, written)
            forget(access)
            if wider is not None:
                known[wider[0]] = wider[1]
            elif written is not None:
                known[written] = (access, op.operands[0])
        effects.accesses.append(access)
    return effects


def erase_dead_allocas(block: Block) -> None:
    """Erase allocas of `block` that nothing reads, with the stores to them."""
    for op in [op for op in block.ops if op.name == "memref.alloca"]:
        stores = [access_of(use.operation) for use in op.results[0].uses]
        if all(s is not None and s.is_store and s.stored is not op.results[0] for s in stores):
            for store in {access.op for access in stores if access is not None}:
                Rewriter.erase_op(store)
            Rewriter.erase_op(op)


def hoist_in(block: Block) -> Effects:
    """Innermost loops first; each block is cleaned before the loop around it is looked at."""
    inside: dict[Operation, Effects] = {}
    has_allocas = False
    for op in ops_to_change(block):
        has_allocas |= op.name == "memref.alloca"
        if not op.regions:
            continue
        effects = Effects(unknown=not has_known_effect(op))
        for region in op.regions:
            for inner in region.blocks:
                effects.add(hoist_in(inner))
        if isinstance(op, scf.ForOp):
            accumulators = accumulators_of(op, effects)
            if accumulators:
                op = hoist(op, accumulators)
                effects.accesses = [a for a in effects.accesses if a.op.parent is not None]
        inside[op] = effects
    effects = forward_stores(block, inside)
    if has_allocas:
        erase_dead_allocas(block)
        effects.accesses = [a for a in effects.accesses if a.op.parent is not None]
    return effects


class LoopHoistAccumulatorsPass(ModulePass):
    """Turn accumulators in memory into values that loops carry."""

    name = "loop-hoist-accumulators"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        hoist_in(op.body.block)
