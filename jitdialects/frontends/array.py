"""`Array`: what users hold, the same class for lazy arrays and under tracing.

An array is a name for an immutable recorded value. `x[index] = y` therefore makes a new value and
lets this name stand for it: other arrays never change with it, but every Python name of the same
`Array` object sees the new value, as with NumPy. Nothing is a view: slices, reshapes and transposes
are values of their own.

    x + 1, x @ w, x[2:, k]      record one instruction with the recorder at work
    bool(x), float(x), print(x), np.asarray(x), x.item()
                                run what was recorded (lazy), or raise `TraceError` (under tracing)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import SupportsIndex, TypeAlias, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from jitdialects.bytecode.attributes import (
    At,
    Attribute,
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
from jitdialects.bytecode.operators import OPERATORS
from jitdialects.bytecode.program import NO_ATTRIBUTES
from jitdialects.errors import ArgumentError, MissingNameError, OutOfBoundsError, ShapeError
from jitdialects.frontends.recorder import Value, current

Axis: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...] | None
"""What a reduction takes: one axis, several, or None for all."""


def apply(opcode: str, *operands: object, **attributes: Attribute) -> Array:
    """Record one instruction `opcode` and give its result."""
    recorder = current()
    values = [recorder.lift(x.value if type(x) is Array else x, opcode) for x in operands]
    return Array(recorder.record(OPERATORS[opcode], values, attributes))


def unwrapped(x: object) -> object:
    """The value behind an `Array`; anything else as it is."""
    return x.value if isinstance(x, Array) else x


def dtype_name(dtype: DTypeLike) -> str:
    """`float32` for `np.float32`, `jnp.float32`, `"float32"`, `"f4"`."""
    try:
        return np.dtype(dtype).name
    except TypeError:
        raise ArgumentError(
            f"{dtype!r} is not a dtype; use float32, float64, int32, int64 or bool_"
        ) from None


class _Specification:
    """Collects the operands that an index or shape specification refers to as `$k`."""

    def __init__(self, who: str, first: int) -> None:
        self.who = who
        self.first = first
        self.operands: list[object] = []

    def integer(self, value: object) -> int | OperandRef:
        """A constant for a Python integer, `$k` for an array of rank 0."""
        if isinstance(value, bool | np.bool_):
            raise ArgumentError(f"{self.who}: {value} is not an integer")
        if isinstance(value, Array):
            if value.ndim != 0 or value.dtype.kind != "i":
                raise ArgumentError(
                    f"{self.who}: an index or size must be an integer or an integer array of rank 0, "
                    f"got {value.dtype} of rank {value.ndim}; for a selection by mask use where"
                )
            self.operands.append(value)
            return OperandRef(self.first + len(self.operands) - 1)
        if isinstance(value, SupportsIndex):
            try:
                return value.__index__()
            except TypeError:
                pass
        raise ArgumentError(
            f"{self.who}: an index or size must be an integer, got {type(value).__name__}"
        )

    def entry(self, key: object) -> IndexEntry:
        """One entry between the brackets."""
        if key is None:
            return NewAxis()
        if key is ...:
            return Ellipsis()
        if isinstance(key, slice):
            key = cast("slice[object, object, object]", key)
            step = 1 if key.step is None else self.integer(key.step)
            if not isinstance(step, int) or step == 0:
                raise ArgumentError(
                    f"{self.who}: the step of a slice must be a Python integer other than 0"
                )
            return Slice(self._bound(key.start), self._bound(key.stop), step)
        return At(self.integer(key))

    def _bound(self, value: object) -> Bound:
        """A bound of a slice; what does not fit int64 is beyond any size."""
        bound = None if value is None else self.integer(value)
        return max(-(2**63), min(bound, 2**63 - 1)) if isinstance(bound, int) else bound


def _index(who: str, key: object, first: int) -> tuple[IndexSpec, list[object]]:
    """What stands between the brackets, and the operands it refers to, counted from `first`."""
    specification = _Specification(who, first)
    keys = cast(tuple[object, ...], key) if isinstance(key, tuple) else (key,)
    entries = tuple(specification.entry(k) for k in keys)
    if sum(isinstance(e, Ellipsis) for e in entries) > 1:
        raise OutOfBoundsError(f"{who}: an index can have one ellipsis, got {len(entries)} entries")
    return IndexSpec(entries), specification.operands


def _sizes(who: str, shape: object) -> tuple[ShapeSpec, list[object]]:
    """A target shape: an integer, an array of rank 0, or a sequence of them."""
    specification = _Specification(who, 1)
    sizes = tuple(specification.integer(s) for s in _items(shape))
    return ShapeSpec(sizes), specification.operands


def reshape(x: object, shape: object) -> Array:
    """The same elements in C order under another shape; one size may be -1."""
    spec, operands = _sizes("reshape", shape)
    return apply("reshape", x, *operands, shape=spec)


def broadcast_to(x: object, shape: object) -> Array:
    """Repeat along axes of size 1 and new leading axes."""
    spec, operands = _sizes("broadcast_to", shape)
    return apply("broadcast_to", x, *operands, shape=spec)


def reduce(opcode: str, x: object, axis: object, keepdims: bool, **attributes: Attribute) -> Array:
    """A reduction over one axis, a tuple of axes, or all of them (None)."""
    return apply(opcode, x, axis=_axes(opcode, axis), keepdims=bool(keepdims), **attributes)


def variance(x: object, axis: object, correction: object, keepdims: bool) -> Array:
    """The operator `var`; `correction` is subtracted from the number of elements."""
    if not isinstance(correction, SupportsIndex):
        raise ArgumentError(f"var: correction must be an integer, got {correction}")
    return reduce("var", x, axis, keepdims, correction=correction.__index__())


def _axes(opcode: str, axis: object) -> int | Ints | None:
    """`axis` as an attribute: one of the forms of NumPy."""
    if axis is None or isinstance(axis, SupportsIndex):
        return None if axis is None else axis.__index__()
    named = cast(tuple[object, ...], axis) if isinstance(axis, tuple) else (None,)
    if not all(isinstance(number, SupportsIndex) for number in named):
        raise ArgumentError(
            f"{opcode}: axis must be None, an integer or a tuple of integers, got {axis}"
        )
    return Ints(tuple(number.__index__() for number in cast(tuple[SupportsIndex, ...], named)))


def transpose(x: object, axes: object = None) -> Array:
    """Axes in another order; reversed by default."""
    if axes is None:
        return apply("transpose", x, axes=None)
    order = [_Specification("transpose", 1).integer(a) for a in _items(axes)]
    numbers = tuple(a for a in order if isinstance(a, int))
    if len(numbers) != len(order):
        raise ArgumentError("transpose: axes must be Python integers")
    return apply("transpose", x, axes=Ints(numbers))


def _items(values: object) -> tuple[object, ...]:
    many = isinstance(values, tuple | list)
    return tuple(cast(Sequence[object], values)) if many else (values,)


def setitem(x: object, key: object, y: object) -> Array:
    """A new value equal to `x` except that `x[key]` is `y`."""
    spec, operands = _index("setitem", key, 2)
    return apply("setitem", x, y, *operands, index=spec)


def as_array(x: object) -> Array:
    """An array that the recorder at work knows, with the elements of `x`."""
    return x if isinstance(x, Array) else Array(current().lift(x, "asarray"))


class _At:
    """`x.at`, to be indexed: `x.at[2:].set(y)`."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, key: object) -> _AtIndex:
        return _AtIndex(self._array, key)


class _AtIndex:
    """`x.at[key]`."""

    def __init__(self, array: Array, key: object) -> None:
        self._array = array
        self._key = key

    def set(self, value: object) -> Array:
        """A new array equal to `x` except that `x[key]` is `value`, cast and broadcast."""
        return setitem(self._array, self._key, value)


def _binary(opcode: str) -> Callable[[Array, object], Array]:
    operator = OPERATORS[opcode]

    def method(self: Array, other: object) -> Array:  # `apply`, for two operands
        recorder = current()
        x = recorder.lift(self.value, opcode)
        y = recorder.lift(other.value if type(other) is Array else other, opcode)
        return Array(recorder.record(operator, (x, y), NO_ATTRIBUTES))

    method.__doc__ = OPERATORS[opcode].doc
    return method


def _reflected(opcode: str) -> Callable[[Array, object], Array]:
    def method(self: Array, other: object) -> Array:
        return apply(opcode, other, self)

    method.__doc__ = OPERATORS[opcode].doc
    return method


def _unary(opcode: str) -> Callable[[Array], Array]:
    def method(self: Array) -> Array:
        return apply(opcode, self)

    method.__doc__ = OPERATORS[opcode].doc
    return method


def _mask(opcode: str, symbol: str) -> Callable[[object, object], Array]:
    """`&` and `|`, which Python users write for masks: bool only, other dtypes mean bits."""

    def method(self: object, other: object) -> Array:
        for operand in (self, other):
            kind = operand.dtype if isinstance(operand, Array) else np.asarray(operand).dtype
            if kind != np.bool_:
                raise ArgumentError(
                    f"{symbol} is defined for bool arrays only, got {kind}; compare first, or use "
                    f"{opcode}"
                )
        return apply(opcode, self, other)

    method.__doc__ = OPERATORS[opcode].doc
    return method


def _missing(symbol: str, instead: str) -> Callable[[Array, object], Array]:
    """An operator of Python that no operator of the table stands for."""

    def method(self: Array, other: object) -> Array:
        raise ArgumentError(f"{symbol} is not supported yet for arrays; {instead}")

    return method


_MASKS = {"bitwise_and": _mask("logical_and", "&"), "bitwise_or": _mask("logical_or", "|")}
"""What NumPy calls for `mask & x` and `mask | x`."""


class Array:
    """An array of float32, float64, int32, int64 or bool; see the module's docstring."""

    __slots__ = ("__weakref__", "value")
    __array_priority__ = 1000

    def __init__(self, value: Value) -> None:
        self.value = value

    # ---- what is known without running anything

    @property
    def shape(self) -> tuple[int | Array, ...]:
        """Sizes: Python integers, or rank-0 int64 arrays while tracing."""
        return tuple(s if isinstance(s, int) else Array(s) for s in self.value.shape())

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.value.sizes)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The NumPy dtype."""
        return self.value.dtype.numpy

    @property
    def size(self) -> int | Array:
        """The number of elements."""
        return math.prod(self.shape, start=1)

    @property
    def T(self) -> Array:
        """The axes in reversed order."""
        return transpose(self)

    @property
    def at(self) -> _At:
        """Functional update: `x.at[index].set(y)`."""
        return _At(self)

    # ---- operators

    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("subtract"), _reflected("subtract")
    __mul__, __rmul__ = _binary("multiply"), _reflected("multiply")
    __truediv__, __rtruediv__ = _binary("divide"), _reflected("divide")
    __matmul__, __rmatmul__ = _binary("matmul"), _reflected("matmul")
    __lshift__, __rlshift__ = _binary("left_shift"), _reflected("left_shift")
    __rshift__, __rrshift__ = _binary("right_shift"), _reflected("right_shift")
    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")
    __and__ = __rand__ = _mask("logical_and", "&")
    __or__ = __ror__ = _mask("logical_or", "|")
    __neg__, __abs__ = _unary("negative"), _unary("abs")
    __pow__ = __rpow__ = _missing("**", "write products, or sqrt")
    __floordiv__ = __rfloordiv__ = _missing("//", "divide and cast with astype")
    __mod__ = __rmod__ = _missing("%", "subtract multiples of the divisor")
    __xor__ = __rxor__ = _missing("^", "use != for bool arrays")

    # like NumPy, == compares elements: no bool, and therefore no hash

    def __eq__(self, other: object) -> Array:  # pyright: ignore[reportIncompatibleMethodOverride]
        return apply("equal", self, other)

    def __ne__(self, other: object) -> Array:  # pyright: ignore[reportIncompatibleMethodOverride]
        return apply("not_equal", self, other)

    def __invert__(self) -> Array:
        if self.dtype != np.bool_:
            raise ArgumentError(f"~ is defined for bool arrays only, got {self.dtype}; use -x - 1")
        return apply("logical_not", self)

    def __pos__(self) -> Array:
        return Array(self.value)

    def __getitem__(self, key: object) -> Array:
        spec, operands = _index("getitem", key, 1)
        return apply("getitem", self, *operands, index=spec)

    def __setitem__(self, key: object, value: object) -> None:
        self.value = setitem(self, key, value).value

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        if not self.ndim:
            raise ArgumentError("len() of an array of rank 0; use .size")
        size = self.shape[0]
        return size if isinstance(size, int) else size.__index__()

    # ---- methods

    def astype(self, dtype: DTypeLike) -> Array:
        """To another dtype; float to int truncates, to bool: non-zero."""
        return apply("cast", self, dtype=dtype_name(dtype))

    def reshape(self, *shape: object) -> Array:
        """`x.reshape(2, -1)` or `x.reshape((2, -1))`."""
        return reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: object) -> Array:
        """`x.transpose()`, `x.transpose(1, 0)` or `x.transpose((1, 0))`."""
        return transpose(self, None if not axes else axes[0] if len(axes) == 1 else axes)

    def sum(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        """Sum over the axes named, all by default."""
        return reduce("sum", self, axis, keepdims)

    def prod(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        """Product over the axes named, all by default."""
        return reduce("prod", self, axis, keepdims)

    def max(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        """Largest element over the axes named, all by default."""
        return reduce("max", self, axis, keepdims)

    def min(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        """Smallest element over the axes named, all by default."""
        return reduce("min", self, axis, keepdims)

    def mean(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        """Mean over the axes named, all by default."""
        return reduce("mean", self, axis, keepdims)

    def var(self, axis: Axis = None, *, correction: int = 0, keepdims: bool = False) -> Array:
        """Variance over the axes named, all by default."""
        return variance(self, axis, correction, keepdims)

    def std(self, axis: Axis = None, *, correction: int = 0, keepdims: bool = False) -> Array:
        """Standard deviation over the axes named, all by default: the root of `var`."""
        return apply("sqrt", variance(self, axis, correction, keepdims))

    def any(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        """Whether an element is non-zero."""
        return reduce("any", self, axis, keepdims)

    def all(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        """Whether no element is zero."""
        return reduce("all", self, axis, keepdims)

    # ---- copies: values are immutable, so that names may share them

    def __copy__(self) -> Array:
        return Array(self.value)

    def __deepcopy__(self, memo: object) -> Array:
        return Array(self.value)

    def __reduce__(self) -> tuple[Callable[[object], Array], tuple[NDArray[np.generic]]]:
        return as_array, (self.value.fetch("pickling"),)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # protocols that others probe for
            raise AttributeError(name)
        known = ", ".join(n for n in dir(Array) if not n.startswith("_") and n != "value")
        raise MissingNameError(f"an Array has no '{name}' yet; it has: {known}")

    # ---- NumPy calls this for np.tanh(x), and for a + x where a is one of its arrays

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *operands: object, **options: object
    ) -> Array:
        if method == "__call__" and not options:
            name = "abs" if ufunc is np.absolute else ufunc.__name__
            if name in OPERATORS:
                return apply(name, *operands)
            if name in _MASKS:
                return _MASKS[name](*operands)
        called = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        given = f" with {', '.join(options)}=" if options else ""
        raise ArgumentError(
            f"numpy.{called}{given} does not take an Array; use the operators of jitdialects.numpy"
            + (", or a = a + x instead of a += x" if "out" in options else "")
        )

    # ---- synchronisation: these need the elements

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> NDArray[np.generic]:
        data = self.value.fetch("np.asarray()")
        return data if dtype is None and not copy else np.array(data, dtype=dtype, copy=copy)

    def _scalar(self, wanted: str) -> bool | int | float:
        data = self.value.fetch(wanted)
        if data.size != 1:
            raise ShapeError(
                f"{wanted} needs an array of one element, got shape {data.shape}; reduce it first"
            )
        return data.item()

    def item(self) -> bool | int | float:
        """The one element as a Python scalar."""
        return self._scalar(".item()")

    def __bool__(self) -> bool:
        return bool(self._scalar("bool()"))

    def __int__(self) -> int:
        return int(self._scalar("int()"))

    def __float__(self) -> float:
        return float(self._scalar("float()"))

    def __index__(self) -> int:
        if self.dtype.kind != "i" or self.ndim:
            raise ArgumentError(
                f"an array of {self.dtype} and rank {self.ndim} cannot be an index; it needs an "
                "integer dtype and rank 0"
            )
        return int(self._scalar("int()"))

    def __repr__(self) -> str:
        return f"Array({self.value.text(', ', 'Array(')}, dtype={self.dtype})"

    def __format__(self, format_spec: str) -> str:
        return format(self.item(), format_spec) if format_spec else str(self)

    def __str__(self) -> str:
        return self.value.text(" ", "")
