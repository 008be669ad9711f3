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

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    Float32Type,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    VectorType,
    f32,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.type import get_element_type_or_self

from jitdialects.bytecode.elementary import ElementaryFunction, elementary_functions
from jitdialects.dialects.upstream import CmpfOp, SelectOp

Values = Sequence[SSAValue]
Constant = DenseIntOrFPElementsAttr[Any] | FloatAttr[Any] | IntegerAttr[Any]


def with_element(type: Attribute, element: Attribute) -> Attribute:
    """`element`, or a vector of it with the shape of the vector `type`."""
    return VectorType(element, type.shape) if isinstance(type, VectorType) else element


def _to_bits(values: Values) -> Operation:
    return arith.BitcastOp(values[0], with_element(values[0].type, i32))


def _from_bits(values: Values) -> Operation:
    return arith.BitcastOp(values[0], with_element(values[0].type, f32))


_STEPS: Mapping[str, Callable[[Values], Operation]] = {
    "fma": lambda v: math.FmaOp(v[0], v[1], v[2]),
    "add": lambda v: arith.AddfOp(v[0], v[1]),
    "sub": lambda v: arith.SubfOp(v[0], v[1]),
    "mul": lambda v: arith.MulfOp(v[0], v[1]),
    "div": lambda v: arith.DivfOp(v[0], v[1]),
    "abs": lambda v: math.AbsFOp(v[0]),
    "copysign": lambda v: math.CopySignOp(v[0], v[1]),
    "less": lambda v: CmpfOp(v[0], v[1], "olt"),
    "greater": lambda v: CmpfOp(v[0], v[1], "ogt"),
    "select": lambda v: SelectOp(v[0], v[1], v[2]),
    "to_bits": _to_bits,
    "from_bits": _from_bits,
    "add_int": lambda v: arith.AddiOp(v[0], v[1]),
    "sub_int": lambda v: arith.SubiOp(v[0], v[1]),
    "shift_left": lambda v: arith.ShLIOp(v[0], v[1]),
    "shift_right": lambda v: arith.ShRSIOp(v[0], v[1]),
}
"""The operation for each kind of step of the specification, rounded once each."""


class _Constants:
    """Constants of one function, each made once, at its start."""

    def __init__(self, entry: Block) -> None:
        self._entry = entry
        self._known: dict[tuple[Attribute, float | int], SSAValue] = {}

    def __call__(self, type: Attribute, number: float) -> SSAValue:
        known = self._known.get((type, number))
        if known is None:
            op = arith.ConstantOp(_attribute(type, number))
            first = self._entry.first_op
            assert first is not None
            self._entry.insert_op_before(op, first)
            known = self._known[type, number] = op.result
        return known


def _attribute(type: Attribute, number: float) -> Constant:
    if isinstance(type, VectorType):
        return DenseIntOrFPElementsAttr.from_list(cast(Any, type), [number])
    if isinstance(number, float):
        return FloatAttr(number, f32)
    return IntegerAttr(number, i32)


def expand(op: Operation, function: ElementaryFunction, constants: _Constants) -> None:
    """Replace `op` by the steps of `function`."""
    argument, block = op.operands[0], op.parent
    assert block is not None
    _check_type(op)
    ints = with_element(argument.type, i32)
    values: dict[str, SSAValue] = {"x": argument}

    def value(name: str) -> SSAValue:
        if name not in values:
            number = function.floats.get(name)
            if number is not None:
                values[name] = constants(argument.type, number)
            else:
                values[name] = constants(ints, function.ints[name])
        return values[name]

    for step in function.steps:
        new = _STEPS[step.op]([value(name) for name in step.operands])
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
