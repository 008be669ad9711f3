"""Where the elements of a view lie in its root's memory: an offset and a stride per axis, as expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Dim, Shape
from jitdialects.dialects.tssa import ExtractOp, ReshapeOp, TransposeOp
from jitdialects.dialects.tssa_types import shape_of

STRIDED = "tssa.strided"
"""Argument attribute of an array whose strides are known when the function is called."""


@dataclass(frozen=True)
class Layout:
    """Element (i, j, ...) is at `offset + i * strides[0] + j * strides[1] + ...`, in elements."""

    offset: Dim
    strides: tuple[Dim, ...]
    indices: tuple[tuple[Operation, int], ...] = ()
    """The run-time values that the offset calls `_0`, `_1`, ...: operands of `tssa.extract` operations,
    each as it is there."""

    def is_contiguous(self, shape: Shape) -> bool:
        """Whether the elements are in C order without gaps; the strides of axes of size 1 are free."""
        ours = contiguous(shape)
        axes = zip(shape, self.strides, ours.strides, strict=True)
        return all(size == 1 or have == want for size, have, want in axes)


def contiguous(shape: Shape, offset: Dim = 0) -> Layout:
    """C order."""
    strides: list[Dim] = []
    stride: Dim = 1
    for size in reversed(shape):
        strides.append(stride)
        stride = dims.mul(stride, size)
    return Layout(offset, tuple(reversed(strides)))


def strided_argument(number: int, rank: int) -> Layout:
    """The layout of argument `number`, known when it is called: symbols that no size can be called."""
    strides = tuple(dims.symbol(f"{number}.stride.{axis}") for axis in range(rank))
    return Layout(dims.symbol(f"{number}.offset"), strides)


def has_neighbours_in_rows(value: SSAValue) -> bool:
    """Whether elements along the last axis lie next to each other, as far as is known."""
    while True:
        if isinstance(value, BlockArgument):
            function = value.block.parent_op()
            if not isinstance(function, FuncOp) or not function.arg_attrs:
                return True
            is_entry = value.block is function.body.blocks.first
            return not (is_entry and STRIDED in function.arg_attrs.data[value.index].data)
        op = value.owner
        last = len(shape_of(value)) - 1
        if isinstance(op, TransposeOp) and op.permutation.get_values()[last] != last:
            return False
        if isinstance(op, ExtractOp) and op.steps.get_values()[last] != 1:
            return False
        if not isinstance(op, ReshapeOp | TransposeOp | ExtractOp):
            return True
        value = op.operands[0]


def layout_of(value: SSAValue, strided: Mapping[SSAValue, int]) -> Layout | None:
    """The layout of a tensor value in its root's memory; `strided` has the numbers of those arguments that
    are. None for a reshape whose operand cannot be seen under the new shape: it has to be copied first."""
    if value in strided:
        return strided_argument(strided[value], len(shape_of(value)))
    op = value.owner
    if not isinstance(op, ReshapeOp | TransposeOp | ExtractOp):
        return contiguous(shape_of(value))
    source = layout_of(op.operands[0], strided)
    if source is None:
        return None
    if isinstance(op, TransposeOp):
        strides = tuple(source.strides[a] for a in op.permutation.get_values())
        return replace(source, strides=strides)
    if isinstance(op, ReshapeOp):
        return _reshaped(source, shape_of(op.operands[0]), shape_of(value))
    offset = source.offset
    shift = len(source.indices)
    names = {
        f"{dims.RUN_TIME}{k}": dims.symbol(f"{dims.RUN_TIME}{k + shift}")
        for k in range(len(op.indices))
    }
    for start, stride in zip(op.offsets.data, source.strides, strict=True):
        start = dims.substitute(start, names) if shift else start
        offset = dims.add(offset, dims.mul(start, stride))
    steps = op.steps.get_values()
    uses = tuple((op, 1 + k) for k in range(len(op.indices)))
    return Layout(offset, tuple(map(dims.scale, source.strides, steps)), source.indices + uses)


def _reshaped(source: Layout, old: Shape, new: Shape) -> Layout | None:
    """Contiguous memory takes any shape; other memory may gain and lose axes of size 1."""
    if source.is_contiguous(old):
        return replace(source, strides=contiguous(new).strides)
    kept = [stride for size, stride in zip(old, source.strides, strict=True) if size != 1]
    if [s for s in old if s != 1] != [s for s in new if s != 1]:
        return None
    remaining = iter(kept)
    return replace(source, strides=tuple(1 if s == 1 else next(remaining) for s in new))
