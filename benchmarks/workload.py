"""What a benchmark program is: its data, its text for every peer, and what the result must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arguments = list[Any]
"""NumPy arrays and Python numbers."""


class Unsupported(Exception):
    """This peer does not run this program; the text is one sentence."""


@dataclass(frozen=True)
class Workload:
    """One program.

    `inputs(rng, dtype, *sizes)` makes its arguments. `program(xp, *arguments)` is its text over an array
    namespace `xp`: NumPy's names, and `erf`, `while_loop(cond, body, init)`, `scan(f, init, xs)`.
    `reference(*arguments)` gets the arguments in float64 and returns what is expected, in float64.
    """

    inputs: Callable[..., Arguments]
    program: Callable[..., Any]
    reference: Callable[..., Array]
    tolerance: float
    """Largest allowed |got - expected| / (1 + |expected|)."""
    weights: int = 0
    """How many trailing arguments are weights: known when the program is made, the same at each call."""
    pick: Callable[..., tuple[Arguments, Any]] | None = None
    """For large programs: `pick(*arguments)` gives arguments of a part of the result and that part's
    index, so that a reference of the part is enough. None: everything is compared."""
    loops: bool = False
    """Whether the program has a loop of its own."""
    special: Mapping[str, Callable[..., Callable[..., Any]]] = field(default_factory=dict)
    """Peer -> `make(library, case)`, for peers that have no array namespace (loops of Numba, graphs of
    ONNX Runtime, text of NumExpr) and those that have an own function for all of it."""


@dataclass(frozen=True)
class Case:
    """A workload at one size, with its data."""

    workload: Workload
    dtype: np.dtype[Any]
    threads: int
    arguments: Arguments

    @property
    def inputs(self) -> Arguments:
        """The arguments of a call."""
        return self.arguments[: len(self.arguments) - self.workload.weights]

    @property
    def weights(self) -> Arguments:
        """The arguments that are known when the program is made."""
        return self.arguments[len(self.inputs) :]

    def error(self, result: Array) -> float:
        """Largest |result - expected| / (1 + |expected|); infinite for a wrong shape or dtype."""
        arguments, index = self.arguments, ()
        if self.workload.pick is not None:
            arguments, index = self.workload.pick(*arguments)
        expected = self.workload.reference(*map(_wide, arguments))
        got = np.asarray(result)[index] if index != () else np.asarray(result)
        if got.shape != expected.shape or got.dtype != self.dtype:
            return float("inf")
        distance = np.abs(got.astype(np.float64) - expected) / (1 + np.abs(expected))
        worst = float(np.max(distance, initial=0.0))
        return float("inf") if np.isnan(worst) else worst


def make_case(
    workload: Workload, dtype: str, sizes: Sequence[int], threads: int, seed: int = 0
) -> Case:
    """The workload with data of `dtype`; equal for every peer."""
    found = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    return Case(workload, found, threads, workload.inputs(rng, found, *sizes))


def _wide(argument: Any) -> Any:
    return argument.astype(np.float64) if isinstance(argument, np.ndarray) else argument


def every(stride_to: int) -> Callable[..., tuple[Arguments, Any]]:
    """A pick for elementwise programs of one axis: about `stride_to` elements, evenly spread."""

    def pick(*arguments: Any) -> tuple[Arguments, Any]:
        size = max(a.size for a in arguments if isinstance(a, np.ndarray))
        part = slice(None, None, max(1, size // stride_to))
        return [a[part] if isinstance(a, np.ndarray) else a for a in arguments], part

    return pick


def first_rows(count: int) -> Callable[..., tuple[Arguments, Any]]:
    """A pick for programs whose row i depends on row i of the first argument and all of the others."""

    def pick(*arguments: Any) -> tuple[Arguments, Any]:
        return [arguments[0][:count], *arguments[1:]], slice(0, count)

    return pick
