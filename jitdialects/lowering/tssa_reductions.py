"""Reductions of the operator table in terms of `tssa`.

`tssa` has sum, prod, max and min over any axes; the result drops them. `mean` is a sum and a division by the
number of elements, `var` a mean and the sum of the squares of what differs from it, as the numerics
contract says. `any` and `all` are the largest and the smallest bool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, TensorType, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from jitdialects.bytecode import dims
from jitdialects.bytecode.attributes import Attributes
from jitdialects.bytecode.dims import Dim, Shape
from jitdialects.bytecode.dtypes import DType
from jitdialects.bytecode.shape_rules import reduced_axes
from jitdialects.dialects.constants import constant_op
from jitdialects.dialects.tssa import ELEMENTWISE_OPS, REDUCTION_OPS, BroadcastOp, ReshapeOp, SizeOp


class TensorEmitter(Protocol):
    """Who appends operations."""

    block: Block

    def emit(
        self,
        op_class: type[Operation],
        operands: Sequence[SSAValue],
        result_type: Attribute,
        **properties: Attribute,
    ) -> SSAValue:
        """Append an operation; gives its result."""
        ...

    def type(self, dtype: DType, shape: Shape) -> TensorType[Attribute]:
        """A tensor type with every size resolved."""
        ...


class Reduction:
    """The operator `opcode` on `value`, which has `dtype` and `shape`."""

    def __init__(
        self,
        at: TensorEmitter,
        value: SSAValue,
        dtype: DType,
        shape: Shape,
        attributes: Attributes,
        opcode: str,
    ) -> None:
        self.at, self.value, self.dtype, self.shape = at, value, dtype, shape
        self.opcode, self.attributes = opcode, attributes
        self.axes = reduced_axes(opcode, len(shape), attributes)
        self.kept = tuple(s for a, s in enumerate(shape) if a not in self.axes)
        self.count = dims.product(shape[a] for a in self.axes)

    def result(self) -> SSAValue:
        """Of shape `kept`."""
        match self.opcode:
            case "mean":
                return self.mean()
            case "var":
                return self.variance()
            case _:
                return self.folded(self.opcode, self.value)

    def folded(self, opcode: str, value: SSAValue) -> SSAValue:
        """One of the reductions that `tssa` has."""
        axes = DenseArrayBase.from_list(i64, self.axes)
        type = self.at.type(self.dtype, self.kept)
        return self.at.emit(REDUCTION_OPS[opcode], [value], type, axes=axes)

    def mean(self) -> SSAValue:
        """The sum over the number of elements."""
        return self.divided(self.folded("sum", self.value), self.count)

    def variance(self) -> SSAValue:
        """The squares of what differs from the mean, summed, over the number of elements or fewer."""
        at, type = self.at, self.at.type(self.dtype, self.shape)
        standing = tuple(1 if a in self.axes else s for a, s in enumerate(self.shape))
        mean = self.mean()
        if standing != self.kept:
            mean = at.emit(ReshapeOp, [mean], at.type(self.dtype, standing))
        if standing != self.shape:
            mean = at.emit(BroadcastOp, [mean], type)
        away = at.emit(ELEMENTWISE_OPS["subtract"], [self.value, mean], type)
        squares = at.emit(ELEMENTWISE_OPS["multiply"], [away, away], type)
        correction = self.attributes["correction"]
        assert isinstance(correction, int)
        count = dims.maximum(dims.sub(self.count, correction), 0)
        return self.divided(self.folded("sum", squares), count)

    def divided(self, value: SSAValue, count: Dim) -> SSAValue:
        """`value`, of shape `kept`, over `count`, which is rounded to the dtype."""
        at, type = self.at, self.at.type(self.dtype, self.kept)
        if isinstance(count, int):
            op = constant_op(self.dtype, np.array(count).astype(self.dtype.numpy))
            at.block.add_op(op)
            divisor: SSAValue = op.result
        else:
            size = SizeOp(count)
            at.block.add_op(size)
            divisor = at.emit(ELEMENTWISE_OPS["cast"], [size.result], at.type(self.dtype, ()))
        if self.kept:
            divisor = at.emit(BroadcastOp, [divisor], type)
        return at.emit(ELEMENTWISE_OPS["divide"], [value, divisor], type)
