"""Calls that run in code for larger sizes: arguments are padded, results cropped.

Only sizes of which `analysis.padding` says that rows stay rows are padded, so that what is cropped is all that the
padding has touched. Padded rows are zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from jitdialects.analysis.padding import Padding
from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Shape
from jitdialects.bytecode.signature import Signature
from jitdialects.runtime.pool import MemoryPool
from jitdialects.runtime.values import Array

MAX_CALLS = 1024
"""Decisions about padding kept per class of arguments."""


@dataclass(frozen=True)
class PaddedCall:
    """How one call is bound to code for larger sizes."""

    shapes: tuple[tuple[int, ...] | None, ...]
    """Of the arguments as the code sees them; None for those that have no padded axis."""
    results: tuple[tuple[int, ...], ...]
    """The shapes that the caller gets."""
    rows: int
    """Sum of the sizes that are padded, before."""
    wasted: int
    """What padding adds to that sum."""

    def bind(self, arguments: Sequence[object], pool: MemoryPool) -> list[object]:
        """The arguments with further rows where they are needed; those arrays are copies."""
        out: list[object] = []
        for argument, shape in zip(arguments, self.shapes, strict=True):
            if shape is None:
                out.append(argument)
                continue
            array = cast(Array, argument)
            fits = array.shape == shape and array.flags.c_contiguous
            out.append(array if fits else _padded(array, shape, pool))
        return out

    def contiguous(self, signature: Signature) -> Signature:
        """A signature of the call whose padded arguments are copies."""
        arguments = tuple(
            given if shape is None else replace(given, strided=False)
            for given, shape in zip(signature.arguments, self.shapes, strict=True)
        )
        return replace(signature, arguments=arguments)

    def crop(self, results: Sequence[Array], pool: MemoryPool) -> tuple[Array, ...]:
        """The rows that belong to the call, as arrays of their own: code keeps no rows that nobody asked for."""
        return tuple(
            result if result.shape == shape else _cropped(result, shape, pool)
            for result, shape in zip(results, self.results, strict=True)
        )


def _padded(array: Array, shape: tuple[int, ...], pool: MemoryPool) -> Array:
    out = pool.empty(shape, array.dtype)
    out[tuple(map(slice, array.shape))] = array
    for axis, size in enumerate(array.shape):
        if size < shape[axis]:
            before = tuple(map(slice, array.shape[:axis]))
            out[*before, slice(size, None)] = 0
    return out


def _cropped(array: Array, shape: tuple[int, ...], pool: MemoryPool) -> Array:
    out = pool.empty(shape, array.dtype)
    out[...] = array[tuple(map(slice, shape))]
    return out


def concrete(shape: Shape, sizes: dict[str, int]) -> tuple[int, ...]:
    """A shape of which all sizes are known."""
    return tuple(dims.evaluate(size, sizes) for size in shape)


@dataclass
class PolicyState:
    """What a shape policy decided about the calls of one class of arguments."""

    paddings: dict[Signature, Padding] = field(default_factory=dict[Signature, Padding])
    """What may be padded, by signatures in which sizes that varied have names."""
    rows: int = 0
    """Rows of calls that were padded."""
    wasted_rows: int = 0
    """Rows that were added to them."""
    trouble: str = ""
    """What the policy raised, the first time."""
    _calls: dict[tuple[tuple[int, ...], ...], PaddedCall | None] = field(
        default_factory=dict[tuple[tuple[int, ...], ...], PaddedCall | None]
    )
    _seen: int = 0

    def padded_call(
        self,
        shapes: tuple[tuple[int, ...], ...],
        seen: int,
        decide: Callable[[], PaddedCall | None],
    ) -> PaddedCall | None:
        """How a call is padded, decided once for a number of shapes `seen`: another size may vary afterwards."""
        calls = self._calls
        if seen != self._seen or len(calls) >= MAX_CALLS:
            calls = self._calls = {}
            self._seen = seen
        if shapes not in calls:
            calls[shapes] = decide()
        return calls[shapes]
