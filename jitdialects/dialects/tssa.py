"""`tssa`: tensor SSA. Value semantics, NumPy 2 meaning, symbolic sizes visible in the types.

A tensor type with a dynamic size carries `#tssa.dims<[n, 8, n + 1]>`, one expression per axis (the text
of `bytecode.dims`); fully static types carry none. Equal expressions are provably equal sizes, so passes
compare shapes with `shape_of(a) == shape_of(b)` and nothing else.

Operators come from the operator table: every elementwise operator `x` is an operation `tssa.x` with
operands of equal shape (broadcasting and promotion are explicit: `tssa.broadcast`, `tssa.cast`).
`tssa.group` holds what becomes one loop nest, over tensors or, after bufferisation, over memrefs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    MemRefType,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    base,
    irdl_op_definition,
    lazy_traits_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Dim
from jitdialects.bytecode.dtype_rules import Typing
from jitdialects.bytecode.dtypes import DType
from jitdialects.bytecode.operators import OPERATORS, Kind, Operator
from jitdialects.bytecode.shape_rules import broadcast_shapes, shape_text
from jitdialects.dialects.interfaces import Contraction, Elementwise, Reduction, ShapeOnly
from jitdialects.dialects.tssa_operation import TensorOp
from jitdialects.dialects.tssa_regions import CheckBoundsOp, ExtractOp, InsertOp
from jitdialects.dialects.tssa_types import (
    ELEMENT_TYPES,
    DimsAttr,
    GuardAttr,
    buffer_element_type,
    dtype_of,
    shape_of,
    verify_tensor,
)


class ElementwiseOp(TensorOp):
    """An elementwise operator of the table; all shapes equal, operands already promoted."""

    @property
    def operator(self) -> Operator:
        """Its entry in the operator table."""
        return OPERATORS[self.name.removeprefix("tssa.")]

    def __init__(
        self, operands: Sequence[SSAValue | Operation], result_type: TensorType[Attribute]
    ) -> None:
        super().__init__(operands=[operands], result_types=[result_type])

    def verify_tensors(self) -> None:
        self.expect_operands(self.operator.arity)
        dtypes = [dtype_of(v) for v in self.operands]
        if self.name == "tssa.cast":
            typing = Typing(tuple(dtypes), dtype_of(self.result))
        else:
            typing = self.operator.infer_dtypes(dtypes, {})
        if [t.name for t in typing.operands] != [d.name for d in dtypes]:
            raise VerifyException(
                f"operands must be promoted to {', '.join(map(str, typing.operands))} first"
            )
        for operand in self.operands:
            if shape_of(operand) != shape_of(self.result):
                raise VerifyException(
                    f"operand shape {shape_text(shape_of(operand))} differs from the result's "
                    f"{shape_text(shape_of(self.result))}; broadcast first"
                )
        self.expect_result(shape_of(self.result), typing.result)


def _elementwise_op(operator: Operator) -> type[ElementwiseOp]:
    """The operation class `tssa.<operator>`."""
    namespace: dict[str, object] = {
        "name": f"tssa.{operator.name}",
        "traits": traits_def(Pure(), Elementwise()),
        "__doc__": operator.doc,
        "__module__": __name__,
    }
    class_name = operator.name.title().replace("_", "") + "Op"
    return irdl_op_definition(type(class_name, (ElementwiseOp,), namespace))


ELEMENTWISE_OPS: Mapping[str, type[ElementwiseOp]] = {
    o.name: _elementwise_op(o) for o in OPERATORS.values() if o.kind is Kind.ELEMENTWISE
}
"""Operator name -> its operation class."""


@irdl_op_definition
class ConstantOp(TensorOp):
    """`tssa.constant {value = dense<...>} : () -> tensor<...>`; always static."""

    name = "tssa.constant"
    value = prop_def(DenseIntOrFPElementsAttr)
    traits = traits_def(Pure())

    def __init__(self, value: DenseIntOrFPElementsAttr, result_type: TensorType[Attribute]) -> None:
        super().__init__(operands=[[]], result_types=[result_type], properties={"value": value})

    def verify_tensors(self) -> None:
        self.expect_operands(0)
        if self.value.type != self.result.type:
            raise VerifyException(f"value of type {self.value.type} for {self.result.type}")


@irdl_op_definition
class SizeOp(TensorOp):
    """`tssa.size {value = #tssa.dims<[n + 1]>} : () -> tensor<i64>`: a size as a tensor."""

    name = "tssa.size"
    value = prop_def(DimsAttr)
    traits = traits_def(Pure())

    def __init__(self, value: Dim) -> None:
        super().__init__(
            operands=[[]],
            result_types=[TensorType(i64, [])],
            properties={"value": DimsAttr((value,))},
        )

    def verify_tensors(self) -> None:
        self.expect_operands(0)
        if len(self.value.data) != 1:
            raise VerifyException("value must be one size")
        self.expect_result((), DType("int64"))


@irdl_op_definition
class BroadcastOp(TensorOp):
    """Repeat along axes of size 1 and new leading axes, to the result's shape."""

    name = "tssa.broadcast"
    traits = traits_def(Pure(), ShapeOnly())

    def __init__(self, operand: SSAValue | Operation, result_type: TensorType[Attribute]) -> None:
        super().__init__(operands=[[operand]], result_types=[result_type])

    def verify_tensors(self) -> None:
        self.expect_operands(1)
        target = shape_of(self.result)
        source = shape_of(self.operands[0])
        self.expect_result(
            broadcast_shapes("broadcast", (source, target), _Provable()), dtype_of(self.operands[0])
        )
        if len(source) > len(target):
            raise VerifyException("the result has fewer axes than the operand")


class _Provable:
    """Facts for verifiers: only what the expressions themselves prove."""

    def require_equal(self, x: Dim, y: Dim, error: Exception) -> Dim:
        if x != y:
            raise error
        return x

    def require_at_most(self, x: Dim, y: Dim, error: Exception) -> None:
        if isinstance(x, int) and isinstance(y, int) and x > y:
            raise error

    def is_settled(self, x: Dim) -> bool:
        return dims.is_settled(x)


@irdl_op_definition
class ReshapeOp(TensorOp):
    """The same elements in C order under the result's shape."""

    name = "tssa.reshape"
    traits = traits_def(Pure(), ShapeOnly())

    def __init__(self, operand: SSAValue | Operation, result_type: TensorType[Attribute]) -> None:
        super().__init__(operands=[[operand]], result_types=[result_type])

    def verify_tensors(self) -> None:
        self.expect_operands(1)
        source, target = shape_of(self.operands[0]), shape_of(self.result)
        if all(isinstance(s, int) for s in source + target) and (
            dims.product(source) != dims.product(target)
        ):
            raise VerifyException(
                f"{shape_text(source)} and {shape_text(target)} differ in their element count"
            )
        self.expect_result(target, dtype_of(self.operands[0]))


@irdl_op_definition
class TransposeOp(TensorOp):
    """`{permutation = array<i64: 1, 0>}`: result axis i is operand axis permutation[i]."""

    name = "tssa.transpose"
    permutation = prop_def(DenseArrayBase.constr(i64))
    traits = traits_def(Pure(), ShapeOnly())

    def __init__(
        self,
        operand: SSAValue | Operation,
        permutation: Sequence[int],
        result_type: TensorType[Attribute],
    ) -> None:
        super().__init__(
            operands=[[operand]],
            result_types=[result_type],
            properties={"permutation": DenseArrayBase.from_list(i64, permutation)},
        )

    def verify_tensors(self) -> None:
        self.expect_operands(1)
        source = shape_of(self.operands[0])
        axes = tuple(int(a) for a in self.permutation.get_values())
        if sorted(axes) != list(range(len(source))):
            raise VerifyException(f"{axes} is not a permutation of {len(source)} axes")
        self.expect_result(tuple(source[a] for a in axes), dtype_of(self.operands[0]))


class _ReductionOp(TensorOp):
    """`{axes = array<i64: 0, 2>}`: the named axes, ascending, disappear; none: nothing is folded."""

    axes = prop_def(DenseArrayBase.constr(i64))

    def __init__(
        self,
        operand: SSAValue | Operation,
        axes: Sequence[int],
        result_type: TensorType[Attribute],
    ) -> None:
        super().__init__(
            operands=[[operand]],
            result_types=[result_type],
            properties={"axes": DenseArrayBase.from_list(i64, axes)},
        )

    def verify_tensors(self) -> None:
        self.expect_operands(1)
        source = shape_of(self.operands[0])
        axes = tuple(int(a) for a in self.axes.get_values())
        if list(axes) != sorted(set(axes)) or not set(axes) <= set(range(len(source))):
            raise VerifyException(f"axes {axes} must be ascending axes of the {len(source)}")
        kept = tuple(s for a, s in enumerate(source) if a not in axes)
        dtype = dtype_of(self.operands[0])
        typing = OPERATORS[self.name.removeprefix("tssa.")].infer_dtypes([dtype], {})
        if typing.operands[0].name != dtype.name:
            raise VerifyException(f"the operand must be cast to {typing.operands[0]} first")
        self.expect_result(kept, typing.result)


def _reduction_op(name: str) -> type[_ReductionOp]:
    """The operation class `tssa.<name>`; of nothing it is the number that changes nothing."""
    namespace: dict[str, object] = {
        "name": f"tssa.{name}",
        "traits": traits_def(Pure(), Reduction()),
        "__doc__": OPERATORS[name].doc,
        "__module__": __name__,
    }
    return irdl_op_definition(type(f"{name.title()}Op", (_ReductionOp,), namespace))


_FOLDS = {name: _reduction_op(name) for name in ("sum", "prod", "max", "min")}
REDUCTION_OPS = _FOLDS | {"any": _FOLDS["max"], "all": _FOLDS["min"]}
"""Operator name -> the operation that does it: `any` is the largest bool, `all` the smallest."""


@irdl_op_definition
class MatmulOp(TensorOp):
    """Matrix product of operands of rank 1 or 2, in the order of the numerics contract."""

    name = "tssa.matmul"
    traits = traits_def(Pure(), Contraction())

    def __init__(
        self,
        left: SSAValue | Operation,
        right: SSAValue | Operation,
        result_type: TensorType[Attribute],
    ) -> None:
        super().__init__(operands=[[left, right]], result_types=[result_type])

    def verify_tensors(self) -> None:
        self.expect_operands(2)
        left, right = self.operands
        operator = OPERATORS["matmul"]
        shape = operator.infer_shape(
            (shape_of(left), shape_of(right)), {}, (None, None), _Provable()
        )
        typing = operator.infer_dtypes([dtype_of(left), dtype_of(right)], {})
        if dtype_of(left) != dtype_of(right):
            raise VerifyException("both operands need one dtype; cast first")
        self.expect_result(shape, typing.result)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a `tssa.group` with the values that leave it."""

    name = "tssa.yield"
    arguments = var_operand_def(base(TensorType[Attribute]))
    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(GroupOp), NoMemoryEffect()))

    assembly_format = "$arguments `:` type($arguments) attr-dict"

    def __init__(self, *arguments: SSAValue | Operation) -> None:
        super().__init__(operands=[arguments])


@irdl_op_definition
class GroupOp(IRDLOperation):
    """What becomes one loop nest.

    Over tensors: `%r = tssa.group ins(%a : t) {^bb0(%x : t): ... tssa.yield %y : t} -> t`.
    Over buffers: `tssa.group ins(%a : memref) outs(%b : memref) {same body}`; a weak scalar may be an
    `ins` operand of plain type; bool is `i8` in buffers and `i1` in the body.
    """

    name = "tssa.group"
    ins = var_operand_def()
    outs = var_operand_def(base(MemRefType[Attribute]))
    res = var_result_def(base(TensorType[Attribute]))
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(IsolatedFromAbove())

    def __init__(
        self,
        ins: Sequence[SSAValue | Operation],
        outs: Sequence[SSAValue | Operation],
        result_types: Sequence[Attribute],
        body: Region,
    ) -> None:
        super().__init__(operands=[ins, outs], result_types=[result_types], regions=[body])

    @property
    def block(self) -> Block:
        """The body."""
        return self.body.block

    @property
    def terminator(self) -> YieldOp:
        """The yield that ends the body."""
        last = self.block.last_op
        assert isinstance(last, YieldOp)
        return last

    def verify_(self) -> None:
        block = self.body.block
        if not isinstance(block.last_op, YieldOp):
            raise VerifyException("the body must end in tssa.yield")
        if self.outs and self.res:
            raise VerifyException("a group has tensor results or buffer outs, not both")
        produced = self.outs or self.res
        if len(block.args) != len(self.ins) or len(block.last_op.operands) != len(produced):
            raise VerifyException("body arguments and yielded values must match ins and results")
        for inner, outer in (
            *zip(block.args, self.ins, strict=True),
            *zip(block.last_op.operands, produced, strict=True),
        ):
            verify_tensor(inner)
            if not _corresponds(inner.type, outer.type):
                raise VerifyException(f"{outer.type} outside does not match {inner.type} inside")

    def print(self, printer: Printer) -> None:
        for word, values in (("ins", self.ins), ("outs", self.outs)):
            if not values and word == "outs":
                continue
            printer.print_string(f" {word}(")
            printer.print_list(values, printer.print_operand)
            if values:
                printer.print_string(" : ")
                printer.print_list(values.types, printer.print_attribute)
            printer.print_string(")")
        if self.attributes:
            printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body)
        if self.res:
            printer.print_string(" -> ")
            printer.print_list(self.res.types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> GroupOp:
        parser.parse_keyword("ins")
        ins = _parse_typed_operands(parser)
        outs = _parse_typed_operands(parser) if parser.parse_optional_keyword("outs") else []
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region()
        types: list[Attribute] = []
        if parser.parse_optional_punctuation("->") is not None:
            types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        group = cls(ins, outs, types, body)
        if attributes is not None:
            group.attributes |= attributes.data
        return group


def _parse_typed_operands(parser: Parser) -> list[SSAValue]:
    parser.parse_punctuation("(")
    if parser.parse_optional_punctuation(")") is not None:
        return []
    unresolved = parser.parse_comma_separated_list(
        parser.Delimiter.NONE, parser.parse_unresolved_operand
    )
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return list(parser.resolve_operands(unresolved, types, parser.pos))


def _corresponds(inner: Attribute, outer: Attribute) -> bool:
    """Tensor inside, and outside the same tensor, a memref of its shape, or its plain scalar."""
    if inner == outer:
        return True
    element = ELEMENT_TYPES[dtype_of(inner).name]
    static = tuple(s if isinstance(s, int) else DYNAMIC_INDEX for s in shape_of(inner))
    if isa(outer, MemRefType[Attribute]):
        return outer.get_shape() == static and outer.get_element_type() == buffer_element_type(
            element
        )
    return not static and outer == element


TSSA = Dialect(
    "tssa",
    [
        ConstantOp,
        SizeOp,
        *ELEMENTWISE_OPS.values(),
        BroadcastOp,
        ReshapeOp,
        TransposeOp,
        ExtractOp,
        InsertOp,
        CheckBoundsOp,
        *_FOLDS.values(),
        MatmulOp,
        GroupOp,
        YieldOp,
    ],
    [DimsAttr, GuardAttr],
)
