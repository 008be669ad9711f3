"""Which signatures to compile for the shapes that calls have. A shape policy is a small object without state.

What a policy may know is a `ShapeCase`: the call at hand and the calls before it. It answers with signatures, best
first; each further one is for the case that the code before it refuses these shapes or cannot be made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Dim
from jitdialects.bytecode.signature import ArgumentType, Signature
from jitdialects.errors import ConfigError
from jitdialects.runtime.profile import ShapeHistory

Axis = tuple[int, int]
"""An axis of an argument, both by number."""


@dataclass(frozen=True)
class ShapeCase:
    """A call of `function` with arguments of `shapes`, which wants code."""

    function: str
    history: ShapeHistory
    """The calls of the same dtypes, ranks and layouts."""
    shapes: tuple[tuple[int, ...], ...]
    products: bool = False
    """Whether there is a matrix product in the program."""

    @property
    def axes(self) -> set[Axis]:
        """Every axis of every argument."""
        return {(a, x) for a, shape in enumerate(self.shapes) for x in range(len(shape))}

    def varying(self) -> set[Axis]:
        """The axes that had another size before."""
        seen = self.history.distinct()
        return {(a, x) for a, x in self.axes if any(s[a][x] != self.shapes[a][x] for s in seen)}


@runtime_checkable
class ShapePolicy(Protocol):
    """What `jd.Policy(shapes=...)` and `jd.jit(shapes=...)` take beside a name."""

    def signatures(self, case: ShapeCase) -> Iterator[Signature]:
        """What to compile for a call, best first."""
        ...


@dataclass(frozen=True)
class Exact:
    """Code for the sizes of each call."""

    def signatures(self, case: ShapeCase) -> Iterator[Signature]:
        """One: the sizes of the call."""
        yield generalised(case, set())


@dataclass(frozen=True)
class Symbolic:
    """Code for any sizes."""

    def signatures(self, case: ShapeCase) -> Iterator[Signature]:
        """Every size is a symbol, in the second place those that are not 1."""
        return _generalisations(case, case.axes)


@dataclass(frozen=True)
class Auto:
    """Code for exact sizes until a size has a second distinct value, which then becomes symbolic."""

    def signatures(self, case: ShapeCase) -> Iterator[Signature]:
        """Sizes that varied are symbols, in the second place those that are not 1."""
        return _generalisations(case, case.varying())


POLICIES: dict[str, ShapePolicy] = {"auto": Auto(), "exact": Exact(), "symbolic": Symbolic()}
"""By the names that options take."""


def check_shapes(who: str, shapes: object) -> None:
    """Refuse an option that names no policy and is none."""
    known = isinstance(shapes, ShapePolicy) or (isinstance(shapes, str) and shapes in POLICIES)
    if shapes is not None and not known:
        names = ", ".join(map(repr, POLICIES))
        raise ConfigError(
            f"{who}: shapes={shapes!r} is not supported; use one of {names}, or an object with "
            "signatures(case)"
        )


def _generalisations(case: ShapeCase, general: set[Axis]) -> Iterator[Signature]:
    """Signatures with symbols at `general`, best first.

    Sizes of 1 broadcast, which is known only where they are static. If there are products in the
    program, general code is for sizes from 2 on: a product with one row streams a matrix from memory, for
    which it is scheduled otherwise.
    """
    static_ones = {(a, x) for a, x in general if case.shapes[a][x] != 1}
    if case.products:
        large = {(a, x) for a, x in static_ones if case.shapes[a][x]}
        yield generalised(case, large, least=2)
        return
    yield generalised(case, general)
    if static_ones != general:
        yield generalised(case, static_ones)


def generalised(case: ShapeCase, general: set[Axis], least: int = 0) -> Signature:
    """The call with symbols for the sizes in `general`; those that were equal whenever they varied share one.
    The code is for symbols from `least` on."""
    names: dict[object, Dim] = {}
    arguments: list[ArgumentType] = []
    seen = case.history.distinct()
    for a, (argument, shape) in enumerate(zip(case.history.types, case.shapes, strict=True)):
        sizes: list[Dim] = list(shape)
        for x in range(len(shape)):
            if (a, x) in general:
                column = (shape[x], *(s[a][x] for s in seen))
                key = column if len(set(column)) > 1 else (a, x)
                sizes[x] = names.setdefault(key, dims.symbol(f"n{len(names)}"))
        arguments.append(ArgumentType(argument.dtype, tuple(sizes), argument.strided))
    bounds = tuple((least, str(name)) for name in names.values()) if least else ()
    return Signature(case.function, tuple(arguments), bounds)
