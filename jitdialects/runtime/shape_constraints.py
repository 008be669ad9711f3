"""What a user knows of sizes: which axes vary, within which bounds, and which are equal.

    batch = jd.Dim("batch", min=1, max=64)
    jd.jit(f, dims={"x": (batch, 784), "y": ("batch",)})

A *hint* and a *promise*: a named axis is taken to vary from the first call on, a number never does; and a call that
does not keep the promise raises one error, whatever tier would have served it. The style is that of
`torch.export.Dim` and of JAX's symbolic shapes.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from jitdialects.errors import ArgumentError, ConfigError, ShapeError
from jitdialects.runtime.values import Value, shape_of

MAX_SIZE = 2**60


@dataclass(frozen=True)
class Dim:
    """A size with a name. It lies between `min` and `max` (None: no bound) and is a multiple of `multiple_of`."""

    name: str
    min: int = 0
    max: int | None = None
    multiple_of: int = 1

    def __post_init__(self) -> None:
        name = cast(object, self.name)
        if not isinstance(name, str) or not name.isidentifier():
            raise ConfigError(f"Dim: a name such as 'batch' is needed, got {name!r}")
        for what, least in (("min", 0), ("max", 0), ("multiple_of", 1)):
            value = cast(object, getattr(self, what))
            if what == "max" and value is None:
                continue
            if type(value) is not int or not least <= value <= MAX_SIZE:
                raise ConfigError(
                    f"Dim {self.name!r}: {what} must be an int of at least {least}, got {value!r}"
                )
        if self.lowest > self.highest:
            raise ConfigError(f"Dim {self.name!r}: no size is {self.text}; widen the bounds")

    @property
    def lowest(self) -> int:
        """The smallest size."""
        return -(-self.min // self.multiple_of) * self.multiple_of

    @property
    def highest(self) -> int:
        """The largest size."""
        most = MAX_SIZE if self.max is None else self.max
        return most // self.multiple_of * self.multiple_of

    @property
    def only(self) -> int | None:
        """The size, if there is but one."""
        return self.lowest if self.lowest == self.highest else None

    @property
    def text(self) -> str:
        """The constraint in words."""
        parts = [f"at least {self.min}"] if self.min else []
        parts += [f"at most {self.max}"] if self.max is not None else []
        parts += [f"a multiple of {self.multiple_of}"] if self.multiple_of > 1 else []
        return " and ".join(parts) or "any size"

    def allows(self, size: int) -> bool:
        """Whether the size is within the constraint."""
        return self.lowest <= size <= self.highest and size % self.multiple_of == 0

    def within(self, size: int) -> int:
        """The next allowed size from `size`, which is not above the highest, or the highest."""
        return min(-(-size // self.multiple_of) * self.multiple_of, self.highest)


Spec: TypeAlias = Dim | str | int | None
"""What may stand for an axis: a constraint, its name, a number, or None for an axis of which nothing is said."""
Dims: TypeAlias = Mapping[str, Sequence[Spec]]
"""By the names of arguments, as error messages have them (`x`, `params['w']`), one `Spec` per axis."""
Axis: TypeAlias = Dim | int | None


@dataclass(frozen=True)
class Constraints:
    """The option `dims` of `who`, checked. `ConfigError` where it contradicts itself."""

    who: str
    dims: Dims
    _axes: dict[str, tuple[Axis, ...]] = field(
        init=False, default_factory=dict[str, tuple[Axis, ...]]
    )

    def __post_init__(self) -> None:
        dims = cast(object, self.dims)
        if not isinstance(dims, Mapping):
            raise ConfigError(
                f"{self.who}: dims={dims!r}: a dict of argument names is needed, such as "
                "{'x': ('batch', 784)}"
            )
        known: dict[str, Dim] = {}
        for argument, specs in self.dims.items():
            given = cast(object, specs)
            if not isinstance(given, tuple | list):
                raise ConfigError(
                    f"{self.who}: dims of {argument}: one entry per axis is needed, such as ('batch', 784), "
                    f"got {given!r}"
                )
            for spec in specs:
                if isinstance(spec, Dim) and known.setdefault(spec.name, spec) != spec:
                    raise ConfigError(
                        f"{self.who}: dims: {spec.name!r} is {known[spec.name].text} in one place and "
                        f"{spec.text} in another; give one Dim to both"
                    )
        for argument, specs in self.dims.items():
            self._axes[argument] = tuple(self._axis(argument, spec, known) for spec in specs)
        for dim in known.values():
            if dim.only is not None:
                warnings.warn(
                    f"{self.who}: {dim.name} can only be {dim.only}: it is {dim.text}; write {dim.only}",
                    UserWarning,
                    stacklevel=4,
                )

    def _axis(self, argument: str, spec: object, known: dict[str, Dim]) -> Axis:
        if isinstance(spec, str):
            return known[spec] if spec in known else known.setdefault(spec, Dim(spec))
        if spec is None or isinstance(spec, Dim):
            return spec
        if type(spec) is int and 0 <= spec <= MAX_SIZE:
            return spec
        raise ConfigError(
            f"{self.who}: dims of {argument}: an axis is a jd.Dim, a name, a size or None, got {spec!r}"
        )

    def of(self, names: Sequence[str]) -> ArgumentConstraints:
        """For arguments with these names; `ArgumentError` where `dims` has others."""
        for argument in self._axes:
            if argument not in names:
                raise ArgumentError(
                    f"{self.who}: dims has {argument!r}, which is no array among the arguments: "
                    f"{', '.join(names) or 'none'}"
                )
        return ArgumentConstraints(self.who, tuple(names), tuple(self._axes.get(n) for n in names))


@dataclass(frozen=True)
class ArgumentConstraints:
    """What is known of the sizes of the arguments of one captured program."""

    who: str
    names: tuple[str, ...]
    axes: tuple[tuple[Axis, ...] | None, ...]

    def named(self) -> dict[tuple[int, int], Dim]:
        """(argument, axis) -> its constraint, for axes that may have several sizes."""
        return {
            (a, x): axis
            for a, axes in enumerate(self.axes)
            for x, axis in enumerate(axes or ())
            if isinstance(axis, Dim) and axis.only is None
        }

    def fixed(self) -> set[tuple[int, int]]:
        """(argument, axis) of those that have one size only."""
        return {
            (a, x)
            for a, axes in enumerate(self.axes)
            for x, axis in enumerate(axes or ())
            if isinstance(axis, int) or (isinstance(axis, Dim) and axis.only is not None)
        }

    def check(self, arguments: Sequence[Value]) -> None:
        """Raise one error for the first size that is not as it was said."""
        sizes: dict[str, tuple[int, str]] = {}
        for name, axes, argument in zip(self.names, self.axes, arguments, strict=False):
            if axes is None:
                continue
            shape = shape_of(argument)
            if len(shape) != len(axes):
                raise ShapeError(
                    f"{self.who}: argument {name} has {len(shape)} axes, dims gives {len(axes)}"
                )
            for number, (size, axis) in enumerate(zip(shape, axes, strict=True)):
                where = f"axis {number} of argument {name}"
                if isinstance(axis, int) and size != axis:
                    raise ShapeError(f"{self.who}: {where} is {size}; it must be {axis}")
                if isinstance(axis, Dim):
                    self._check_named(axis, size, where, sizes)

    def _check_named(
        self, axis: Dim, size: int, where: str, sizes: dict[str, tuple[int, str]]
    ) -> None:
        if not axis.allows(size):
            raise ShapeError(f"{self.who}: {where} is {size}; {axis.name} must be {axis.text}")
        before, first = sizes.setdefault(axis.name, (size, where))
        if before != size:
            raise ShapeError(
                f"{self.who}: {where} is {size}, {first} is {before}; both are {axis.name}, one size"
            )
