"""Shape rules of the operator table, written once for concrete and symbolic sizes.

A rule asks a `ShapeFacts` where two sizes must agree: the VM answers by comparing numbers, type inference by
recording a guard. Broadcasting and indexing are NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, TypeAlias

from jitdialects.bytecode import dims
from jitdialects.bytecode.attributes import (
    At,
    Attributes,
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
from jitdialects.errors import ArgumentError, OutOfBoundsError, ShapeError


class ShapeFacts(Protocol):
    """Who decides what is known about sizes."""

    def require_equal(self, x: Dim, y: Dim, error: Exception) -> Dim:
        """Return the common size, or raise `error` if the sizes are known to differ."""
        ...

    def require_at_most(self, x: Dim, y: Dim, error: Exception) -> None:
        """Demand x <= y, or raise `error` if it is known not to hold."""
        ...

    def is_settled(self, x: Dim) -> bool:
        """Whether `x` is known before the code runs, so that demands on it can be made."""
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

    def is_settled(self, x: Dim) -> bool:
        return True


Values: TypeAlias = Sequence[Dim | None]
"""Per operand, the value of a rank-0 integer if it is known (an expression in type inference)."""
ShapeRule: TypeAlias = Callable[[str, Sequence[Shape], Attributes, Values, ShapeFacts], Shape]


def shape_text(shape: Shape) -> str:
    """`(3, n)` as Python prints a tuple."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def broadcast_shapes(who: str, shapes: Sequence[Shape], facts: ShapeFacts) -> Shape:
    """NumPy's broadcasting: shapes aligned at the right, sizes equal or 1."""
    if len(set(shapes)) == 1:
        return shapes[0]
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


def elementwise(
    who: str, shapes: Sequence[Shape], attributes: Attributes, values: Values, facts: ShapeFacts
) -> Shape:
    return broadcast_shapes(who, shapes, facts)


def reduced_axes(who: str, rank: int, attributes: Attributes) -> tuple[int, ...]:
    """The axes that a reduction folds, ascending: all where `axis` is absent or None; `()` is none."""
    axis = attributes.get("axis")
    if axis is None:
        return tuple(range(rank))
    if not isinstance(axis, int | Ints):
        raise ArgumentError(
            f"{who}: axis must be None, an integer or a tuple of integers, got {axis}"
        )
    named = axis.values if isinstance(axis, Ints) else (axis,)
    for number in named:
        if not -rank <= number < rank:
            raise ShapeError(f"{who}: axis {number} is out of range for an array of rank {rank}")
    axes = sorted(number % rank for number in named)
    for number, following in pairwise(axes):
        if number == following:
            raise ShapeError(f"{who}: axis {axis} names axis {number} twice; name it once")
    return tuple(axes)


def reduction(
    who: str, shapes: Sequence[Shape], attributes: Attributes, values: Values, facts: ShapeFacts
) -> Shape:
    (shape,) = shapes
    axes = reduced_axes(who, len(shape), attributes)
    if who in ("max", "min"):
        error = ShapeError(f"{who} of an axis of size 0 has no value; shape {shape_text(shape)}")
        for axis in axes:
            facts.require_at_most(1, shape[axis], error)
    if attributes.get("keepdims"):
        return tuple(1 if a in axes else s for a, s in enumerate(shape))
    return tuple(s for a, s in enumerate(shape) if a not in axes)


def matmul(
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


def _size(size: int | OperandRef, values: Values, who: str, facts: ShapeFacts) -> Dim:
    """A size, which must be known before the code runs."""
    value = _dimension(size, values, who)
    if not facts.is_settled(value):
        raise ShapeError(f"{who}: the size {size} depends on tensor data")
    return value


def reshape(
    who: str, shapes: Sequence[Shape], attributes: Attributes, values: Values, facts: ShapeFacts
) -> Shape:
    spec = attributes["shape"]
    assert isinstance(spec, ShapeSpec)
    source = shapes[0]
    sizes = [_size(s, values, who, facts) for s in spec.sizes]
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


def broadcast_to(
    who: str, shapes: Sequence[Shape], attributes: Attributes, values: Values, facts: ShapeFacts
) -> Shape:
    spec = attributes["shape"]
    assert isinstance(spec, ShapeSpec)
    source = shapes[0]
    target = tuple(_size(s, values, who, facts) for s in spec.sizes)
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


def transpose(
    who: str, shapes: Sequence[Shape], attributes: Attributes, values: Values, facts: ShapeFacts
) -> Shape:
    return tuple(shapes[0][a] for a in permutation(who, len(shapes[0]), attributes))


@dataclass(frozen=True)
class AxisRange:
    """What one axis of the source gives: elements `start + step * i`, 0 <= i < size; `kept` is
    False where an integer index removes the axis (size 1).

    `run_time` are the operands that say where the axis begins (and ends) where that is known only while
    the code runs: an index, which may count from the end, or the start and stop of a slice, which must
    be 0 <= start <= stop <= size of the axis, or else the code does not apply. `start` says nothing
    then."""

    start: Dim
    size: Dim
    step: int
    kept: bool
    run_time: tuple[int, ...] = ()


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


def _bounds(entry: Slice, size: Dim, values: Values, who: str) -> tuple[Dim, Dim]:
    """Where a slice begins, and where the next element after its last would be."""
    if entry.step > 0:
        ends: tuple[Dim, Dim] = (0, size)
        clamp = dims.clamp_index
    else:
        ends = (dims.sub(size, 1), -1)
        clamp = dims.clamp_index_down
    given = (None if b is None else _dimension(b, values, who) for b in (entry.start, entry.stop))
    start, stop = (
        end if bound is None else clamp(bound, size) for bound, end in zip(given, ends, strict=True)
    )
    return start, stop


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
        late = _run_time_slice(who, entry, values, facts)
        if late is not None:
            result.append(len(axes))
            axes.append(late)
            continue
        start, stop = _bounds(entry, size, values, who)
        stride = abs(entry.step)
        span = dims.sub(stop, start) if entry.step > 0 else dims.sub(start, stop)
        count = dims.floordiv(dims.add(span, stride - 1), stride)
        full = entry.start is None and entry.stop is None and stride == 1
        result.append(len(axes))
        axes.append(AxisRange(start, size if full else dims.maximum(count, 0), entry.step, True))
    return IndexPlan(tuple(axes), tuple(result))


LONGEST = 2**62
"""Differences of run-time bounds beyond this could wrap."""


def _run_time_slice(who: str, entry: Slice, values: Values, facts: ShapeFacts) -> AxisRange | None:
    """A slice with a bound that is not settled; its size must be. None for other slices."""
    bounds = [b for b in (entry.start, entry.stop) if isinstance(b, OperandRef)]
    known = [_dimension(b, values, who) for b in bounds]
    if all(map(facts.is_settled, known)):
        return None
    size = dims.sub(known[-1], known[0])
    error = ShapeError(f"{who}: the size of the slice [{entry}] depends on tensor data")
    if len(bounds) < 2 or entry.step < 0 or not facts.is_settled(size):
        raise error
    facts.require_at_most(-LONGEST, size, error)
    facts.require_at_most(size, LONGEST, error)
    count = dims.floordiv(dims.add(size, entry.step - 1), entry.step)
    run_time = tuple(b.position for b in bounds)
    return AxisRange(0, dims.maximum(count, 0), entry.step, True, run_time)


def _at(who: str, entry: At, size: Dim, axis: int, values: Values, facts: ShapeFacts) -> AxisRange:
    index = _dimension(entry.index, values, who)
    if isinstance(entry.index, OperandRef) and not facts.is_settled(index):
        return AxisRange(0, 1, 1, False, (entry.index.position,))
    error = OutOfBoundsError(f"{who}: index {index} is out of range for axis {axis} of size {size}")
    facts.require_at_most(dims.scale(size, -1), index, error)
    facts.require_at_most(dims.add(index, 1), size, error)
    if isinstance(index, int):
        return AxisRange(dims.add(size, index) if index < 0 else index, 1, 1, False)
    return AxisRange(dims.apply("wrap", index, size), 1, 1, False)


def getitem(
    who: str, shapes: Sequence[Shape], attributes: Attributes, values: Values, facts: ShapeFacts
) -> Shape:
    spec = attributes["index"]
    assert isinstance(spec, IndexSpec)
    return plan_index(who, shapes[0], spec, values, facts).shape


def setitem(
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


def size_shape(
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
