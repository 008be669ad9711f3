"""`convert-vector-to-llvm`: one-dimensional vectors, as MLIR's pass of that name.

    %v = vector.load %m[%i] : memref<?xf32>, vector<8xf32>
    %k = vector.create_mask %n : vector<8xi1>
    vector.maskedstore %o[%i], %k, %v : memref<?xf32>, vector<8xi1>, vector<8xf32>
    ->
    %p = llvm.getelementptr %m_aligned[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %v = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>
    %k = llvm.icmp "slt" dense<[0, 1, ..., 7]>, splat(trunc(smin(%n, 8))) : vector<8xi32>
    llvm.intr.masked.store %v, %q, %k {alignment = 4 : i32} : vector<8xf32>, vector<8xi1> into !llvm.ptr

Accesses say that they are aligned to one element: without that, LLVM assumes the whole vector's size. The
axis that a vector lies along must have stride 1. Needs no other pass before; leaves vectors of more
dimensions and `vector.transfer_*`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BoolAttr,
    DenseArrayBase,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    UnitAttr,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.dialects.vector import CombiningKindAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from jitdialects.dialects import upstream_llvm
from jitdialects.dialects.interned import i32_array, vector_type
from jitdialects.lowering.convert_arith_to_llvm import STRICT, dense, one_to_one
from jitdialects.lowering.llvm_addresses import (
    access,
    access_properties,
    constant_of,
    masked_properties,
)
from jitdialects.lowering.llvm_conversion import (
    Conversion,
    Table,
    as_memref,
    as_vector,
    byte_width,
    convert_module,
    llvm_type,
    memref_layout,
)

_TRUNCATES: Mapping[str, Attribute] = {"overflowFlags": llvm.OverflowAttr(None)}
_SIGNED_LESS_THAN = IntegerAttr(2, i64)


# ---- memory


def is_contiguous_along_last_axis(memref: MemRefType[Attribute]) -> bool:
    """True if neighbours on the last axis are neighbours in memory."""
    strides, _ = memref_layout(memref)
    return not strides or strides[-1] == 1


_TRUE = BoolAttr.from_bool(True)
_PAST_THE_CACHE: Mapping[str, Attribute] = {"nontemporal": UnitAttr()}


def _vector_pointer(
    op: Operation, memref: SSAValue, indices: Sequence[SSAValue], c: Conversion
) -> tuple[SSAValue, int]:
    """The address of the first lane, and the alignment in bytes."""
    type = as_memref(memref.type)
    assert type is not None
    if not is_contiguous_along_last_axis(type):
        raise PassFailedException(f"convert-vector-to-llvm: {op.name} needs stride 1, not {type}")
    if type.element_type == i1:
        raise PassFailedException(
            f"convert-vector-to-llvm: {op.name} of i1 would be packed bits; keep bool as i8 in memory"
        )
    return access(c, memref, indices), byte_width(type.element_type)


def _load(op: Operation, c: Conversion) -> None:
    memref, *indices = op.operands
    pointer, alignment = _vector_pointer(op, memref, indices, c)
    properties = access_properties(alignment)
    c.replace(op, c.emit(llvm.LoadOp, (pointer,), llvm_type(op.results[0].type), properties))


def _store(op: Operation, c: Conversion) -> None:
    value, memref, *indices = op.operands
    pointer, alignment = _vector_pointer(op, memref, indices, c)
    properties = access_properties(alignment)
    if op.properties.get("nontemporal") == _TRUE:  # whole vectors: `loop-stream` has seen to that
        vector = as_vector(value.type)
        assert vector is not None
        whole = access_properties(alignment * vector.get_shape()[-1])
        properties = {**whole, **_PAST_THE_CACHE}
    c.emit_effect(llvm.StoreOp, (c.value(value), pointer), properties)
    c.replace(op)


def _masked_load(op: Operation, c: Conversion) -> None:
    memref, *indices, mask, otherwise = op.operands
    pointer, alignment = _vector_pointer(op, memref, indices, c)
    operands = (pointer, c.value(mask), c.value(otherwise))
    properties = masked_properties(alignment)
    type = llvm_type(op.results[0].type)
    c.replace(op, c.emit(upstream_llvm.MaskedLoadOp, operands, type, properties))


def _masked_store(op: Operation, c: Conversion) -> None:
    memref, *indices, mask, value = op.operands
    pointer, alignment = _vector_pointer(op, memref, indices, c)
    properties = masked_properties(alignment)
    operands = (c.value(value), pointer, c.value(mask))
    c.emit_effect(upstream_llvm.MaskedStoreOp, operands, properties)
    c.replace(op)


# ---- lanes


def _vector(type: Attribute) -> VectorType[Attribute]:
    """The llvm type for `type`, a vector of one dimension."""
    vector = as_vector(llvm_type(type))
    assert vector is not None
    return vector


def _lanes(type: VectorType[Attribute]) -> int:
    return type.get_shape()[0]


def _dense(c: Conversion, type: VectorType[Attribute], values: Sequence[int]) -> SSAValue:
    attribute = dense(type, values)
    return c.hoisted(llvm.ConstantOp, (), type, {"value": attribute}, ("dense", type, *values))


def splat(c: Conversion, scalar: SSAValue, type: VectorType[Attribute]) -> SSAValue:
    """All lanes of a vector of `type` hold `scalar`: made once, right behind it."""
    key = ("splat", id(scalar), _lanes(type))
    if (known := c.known(key)) is not None:
        return known
    undefined = c.hoisted(llvm.UndefOp, (), type, key=("undef", _lanes(type), scalar.type))
    zero = c.constant(0, i32)
    one = c.hoisted(llvm.InsertElementOp, (undefined, scalar, zero), type)
    return c.hoisted(llvm.ShuffleVectorOp, (one, one), type, _first_lane(_lanes(type)), key)


@cache
def _first_lane(lanes: int) -> Mapping[str, Attribute]:
    """The mask of a shuffle that repeats lane 0."""
    return {"mask": i32_array(*[0] * lanes)}


def _broadcast(op: Operation, c: Conversion) -> None:
    source, type = c.value(op.operands[0]), _vector(op.results[0].type)
    if as_vector(source.type) is None:
        c.replace(op, splat(c, source, type))
    elif source.type == type:
        c.replace(op, source)
    else:
        zero = c.constant(0, i32)
        scalar = c.emit(upstream_llvm.ExtractElementOp, (source, zero), type.element_type)
        c.replace(op, splat(c, scalar, type))


def _create_mask(op: Operation, c: Conversion) -> None:
    type = _vector(op.results[0].type)
    lanes = _lanes(type)
    count = c.value(op.operands[0])
    known = constant_of(count)
    if known is not None:
        c.replace(op, _dense(c, type, [int(lane < known) for lane in range(lanes)]))
        return
    # 32 bits are enough below `lanes`, and twice as many of them fit into a register as of i64.
    count = c.hoisted(
        upstream_llvm.SMinOp, (count, c.constant(lanes)), i64, key=("smin", count, lanes)
    )
    narrow = c.hoisted(llvm.TruncOp, (count,), i32, _TRUNCATES, ("trunc", count))
    wide = vector_type(i32, lanes)
    operands = (_dense(c, wide, range(lanes)), splat(c, narrow, wide))
    predicate = {"predicate": _SIGNED_LESS_THAN}
    c.replace(op, c.hoisted(llvm.ICmpOp, operands, type, predicate, ("mask", count, lanes)))


def _position(op: Operation, dynamic: Sequence[SSAValue], c: Conversion) -> SSAValue:
    static = op.properties["static_position"]
    assert isinstance(static, DenseArrayBase)
    positions = list(static.iter_values())
    if len(positions) != 1:
        raise PassFailedException(f"convert-vector-to-llvm: {op.name} needs one position")
    position = int(positions[0])
    return c.value(dynamic[0]) if position == DYNAMIC_INDEX else c.constant(position)


def _extract(op: Operation, c: Conversion) -> None:
    vector, *dynamic = op.operands
    operands = (c.value(vector), _position(op, dynamic, c))
    type = llvm_type(op.results[0].type)
    c.replace(op, c.emit(upstream_llvm.ExtractElementOp, operands, type))


def _insert(op: Operation, c: Conversion) -> None:
    value, vector, *dynamic = op.operands
    operands = (c.value(vector), c.value(value), _position(op, dynamic, c))
    c.replace(op, c.emit(llvm.InsertElementOp, operands, operands[0].type))


def _shuffle(op: Operation, c: Conversion) -> None:
    operands = [c.value(operand) for operand in op.operands]
    if operands[0].type != operands[1].type:
        raise PassFailedException(
            "convert-vector-to-llvm: vector.shuffle needs equal operand types"
        )
    chosen = op.properties["mask"]
    assert isinstance(chosen, DenseArrayBase)
    mask = {"mask": i32_array(*map(int, chosen.iter_values()))}
    c.replace(op, c.emit(llvm.ShuffleVectorOp, operands, llvm_type(op.results[0].type), mask))


def _reduction(op: Operation, c: Conversion) -> None:
    kind = op.properties["kind"]
    if not isinstance(kind, CombiningKindAttr) or kind.data != "or" or len(op.operands) != 1:
        raise PassFailedException(
            "convert-vector-to-llvm: of vector.reduction it knows <or> of a vector alone"
        )
    operands = (c.value(op.operands[0]),)
    c.replace(op, c.emit(upstream_llvm.ReduceOrOp, operands, llvm_type(op.results[0].type)))


TABLE: Table = {
    "vector.load": _load,
    "vector.store": _store,
    "vector.maskedload": _masked_load,
    "vector.maskedstore": _masked_store,
    "vector.broadcast": _broadcast,
    "vector.create_mask": _create_mask,
    "vector.extract": _extract,
    "vector.insert": _insert,
    "vector.shuffle": _shuffle,
    "vector.reduction": _reduction,
    "vector.fma": one_to_one(llvm.FMAOp, STRICT),
    "vector.bitcast": one_to_one(llvm.BitcastOp),
}


class ConvertVectorToLlvmPass(ModulePass):
    """`vector` to `llvm`; see the module."""

    name = "convert-vector-to-llvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        convert_module(op, TABLE)
