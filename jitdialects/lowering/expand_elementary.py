"""`expand-elementary`: `math.exp` and `math.tanh` become their fixed sequences of exactly rounded steps.

    %y = math.exp %x : vector<8xf32>
    ->
    %below = arith.cmpf olt, %x, %smallest : vector<8xf32>
    %x1 = arith.select %below, %smallest, %x : vector<8xi1>, vector<8xf32>
    ...
    %y = arith.mulf %scaled, %scale2 : vector<8xf32>

The steps and constants are the specification in bytecode/elementary.json; every lane of every width computes
the same bits. Takes f32, scalar or vector. Nothing is simplified here, and no later pass may: the sequence
is the meaning of the function. Constants go to the start of the function.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    Float32Type,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    VectorType,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.type import get_element_type_or_self

from jitdialects.bytecode.elementary import ElementaryFunction, elementary_functions
from jitdialects.dialects.interned import integer_attr, splat_attr, vector_type
from jitdialects.dialects.upstream import CmpfOp, SelectOp

Form = tuple[type[Operation], Attribute, Mapping[str, Attribute]]

_STRICT: Mapping[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr("none")}
_WRAPS: Mapping[str, Attribute] = {"overflowFlags": arith.IntegerOverflowAttr("none")}
_NONE: Mapping[str, Attribute] = {}


def _comparison(predicate: str) -> Form:
    number = CmpfOp.PREDICATES.index(predicate)
    return CmpfOp, i1, {"predicate": IntegerAttr(number, i64), **_STRICT}


_STEPS: Mapping[str, Form] = {
    "fma": (math.FmaOp, f32, _STRICT),
    "add": (arith.AddfOp, f32, _STRICT),
    "sub": (arith.SubfOp, f32, _STRICT),
    "mul": (arith.MulfOp, f32, _STRICT),
    "div": (arith.DivfOp, f32, _STRICT),
    "abs": (math.AbsFOp, f32, _STRICT),
    "copysign": (math.CopySignOp, f32, _STRICT),
    "less": _comparison("olt"),
    "greater": _comparison("ogt"),
    "select": (SelectOp, f32, _NONE),
    "to_bits": (arith.BitcastOp, i32, _NONE),
    "from_bits": (arith.BitcastOp, f32, _NONE),
    "add_int": (arith.AddiOp, i32, _WRAPS),
    "sub_int": (arith.SubiOp, i32, _WRAPS),
    "shift_left": (arith.ShLIOp, i32, _WRAPS),
    "shift_right": (arith.ShRSIOp, i32, _NONE),
}
"""Operation, element of the result and properties of each kind of step of the specification."""


def with_element(type: Attribute, element: Attribute) -> Attribute:
    """`element`, or a vector of it with the shape of the vector `type`."""
    if not isinstance(type, VectorType):
        return element
    lanes = type.get_shape()
    return vector_type(element, *lanes) if len(lanes) == 1 else VectorType(element, lanes)


class _Constants:
    """Constants of one function, each made once, at its start."""

    def __init__(self, entry: Block) -> None:
        self._entry = entry
        self._known: dict[tuple[Attribute, str], SSAValue] = {}

    def __call__(self, type: Attribute, number: float) -> SSAValue:
        key = (type, repr(number))  # 0.0 and -0.0 are equal as numbers
        known = self._known.get(key)
        if known is None:
            op = arith.ConstantOp.create(
                result_types=(type,), properties={"value": _attribute(type, number)}
            )
            first = self._entry.first_op
            assert first is not None
            self._entry.insert_op_before(op, first)
            known = self._known[key] = op.results[0]
        return known


def _attribute(type: Attribute, number: float) -> Attribute:
    if isinstance(type, VectorType):
        return splat_attr(cast("VectorType[Attribute]", type), number)
    if isinstance(number, float):
        return FloatAttr(number, f32)
    return integer_attr(number, i32)


def expand(op: Operation, function: ElementaryFunction, constants: _Constants) -> None:
    """Replace `op` by the steps of `function`."""
    argument, block = op.operands[0], op.parent
    assert block is not None
    _check_type(op)
    elements: tuple[Attribute, ...] = (f32, i32, i1)
    types: dict[Attribute, Attribute] = {e: with_element(argument.type, e) for e in elements}
    values: dict[str, SSAValue] = {"x": argument}

    def value(name: str) -> SSAValue:
        if name not in values:
            number = function.floats.get(name)
            if number is not None:
                values[name] = constants(types[f32], number)
            else:
                values[name] = constants(types[i32], function.ints[name])
        return values[name]

    for step in function.steps:
        kind, element, properties = _STEPS[step.op]
        new = kind.create(
            operands=[value(name) for name in step.operands],
            result_types=(types[element],),
            properties=properties,
            location=op.location,
        )
        block.insert_op_before(new, op)
        values[step.name] = new.results[0]
    op.results[0].replace_all_uses_with(values[function.steps[-1].name])
    block.erase_op(op)


def _check_type(op: Operation) -> None:
    type = op.operands[0].type
    if not isinstance(get_element_type_or_self(type), Float32Type):
        raise PassFailedException(f"expand-elementary knows {op.name} of f32 only, not of {type}")


class ExpandElementaryPass(ModulePass):
    """`math.exp` and `math.tanh` to their steps; see the module."""

    name = "expand-elementary"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = {f"math.{name}": function for name, function in elementary_functions().items()}
        for function in op.ops:
            found = [inner for inner in function.walk() if inner.name in known]
            if not found:
                continue
            entry = function.regions[0].first_block
            assert entry is not None
            constants = _Constants(entry)
            for inner in found:
                expand(inner, known[inner.name], constants)
