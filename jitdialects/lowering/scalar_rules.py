"""What each elementwise operator does to one element: one rule per operator.

Adding an operator is one entry of the operator table and one rule here. Types: f32, f64, i32, i64, and i1
for bool. The meaning is the numerics contract's: one rounding per operation, integers wrap at their width, NaN goes through minimum and maximum, -0 < +0, no operation traps and none is undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, IntegerType, StringAttr, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from jitdialects.dialects.loop import ElementaryOp
from jitdialects.dialects.upstream import CmpfOp
from jitdialects.lowering.emitter import STRICT, WRAP, Emitter

Rule = Callable[[Emitter, Sequence[SSAValue], Attribute], SSAValue]
"""(where to emit, operands, result type) -> result."""


def bits_of(integer: Attribute) -> int:
    """The width of an integer type."""
    assert isinstance(integer, IntegerType)
    return integer.bitwidth


def smallest(integer: Attribute) -> int:
    """The smallest number of a signed integer type."""
    return -(1 << bits_of(integer) - 1)


def largest(integer: Attribute) -> int:
    """The largest number of a signed integer type."""
    return (1 << bits_of(integer) - 1) - 1


def is_float(type: Attribute) -> bool:
    """f32 or f64."""
    return isinstance(type, AnyFloat)


def _by_type(
    on_float: type[Operation], on_integer: type[Operation], on_bool: type[Operation] | None = None
) -> Rule:
    """One upstream operation for each kind of element."""
    wraps = on_integer in (arith.AddiOp, arith.SubiOp, arith.MuliOp)

    def rule(at: Emitter, operands: Sequence[SSAValue], result: Attribute) -> SSAValue:
        element = operands[0].type
        if is_float(element):
            return at.emit(on_float, operands, element, STRICT)
        if element == i1 and on_bool is not None:
            return at.emit(on_bool, operands, element)
        return at.emit(on_integer, operands, element, WRAP if wraps else None)

    return rule


def _float_only(kind: type[Operation]) -> Rule:
    return lambda at, operands, result: at.emit(kind, operands, result, STRICT)


def _compare(on_float: int, on_integer: str, on_bool: str) -> Rule:
    """`on_float` is the number of an `arith.cmpf` predicate; False < True."""

    def rule(at: Emitter, operands: Sequence[SSAValue], result: Attribute) -> SSAValue:
        left, right = operands
        if is_float(left.type):
            return _compare_floats(at, on_float, left, right)
        return at.compare(on_bool if left.type == i1 else on_integer, left, right)

    return rule


OEQ, OGT, OGE, OLT, OLE, UNE = 1, 2, 3, 4, 5, 13


def _compare_floats(at: Emitter, predicate: int, left: SSAValue, right: SSAValue) -> SSAValue:
    properties = {"predicate": IntegerAttr(predicate, i64), **STRICT}
    return at.emit(CmpfOp, (left, right), i1, properties)


def _left_shift(at: Emitter, operands: Sequence[SSAValue], result: Attribute) -> SSAValue:
    """0 where the count is negative or past the width; the count is masked, a wide one is undefined."""
    value, count = operands
    bits = bits_of(result)
    inside = at.compare("ult", count, at.constant(result, bits))
    masked = at.emit(arith.AndIOp, (count, at.constant(result, bits - 1)), result)
    shifted = at.emit(arith.ShLIOp, (value, masked), result, WRAP)
    return at.select(inside, shifted, at.constant(result, 0))


def _right_shift(at: Emitter, operands: Sequence[SSAValue], result: Attribute) -> SSAValue:
    """Counts that are negative or past the width shift by all bits but one: what is left is the sign."""
    value, count = operands
    bits = bits_of(result)
    inside = at.compare("ult", count, at.constant(result, bits))
    count = at.select(inside, count, at.constant(result, bits - 1))
    return at.emit(arith.ShRSIOp, (value, count), result)


def _negative(at: Emitter, operands: Sequence[SSAValue], result: Attribute) -> SSAValue:
    (value,) = operands
    if is_float(value.type):
        return at.emit(arith.NegfOp, operands, value.type, STRICT)
    return at.emit(arith.SubiOp, (at.constant(result, 0), value), result, WRAP)


def _abs(at: Emitter, operands: Sequence[SSAValue], result: Attribute) -> SSAValue:
    """max(x, 0 - x) leaves the smallest integer alone, and is defined for it."""
    (value,) = operands
    if is_float(value.type):
        return at.emit(math.AbsFOp, operands, value.type, STRICT)
    if value.type == i1:
        return value
    negated = at.emit(arith.SubiOp, (at.constant(result, 0), value), result, WRAP)
    return at.emit(arith.MaxSIOp, (value, negated), result)


def _logical_not(at: Emitter, operands: Sequence[SSAValue], result: Attribute) -> SSAValue:
    return at.emit(arith.XOrIOp, (operands[0], at.constant(i1, 1)), i1)


def _where(at: Emitter, operands: Sequence[SSAValue], result: Attribute) -> SSAValue:
    return at.select(*operands)


def _cast(at: Emitter, operands: Sequence[SSAValue], result: Attribute) -> SSAValue:
    (value,) = operands
    source = value.type
    if source == result:
        return value
    if result == i1:
        if is_float(source):
            return _compare_floats(at, UNE, value, at.constant(source, 0.0))
        return at.compare("ne", value, at.constant(source, 0))
    if is_float(source):
        if not is_float(result):
            return _float_to_integer(at, value, result)
        wider = result.bitwidth > source.bitwidth  # pyright: ignore
        return at.emit(arith.ExtFOp if wider else arith.TruncFOp, operands, result)
    if is_float(result):
        kind = arith.UIToFPOp if source == i1 else arith.SIToFPOp
        return at.emit(kind, operands, result)
    if source == i1:
        return at.emit(arith.ExtUIOp, operands, result)
    wider = bits_of(result) > bits_of(source)
    return at.emit(arith.ExtSIOp if wider else arith.TruncIOp, operands, result)


def _float_to_integer(at: Emitter, value: SSAValue, result: Attribute) -> SSAValue:
    """Truncation; NaN and what does not fit give the smallest integer. The conversion never sees such a
    value, for which it is undefined."""
    least = smallest(result)
    bound = -float(least)
    above = _compare_floats(at, OGE, value, at.constant(value.type, -bound))
    below = _compare_floats(at, OLT, value, at.constant(value.type, bound))
    fits = at.emit(arith.AndIOp, (above, below), i1)
    safe = at.select(fits, value, at.constant(value.type, 0.0))
    converted = at.emit(arith.FPToSIOp, (safe,), result)
    return at.select(fits, converted, at.constant(result, least))


def _sigmoid(at: Emitter, operands: Sequence[SSAValue], result: Attribute) -> SSAValue:
    """(x < 0 ? e : 1) / (1 + e) with e = e**-|x|: never overflows, and keeps results that are subnormal."""
    (value,) = operands
    one = at.constant(result, 1.0)
    magnitude = at.emit(math.AbsFOp, operands, result, STRICT)
    negated = at.emit(arith.NegfOp, (magnitude,), result, STRICT)
    power = at.emit(math.ExpOp, (negated,), result, STRICT)
    below = _compare_floats(at, OLT, value, at.constant(result, 0.0))
    top = at.select(below, power, one)
    bottom = at.emit(arith.AddfOp, (power, one), result, STRICT)
    return at.emit(arith.DivfOp, (top, bottom), result, STRICT)


def _function(name: str) -> Rule:
    """A function that `math` does not have."""
    function: Mapping[str, Attribute] = {"function": StringAttr(name)}
    return lambda at, operands, result: at.emit(ElementaryOp, operands, result, function)


RULES: Mapping[str, Rule] = {
    "add": _by_type(arith.AddfOp, arith.AddiOp, arith.OrIOp),
    "subtract": _by_type(arith.SubfOp, arith.SubiOp),
    "multiply": _by_type(arith.MulfOp, arith.MuliOp, arith.AndIOp),
    "divide": _float_only(arith.DivfOp),
    "left_shift": _left_shift,
    "right_shift": _right_shift,
    "negative": _negative,
    "abs": _abs,
    "minimum": _by_type(arith.MinimumfOp, arith.MinSIOp, arith.AndIOp),
    "maximum": _by_type(arith.MaximumfOp, arith.MaxSIOp, arith.OrIOp),
    "sqrt": _float_only(math.SqrtOp),
    "exp": _float_only(math.ExpOp),
    "tanh": _float_only(math.TanhOp),
    "log": _float_only(math.LogOp),
    "erf": _float_only(math.ErfOp),
    "rsqrt": _float_only(math.RsqrtOp),
    "sigmoid": _sigmoid,
    **{name: _function(name) for name in ("erfc", "softplus", "silu", "gelu", "gelu_tanh")},
    "equal": _compare(OEQ, "eq", "eq"),
    "not_equal": _compare(UNE, "ne", "ne"),
    "less": _compare(OLT, "slt", "ult"),
    "less_equal": _compare(OLE, "sle", "ule"),
    "greater": _compare(OGT, "sgt", "ugt"),
    "greater_equal": _compare(OGE, "sge", "uge"),
    "logical_and": _by_type(arith.AndIOp, arith.AndIOp, arith.AndIOp),
    "logical_or": _by_type(arith.OrIOp, arith.OrIOp, arith.OrIOp),
    "logical_not": _logical_not,
    "where": _where,
    "cast": _cast,
}
"""Operator name -> its rule."""


def emit_scalar(
    at: Emitter, op: Operation, operands: Sequence[SSAValue], result: Attribute
) -> SSAValue:
    """Compute one element of elementwise operation `op` from one element of each operand."""
    rule = RULES.get(op.name.removeprefix("tssa."))
    if rule is None:
        raise PassFailedException(
            f"{op.name} has no scalar rule; add one to jitdialects.lowering.scalar_rules"
        )
    return rule(at, operands, result)
