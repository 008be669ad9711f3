"""`expand-elementary`: `math.exp`, `rsqrt`, `tanh`, `log`, `erf` and `loop.elementary` become fixed sequences of exactly rounded
steps.

    %y = math.exp %x : vector<8xf32>
    ->
    %below = arith.cmpf olt, %x, %smallest : vector<8xf32>
    %x1 = arith.select %below, %smallest, %x : vector<8xi1>, vector<8xf32>
    ...
    %y = arith.mulf %scaled, %scale2 : vector<8xf32>

The steps and constants are the specification in bytecode/elementary.json; every lane of every width computes
the same bits. Takes f32 and f64, scalar or vector. Nothing is simplified here, and no later pass may: the sequence
is the meaning of the function. Constants go to the start of the function.

    %y = math.exp %x : vector<16xf32>    ->    %y = llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"(%p, %n, ...)

A machine that multiplies by powers of two in one instruction (`features`) does so where the specification says that
its last steps mean that, and the vector is a whole number of registers: one step for six.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, llvm, math, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    VectorType,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.type import get_element_type_or_self

from jitdialects.analysis.machine import LEVELS, Level
from jitdialects.bytecode.elementary import ElementaryFunction, elementary_functions
from jitdialects.dialects.interned import i64_array, integer_attr, splat_attr, vector_type
from jitdialects.dialects.new_operation import new_operation
from jitdialects.dialects.upstream import CmpfOp, SelectOp
from jitdialects.passes.loop_hoist_accumulators import shuffle

FLOAT, INTEGER, BOOL = "float", "integer", "bool"
Form = tuple[type[Operation], str, Mapping[str, Attribute]]
_DTYPES: Mapping[Attribute, tuple[str, Mapping[str, Attribute]]] = {
    f32: ("float32", {FLOAT: f32, INTEGER: i32, BOOL: i1}),
    f64: ("float64", {FLOAT: f64, INTEGER: i64, BOOL: i1}),
}
"""Type of an element -> dtype of the specification, types of its steps."""

_SCALE: Mapping[Attribute, tuple[str, int]] = {
    f32: ("llvm.x86.avx512.mask.scalef.ps.512", 16),
    f64: ("llvm.x86.avx512.mask.scalef.pd.512", 8),
}
"""The intrinsic for a register, and its lanes."""
_CURRENT_ROUNDING = 4
Put = Callable[[Operation], None]

_STRICT: Mapping[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr("none")}
_WRAPS: Mapping[str, Attribute] = {"overflowFlags": arith.IntegerOverflowAttr("none")}
_NONE: Mapping[str, Attribute] = {}


def _comparison(predicate: str) -> Form:
    number = CmpfOp.PREDICATES.index(predicate)
    return CmpfOp, BOOL, {"predicate": IntegerAttr(number, i64), **_STRICT}


_STEPS: Mapping[str, Form] = {
    "fma": (math.FmaOp, FLOAT, _STRICT),
    "add": (arith.AddfOp, FLOAT, _STRICT),
    "sub": (arith.SubfOp, FLOAT, _STRICT),
    "mul": (arith.MulfOp, FLOAT, _STRICT),
    "div": (arith.DivfOp, FLOAT, _STRICT),
    "sqrt": (math.SqrtOp, FLOAT, _STRICT),
    "abs": (math.AbsFOp, FLOAT, _STRICT),
    "copysign": (math.CopySignOp, FLOAT, _STRICT),
    "less": _comparison("olt"),
    "greater": _comparison("ogt"),
    "select": (SelectOp, FLOAT, _NONE),
    "to_bits": (arith.BitcastOp, INTEGER, _NONE),
    "from_bits": (arith.BitcastOp, FLOAT, _NONE),
    "add_int": (arith.AddiOp, INTEGER, _WRAPS),
    "sub_int": (arith.SubiOp, INTEGER, _WRAPS),
    "and_int": (arith.AndIOp, INTEGER, _NONE),
    "or_int": (arith.OrIOp, INTEGER, _NONE),
    "shift_left": (arith.ShLIOp, INTEGER, _WRAPS),
    "shift_right_logical": (arith.ShRUIOp, INTEGER, _NONE),
}
"""Operation, kind of the result and properties of each kind of step of the specification."""


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
            op = new_operation(
                arith.ConstantOp,
                result_types=(type,),
                properties={"value": _attribute(type, number)},
            )
            first = self._entry.first_op
            assert first is not None
            self._entry.insert_op_before(op, first)
            known = self._known[key] = op.results[0]
        return known


def _attribute(type: Attribute, number: float) -> Attribute:
    if isinstance(type, VectorType):
        return splat_attr(cast("VectorType[Attribute]", type), number)
    if isinstance(type, AnyFloat):
        return FloatAttr(number, type)
    return integer_attr(int(number), cast(IntegerType, type))


def is_of_whole_registers(type: Attribute) -> bool:
    """A vector that is cut into registers of 512 bits without rest."""
    if not isinstance(type, VectorType) or type.get_num_dims() != 1:
        return False
    vector = cast("VectorType[Attribute]", type)
    return vector.get_shape()[0] % _SCALE[vector.element_type][1] == 0


def scale(
    p: SSAValue, n: SSAValue, x: SSAValue, smallest: float, constants: _Constants, put: Put
) -> SSAValue:
    """p * 2**n, register by register; 0 where x is below `smallest`, by a mask: no core takes time for numbers that
    are too small there."""
    element = cast("VectorType[Attribute]", p.type).element_type
    lanes = cast("VectorType[Attribute]", p.type).get_shape()[0]
    name, width = _SCALE[element]
    register, word = vector_type(element, width), IntegerType(width)
    least, zero = constants(register, smallest), constants(register, 0.0)
    rounding = constants(i32, _CURRENT_ROUNDING)
    compare, _, how = _comparison("uge")

    def make(
        kind: type[Operation], type: Attribute, *operands: SSAValue, **named: Attribute
    ) -> SSAValue:
        op = new_operation(kind, operands, (type,), named)
        put(op)
        return op.results[0]

    parts = list[SSAValue]()
    for first in range(0, lanes, width):
        a, b, c = (_part(v, first, width, put) for v in (p, n, x))
        kept = make(compare, vector_type(i1, width), c, least, **how)
        bits = make(vector.BitcastOp, vector_type(word, 1), kept)
        mask = make(vector.ExtractOp, word, bits, static_position=i64_array(0))
        call = llvm.CallIntrinsicOp(name, (a, b, zero, mask, rounding), (register,))
        put(call)
        parts.append(call.results[0])
    while len(parts) > 1:
        parts = [_joined(parts[k : k + 2], put) for k in range(0, len(parts), 2)]
    return parts[0]


def _part(vector: SSAValue, first: int, lanes: int, put: Put) -> SSAValue:
    """Neighbouring lanes."""
    type = cast("VectorType[Attribute]", vector.type)
    if type.get_shape()[0] == lanes:
        return vector
    part = vector_type(type.element_type, lanes)
    op = shuffle(vector, vector, part, range(first, first + lanes))
    put(op)
    return op.results[0]


def _joined(parts: Sequence[SSAValue], put: Put) -> SSAValue:
    """One or two vectors as one."""
    if len(parts) == 1:
        return parts[0]
    left, right = parts
    types = [cast("VectorType[Attribute]", part.type) for part in parts]
    lanes = sum(type.get_shape()[0] for type in types)
    op = shuffle(left, right, vector_type(types[0].element_type, lanes), range(lanes))
    put(op)
    return op.results[0]


def expand(op: Operation, constants: _Constants, level: Level) -> None:
    """Replace `op` by the steps of its function."""
    argument, block = op.operands[0], op.parent
    assert block is not None
    function, elements = _function_of(op)
    types = {kind: with_element(argument.type, e) for kind, e in elements.items()}
    values: dict[str, SSAValue] = {"x": argument}

    def value(name: str) -> SSAValue:
        if name not in values:
            number = function.floats.get(name)
            if number is not None:
                values[name] = constants(types[FLOAT], number)
            else:
                values[name] = constants(types[INTEGER], function.ints[name])
        return values[name]

    def put(new: Operation) -> None:
        block.insert_op_before(new, op)

    scaled = function.scaled if level.scale and is_of_whole_registers(argument.type) else None
    for step in function.steps if scaled is None else function.steps_for(scaled[:2]):
        kind, element, properties = _STEPS[step.op]
        new = new_operation(
            kind,
            operands=[value(name) for name in step.operands],
            result_types=(types[element],),
            properties=properties,
            location=op.location,
        )
        put(new)
        values[step.name] = new.results[0]
    if scaled is None:
        result = values[function.steps[-1].name]
    else:
        p, n, smallest = scaled
        least = function.floats[smallest]
        result = scale(values[p], values[n], argument, least, constants, put)
    op.results[0].replace_all_uses_with(result)
    block.erase_op(op)


def _function_of(op: Operation) -> tuple[ElementaryFunction, Mapping[str, Attribute]]:
    """The specification of `op`, and the types of one element in it."""
    type = op.operands[0].type
    known = _DTYPES.get(get_element_type_or_self(type))
    if known is None:
        raise PassFailedException(
            f"expand-elementary knows {op.name} of f32 and f64 only, not of {type}"
        )
    dtype, elements = known
    return elementary_functions(dtype)[_name_of(op)], elements


def _name_of(op: Operation) -> str:
    """The function that `op` is, in the words of the specification."""
    named = op.properties.get("function")
    return named.data if isinstance(named, StringAttr) else op.name.removeprefix("math.")


@dataclass(frozen=True)
class ExpandElementaryPass(ModulePass):
    """Elementary functions of `math` to their steps; see the module. `features`: of the machine that runs them."""

    name = "expand-elementary"

    features: str = "x86-64-v3"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.features not in LEVELS:
            raise PassFailedException(
                f"{self.name}: unknown features '{self.features}'; known are {', '.join(LEVELS)}"
            )
        names = {"loop.elementary", *(f"math.{name}" for name in elementary_functions())}
        for function in op.ops:
            found = [inner for inner in function.walk() if inner.name in names]
            if not found:
                continue
            entry = function.regions[0].first_block
            assert entry is not None
            constants = _Constants(entry)
            for inner in found:
                expand(inner, constants, LEVELS[self.features])
