"""When to compile a function, and for which shapes. A policy is a small object that may be replaced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Dim
from jitdialects.bytecode.signature import ArgumentType, Signature
from jitdialects.config import config
from jitdialects.dialects.schedules import parse_overrides
from jitdialects.errors import ConfigError
from jitdialects.runtime.profile import Profile, ShapeHistory

SHAPES = ("auto", "exact", "symbolic")


@dataclass(frozen=True)
class Policy:
    """The default policy.

    `threshold`: executions of a block before its function may be compiled (None: `config.threshold`).
    `shapes`: "exact" compiles for the sizes of a call; "symbolic" for any sizes; "auto" for exact sizes
    until a size has a second distinct value, which then becomes symbolic (None: `config.shapes`).
    `fuse`: whether operators are fused.
    `schedule`: what some loop nests shall do instead of what the compiler would choose, as
    `dialects.schedules` says; code that cannot be made so is not made, and `explain` says why.
    """

    threshold: int | None = None
    shapes: str | None = None
    fuse: bool = True
    schedule: str = ""

    def __post_init__(self) -> None:
        threshold = cast(object, self.threshold)
        if threshold is not None and not (isinstance(threshold, int) and threshold >= 1):
            raise ConfigError(f"Policy: threshold must be an int of at least 1, got {threshold!r}")
        if self.shapes is not None and self.shapes not in SHAPES:
            raise ConfigError(f"Policy: shapes must be one of {SHAPES}, got {self.shapes!r}")

        schedule = cast(object, self.schedule)
        if not isinstance(schedule, str):
            raise ConfigError(f"schedule: needs text such as 'elementwise: vector = 8', got {schedule!r}")
        try:
            parse_overrides(schedule)
        except ValueError as error:
            raise ConfigError(f"schedule: {error}") from None

    def is_hot(self, profile: Profile) -> bool:
        """Whether the function may be compiled."""
        return profile.hottest >= (self.threshold or config.threshold)

    def signatures(
        self,
        function: str,
        history: ShapeHistory,
        shapes: tuple[tuple[int, ...], ...],
        products: bool = False,
    ) -> Iterator[Signature]:
        """What to compile for a call with `shapes`, best first.

        Each further one is for the case that the code before it refuses these shapes or cannot be
        made: sizes of 1 broadcast, which is known only where they are static. If there are `products`
        in the program, general code is for sizes from 2 on: a product with one row streams a matrix from
        memory, for which it is scheduled otherwise.
        """
        general = self._varying(history, shapes)
        static_ones = {at for at in general if shapes[at[0]][at[1]] != 1}
        if products:
            large = {at for at in static_ones if shapes[at[0]][at[1]]}
            yield _signature(function, history, shapes, large, least=2)
            return
        yield _signature(function, history, shapes, general)
        if static_ones != general:
            yield _signature(function, history, shapes, static_ones)

    def _varying(
        self, history: ShapeHistory, shapes: tuple[tuple[int, ...], ...]
    ) -> set[tuple[int, int]]:
        """(argument, axis) of the sizes that become symbolic."""
        mode = self.shapes or config.shapes
        if mode == "exact":
            return set()
        axes = {(a, x) for a, shape in enumerate(shapes) for x in range(len(shape))}
        if mode == "symbolic":
            return axes
        seen = history.distinct()
        return {(a, x) for a, x in axes if any(s[a][x] != shapes[a][x] for s in seen)}


def _signature(
    function: str,
    history: ShapeHistory,
    shapes: tuple[tuple[int, ...], ...],
    general: set[tuple[int, int]],
    least: int = 0,
) -> Signature:
    """Sizes in `general` become symbols; those that were equal whenever they varied share one. The code
    is for symbols from `least` on."""
    names: dict[object, Dim] = {}
    arguments: list[ArgumentType] = []
    seen = history.distinct()
    for a, (argument, shape) in enumerate(zip(history.types, shapes, strict=True)):
        sizes: list[Dim] = list(shape)
        for x in range(len(shape)):
            if (a, x) in general:
                column = (shape[x], *(s[a][x] for s in seen))
                key = column if len(set(column)) > 1 else (a, x)
                sizes[x] = names.setdefault(key, dims.symbol(f"n{len(names)}"))
        arguments.append(ArgumentType(argument.dtype, tuple(sizes), argument.strided))
    bounds = tuple((least, str(name)) for name in names.values()) if least else ()
    return Signature(function, tuple(arguments), bounds)
