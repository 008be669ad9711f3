"""The operator table: the one place that says which operators exist and what they mean.

The VM, type inference, the `tssa` dialect, `jitdialects.numpy` and the docs are derived from it.
Adding an operator is one entry here, one lowering rule, one tier-0 rule and its tests.

A *dtype rule* maps operand dtypes to the dtypes in which the operands are used and the dtype of the
result. A *shape rule* is written once for concrete and symbolic sizes: it asks a `ShapeFacts` where
two sizes must agree, which the VM answers by comparing numbers and type inference by recording a guard.
Semantics are NumPy 2's (promotion after NEP 50, broadcasting), within `dtypes.SUPPORTED`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeAlias

from jitdialects.bytecode import dims
from jitdialects.bytecode.attributes import (
    At,
    Attribute,
    Attributes,
    Bound,
    Ellipsis,
    IndexEntry,
    IndexSpec,
    Ints,
    NewAxis,
    OperandRef,
    ShapeSpec,
    Slice,
)
from jitdialects.bytecode.dims import Dim, Shape
from jitdialects.bytecode.dtypes import (
    BOOL,
    INT64,
    WEAK_INT,
    DType,
    check_supported,
    concrete,
    promote,
)
from jitdialects.errors import ArgumentError, DTypeError, OutOfBoundsError, ShapeError


class ShapeFacts(Protocol):
    """Who decides what is known about sizes."""

    def require_equal(self, x: Dim, y: Dim, error: Exception) -> Dim:
        """Return the common size, or raise `error` if the sizes are known to differ."""
        ...

    def require_at_most(self, x: Dim, y: Dim, error: Exception) -> None:
        """Demand x <= y, or raise `error` if it is known not to hold."""
        ...


class ConcreteFacts:
    """The VM's answer: every size is a number."""

    def require_equal(self, x: Dim, y: Dim, error: Exception) -> Dim:
        if x != y:
            raise error
        return x

    def require_at_most(self, x: Dim, y: Dim, error: Exception) -> None:
        if dims.evaluate(x, {}) > dims.evaluate(y, {}):
            raise error


class Kind(Enum):
    """What a pass needs to know of an operator."""

    ELEMENTWISE = "elementwise"
    """Result element i depends on element i of the broadcast operands only."""
    REDUCTION = "reduction"
    CONTRACTION = "contraction"
    SHAPE = "shape"
    """Moves or renames elements, computes nothing."""


@dataclass(frozen=True)
class Typing:
    """Dtypes in which the data operands are used, and the dtype of the result."""

    operands: tuple[DType, ...]
    result: DType


Values: TypeAlias = Sequence[Dim | None]
"""Per operand, the value of a rank-0 integer if it is known (an expression in type inference)."""
DTypeRule: TypeAlias = Callable[[str, Sequence[DType], Attributes], Typing]
ShapeRule: TypeAlias = Callable[[str, Sequence[Shape], Attributes, Values, ShapeFacts], Shape]


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
            if extra.name != "int64":
                raise DTypeError(f"{self.name}: an index or size must be an integer, got {extra}")
        return self.dtype_rule(self.name, operands[: self.arity], attributes)

    def infer_shape(
        self, shapes: Sequence[Shape], attributes: Attributes, values: Values, facts: ShapeFacts
    ) -> Shape:
        """Shape of the result (`ShapeError`, `OutOfBoundsError`)."""
        return self.shape_rule(self.name, shapes, attributes, values, facts)


# ---- dtype rules -------------------------------------------------------------------------------


def _promoted(who: str, operands: Sequence[DType]) -> DType:
    common = operands[0]
    for other in operands[1:]:
        common = promote(common, other, who)
    return common


def _arithmetic(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    common = _promoted(who, operands)
    return Typing((common,) * len(operands), common)


def _no_bool(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    typing = _arithmetic(who, operands, attributes)
    if typing.result.name == "bool":
        raise DTypeError(f"{who} is not defined for bool; use logical_* or cast with astype")
    return typing


def _floating(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    common = _promoted(who, operands)
    if common.name != "float32":
        raise DTypeError(
            f"{who} of {common} gives a dtype that is not supported (in NumPy: float64); "
            "cast with astype('float32')"
        )
    return Typing((common,) * len(operands), common)


def _division(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    common = _promoted(who, operands)
    if common.weak:
        common = DType("float64", weak=True)
        return Typing((common, common), common)
    return _floating(who, operands, attributes)


def _comparison(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    common = _promoted(who, operands)
    return Typing((common, common), BOOL)


def _logical(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    return Typing((BOOL,) * len(operands), BOOL)


def _integer(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    common = _promoted(who, operands)
    if common.name != "int64":
        raise DTypeError(
            f"{who} is defined for int64 only, got {common}; cast with astype('int64')"
        )
    return Typing((common,) * len(operands), common)


def _where(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    common = _promoted(who, operands[1:])
    if common.weak and not operands[0].weak:  # a condition of any rank gives an array
        common = concrete(common)
        check_supported(common.name, who)
    return Typing((BOOL, common, common), common)


def _cast(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    target = attributes["dtype"]
    check_supported(str(target), who)
    return Typing((operands[0],), DType(str(target)))


def _sum(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    operand = INT64 if operands[0].name == "bool" else concrete(operands[0])
    check_supported(operand.name, who)
    return Typing((operand,), operand)


def _same(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    operand = concrete(operands[0])
    check_supported(operand.name, who)
    return Typing((operand,), operand)


def _set(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    target = concrete(operands[0])
    check_supported(target.name, who)
    return Typing((target, target), target)  # the stored value is cast to the target's dtype


def _size(who: str, operands: Sequence[DType], attributes: Attributes) -> Typing:
    return Typing((operands[0],), WEAK_INT)  # as in NumPy, where sizes are Python integers


# ---- shape rules -------------------------------------------------------------------------------


def shape_text(shape: Shape) -> str:
    """`(3, n)` as Python prints a tuple."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def broadcast_shapes(who: str, shapes: Sequence[Shape], facts: ShapeFacts) -> Shape:
    """NumPy's broadcasting: shapes aligned at the right, sizes equal or 1."""
    rank = max((len(s) for s in shapes), default=0)
    out: list[Dim] = []
    error = ShapeError(
        f"{who}: shapes {' and '.join(map(shape_text, shapes))} do not broadcast; "
        "sizes must be equal or 1, counted from the last axis"
    )
    for axis in range(-rank, 0):
        size: Dim = 1
        for shape in shapes:
            if len(shape) < -axis or shape[axis] == 1:
                continue
            size = shape[axis] if size == 1 else facts.require_equal(size, shape[axis], error)
        out.append(size)
    return tuple(out)


def _elementwise(
    who: str, shapes: Sequence[Shape], attributes: Attributes, values: Values, facts: ShapeFacts
) -> Shape:
    return broadcast_shapes(who, shapes, facts)


def reduced_axes(who: str, rank: int, attributes: Attributes) -> tuple[int, ...]:
    """The axes that a reduction folds: all (`axis` absent or None), or the last one."""
    axis = attributes.get("axis")
    if axis is None:
        return tuple(range(rank))
    if not isinstance(axis, int):
        raise ArgumentError(f"{who}: axis must be None or an integer, got {axis}")
    if not -rank <= axis < rank:
        raise ShapeError(f"{who}: axis {axis} is out of range for an array of rank {rank}")
    if axis % rank != rank - 1:
        raise ShapeError(
            f"{who}: axis {axis} of rank {rank} is not supported; only the last axis (-1) or all "
            "axes (None); transpose first"
        )
    return (rank - 1,)


def _reduction(
    who: str, shapes: Sequence[Shape], attributes: Attributes, values: Values, facts: ShapeFacts
) -> Shape:
    (shape,) = shapes
    axes = reduced_axes(who, len(shape), attributes)
    if who == "max":
        error = ShapeError(f"max of an axis of size 0 has no value; shape {shape_text(shape)}")
        for axis in axes:
            facts.require_at_most(1, shape[axis], error)
    if attributes.get("keepdims"):
        return tuple(1 if a in axes else s for a, s in enumerate(shape))
    return tuple(s for a, s in enumerate(shape) if a not in axes)


def _matmul(
    who: str, shapes: Sequence[Shape], attributes: Attributes, values: Values, facts: ShapeFacts
) -> Shape:
    x, y = shapes
    if not 1 <= len(x) <= 2 or not 1 <= len(y) <= 2:
        raise ShapeError(
            f"matmul of shapes {shape_text(x)} and {shape_text(y)} is not supported; "
            "both operands need rank 1 or 2"
        )
    error = ShapeError(
        f"matmul: inner sizes differ, {x[-1]} of {shape_text(x)} and {y[0]} of {shape_text(y)}"
    )
    facts.require_equal(x[-1], y[0], error)
    return x[:-1] + y[1:]


def _dimension(size: int | OperandRef, values: Values, who: str) -> Dim:
    if isinstance(size, int):
        return size
    value = values[size.position]
    if value is None:
        raise ShapeError(f"{who}: the size ${size.position} depends on tensor data")
    return value


def _reshape(
    who: str, shapes: Sequence[Shape], attributes: Attributes, values: Values, facts: ShapeFacts
) -> Shape:
    spec = attributes["shape"]
    assert isinstance(spec, ShapeSpec)
    source = shapes[0]
    sizes = [_dimension(s, values, who) for s in spec.sizes]
    error = ShapeError(
        f"reshape: shape {shape_text(source)} has not as many elements as {shape_text(tuple(sizes))}"
    )
    holes = [a for a, s in enumerate(sizes) if s == -1]
    if len(holes) > 1:
        raise ShapeError(f"reshape: at most one size may be -1, got {spec}")
    for size in sizes:
        if size != -1:
            facts.require_at_most(0, size, error)
    if holes:
        known = [s for s in sizes if s != -1]
        for size in known:
            facts.require_at_most(1, size, error)  # beside a 0 any size would do
        sizes[holes[0]] = _quotient(source, known)
    facts.require_equal(dims.product(sizes), dims.product(source), error)
    return tuple(sizes)


def _quotient(source: Shape, known: Sequence[Dim]) -> Dim:
    """`product(source) // product(known)`, equal factors cancelled first so that it stays affine."""
    left, right = list(source), list(known)
    for factor in known:
        if factor in left:
            left.remove(factor)
            right.remove(factor)
    return dims.floordiv(dims.product(left), dims.product(right))


def _broadcast_to(
    who: str, shapes: Sequence[Shape], attributes: Attributes, values: Values, facts: ShapeFacts
) -> Shape:
    spec = attributes["shape"]
    assert isinstance(spec, ShapeSpec)
    source = shapes[0]
    target = tuple(_dimension(s, values, who) for s in spec.sizes)
    error = ShapeError(
        f"broadcast_to: shape {shape_text(source)} does not broadcast to {shape_text(target)}"
    )
    if len(source) > len(target):
        raise error
    for size in target:
        facts.require_at_most(0, size, error)
    for have, want in zip(reversed(source), reversed(target), strict=False):
        if have != 1:
            facts.require_equal(have, want, error)
    return target


def permutation(who: str, rank: int, attributes: Attributes) -> tuple[int, ...]:
    """The axes of a transpose in their new order; reversed where none is given."""
    perm = attributes.get("axes")
    if perm is None:
        return tuple(reversed(range(rank)))
    assert isinstance(perm, Ints)
    axes = tuple(a + rank if a < 0 else a for a in perm.values)
    if sorted(axes) != list(range(rank)):
        raise ShapeError(
            f"{who}: axes {perm} are not a permutation of the {rank} axes of the array"
        )
    return axes


def _transpose(
    who: str, shapes: Sequence[Shape], attributes: Attributes, values: Values, facts: ShapeFacts
) -> Shape:
    return tuple(shapes[0][a] for a in permutation(who, len(shapes[0]), attributes))


@dataclass(frozen=True)
class AxisRange:
    """What one axis of the source gives: elements `start + step * i`, 0 <= i < size; `kept` is
    False where an integer index removes the axis (size 1)."""

    start: Dim
    size: Dim
    step: int
    kept: bool


@dataclass(frozen=True)
class IndexPlan:
    """An index specification resolved against a shape. `result_axes` lists, per result axis, the
    source axis it comes from, or None for a new axis of size 1."""

    axes: tuple[AxisRange, ...]
    result_axes: tuple[int | None, ...]

    @property
    def shape(self) -> Shape:
        """The shape of what is selected."""
        return tuple(1 if a is None else self.axes[a].size for a in self.result_axes)


def _bound(bound: Bound, default: Dim, size: Dim, values: Values, who: str) -> Dim:
    if bound is None:
        return default
    return dims.clamp_index(_dimension(bound, values, who), size)


def plan_index(
    who: str, shape: Shape, spec: IndexSpec, values: Values, facts: ShapeFacts
) -> IndexPlan:
    """Resolve `spec` (Python's slice and index rules) against `shape`."""
    used = sum(isinstance(e, Slice | At) for e in spec.entries)
    if used > len(shape):
        raise OutOfBoundsError(
            f"{who}: {used} indices {spec} for an array of rank {len(shape)}; use at most {len(shape)}"
        )
    entries: list[IndexEntry] = []
    for entry in spec.entries:
        fill = len(shape) - used if isinstance(entry, Ellipsis) else 0
        entries.extend([Slice()] * fill if isinstance(entry, Ellipsis) else [entry])
    if not any(isinstance(e, Ellipsis) for e in spec.entries):
        entries.extend([Slice()] * (len(shape) - used))
    axes: list[AxisRange] = []
    result: list[int | None] = []
    for entry in entries:
        if isinstance(entry, NewAxis):
            result.append(None)
            continue
        size = shape[len(axes)]
        if isinstance(entry, At):
            axes.append(_at(who, entry, size, len(axes), values, facts))
            continue
        assert isinstance(entry, Slice)
        start = _bound(entry.start, 0, size, values, who)
        stop = _bound(entry.stop, size, size, values, who)
        span = dims.add(dims.sub(stop, start), entry.step - 1)
        count = dims.floordiv(span, entry.step)
        full = entry.start is None and entry.stop is None and entry.step == 1
        result.append(len(axes))
        axes.append(AxisRange(start, size if full else dims.maximum(count, 0), entry.step, True))
    return IndexPlan(tuple(axes), tuple(result))


def _at(who: str, entry: At, size: Dim, axis: int, values: Values, facts: ShapeFacts) -> AxisRange:
    index = _dimension(entry.index, values, who)
    error = OutOfBoundsError(f"{who}: index {index} is out of range for axis {axis} of size {size}")
    facts.require_at_most(dims.scale(size, -1), index, error)
    facts.require_at_most(dims.add(index, 1), size, error)
    if isinstance(index, int):
        return AxisRange(dims.add(size, index) if index < 0 else index, 1, 1, False)
    return AxisRange(dims.apply("wrap", index, size), 1, 1, False)


def _getitem(
    who: str, shapes: Sequence[Shape], attributes: Attributes, values: Values, facts: ShapeFacts
) -> Shape:
    spec = attributes["index"]
    assert isinstance(spec, IndexSpec)
    return plan_index(who, shapes[0], spec, values, facts).shape


def _setitem(
    who: str, shapes: Sequence[Shape], attributes: Attributes, values: Values, facts: ShapeFacts
) -> Shape:
    spec = attributes["index"]
    assert isinstance(spec, IndexSpec)
    target, stored = shapes[0], shapes[1]
    region = plan_index(who, target, spec, values, facts).shape
    error = ShapeError(
        f"{who}: a value of shape {shape_text(stored)} does not broadcast to the selected "
        f"{shape_text(region)}"
    )
    if len(stored) > len(region):
        raise error
    for have, want in zip(reversed(stored), reversed(region), strict=False):
        if have != 1:
            facts.require_equal(have, want, error)
    return target


def _size_shape(
    who: str, shapes: Sequence[Shape], attributes: Attributes, values: Values, facts: ShapeFacts
) -> Shape:
    size_axis(who, shapes[0], attributes)
    return ()


def size_axis(who: str, shape: Shape, attributes: Attributes) -> int:
    """The axis that `size` measures, counted from 0."""
    axis = attributes["axis"]
    assert isinstance(axis, int)
    if not -len(shape) <= axis < len(shape):
        raise ShapeError(f"{who}: axis {axis} is out of range for an array of rank {len(shape)}")
    return axis % len(shape)


# ---- the table ---------------------------------------------------------------------------------


def _unary(name: str, rule: DTypeRule, doc: str, *, exact: bool) -> Operator:
    return Operator(name, 1, Kind.ELEMENTWISE, rule, _elementwise, doc, exact=exact)


def _binary(
    name: str, rule: DTypeRule, doc: str, *, exact: bool = True, commutative: bool = False
) -> Operator:
    return Operator(
        name, 2, Kind.ELEMENTWISE, rule, _elementwise, doc, commutative=commutative, exact=exact
    )


_TABLE = (
    _binary("add", _arithmetic, "x + y; bool: logical or. Integers wrap.", commutative=True),
    _binary("subtract", _no_bool, "x - y. Integers wrap."),
    _binary("multiply", _arithmetic, "x * y; bool: logical and. Integers wrap.", commutative=True),
    _binary("divide", _division, "x / y, true division, float32 only."),
    _binary("left_shift", _integer, "x << y; 0 where y < 0 or y >= 64."),
    _binary("right_shift", _integer, "x >> y, arithmetic; 0 or -1 where y < 0 or y >= 64."),
    _unary("negative", _no_bool, "-x; flips the sign of zero.", exact=True),
    _unary("abs", _arithmetic, "|x|; the smallest integer stays itself.", exact=True),
    _binary(
        "minimum",
        _arithmetic,
        "The smaller; NaN propagates, -0 < +0.",
        exact=False,
        commutative=True,
    ),
    _binary(
        "maximum",
        _arithmetic,
        "The larger; NaN propagates, -0 < +0.",
        exact=False,
        commutative=True,
    ),
    _unary("sqrt", _floating, "Square root, correctly rounded.", exact=True),
    _unary("exp", _floating, "e**x, at most 1 ulp from the exact value.", exact=False),
    _unary("tanh", _floating, "Hyperbolic tangent, at most 1.5 ulp.", exact=False),
    _binary("equal", _comparison, "x == y.", commutative=True),
    _binary("not_equal", _comparison, "x != y; true for NaN.", commutative=True),
    _binary("less", _comparison, "x < y."),
    _binary("less_equal", _comparison, "x <= y."),
    _binary("greater", _comparison, "x > y."),
    _binary("greater_equal", _comparison, "x >= y."),
    _binary("logical_and", _logical, "Both non-zero (NaN counts as true).", commutative=True),
    _binary("logical_or", _logical, "Either non-zero (NaN counts as true).", commutative=True),
    _unary("logical_not", _logical, "True where x is zero.", exact=True),
    Operator("where", 3, Kind.ELEMENTWISE, _where, _elementwise, "x where c, else y.", exact=True),
    Operator(
        "cast",
        1,
        Kind.ELEMENTWISE,
        _cast,
        _elementwise,
        "To another dtype. float to int truncates; NaN and out of range give the smallest integer. "
        "To bool: non-zero.",
        ("dtype",),
        exact=True,
    ),
    Operator(
        "sum",
        1,
        Kind.REDUCTION,
        _sum,
        _reduction,
        "Sum over the last axis or all, in the fixed order of the numerics contract; bool counts.",
        ("axis", "keepdims"),
    ),
    Operator(
        "max",
        1,
        Kind.REDUCTION,
        _same,
        _reduction,
        "Largest element over the last axis or all; NaN propagates, -0 < +0.",
        ("axis", "keepdims"),
    ),
    Operator(
        "matmul",
        2,
        Kind.CONTRACTION,
        _no_bool,
        _matmul,
        "Matrix product of rank 1 or 2 operands, in the fixed order of the numerics contract.",
    ),
    Operator(
        "broadcast_to",
        1,
        Kind.SHAPE,
        _same,
        _broadcast_to,
        "Repeat along axes of size 1 and new leading axes.",
        ("shape",),
        indexed=True,
        exact=True,
    ),
    Operator(
        "reshape",
        1,
        Kind.SHAPE,
        _same,
        _reshape,
        "The same elements in C order under another shape; one size may be -1.",
        ("shape",),
        indexed=True,
        exact=True,
    ),
    Operator(
        "transpose",
        1,
        Kind.SHAPE,
        _same,
        _transpose,
        "Axes in another order; reversed by default.",
        ("axes",),
        exact=True,
    ),
    Operator(
        "getitem",
        1,
        Kind.SHAPE,
        _same,
        _getitem,
        "x[index] with integers, slices of positive step, ... and newaxis.",
        ("index",),
        indexed=True,
        exact=True,
    ),
    Operator(
        "setitem",
        2,
        Kind.SHAPE,
        _set,
        _setitem,
        "A new value equal to x except that x[index] is y, cast to x's dtype and broadcast.",
        ("index",),
        indexed=True,
        exact=True,
    ),
    Operator(
        "size",
        1,
        Kind.SHAPE,
        _size,
        _size_shape,
        "The size of one axis, weak like a Python integer.",
        ("axis",),
        exact=True,
    ),
)

OPERATORS: Mapping[str, Operator] = {operator.name: operator for operator in _TABLE}
"""Every operator by its name."""


def default_attributes(operator: Operator) -> dict[str, Attribute]:
    """Attributes that may be left out in program text, with the value that this means."""
    optional: dict[str, Attribute] = {"axis": None, "keepdims": False, "axes": None}
    return {
        n: optional[n] for n in operator.attributes if n in optional and operator.name != "size"
    }
