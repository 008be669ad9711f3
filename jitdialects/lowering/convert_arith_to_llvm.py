"""`convert-arith-to-llvm`: `arith` on scalars and one-dimensional vectors, as MLIR's pass of that name.

    %0 = arith.addf %a, %b : vector<8xf32>      ->  %0 = llvm.fadd %a, %b : vector<8xf32>
    %1 = arith.cmpf olt, %a, %b : vector<8xf32> ->  %1 = llvm.fcmp "olt" %a, %b : vector<8xf32>
    %2 = arith.index_cast %i : index to i32     ->  %2 = llvm.trunc %i' : i64 to i32

`index` is i64. Fast-math and overflow flags are permissions, and are not passed on: an operation rounds
as it says. Needs nothing; leaves operations that MLIR expands elsewhere (`arith.floordivsi`, ...).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.type import get_element_type_or_self

from jitdialects.dialects import upstream_llvm
from jitdialects.dialects.upstream_types import boolean_like
from jitdialects.lowering.llvm_conversion import (
    Conversion,
    Converter,
    Descriptor,
    Size,
    Table,
    as_memref,
    convert_module,
    llvm_type,
)

STRICT: Mapping[str, Attribute] = {"fastmathFlags": llvm.FastMathAttr(None)}
_WRAPS: Mapping[str, Attribute] = {"overflowFlags": IntegerAttr(0, i32)}
_TRUNCATES: Mapping[str, Attribute] = {"overflowFlags": llvm.OverflowAttr(None)}
_NONE: Mapping[str, Attribute] = {}


def one_to_one(kind: type[Operation], properties: Mapping[str, Attribute] = _NONE) -> Converter:
    """A converter to an operation with the same operands and the same result."""

    def convert(op: Operation, c: Conversion) -> None:
        operands = [c.value(operand) for operand in op.operands]
        c.replace(op, c.emit(kind, operands, llvm_type(op.results[0].type), properties))

    return convert


def dense(type: Attribute, values: Sequence[Any]) -> Attribute:
    """A dense constant of the vector type `type`; one value stands for all lanes."""
    return DenseIntOrFPElementsAttr.from_list(cast(Any, type), values)


def _constant(op: Operation, c: Conversion) -> None:
    value: Attribute = op.properties["value"]
    type = op.results[0].type
    if isinstance(type, IndexType):
        assert isinstance(value, IntegerAttr)
        c.replace(op, c.constant(value.value.data))
        return
    wanted = llvm_type(type)
    if wanted != type:
        assert isinstance(value, DenseIntOrFPElementsAttr)
        value = dense(wanted, value.get_values())
    c.replace(op, c.hoisted(llvm.ConstantOp, (), wanted, {"value": value}, ("attr", value, wanted)))


def _compare_integers(op: Operation, c: Conversion) -> None:
    operands = [c.value(operand) for operand in op.operands]
    predicate = {"predicate": op.properties["predicate"]}
    c.replace(op, c.emit(llvm.ICmpOp, operands, boolean_like(operands[0].type), predicate))


def _compare_floats(op: Operation, c: Conversion) -> None:
    lhs, rhs = map(c.value, op.operands)
    properties = {"predicate": op.properties["predicate"], **STRICT}
    result = boolean_like(lhs.type)
    c.replace(op, c.emit(upstream_llvm.FCmpOp, (lhs, rhs), result, properties))


def _select(op: Operation, c: Conversion) -> None:
    """Of two memrefs, each part of the descriptor that differs."""
    if as_memref(op.results[0].type) is None:
        one_to_one(upstream_llvm.SelectOp, STRICT)(op, c)
        return
    condition, *choices = op.operands
    left, right = map(c.descriptor, choices)

    def pointer(a: SSAValue, b: SSAValue) -> SSAValue:
        operands = (c.value(condition), a, b)
        return a if a is b else c.emit(upstream_llvm.SelectOp, operands, a.type, STRICT)

    def part(a: Size, b: Size) -> Size:
        return a if a == b else pointer(c.sized(a), c.sized(b))

    def parts(a: Sequence[Size], b: Sequence[Size]) -> tuple[Size, ...]:
        return tuple(map(part, a, b))

    c.replace_memref(
        op,
        Descriptor(
            pointer(left.allocated, right.allocated),
            pointer(left.aligned, right.aligned),
            part(left.offset, right.offset),
            parts(left.sizes, right.sizes),
            parts(left.strides, right.strides),
        ),
    )


def _bits(type: Attribute) -> int:
    """Bits of the element of a scalar or vector; 64 for index."""
    element = get_element_type_or_self(type)
    if isinstance(element, IndexType):
        return 64
    if not isinstance(element, IntegerType | AnyFloat):
        raise PassFailedException(f"convert-arith-to-llvm does not know the width of {element}")
    return element.bitwidth


def _index_cast(widen: type[Operation]) -> Converter:
    def convert(op: Operation, c: Conversion) -> None:
        operand, result = c.value(op.operands[0]), llvm_type(op.results[0].type)
        source, target = _bits(operand.type), _bits(result)
        if source == target:
            c.replace(op, operand)
        elif source < target:
            c.replace(op, c.emit(widen, (operand,), result))
        else:
            c.replace(op, c.emit(llvm.TruncOp, (operand,), result, _TRUNCATES))

    return convert


TABLE: Table = {
    "arith.constant": _constant,
    "arith.cmpi": _compare_integers,
    "arith.cmpf": _compare_floats,
    "arith.select": _select,
    "arith.index_cast": _index_cast(llvm.SExtOp),
    "arith.index_castui": _index_cast(llvm.ZExtOp),
    "arith.addi": one_to_one(llvm.AddOp, _WRAPS),
    "arith.subi": one_to_one(llvm.SubOp, _WRAPS),
    "arith.muli": one_to_one(llvm.MulOp, _WRAPS),
    "arith.divsi": one_to_one(llvm.SDivOp),
    "arith.divui": one_to_one(llvm.UDivOp),
    "arith.remsi": one_to_one(llvm.SRemOp),
    "arith.remui": one_to_one(llvm.URemOp),
    "arith.andi": one_to_one(llvm.AndOp),
    "arith.ori": one_to_one(llvm.OrOp),
    "arith.xori": one_to_one(llvm.XOrOp),
    "arith.shli": one_to_one(llvm.ShlOp, _WRAPS),
    "arith.shrsi": one_to_one(llvm.AShrOp),
    "arith.shrui": one_to_one(llvm.LShrOp),
    "arith.maxsi": one_to_one(upstream_llvm.SMaxOp),
    "arith.minsi": one_to_one(upstream_llvm.SMinOp),
    "arith.maxui": one_to_one(upstream_llvm.UMaxOp),
    "arith.minui": one_to_one(upstream_llvm.UMinOp),
    "arith.extsi": one_to_one(llvm.SExtOp),
    "arith.extui": one_to_one(llvm.ZExtOp),
    "arith.trunci": one_to_one(llvm.TruncOp, _TRUNCATES),
    "arith.addf": one_to_one(llvm.FAddOp, STRICT),
    "arith.subf": one_to_one(llvm.FSubOp, STRICT),
    "arith.mulf": one_to_one(llvm.FMulOp, STRICT),
    "arith.divf": one_to_one(llvm.FDivOp, STRICT),
    "arith.negf": one_to_one(llvm.FNegOp, STRICT),
    "arith.maximumf": one_to_one(upstream_llvm.MaximumOp, STRICT),
    "arith.minimumf": one_to_one(upstream_llvm.MinimumOp, STRICT),
    "arith.maxnumf": one_to_one(llvm.VectorFMaxOp, STRICT),
    "arith.minnumf": one_to_one(llvm.VectorFMinOp, STRICT),
    "arith.extf": one_to_one(llvm.FPExtOp),
    "arith.truncf": one_to_one(llvm.FPTruncOp),
    "arith.sitofp": one_to_one(llvm.SIToFPOp),
    "arith.uitofp": one_to_one(upstream_llvm.UIToFPOp),
    "arith.fptosi": one_to_one(upstream_llvm.FPToSIOp),
    "arith.fptoui": one_to_one(upstream_llvm.FPToUIOp),
    "arith.bitcast": one_to_one(llvm.BitcastOp),
}


class ConvertArithToLlvmPass(ModulePass):
    """`arith` to `llvm`; see the module."""

    name = "convert-arith-to-llvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        convert_module(op, TABLE)
