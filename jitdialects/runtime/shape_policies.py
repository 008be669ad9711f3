"""Which signatures to compile for the shapes that calls have. A shape policy is a small object without state.

What a policy may know is a `ShapeCase`: the call at hand and the calls before it. It answers with signatures, best
first; each further one is for the case that the code before it refuses these shapes or cannot be made. A policy that
has code made for larger sizes also says how a call is padded.

Whatever the policy: a function that had more than `config.max_shapes` distinct shapes without code gets general code
(or `MOST_CLASSES` signatures, with a policy of which few serve many shapes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import ClassVar

from jitdialects.analysis.padding import SMALLEST, Padding
from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Dim as Size
from jitdialects.bytecode.dims import Expr
from jitdialects.bytecode.signature import ArgumentType, Signature
from jitdialects.config import config
from jitdialects.errors import ConfigError
from jitdialects.runtime.notices import notice
from jitdialects.runtime.once import once
from jitdialects.runtime.padded_calls import PaddedCall, concrete
from jitdialects.runtime.profile import ShapeHistory, Shapes
from jitdialects.runtime.shape_constraints import Dim

Axis = tuple[int, int]
"""An axis of an argument, both by number."""
MOST_CLASSES = 24
"""Signatures of a function with a policy of which few serve many shapes."""
FEW = 8
"""Signatures of a function for whose sake exact sizes are tried where general code cannot be made."""


def unknown_padding(signature: Signature) -> Padding:
    """Nothing is known of the program."""
    return Padding({}, {}, (), "nothing is known of the program")


@dataclass(frozen=True)
class ShapeCase:
    """A call of `function` with arguments of `shapes`, which wants code."""

    function: str
    history: ShapeHistory
    """The calls of the same dtypes, ranks and layouts."""
    shapes: Shapes
    products: bool = False
    """Whether there is a matrix product in the program."""
    padding_of: Callable[[Signature], Padding] = unknown_padding
    """Decides which sizes of the function may be padded."""
    named: Mapping[Axis, Dim] = field(default_factory=dict[Axis, Dim])
    """Axes that are known to vary, and how (`shape_constraints`)."""
    fixed: frozenset[Axis] = frozenset()
    """Axes that are known not to."""
    has_failed: Callable[[Signature], bool] = lambda signature: False
    """Whether no code could be made for a signature."""
    versions: int = 0
    """Signatures of the function that were asked for so far."""

    @property
    def axes(self) -> set[Axis]:
        """The axes that may vary."""
        every = {(a, x) for a, shape in enumerate(self.shapes) for x in range(len(shape))}
        return every - self.fixed

    @once
    def varying(self) -> set[Axis]:
        """The axes that had another size before, or are known to vary."""
        seen = self.history.distinct()
        varied = {(a, x) for a, x in self.axes if any(s[a][x] != self.shapes[a][x] for s in seen)}
        return varied | set(self.named)

    def padding(self) -> tuple[Signature, Padding]:
        """What may be padded of the sizes that varied. In the signature each of these has a name of its own."""
        large = {(a, x) for a, x in self.varying if self.shapes[a][x] >= SMALLEST}
        signature = generalised(self, large, apart=True)
        known = self.history.policy.paddings.get(signature)
        if known is None:
            known = self.history.policy.paddings[signature] = self.padding_of(signature)
        return signature, known


class ShapePolicy:
    """What `jd.Policy(shapes=...)` and `jd.jit(shapes=...)` take beside a name: a subclass of this."""

    respecialises: ClassVar[bool] = False
    """Whether a shape that has most of the calls of general code gets code of its own."""
    pads: ClassVar[bool] = False
    """Whether `padded` is to be asked."""
    is_bounded: ClassVar[bool] = False
    """Whether few signatures serve many shapes: then there may be `MOST_CLASSES` of them, and any number of shapes."""

    def signatures(self, case: ShapeCase) -> Iterator[Signature]:
        """What to compile for a call, best first."""
        raise NotImplementedError

    def class_of(self, size: int) -> range | None:
        """The sizes that share code with `size` because they are padded to the same; None: no others do."""
        return None

    def padded(self, case: ShapeCase) -> PaddedCall | None:
        """How the call runs in code for larger sizes; None: it does not."""
        return None


@dataclass(frozen=True)
class Exact(ShapePolicy):
    """Code for the sizes of each call."""

    def signatures(self, case: ShapeCase) -> Iterator[Signature]:
        """One: the sizes of the call."""
        yield generalised(case, set())


@dataclass(frozen=True)
class Symbolic(ShapePolicy):
    """Code for any sizes."""

    def signatures(self, case: ShapeCase) -> Iterator[Signature]:
        """Every size is a symbol, in the second place those that are not 1."""
        return _generalisations(case, case.axes)


@dataclass(frozen=True)
class Auto(ShapePolicy):
    """Code for exact sizes until a size has a second distinct value, which then becomes symbolic."""

    respecialises = True

    def signatures(self, case: ShapeCase) -> Iterator[Signature]:
        """Sizes that varied are symbols, in the second place those that are not 1; the sizes of the call, a few times,
        where no such code can be made."""
        general = list(_generalisations(case, case.varying))
        yield from general
        if all(map(case.has_failed, general)) and case.versions < FEW:
            yield generalised(case, set())


@dataclass(frozen=True)
class Bucketed(ShapePolicy):
    """Code for the largest size of a class, for sizes that varied and may be padded; others as `Auto` has them.

    `classes` are the largest sizes of the first classes; from there on each is twice the one before.
    """

    pads = True
    is_bounded = True
    classes: tuple[int, ...] = (1, 8, 16, 32)

    def __post_init__(self) -> None:
        classes = self.classes
        rising = all(x < y for x, y in pairwise(classes))
        if not classes or classes[0] < 1 or not rising:
            raise ConfigError(
                f"Bucketed: classes={classes!r}: needs the largest sizes of the first classes, rising, such as "
                "(1, 8, 16, 32)"
            )

    def largest(self, size: int) -> int:
        """The largest size of the class of `size`."""
        for largest in self.classes:
            if size <= largest:
                return largest
        largest = self.classes[-1]
        while largest < size:
            largest *= 2
        return largest

    def class_of(self, size: int) -> range:
        """The sizes of the class of `size`."""
        largest = self.largest(size)
        smaller = [c for c in self.classes if c < largest]
        return range(
            (largest // 2 if largest > self.classes[-1] else max(smaller, default=0)) + 1,
            largest + 1,
        )

    def signatures(self, case: ShapeCase) -> Iterator[Signature]:
        """The largest sizes of the classes; then what `Auto` has compiled."""
        padded = self.padded(case)
        if padded is not None:
            signature, padding = case.padding()
            others = {at for at in case.varying if not _may_pad(signature, padding, at)}
            whole = tuple(
                given if padded_ is None else padded_
                for given, padded_ in zip(case.shapes, padded.shapes, strict=True)
            )
            for each in _generalisations(replace(case, shapes=whole), others):
                yield padded.contiguous(each)
        yield from Auto().signatures(case)

    def padded(self, case: ShapeCase) -> PaddedCall | None:
        """Up to the largest size of the class, where that is another one."""
        signature, padding = case.padding()
        if padding.failure:
            return None
        sizes: dict[str, int] = {}
        targets: dict[str, int] = {}
        shapes: list[tuple[int, ...] | None] = []
        for a, shape in enumerate(case.shapes):
            whole = list(shape)
            for x, size in enumerate(shape):
                name = _name_of(signature, (a, x))
                if name is None:
                    continue
                same = padding.same[name]
                if sizes.setdefault(same, size) != size:
                    return None  # the interpreter raises for sizes that must be equal and are not
                if padding.may_pad(name):
                    largest = self.largest(size)
                    dim = case.named.get((a, x))
                    whole[x] = targets[same] = dim.within(largest) if dim else largest
            pads = any(_may_pad(signature, padding, (a, x)) for x in range(len(shape)))
            shapes.append(tuple(whole) if pads else None)
        if not targets:
            return None
        rows = sum(sizes[name] for name in targets)
        results = tuple(concrete(shape, sizes) for shape in padding.results)
        return PaddedCall(tuple(shapes), results, rows, sum(targets.values()) - rows)


def _name_of(signature: Signature, axis: Axis) -> str | None:
    """The name of a size, if it is not a number."""
    size = signature.arguments[axis[0]].shape[axis[1]]
    return None if isinstance(size, int) else str(size)


def _may_pad(signature: Signature, padding: Padding, axis: Axis) -> bool:
    name = _name_of(signature, axis)
    return name is not None and padding.may_pad(name)


POLICIES: dict[str, ShapePolicy] = {
    "auto": Auto(),
    "exact": Exact(),
    "bucketed": Bucketed(),
    "symbolic": Symbolic(),
}
"""By the names that options take."""


def signatures(policy: ShapePolicy, case: ShapeCase) -> Iterator[Signature]:
    """What to compile for a call: what `policy` says, and general code where that has led to too many shapes. A policy
    that raises is replaced by `Auto` for this call, which `explain` shows."""
    history = case.history
    if policy.is_bounded:
        is_storm = case.versions > MOST_CLASSES
    else:
        is_storm = len(history.seen) + history.others > config.max_shapes
    if is_storm:
        yield from _generalisations(case, case.varying, apart=True)
        return
    try:
        yield from policy.signatures(case)
    except Exception as error:  # noqa: BLE001 (a policy of the user's)
        _note(history, policy, error)
        yield from Auto().signatures(case)


def padded(policy: ShapePolicy, case: ShapeCase) -> PaddedCall | None:
    """How `policy` pads a call."""
    try:
        return policy.padded(case)
    except Exception as error:  # noqa: BLE001 (a policy of the user's)
        _note(case.history, policy, error)
        return None


def _note(history: ShapeHistory, policy: ShapePolicy, error: Exception) -> None:
    state = history.policy
    if not state.trouble:
        state.trouble = f"{type(policy).__name__}: {type(error).__name__}: {error}"
        notice(f"shape policy {state.trouble}; calls go on as with shapes='auto'")


def check_shapes(who: str, shapes: object) -> None:
    """Refuse an option that names no policy and is none."""
    known = isinstance(shapes, ShapePolicy) or (isinstance(shapes, str) and shapes in POLICIES)
    if shapes is not None and not known:
        names = ", ".join(map(repr, POLICIES))
        raise ConfigError(
            f"{who}: shapes={shapes!r} is not supported; use one of {names}, or an object of a subclass of "
            "jd.ShapePolicy"
        )


def _generalisations(
    case: ShapeCase, general: set[Axis], apart: bool = False
) -> Iterator[Signature]:
    """Signatures with symbols at `general`, best first.

    Sizes of 1 broadcast, which is known only where they are static. If there are products in the
    program, general code is for sizes from 2 on: a product with one row streams a matrix from memory, for
    which it is scheduled otherwise.
    """
    static_ones = {(a, x) for a, x in general if case.shapes[a][x] != 1}
    if case.products:
        large = {(a, x) for a, x in static_ones if case.shapes[a][x]}
        yield generalised(case, large, least=2, apart=apart)
        return
    yield generalised(case, general, apart=apart)
    if static_ones != general:
        yield generalised(case, static_ones, apart=apart)


def generalised(
    case: ShapeCase, general: set[Axis], least: int = 0, apart: bool = False
) -> Signature:
    """The call with symbols for the sizes in `general`, which are at `least` so large. Those that were equal
    whenever they varied share one, unless `apart`: then guards say which the program needs to be equal. Those with
    one name in `case.named` always do, and keep to its bounds."""
    names: dict[object, Expr] = {}
    constraints: dict[str, Dim] = {}
    arguments: list[ArgumentType] = []
    seen = case.history.distinct()
    for a, (argument, shape) in enumerate(zip(case.history.types, case.shapes, strict=True)):
        sizes: list[Size] = list(shape)
        for x in range(len(shape)):
            if (a, x) not in general:
                continue
            constraint = case.named.get((a, x))
            if constraint is not None:
                key: object = constraint.name
            else:
                column = (shape[x], *(s[a][x] for s in seen))
                key = column if len(set(column)) > 1 and not apart else (a, x)
            sizes[x] = name = names.setdefault(key, dims.symbol(f"n{len(names)}"))
            if constraint is not None:
                constraints[str(name)] = constraint
        arguments.append(ArgumentType(argument.dtype, tuple(sizes), argument.strided))
    return _bounded(Signature(case.function, tuple(arguments)), names.values(), constraints, least)


def _bounded(
    signature: Signature, names: Iterable[Expr], constraints: Mapping[str, Dim], least: int
) -> Signature:
    """The signature with what is known of its symbols."""
    at_least: list[tuple[int, str]] = []
    at_most: list[tuple[str, int]] = []
    divisors: list[tuple[int, str]] = []
    for name in map(str, names):
        dim = constraints.get(name, _ANY)
        if max(least, dim.lowest):
            at_least.append((max(least, dim.lowest), name))
        if dim.max is not None:
            at_most.append((name, dim.highest))
        if dim.multiple_of > 1:
            divisors.append((dim.multiple_of, name))
    bounds = tuple(at_least), tuple(at_most), tuple(divisors)
    return Signature(signature.function, signature.arguments, *bounds)


_ANY = Dim("any")
