"""`tssa` operations on a part of a tensor: `tssa.extract`, `tssa.insert`, and the check in front of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, TensorType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    base,
    irdl_op_definition,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Dim, Shape
from jitdialects.dialects.interfaces import ShapeOnly
from jitdialects.dialects.tssa_operation import TensorOp
from jitdialects.dialects.tssa_types import DimsAttr, dtype_of, shape_of, verify_tensor


class _RegionOfAxes(TensorOp):
    """Common to extract and insert: per axis of the operand an offset and a step; the sizes are
    those of the smaller tensor. The region lies within the operand (clamped, guarded or checked before).

    An offset that is known only while the code runs is an expression over `_0`, `_1`, ..., the values of
    the rank-0 int64 operands after the tensors: `tssa.extract %x, %i {offsets = #tssa.dims<[wrap(_0, n),
    0]>, ...}` is row `i`, from the end where it is negative."""

    offsets = prop_def(DimsAttr)
    steps = prop_def(DenseArrayBase.constr(i64))
    TENSORS: ClassVar[int]
    """How many operands are tensors; the others are run-time values."""

    @property
    def indices(self) -> Sequence[SSAValue]:
        """The run-time values that `_0`, `_1`, ... stand for."""
        return self.operands[self.TENSORS :]

    def verify_region(self, whole: Shape, part: Shape) -> None:
        """Check that ranks agree, steps are not 0, and offsets speak of operands."""
        if len(self.operands) < self.TENSORS:
            raise VerifyException(f"expected at least {self.TENSORS} operand(s)")
        for value in self.indices:
            if shape_of(value) != () or dtype_of(value).name != "int64":
                raise VerifyException("run-time offsets need operands of type tensor<i64>")
        known = {f"{dims.RUN_TIME}{k}" for k in range(len(self.indices))}
        for name in {n for offset in self.offsets.data for n in dims.symbols_of(offset)}:
            if name.startswith(dims.RUN_TIME) and name not in known:
                raise VerifyException(f"offset '{name}' has no operand")
        steps = [int(s) for s in self.steps.get_values()]
        if not len(whole) == len(part) == len(self.offsets.data) == len(steps):
            raise VerifyException("offsets, steps and both shapes need one entry per axis")
        if 0 in steps:
            raise VerifyException("steps must not be 0")


@irdl_op_definition
class ExtractOp(_RegionOfAxes):
    """Result element i is operand element `offsets + steps * i`; same rank."""

    name = "tssa.extract"
    TENSORS: ClassVar[int] = 1
    traits = traits_def(Pure(), ShapeOnly())

    def __init__(
        self,
        operand: SSAValue | Operation,
        offsets: Sequence[Dim],
        steps: Sequence[int],
        result_type: TensorType[Attribute],
        indices: Sequence[SSAValue] = (),
    ) -> None:
        super().__init__(
            operands=[[operand, *indices]],
            result_types=[result_type],
            properties={
                "offsets": DimsAttr(tuple(offsets)),
                "steps": DenseArrayBase.from_list(i64, steps),
            },
        )

    def verify_tensors(self) -> None:
        self.verify_region(shape_of(self.operands[0]), shape_of(self.result))
        self.expect_result(shape_of(self.result), dtype_of(self.operands[0]))


@irdl_op_definition
class InsertOp(_RegionOfAxes):
    """Operand 0 with the elements `offsets + steps * i` replaced by operand 1's element i."""

    name = "tssa.insert"
    TENSORS: ClassVar[int] = 2
    traits = traits_def(Pure())

    def __init__(
        self,
        operand: SSAValue | Operation,
        part: SSAValue | Operation,
        offsets: Sequence[Dim],
        steps: Sequence[int],
        result_type: TensorType[Attribute],
        indices: Sequence[SSAValue] = (),
    ) -> None:
        super().__init__(
            operands=[[operand, part, *indices]],
            result_types=[result_type],
            properties={
                "offsets": DimsAttr(tuple(offsets)),
                "steps": DenseArrayBase.from_list(i64, steps),
            },
        )

    def verify_tensors(self) -> None:
        whole, part = self.operands[:2]
        self.verify_region(shape_of(whole), shape_of(part))
        if dtype_of(whole) != dtype_of(part):
            raise VerifyException("both operands need one dtype; cast first")
        self.expect_result(shape_of(whole), dtype_of(whole))


@irdl_op_definition
class CheckBoundsOp(IRDLOperation):
    """`tssa.check_bounds %start, %stop {lower = #tssa.dims<[0]>, upper = #tssa.dims<[n]>} : ...`: the
    rank-0 int64 values ascend from `lower` to `upper`, both included; where they do not, the code ends
    and the interpreter takes the call."""

    name = "tssa.check_bounds"
    arguments = var_operand_def(base(TensorType[Attribute]))
    lower = prop_def(DimsAttr)
    upper = prop_def(DimsAttr)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$arguments attr-dict `:` type($arguments)"

    def __init__(self, values: Sequence[SSAValue | Operation], lower: Dim, upper: Dim) -> None:
        super().__init__(
            operands=[values],
            properties={"lower": DimsAttr((lower,)), "upper": DimsAttr((upper,))},
        )

    def verify_(self) -> None:
        for value in self.arguments:
            verify_tensor(value)
            if shape_of(value) != () or dtype_of(value).name != "int64":
                raise VerifyException("operands must be of type tensor<i64>")
        if not self.arguments or len(self.lower.data) != 1 or len(self.upper.data) != 1:
            raise VerifyException("needs a value, one lower and one upper bound")
