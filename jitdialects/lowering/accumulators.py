"""How the elements of a reduction combine: what enters an accumulator, how two become one, what comes out.

An accumulator has *parts*. A sum has one, the sum so far. A maximum of floats has two, which are integers, so that
an element costs three operations of one cycle each. `arith.maximumf`, which honours the signs of zeros and every NaN,
is six instructions that wait for each other: 16 cycles on Zen 5. With M the largest mantissa (2^23 - 1, or 2^52 - 1)
and MIN the smallest integer, the bits of a float are, as an integer, and after MIN + M was added to them (wrapping),

    negative NaN   -M .. -1            MIN .. MIN + M - 1
    positive       0 .. MAX            MIN + M .. M - 1     ascending, NaNs last
    negative       MIN .. -M - 1       M .. MAX             from -0.0 down to -inf

The first part is the largest of the former. Unless it is negative it is the maximum: positive NaNs lie above all
numbers. The second part is the smallest of the latter: below MIN + M there was a negative NaN, and where the first
part is negative it is the maximum. A minimum is the same of the floats with the other sign.

Which NaN comes out is not part of the numerics contract; in which order elements come does not matter.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, f64, i1, i8, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from jitdialects.lowering.emitter import STRICT, WRAP, Emitter
from jitdialects.lowering.scalar_rules import largest, smallest

Parts = tuple[SSAValue, ...]
"""The values of an accumulator, or that an element is for it."""


@dataclass(frozen=True)
class Combine:
    """How two values of `type` become one, and the value that changes nothing."""

    type: Attribute
    kind: type[Operation]
    identity: float
    properties: Mapping[str, Attribute] | None = None

    def __call__(self, at: Emitter, left: SSAValue, right: SSAValue) -> SSAValue:
        return at.emit(self.kind, (left, right), self.type, self.properties)


@dataclass(frozen=True)
class Fold:
    """Accumulators of one part, of the type of the elements."""

    parts: tuple[Combine, ...]

    def enter(self, at: Emitter, element: SSAValue) -> Parts:
        """What an element is for an accumulator."""
        return (element,)

    def leave(self, at: Emitter, parts: Parts) -> SSAValue:
        """The element that an accumulator stands for."""
        return parts[0]

    def combine(self, at: Emitter, left: Parts, right: Parts) -> Parts:
        """Two accumulators as one."""
        return tuple(part(at, a, b) for part, a, b in zip(self.parts, left, right, strict=True))

    def identities(self, at: Emitter) -> Parts:
        """An accumulator without elements."""
        return tuple(at.constant(part.type, part.identity) for part in self.parts)


@dataclass(frozen=True)
class FoldExtreme(Fold):
    """The maximum of floats of type `element`, or the minimum if `flip` changes their signs; see the module."""

    element: Attribute
    rotation: int
    """MIN + M."""
    flip: int
    """MIN, which changes a sign, or 0."""

    def enter(self, at: Emitter, element: SSAValue) -> Parts:
        (largest_of, _) = self.parts
        bits = at.emit(arith.BitcastOp, (element,), largest_of.type)
        return self._plus(at, bits, self.flip), self._plus(at, bits, self.rotation + self.flip)

    def leave(self, at: Emitter, parts: Parts) -> SSAValue:
        first, second = parts
        type = first.type
        negative = at.compare("slt", first, at.constant(type, 0))
        absent = at.compare("slt", second, at.constant(type, self.rotation))
        other = at.emit(arith.OrIOp, (negative, absent), i1)
        bits = at.select(other, self._plus(at, second, -self.rotation), first)
        return at.emit(arith.BitcastOp, (self._plus(at, bits, self.flip),), self.element)

    def _plus(self, at: Emitter, bits: SSAValue, number: int) -> SSAValue:
        """The sum, wrapping."""
        least = smallest(bits.type)
        number = (number - least) % (-2 * least) + least
        return at.add(bits, at.constant(bits.type, number)) if number else bits


def _extreme(element: Attribute, least: bool) -> FoldExtreme:
    """Of f32 or f64."""
    integer, layout, mantissa = (i32, "<fi", 23) if element == f32 else (i64, "<dq", 52)
    nothing = struct.pack(layout[:2], float("inf") if least else float("-inf"))
    (bits,) = struct.unpack("<" + layout[2], nothing)
    rotation = smallest(integer) + (1 << mantissa) - 1
    flip = smallest(integer) if least else 0
    parts = (
        Combine(integer, arith.MaxSIOp, _wrapped(bits + flip, integer)),
        Combine(integer, arith.MinSIOp, _wrapped(bits + flip + rotation, integer)),
    )
    return FoldExtreme(parts, element, rotation, flip)


def _wrapped(number: int, integer: Attribute) -> int:
    least = smallest(integer)
    return (number - least) % (-2 * least) + least


def _one(element: Attribute, kind: type[Operation], identity: float) -> Fold:
    properties = STRICT if element in _FLOATS else WRAP if kind in _WRAPPING else None
    return Fold((Combine(element, kind, identity, properties),))


_FLOATS, _INTEGERS = (f32, f64), (i32, i64)
_WRAPPING = (arith.AddiOp, arith.MuliOp)

FOLDS: Mapping[str, Mapping[Attribute, Fold]] = {
    "tssa.sum": {
        **{float: _one(float, arith.AddfOp, -0.0) for float in _FLOATS},
        **{integer: _one(integer, arith.AddiOp, 0) for integer in _INTEGERS},
    },
    "tssa.prod": {
        **{float: _one(float, arith.MulfOp, 1.0) for float in _FLOATS},
        **{integer: _one(integer, arith.MuliOp, 1) for integer in _INTEGERS},
    },
    "tssa.max": {
        **{float: _extreme(float, least=False) for float in _FLOATS},
        **{integer: _one(integer, arith.MaxSIOp, smallest(integer)) for integer in _INTEGERS},
        i8: _one(i8, arith.MaxUIOp, 0),
    },
    "tssa.min": {
        **{float: _extreme(float, least=True) for float in _FLOATS},
        **{integer: _one(integer, arith.MinSIOp, largest(integer)) for integer in _INTEGERS},
        i8: _one(i8, arith.MinUIOp, 1),
    },
}
"""Reduction -> type of the elements in memory -> its accumulators."""


@dataclass(frozen=True)
class Cells:
    """Accumulators in memory: an array, or a number of rank 0, for each part."""

    fold: Fold
    memory: tuple[SSAValue, ...]

    @staticmethod
    def on_stack(at: Emitter, fold: Fold, *sizes: int) -> Cells:
        """New ones, of the iteration that the emitter is in."""
        return Cells(fold, tuple(at.alloca(part.type, *sizes) for part in fold.parts))

    def load(self, at: Emitter, *indices: SSAValue) -> Parts:
        """One of them."""
        return tuple(at.load(memory, indices) for memory in self.memory)

    def store(self, at: Emitter, parts: Sequence[SSAValue], *indices: SSAValue) -> None:
        """Write one of them."""
        for value, memory in zip(parts, self.memory, strict=True):
            at.store(value, memory, indices)
