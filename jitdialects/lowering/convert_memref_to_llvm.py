"""`convert-memref-to-llvm`: loads, stores, allocas and views of memrefs, as MLIR's pass of that name.

    %x = memref.load %m[%i, %j] : memref<?x8xf32>
    ->
    %row = llvm.mul %i, %c8 : i64
    %p0  = llvm.getelementptr %aligned[%row] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %p1  = llvm.getelementptr %p0[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %x   = llvm.load %p1 {alignment = 4 : i64} : !llvm.ptr -> f32

Every load and store says that it is aligned to one element. A static alloca goes to the function's entry,
or that of an `AllocationScope` around it, so that a loop does not grow the stack. `memref.alloc`, `memref.dealloc` and `memref.copy` stay: buffers
come from the caller. Needs strided layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from jitdialects.analysis import bounds
from jitdialects.dialects.upstream_llvm import PrefetchOp
from jitdialects.lowering.llvm_addresses import (
    access,
    access_properties,
    added,
    constant_of,
    offset_pointer,
    scaled,
)
from jitdialects.lowering.llvm_conversion import (
    PTR,
    Conversion,
    Descriptor,
    Size,
    Table,
    as_memref,
    byte_width,
    convert_module,
    llvm_type,
)

_CACHE_LINE = 64
_TRUE = BoolAttr.from_bool(True)


def _memref(value: SSAValue) -> MemRefType[Attribute]:
    type = as_memref(value.type)
    assert type is not None
    return type


def _load(op: Operation, c: Conversion) -> None:
    memref, *indices = op.operands
    properties = access_properties(byte_width(_memref(memref).element_type))
    pointer = access(c, memref, indices)
    c.replace(op, c.emit(llvm.LoadOp, (pointer,), llvm_type(op.results[0].type), properties))


def _store(op: Operation, c: Conversion) -> None:
    value, memref, *indices = op.operands
    properties = access_properties(byte_width(_memref(memref).element_type))
    pointer = access(c, memref, indices)
    c.emit_effect(llvm.StoreOp, (c.value(value), pointer), properties)
    c.replace(op)


def _prefetch(op: Operation, c: Conversion) -> None:
    memref, *indices = op.operands
    properties = {
        "rw": IntegerAttr(int(op.properties["isWrite"] == _TRUE), i32),
        "hint": op.properties["localityHint"],
        "cache": IntegerAttr(int(op.properties["isDataCache"] == _TRUE), i32),
    }
    c.emit_effect(PrefetchOp, (access(c, memref, indices),), properties)
    c.replace(op)


# ---- new buffers


def identity_strides(c: Conversion, sizes: Sequence[Size]) -> tuple[Size, ...]:
    """Strides of a C-contiguous buffer of `sizes`."""
    strides: list[Size] = [1] * len(sizes)
    for axis in reversed(range(len(sizes) - 1)):
        strides[axis] = scaled(c, strides[axis + 1], sizes[axis + 1])
    return tuple(strides)


def _fill(shape: Sequence[int], dynamic: Sequence[SSAValue], c: Conversion) -> tuple[Size, ...]:
    """`shape` with the values for its dynamic entries, in order."""
    rest = iter(dynamic)
    return tuple(c.value(next(rest)) if size < 0 else size for size in shape)


def _alloca(op: Operation, c: Conversion) -> None:
    type = _memref(op.results[0])
    sizes = _fill(type.get_shape(), op.operands, c)
    static = [size for size in sizes if isinstance(size, int)]
    width = byte_width(type.element_type)
    large = len(static) < len(sizes) or prod(static) * width >= _CACHE_LINE
    properties: dict[str, Attribute] = {
        "alignment": op.properties.get("alignment")
        or IntegerAttr(_CACHE_LINE if large else width, i64),
        "elem_type": llvm_type(type.element_type),
    }
    if len(static) == len(sizes):
        count = c.constant(prod(static))
        pointer = c.on_stack(count, PTR, properties)
    else:
        total: Size = 1
        for size in sizes:
            total = scaled(c, total, size)
        pointer = c.emit(llvm.AllocaOp, (c.sized(total),), PTR, properties)
    strides = identity_strides(c, sizes)
    c.replace_memref(op, Descriptor(pointer, pointer, 0, sizes, strides))


# ---- views


def _view(op: Operation, c: Conversion) -> None:
    source, shift, *dynamic = op.operands
    base = c.descriptor(source)
    pointer = offset_pointer(c, base.aligned, c.value(shift), i8)
    sizes = _fill(_memref(op.results[0]).get_shape(), dynamic, c)
    strides = identity_strides(c, sizes)
    c.replace_memref(op, Descriptor(base.allocated, pointer, 0, sizes, strides))


def _segments(op: Operation) -> list[Sequence[SSAValue]]:
    sizes = op.properties["operandSegmentSizes"]
    assert isinstance(sizes, DenseArrayBase)
    groups: list[Sequence[SSAValue]] = []
    start = 0
    for size in sizes.iter_values():
        groups.append(op.operands[start : start + int(size)])
        start += int(size)
    return groups


def _static(op: Operation, name: str) -> list[int]:
    values = op.properties[name]
    assert isinstance(values, DenseArrayBase)
    return [int(value) for value in values.iter_values()]


def _mixed(op: Operation, name: str, dynamic: Sequence[SSAValue], c: Conversion) -> list[Size]:
    rest = iter(dynamic)
    return [c.value(next(rest)) if s == DYNAMIC_INDEX else s for s in _static(op, name)]


def kept_axes(sizes: Sequence[Size], result: Sequence[int]) -> list[int]:
    """Axes of a subview that its rank-reduced result keeps: unit axes may go, in order."""
    kept: list[int] = []
    for axis, size in enumerate(sizes):
        expected = result[len(kept)] if len(kept) < len(result) else None
        if expected == (size if isinstance(size, int) else DYNAMIC_INDEX):
            kept.append(axis)
        elif size != 1:
            raise PassFailedException(
                "convert-memref-to-llvm: the result of memref.subview must drop unit axes only"
            )
    return kept


def _subview(op: Operation, c: Conversion) -> None:
    (source,), *dynamic = _segments(op)
    base = c.descriptor(source)
    offsets = _mixed(op, "static_offsets", dynamic[0], c)
    sizes = _mixed(op, "static_sizes", dynamic[1], c)
    steps = _mixed(op, "static_strides", dynamic[2], c)
    offset = base.offset
    for index, stride in zip(offsets, base.strides, strict=True):
        offset = added(c, offset, scaled(c, index, stride))
    strides = [scaled(c, step, stride) for step, stride in zip(steps, base.strides, strict=True)]
    kept = kept_axes(sizes, _memref(op.results[0]).get_shape())
    kept_sizes, kept_strides = ((tuple(x[axis] for axis in kept)) for x in (sizes, strides))
    c.replace_memref(op, Descriptor(base.allocated, base.aligned, offset, kept_sizes, kept_strides))


def _reinterpret_cast(op: Operation, c: Conversion) -> None:
    (source,), *dynamic = _segments(op)
    base = c.descriptor(source)
    (offset,) = _mixed(op, "static_offsets", dynamic[0], c)
    sizes = _mixed(op, "static_sizes", dynamic[1], c)
    strides = _mixed(op, "static_strides", dynamic[2], c)
    c.replace_memref(
        op, Descriptor(base.allocated, base.aligned, offset, tuple(sizes), tuple(strides))
    )


def _groups(op: Operation) -> list[list[int]]:
    groups = cast("ArrayAttr[ArrayAttr[IntegerAttr]]", op.properties["reassociation"])
    return [[axis.value.data for axis in group] for group in groups]


def _collapse_shape(op: Operation, c: Conversion) -> None:
    base = c.descriptor(op.operands[0])
    sizes: list[Size] = []
    strides: list[Size] = []
    for group in _groups(op):
        total: Size = 1
        for axis in group:
            total = scaled(c, total, base.sizes[axis])
        # The stride of a unit axis says nothing about its neighbours.
        innermost = next((a for a in reversed(group) if base.sizes[a] != 1), group[-1])
        sizes.append(total)
        strides.append(base.strides[innermost])
    c.replace_memref(
        op, Descriptor(base.allocated, base.aligned, base.offset, tuple(sizes), tuple(strides))
    )


def _expand_shape(op: Operation, c: Conversion) -> None:
    source, *dynamic = op.operands
    base = c.descriptor(source)
    sizes = _mixed(op, "static_output_shape", dynamic, c)
    strides: list[Size] = [1] * len(sizes)
    for group, stride in zip(_groups(op), base.strides, strict=True):
        for axis in reversed(group):
            strides[axis] = stride
            stride = scaled(c, stride, sizes[axis])
    c.replace_memref(
        op, Descriptor(base.allocated, base.aligned, base.offset, tuple(sizes), tuple(strides))
    )


def _cast(op: Operation, c: Conversion) -> None:
    if not isinstance(op.results[0].type, MemRefType):
        raise PassFailedException("convert-memref-to-llvm needs ranked memrefs in memref.cast")
    c.replace_memref(op, c.descriptor(op.operands[0]))


# ---- questions


def _dim(op: Operation, c: Conversion) -> None:
    source, index = op.operands
    axis = bounds.constant_of(index)  # while arith is not converted
    if axis is None:
        axis = constant_of(c.value(index))
    sizes = c.descriptor(source).sizes
    if axis is None or not 0 <= axis < len(sizes):
        raise PassFailedException(
            f"convert-memref-to-llvm needs a constant axis of {source.type} in memref.dim"
        )
    c.replace(op, c.sized(sizes[axis]))


def _aligned_pointer(op: Operation, c: Conversion) -> None:
    pointer = c.descriptor(op.operands[0]).aligned
    c.replace(op, c.emit(llvm.PtrToIntOp, (pointer,), i64))


def _strided_metadata(op: Operation, c: Conversion) -> None:
    """Results: the buffer as rank 0, its offset, sizes, strides."""
    base = c.descriptor(op.operands[0])
    numbers = (base.offset, *base.sizes, *base.strides)
    for result, number in zip(op.results[1:], numbers, strict=True):
        c.define(result, c.sized(number))
    c.replace_memref(op, Descriptor(base.allocated, base.aligned, 0, (), ()))


TABLE: Table = {
    "memref.load": _load,
    "memref.store": _store,
    "memref.prefetch": _prefetch,
    "memref.alloca": _alloca,
    "memref.view": _view,
    "memref.subview": _subview,
    "memref.reinterpret_cast": _reinterpret_cast,
    "memref.collapse_shape": _collapse_shape,
    "memref.expand_shape": _expand_shape,
    "memref.cast": _cast,
    "memref.dim": _dim,
    "memref.extract_aligned_pointer_as_index": _aligned_pointer,
    "memref.extract_strided_metadata": _strided_metadata,
}


class ConvertMemrefToLlvmPass(ModulePass):
    """`memref` to `llvm`; see the module."""

    name = "convert-memref-to-llvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        convert_module(op, TABLE)
