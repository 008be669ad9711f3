"""`scan`: a loop over the leading axis of arrays that stacks a result of every step.

    carry, ys = scan(f, init, xs)     ->    n = size of xs
                                            ys = zeros of shape (n, *y.shape)
                                            while t < n:
                                                carry, y = f(carry, xs[t])
                                                ys[t] = y;  t += 1

What one step gives must be known before the first one, to make room for `n` of it. So `f` is captured
once in front of the loop, on `init` and `xs[0]`, and only the sizes of its result are used: compiled code
has nothing of that, the interpreter takes one more step. Where `xs` has no elements, zeros stand for
`xs[0]`, so that `ys` has its shape, with a leading 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np

from jitdialects.bytecode.dtypes import SUPPORTED, WEAK_INT, DType
from jitdialects.errors import ArgumentError, ShapeError, TraceError
from jitdialects.frontends.array import Array, broadcast_to, reduce, setitem, transpose, unwrapped
from jitdialects.frontends.control import (
    Loop,
    as_dtype,
    check_functions,
    joined,
    run_now,
    traced_here,
)
from jitdialects.frontends.recorder import user_location
from jitdialects.frontends.structure import Structure, describe, flatten, leaf_names, unflatten
from jitdialects.frontends.tracer import TracedValue, Tracer

C = TypeVar("C")


def scan(
    f: Callable[[C, Any], tuple[C, Any]],
    init: C,
    xs: object = None,
    length: object = None,
    reverse: bool = False,
) -> tuple[C, Any]:
    """`carry, y = f(carry, x)` for every `x` along the leading axis of `xs`: the last carry, and the `y`
    stacked along a new leading axis.

    `xs` is a nested structure of arrays whose leading sizes agree, or None with a `length` (an integer).
    `reverse` goes from the last to the first; `ys[t]` still belongs to `xs[t]`. Where there are no
    steps, `ys` has size 0. Errors: those of `while_loop`; `ShapeError` for leading sizes that differ.
    """
    who = "scan"
    check_functions(who, "the carry and an element", f=f)
    if xs is None and length is None:
        raise ArgumentError("scan: without xs the number of steps is not known; give length=")
    tracer = traced_here()
    if tracer is None:
        _check_known_sizes(xs, length)

        def again(init: C, xs: object, length: object) -> object:
            return scan(f, init, xs, length, reverse)

        return cast("tuple[C, Any]", run_now(who, again, init, xs, length))
    return cast("tuple[C, Any]", _Scan(tracer, f, init, xs, length, reverse).emit())


def _check_known_sizes(xs: object, length: object) -> None:
    """Refuse arrays whose leading sizes are seen to differ."""
    leaves: list[object] = []
    names = leaf_names(flatten(xs, leaves))
    sizes: list[tuple[str, int]] = [("length", length)] if isinstance(length, int) else []
    for name, leaf in zip(names, leaves, strict=True):
        shape: tuple[object, ...] = (
            leaf.shape if isinstance(leaf, Array) else np.shape(cast(Any, leaf))
        )
        if not shape:
            raise ShapeError(
                f"scan: xs {name} has rank 0, there is no axis to go along; give an array",
                user_location(),
            )
        if isinstance(shape[0], int):
            sizes.append((f"the leading size of xs {name}", shape[0]))
    for what, size in sizes[1:]:
        if size != sizes[0][1]:
            raise ShapeError(
                f"scan: {sizes[0][0]} is {sizes[0][1]}, {what} is {size}; make them equal",
                user_location(),
            )


@dataclass
class _Probe:
    """What one step gives: the dtypes that the carry must have, and the stacks for the y, empty."""

    carry: list[DType]
    structure: Structure
    stacks: list[Array]


class _Scan:
    """One scan while it is emitted."""

    def __init__(
        self,
        tracer: Tracer,
        f: Callable[[Any, Any], object],
        init: object,
        xs: object,
        length: object,
        reverse: bool,
    ) -> None:
        self.tracer = tracer
        self.f = f
        self.reverse = reverse
        _check_known_sizes(xs, length)
        leaves: list[object] = []
        self.xs_structure = flatten(xs, leaves)
        self.xs = [Array(tracer.lift(unwrapped(x), "scan")) for x in leaves]
        leaves = []
        self.structure = flatten(init, leaves)
        self.init = [tracer.lift(unwrapped(x), "scan") for x in leaves]
        self.names = [f"scan: carried value {name}" for name in leaf_names(self.structure)]
        sizes = [x.shape[0] for x in self.xs]
        self.length = sizes[0] if length is None else length
        for size in sizes if length is not None else sizes[1:]:
            self._require_equal(self.length, size)

    def emit(self) -> object:
        """Emit the probe and the loop; `(carry, ys)`."""
        probe = self._probe([v.dtype for v in self.init])
        carry = [
            Array(as_dtype(self.tracer, v, d)) for v, d in zip(self.init, probe.carry, strict=True)
        ]
        zero, one = (Array(self._number(n)) for n in (0, 1))
        end = Array(self.tracer.lift(unwrapped(self.length), "scan"))
        if end.ndim or end.dtype != np.int64:
            raise ArgumentError(f"scan: length must be an integer, got {end.dtype}")

        def body(state: tuple[Array, list[Array], object]) -> object:
            t, stacks, carry = state
            at = end - one - t if self.reverse else t
            carry, y = self._step(carry, [x[at] for x in self.xs])
            parts: list[object] = []
            flatten(y, parts)
            pairs = zip(stacks, parts, strict=True)
            return t + one, [setitem(s, at, part) for s, part in pairs], carry

        start = (zero, probe.stacks, unflatten(self.structure, iter(carry)))
        loop = Loop(self.tracer, "scan", lambda state: state[0] < end, body, start, hidden=2)
        _, stacks, last = cast("tuple[object, list[Array], object]", loop.emit())
        return last, unflatten(probe.structure, iter(stacks))

    def _number(self, number: int) -> TracedValue:
        return self.tracer.constant(np.asarray(number, np.int64), WEAK_INT)

    def _step(self, carry: object, xs: Sequence[Array]) -> tuple[object, object]:
        """The pair that `f` gives."""
        pair = self.f(carry, unflatten(self.xs_structure, iter(xs)))
        items = cast("tuple[object, ...]", pair) if isinstance(pair, tuple) else ()
        if len(items) != 2:
            raise TraceError(
                f"scan: f returned {type(cast(object, pair)).__name__}, needs the pair (carry, y); y "
                "may be None",
                user_location(),
            )
        return items

    # ---- before the loop

    def _probe(self, dtypes: list[DType]) -> _Probe:
        """Capture one step, again where a weak carry becomes stronger, at most twice for each."""
        while True:
            mark = self.tracer.mark()
            carry = [as_dtype(self.tracer, v, d) for v, d in zip(self.init, dtypes, strict=True)]
            tree = unflatten(self.structure, iter([Array(v) for v in carry]))
            after, y = self._step(tree, [self._first(x) for x in self.xs])
            found = list(self._joined(carry, after))
            if found == dtypes:
                leaves: list[object] = []
                structure = flatten(y, leaves)
                return _Probe(found, structure, [self._stack(leaf) for leaf in leaves])
            self.tracer.undo(mark)
            dtypes = found

    def _joined(self, carry: list[TracedValue], after: object) -> Iterator[DType]:
        leaves: list[object] = []
        structure = flatten(after, leaves)
        if structure != self.structure:
            raise TraceError(
                f"scan: the carried value has the structure {describe(self.structure)}, f returned "
                f"{describe(structure)}; return the same structure",
                user_location(),
            )
        for name, was, leaf in zip(self.names, carry, leaves, strict=True):
            yield joined(name, was, self.tracer.lift(unwrapped(leaf), "scan"))

    def _first(self, x: Array) -> Array:
        """`x[0]`, or zeros where there is none: the sum over the first slice of at most one."""
        order = (*range(1, x.ndim), 0)
        return reduce("sum", transpose(x[:1], order), -1, False).astype(x.dtype)

    def _stack(self, leaf: object) -> Array:
        """Room for what every step gives in the place of `leaf`."""
        y = Array(self.tracer.lift(unwrapped(leaf), "scan"))
        name = y.dtype.name if y.dtype.name in SUPPORTED else "float32"
        zero = self.tracer.constant(np.zeros((), name), DType(name))
        return broadcast_to(Array(zero), (self.length, *y.shape))

    def _require_equal(self, size: object, other: object) -> None:
        """An instruction that fails where two sizes differ when the program runs; compiled code has a
        guard instead. A product needs equal inner sizes, and one without rows and columns costs
        nothing."""
        if isinstance(size, int) and isinstance(other, int):
            return
        zero = Array(self.tracer.constant(np.zeros((), np.float32), DType("float32")))
        _ = broadcast_to(zero, (0, size)) @ broadcast_to(zero, (other, 0))
