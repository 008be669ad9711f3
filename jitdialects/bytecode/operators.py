"""The operator table: the one place that says which operators exist and what they mean.

The VM, type inference, the `tssa` dialect, `jitdialects.numpy` and the docs are derived from it.
Adding an operator is one entry here, one lowering rule, one tier-0 rule and its tests.

A *dtype rule* maps operand dtypes to the dtypes in which the operands are used and the dtype of the
result. A *shape rule* is written once for concrete and symbolic sizes: it asks a `ShapeFacts` where
two sizes must agree, which the VM answers by comparing numbers and type inference by recording a guard.
Semantics are NumPy 2's (promotion after NEP 50, broadcasting), within `dtypes.SUPPORTED`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from jitdialects.bytecode import dtype_rules, shape_rules
from jitdialects.bytecode.attributes import Attribute, Attributes
from jitdialects.bytecode.dims import Shape
from jitdialects.bytecode.dtype_rules import DTypeRule, Typing
from jitdialects.bytecode.dtypes import DType
from jitdialects.bytecode.shape_rules import ShapeFacts, ShapeRule, Values
from jitdialects.errors import ArgumentError, DTypeError


class Kind(Enum):
    """What a pass needs to know of an operator."""

    ELEMENTWISE = "elementwise"
    """Result element i depends on element i of the broadcast operands only."""
    REDUCTION = "reduction"
    CONTRACTION = "contraction"
    SHAPE = "shape"
    """Moves or renames elements, computes nothing."""


@dataclass(frozen=True)
class Operator:
    """One operator. `arity` counts data operands; `indexed` ones take further rank-0 integers that
    their shape or index attribute refers to as `$k` (k counts all operands from 0)."""

    name: str
    arity: int
    kind: Kind
    dtype_rule: DTypeRule
    shape_rule: ShapeRule
    doc: str
    attributes: tuple[str, ...] = ()
    indexed: bool = False
    commutative: bool = False
    exact: bool = False
    """Exact or correctly rounded, so that NumPy computes the same bits and tier 0 may use it."""

    def check_operand_count(self, count: int) -> None:
        """Refuse a wrong number of operands."""
        if count < self.arity or (count > self.arity and not self.indexed):
            raise ArgumentError(f"{self.name} takes {self.arity} operand(s), got {count}")

    def infer_dtypes(self, operands: Sequence[DType], attributes: Attributes) -> Typing:
        """Dtypes of the data operands after promotion, and of the result (`DTypeError`)."""
        self.check_operand_count(len(operands))
        for extra in operands[self.arity :]:
            if not extra.is_integer:
                raise DTypeError(f"{self.name}: an index or size must be an integer, got {extra}")
        return self.dtype_rule(self.name, operands[: self.arity], attributes)

    def infer_shape(
        self, shapes: Sequence[Shape], attributes: Attributes, values: Values, facts: ShapeFacts
    ) -> Shape:
        """Shape of the result (`ShapeError`, `OutOfBoundsError`)."""
        return self.shape_rule(self.name, shapes, attributes, values, facts)


# ---- the table ---------------------------------------------------------------------------------


def _unary(name: str, rule: DTypeRule, doc: str, *, exact: bool) -> Operator:
    return Operator(name, 1, Kind.ELEMENTWISE, rule, shape_rules.elementwise, doc, exact=exact)


def _binary(
    name: str, rule: DTypeRule, doc: str, *, exact: bool = True, commutative: bool = False
) -> Operator:
    return Operator(
        name,
        2,
        Kind.ELEMENTWISE,
        rule,
        shape_rules.elementwise,
        doc,
        commutative=commutative,
        exact=exact,
    )


def _reduction(name: str, rule: DTypeRule, doc: str, *more: str) -> Operator:
    attributes = ("axis", "keepdims", *more)
    return Operator(name, 1, Kind.REDUCTION, rule, shape_rules.reduction, doc, attributes)


_TABLE = (
    _binary(
        "add",
        dtype_rules.arithmetic,
        "x + y; bool: logical or. Integers wrap.",
        commutative=True,
    ),
    _binary("subtract", dtype_rules.no_bool, "x - y. Integers wrap."),
    _binary(
        "multiply",
        dtype_rules.arithmetic,
        "x * y; bool: logical and. Integers wrap.",
        commutative=True,
    ),
    _binary("divide", dtype_rules.division, "x / y, true division; of integers in float64."),
    _binary(
        "left_shift", dtype_rules.integer, "x << y; 0 where y < 0 or y >= the width of the dtype."
    ),
    _binary(
        "right_shift",
        dtype_rules.integer,
        "x >> y, arithmetic; 0 or -1 where y < 0 or y >= the width of the dtype.",
    ),
    _unary("negative", dtype_rules.no_bool, "-x; flips the sign of zero.", exact=True),
    _unary(
        "abs",
        dtype_rules.arithmetic,
        "|x|; the smallest integer stays itself.",
        exact=True,
    ),
    _binary(
        "minimum",
        dtype_rules.arithmetic,
        "The smaller; NaN propagates, -0 < +0.",
        exact=False,
        commutative=True,
    ),
    _binary(
        "maximum",
        dtype_rules.arithmetic,
        "The larger; NaN propagates, -0 < +0.",
        exact=False,
        commutative=True,
    ),
    _unary(
        "sqrt",
        dtype_rules.floating,
        "Square root, correctly rounded; of integers in float64.",
        exact=True,
    ),
    _unary("exp", dtype_rules.floating, "e**x, at most 1 ulp from the exact value.", exact=False),
    _unary(
        "rsqrt",
        dtype_rules.floating,
        "1 / sqrt(x), at most 0.501 ulp; of zeros inf with their sign.",
        exact=False,
    ),
    _unary("tanh", dtype_rules.floating, "Hyperbolic tangent, at most 1.5 ulp.", exact=False),
    _unary("log", dtype_rules.floating, "Natural logarithm, at most 1 ulp.", exact=False),
    _unary("erf", dtype_rules.floating, "Error function, at most 1.5 ulp.", exact=False),
    _unary(
        "sigmoid",
        dtype_rules.floating,
        "1 / (1 + e**-x), at most 2.5 ulp: (x < 0 ? t : 1) / (1 + t) with t = exp(-|x|).",
        exact=False,
    ),
    _unary(
        "erfc",
        dtype_rules.floating,
        "1 - erf(x), at most 2.5 ulp, also where it is small.",
        exact=False,
    ),
    _unary("softplus", dtype_rules.floating, "log(1 + e**x), at most 2.5 ulp.", exact=False),
    _unary("silu", dtype_rules.floating, "x / (1 + e**-x), at most 2.5 ulp.", exact=False),
    _unary(
        "gelu", dtype_rules.floating, "x (1 + erf(x / sqrt(2))) / 2, at most 2.5 ulp.", exact=False
    ),
    _unary(
        "gelu_tanh",
        dtype_rules.floating,
        "x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))) / 2, at most 2.5 ulp.",
        exact=False,
    ),
    _binary("equal", dtype_rules.comparison, "x == y.", commutative=True),
    _binary("not_equal", dtype_rules.comparison, "x != y; true for NaN.", commutative=True),
    _binary("less", dtype_rules.comparison, "x < y."),
    _binary("less_equal", dtype_rules.comparison, "x <= y."),
    _binary("greater", dtype_rules.comparison, "x > y."),
    _binary("greater_equal", dtype_rules.comparison, "x >= y."),
    _binary(
        "logical_and", dtype_rules.logical, "Both non-zero (NaN counts as true).", commutative=True
    ),
    _binary(
        "logical_or", dtype_rules.logical, "Either non-zero (NaN counts as true).", commutative=True
    ),
    _unary("logical_not", dtype_rules.logical, "True where x is zero.", exact=True),
    Operator(
        "where",
        3,
        Kind.ELEMENTWISE,
        dtype_rules.where,
        shape_rules.elementwise,
        "x where c, else y.",
        exact=True,
    ),
    Operator(
        "cast",
        1,
        Kind.ELEMENTWISE,
        dtype_rules.cast,
        shape_rules.elementwise,
        "To another dtype. float to int truncates; NaN and out of range give the smallest integer. "
        "To bool: non-zero.",
        ("dtype",),
        exact=True,
    ),
    _reduction(
        "sum",
        dtype_rules.accumulated,
        "Sum over the axes named (None: all), in the fixed order of the numerics contract; bool and int32 in "
        "int64.",
    ),
    _reduction(
        "prod",
        dtype_rules.accumulated,
        "Product over the axes named (None: all), in the fixed order of the numerics contract.",
    ),
    _reduction(
        "max",
        dtype_rules.same,
        "Largest element over the axes named (None: all); NaN propagates, -0 < +0.",
    ),
    _reduction(
        "min",
        dtype_rules.same,
        "Smallest element over the axes named (None: all); NaN propagates, -0 < +0.",
    ),
    _reduction(
        "mean",
        dtype_rules.averaged,
        "The sum divided by the number of elements; NaN of nothing.",
    ),
    _reduction(
        "var",
        dtype_rules.averaged,
        "Variance: mean first, then the sum of (x - mean) * (x - mean), divided by max(n - correction, 0).",
        "correction",
    ),
    _reduction(
        "any", dtype_rules.logical, "Whether an element is non-zero (NaN is); of nothing: no."
    ),
    _reduction("all", dtype_rules.logical, "Whether no element is zero; of nothing: yes."),
    Operator(
        "matmul",
        2,
        Kind.CONTRACTION,
        dtype_rules.no_bool,
        shape_rules.matmul,
        "Matrix product of rank 1 or 2 operands, in the fixed order of the numerics contract.",
    ),
    Operator(
        "broadcast_to",
        1,
        Kind.SHAPE,
        dtype_rules.same,
        shape_rules.broadcast_to,
        "Repeat along axes of size 1 and new leading axes.",
        ("shape",),
        indexed=True,
        exact=True,
    ),
    Operator(
        "reshape",
        1,
        Kind.SHAPE,
        dtype_rules.same,
        shape_rules.reshape,
        "The same elements in C order under another shape; one size may be -1.",
        ("shape",),
        indexed=True,
        exact=True,
    ),
    Operator(
        "transpose",
        1,
        Kind.SHAPE,
        dtype_rules.same,
        shape_rules.transpose,
        "Axes in another order; reversed by default.",
        ("axes",),
        exact=True,
    ),
    Operator(
        "getitem",
        1,
        Kind.SHAPE,
        dtype_rules.same,
        shape_rules.getitem,
        "x[index] with integers, slices, ... and newaxis.",
        ("index",),
        indexed=True,
        exact=True,
    ),
    Operator(
        "setitem",
        2,
        Kind.SHAPE,
        dtype_rules.stored,
        shape_rules.setitem,
        "A new value equal to x except that x[index] is y, cast to x's dtype and broadcast.",
        ("index",),
        indexed=True,
        exact=True,
    ),
    Operator(
        "size",
        1,
        Kind.SHAPE,
        dtype_rules.size,
        shape_rules.size_shape,
        "The size of one axis, weak like a Python integer.",
        ("axis",),
        exact=True,
    ),
)

OPERATORS: Mapping[str, Operator] = {operator.name: operator for operator in _TABLE}
"""Every operator by its name."""

ELEMENTARY = (
    "exp",
    "rsqrt",
    "tanh",
    "log",
    "erf",
    "sigmoid",
    "erfc",
    "softplus",
    "silu",
    "gelu",
    "gelu_tanh",
)
"""Operators that take the time of tens of steps for each element: functions of `elementary.json`, and sigmoid, made of one."""


def default_attributes(operator: Operator) -> dict[str, Attribute]:
    """Attributes that may be left out in program text, with the value that this means."""
    optional: dict[str, Attribute] = {
        "axis": None,
        "keepdims": False,
        "axes": None,
        "correction": 0,
    }
    return {
        n: optional[n] for n in operator.attributes if n in optional and operator.name != "size"
    }
