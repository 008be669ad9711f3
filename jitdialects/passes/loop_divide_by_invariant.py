"""`loop-divide-by-invariant`: divisions by what a loop does not change become products with its reciprocal, with equal bits.

                                            %y = 1 / %s where %s is in a safe range, NaN elsewhere; %ny = -%y
    scf.for %i = %lb to %ub step %c {       scf.for %i = %lb to %ub step %c {
      %x = vector.load %a[%i]                 %x = vector.load %a[%i]
      %q = arith.divf %x, %s        ->        %q = scf.if (some lane of %x is tiny, not 0) { arith.divf %x, %s } else {
      vector.store %q, %b[%i]                   %q0 = arith.mulf %x, %y
    }                                           %r = math.fma %q0, %s, -%x              what %q0 is too large, times %s
                                                %q1 = math.fma %r, %ny, %q0
                                                scf.if (some lane of %q1 is NaN) { arith.divf %x, %s } else { %q1 } }
                                              vector.store %q, %b[%i] }

Where nothing leaves the range of normal numbers, %r is exact where it matters and %q1 is the correctly rounded quotient for
every x and s, given that y is the correctly rounded reciprocal: Brisebarre, Muller and Raina, Accelerating Correctly
Rounded Floating-Point Division When the Divisor Is Known in Advance, IEEE Transactions on Computers 53(8), 2004. The range,
for float32 (float64 has the same with its own exponents):

- s in [2**-126, 2**62], so that y is a normal number. For any other s, y is NaN, and so is every q1.
- |x| >= 2**-63, else it is tiny. Then |x / s| > 2**-126: q0 and q1 are normal; and the bits of q0 * s - x are multiples of
  2**(-63 - 2 - 2 * 24), hence r is normal, too, or 0: nothing is lost, and no core takes a hundred cycles for a subnormal.
- q0 overflows, or x is infinite: r is infinite or NaN of that sign, and q1 = q0 - r * y is NaN. q1 alone overflows: so does x / s.
- x = 0: r = +0, as s > 0, and q1 = q0 + r * -y has the sign of q0, which is that of x / s.

Needs correctly rounded `math.fma`, no FMA instruction. Takes vectors of f32 and f64 whose lanes are whole bytes of a
mask. Never touches an integer division, a divisor that the loop computes, or a loop over what whole vectors leave over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import frexp, nan
from typing import TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects import arith, math, scf, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FixedBitwidthType,
    FloatAttr,
    IntegerType,
    ModuleOp,
    VectorType,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.type import get_element_type_or_self

from jitdialects.analysis.bounds import constant_trip_count
from jitdialects.analysis.machine import CORES, LEVELS, STEPS
from jitdialects.analysis.memory import access_of
from jitdialects.dialects.interfaces import is_elementwise
from jitdialects.dialects.interned import integer_attr, splat_attr, vector_type
from jitdialects.dialects.new_operation import new_operation
from jitdialects.dialects.upstream import CmpfOp, CmpiOp, SelectOp
from jitdialects.passes.index_math import before
from jitdialects.passes.loop_rewrite import copy_op, defined_outside, loops_innermost_first

_OR = vector.CombiningKindAttr(vector.CombiningKindFlag.OR)


@dataclass(frozen=True)
class Format:
    """Of a number: its integer, bits of which one is set unless it is tiny, all but its sign, and the safe divisors."""

    integer: IntegerType
    exponent: int
    magnitude: int
    smallest: float
    largest: float


FORMATS: dict[Attribute, Format] = {
    f32: Format(i32, 0x6000_0000, 2**31 - 1, 2.0**-126, 2.0**62),
    f64: Format(i64, 0x6000_0000_0000_0000, 2**63 - 1, 2.0**-1022, 2.0**510),
}


def as_vector(type: Attribute) -> VectorType[Attribute] | None:
    """`type` if it is a vector."""
    return cast("VectorType[Attribute]", type) if isinstance(type, VectorType) else None


# ---- legality: each of these is one reason to leave a division alone


def is_of_vectors(op: Operation) -> bool:
    """A quotient of vectors of one dimension, whose comparisons are whole bytes of mask."""
    type = as_vector(op.results[0].type)
    if type is None or type.element_type not in FORMATS:
        return False
    return len(type.get_shape()) == 1 and type.get_shape()[0] % 8 == 0


def has_invariant_divisor(op: Operation, loop: scf.ForOp) -> bool:
    """The divisor is there before the loop starts."""
    return defined_outside(op.operands[1], loop)


def has_varying_dividend(op: Operation, loop: scf.ForOp) -> bool:
    """Else the division itself could move out of the loop."""
    return not defined_outside(op.operands[0], loop)


# ---- profitability

ENOUGH = 4
"""Iterations that pay for a reciprocal in front of the loop."""
MULTIPLY_ADDS = 3
FUNCTION = 30
"""Steps of a `loop.elementary`, about."""


def may_run_often(loop: scf.ForOp) -> bool:
    """It is not known to be short, nor what is left over by whole vectors."""
    trips = constant_trip_count(loop)
    accesses = map(access_of, loop.body.block.ops)
    return (trips is None or trips >= ENOUGH) and not any(a and a.is_masked for a in accesses)


def may_be_safe(op: Operation) -> bool:
    """The divisor is no constant for which the quotients would be NaN, or whose reciprocal is exact."""
    owner = op.operands[1].owner
    value = owner.properties.get("value") if isinstance(owner, Operation) else None
    if not isinstance(value, DenseIntOrFPElementsAttr | FloatAttr):
        return True
    numbers = [value.value.data] if isinstance(value, FloatAttr) else value.get_values()
    form = FORMATS[get_element_type_or_self(op.results[0].type)]
    return all(form.smallest <= n <= form.largest and frexp(n)[0] != 0.5 for n in numbers)


def registers(op: Operation, features: str) -> float:
    """How many a vector takes; an operation on a number is done beside those on vectors."""
    type = as_vector(op.results[0].type)
    if type is None:
        return 0.0
    bits = type.element_type.bitwidth if isinstance(type.element_type, FixedBitwidthType) else 64
    return max(1.0, type.get_shape()[-1] * bits / (LEVELS[features].lanes * 32))


def is_faster(loop: scf.ForOp, found: Sequence[Operation], features: str) -> bool:
    """The divider is what the loop waits for, and takes longer than the arithmetic that there would be instead."""
    core = CORES[features]
    if not LEVELS[features].fma:
        return False  # each multiply-add is a call
    divider = before = after = 0.0
    for op in loop.body.block.ops:
        if is_elementwise(op):
            short = op.name.partition(".")[2]
            steps = STEPS.get(short, FUNCTION if short == "elementary" else 1)
            steps *= registers(op, features)
            before += steps
            after += steps
    for op in found:
        width = FORMATS[get_element_type_or_self(op.results[0].type)].integer.bitwidth // 8
        divider += core.divide[width] * registers(op, features)
        after += (MULTIPLY_ADDS + core.test - 1) * registers(op, features)
    return max(divider, before / core.issue) > after / core.issue


# ---- the rewrite

Put: TypeAlias = Callable[[Operation], None]
Key: TypeAlias = tuple[Attribute, str]


@cache
def _predicate(kind: type[CmpfOp | CmpiOp], how: str) -> Mapping[str, Attribute]:
    return {"predicate": integer_attr(kind.PREDICATES.index(how), i64)}


class Vectors:
    """Makes operations on vectors like `value` through `put`, and constants through `outside`, each once."""

    def __init__(self, value: SSAValue, put: Put, outside: Put, known: dict[Key, SSAValue]) -> None:
        type = cast("VectorType[Attribute]", value.type)
        self.put, self.outside, self.known = put, outside, known
        self.form = FORMATS[type.element_type]
        self.floats = type
        self.integers = vector_type(self.form.integer, *type.get_shape())
        self.truths = vector_type(i1, *type.get_shape())

    def make(self, kind: type[Operation], type: Attribute, *operands: SSAValue) -> SSAValue:
        """The result of a new operation."""
        op = new_operation(kind, operands, (type,))
        self.put(op)
        return op.results[0]

    def ask(self, kind: type[CmpfOp | CmpiOp], how: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """A comparison."""
        op = new_operation(kind, (a, b), (self.truths,), _predicate(kind, how))
        self.put(op)
        return op.results[0]

    def anywhere(self, lanes: SSAValue) -> SSAValue:
        """Some lane is true."""
        op = new_operation(vector.ReductionOp, (lanes,), (i1,), {"kind": _OR})
        self.put(op)
        return op.results[0]

    def divide(self, block: Block, op: Operation) -> SSAValue:
        """A copy of the quotient `op` at the end of `block`."""
        copy = copy_op(op, {})
        block.add_op(copy)
        return copy.results[0]

    def number(self, number: float) -> SSAValue:
        """A float or an integer in all lanes."""
        type = self.floats if isinstance(number, float) else self.integers
        key = (type, repr(number))
        if key not in self.known:
            value = {"value": splat_attr(type, number)}
            op = new_operation(arith.ConstantOp, (), (type,), value)
            self.outside(op)
            self.known[key] = op.results[0]
        return self.known[key]

    def not_a_number(self) -> SSAValue:
        """NaN in all lanes: of a scalar, since in text only scalars carry it."""
        value = {"value": FloatAttr(nan, cast(AnyFloat, self.floats.element_type))}
        one = new_operation(arith.ConstantOp, (), (self.floats.element_type,), value)
        self.outside(one)
        return self.make(vector.BroadcastOp, self.floats, one.results[0])


def reciprocal(s: SSAValue, v: Vectors) -> tuple[SSAValue, SSAValue]:
    """1 / s, or NaN where that is not safe, and the negative of it."""
    low = v.ask(CmpfOp, "oge", s, v.number(v.form.smallest))
    high = v.ask(CmpfOp, "ole", s, v.number(v.form.largest))
    safe = v.make(arith.AndIOp, v.truths, low, high)
    exact = v.make(arith.DivfOp, v.floats, v.number(1.0), s)
    y = v.make(SelectOp, v.floats, safe, exact, v.not_a_number())
    return y, v.make(arith.NegfOp, v.floats, y)


def is_tiny(x: SSAValue, v: Vectors) -> SSAValue:
    """Some lane is tiny and not 0."""
    bits = v.make(arith.BitcastOp, v.integers, x)
    large = v.make(arith.AndIOp, v.integers, bits, v.number(v.form.exponent))
    some = v.make(arith.AndIOp, v.integers, bits, v.number(v.form.magnitude))
    is_small = v.ask(CmpiOp, "eq", large, v.number(0))
    is_some = v.ask(CmpiOp, "ne", some, v.number(0))
    return v.anywhere(v.make(arith.AndIOp, v.truths, is_small, is_some))


def product(x: SSAValue, s: SSAValue, y: SSAValue, negative: SSAValue, v: Vectors) -> SSAValue:
    """x / s where no lane of x is tiny, NaN where that is not known."""
    estimate = v.make(arith.MulfOp, v.floats, x, y)
    excess = v.make(math.FmaOp, v.floats, estimate, s, v.make(arith.NegfOp, v.floats, x))
    return v.make(math.FmaOp, v.floats, excess, negative, estimate)


def replace(op: Operation, y: SSAValue, negative: SSAValue, v: Vectors) -> None:
    """Put the product in the place of the quotient `op`, which is still there for vectors in doubt."""
    x, s = op.operands
    around, divided, multiplied = v.put, Block(), Block()
    tiny = is_tiny(x, v)
    v.put = multiplied.add_op
    quotient = product(x, s, y, negative, v)
    unknown = v.anywhere(v.ask(CmpfOp, "uno", quotient, quotient))
    again = Block()
    again.add_op(scf.YieldOp(v.divide(again, op)))
    inner = scf.IfOp(unknown, (v.floats,), Region(again), Region(Block((scf.YieldOp(quotient),))))
    multiplied.add_ops((inner, scf.YieldOp(inner.results[0])))
    divided.add_op(scf.YieldOp(v.divide(divided, op)))
    outer = scf.IfOp(tiny, (v.floats,), Region(divided), Region(multiplied))
    around(outer)
    op.results[0].replace_all_uses_with(outer.results[0])
    op.detach()
    op.erase()


def multiply(loop: scf.ForOp, divisions: Sequence[Operation]) -> None:
    """Replace `divisions` of `loop`; those by the same share the reciprocal."""
    outside, known = before(loop), dict[Key, SSAValue]()
    reciprocals: dict[SSAValue, tuple[SSAValue, SSAValue]] = {}
    for op in divisions:
        s = op.operands[1]
        if s not in reciprocals:
            reciprocals[s] = reciprocal(s, Vectors(s, outside, outside, known))
        replace(op, *reciprocals[s], Vectors(s, before(op), outside, known))


@dataclass(frozen=True)
class LoopDivideByInvariantPass(ModulePass):
    """Multiply by reciprocals of what loops do not change; see the module."""

    name = "loop-divide-by-invariant"

    features: str = "x86-64-v3"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.features not in CORES:
            raise PassFailedException(
                f"{self.name}: unknown features '{self.features}'; known are {', '.join(CORES)}"
            )
        for loop in loops_innermost_first(op):
            found = [
                inner
                for inner in loop.body.block.ops
                if inner.name == "arith.divf"
                and is_of_vectors(inner)
                and has_invariant_divisor(inner, loop)
                and has_varying_dividend(inner, loop)
                and may_be_safe(inner)
            ]
            if found and may_run_often(loop) and is_faster(loop, found, self.features):
                multiply(loop, found)
