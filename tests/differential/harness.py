"""One function per way to run a program, and bitwise comparison.

Each takes the program and arguments and returns the results as arrays: `interpreted` (the VM at tier 0), `by_oracle`,
and, for a `Compiled` signature, `compiled.run`. NaN are equal whatever payload and sign they have; every
other bit counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import oracle

from jitdialects.bytecode.program import Program
from jitdialects.runtime.vm import VM

Results = Sequence[np.ndarray]


def interpreted(program: Program, arguments: Sequence[object]) -> Results:
    """The VM, operator by operator."""
    return VM(program).run("main", *arguments)


def by_oracle(program: Program, arguments: Sequence[object]) -> Results:
    """The definitions."""
    return [v.array for v in oracle.run_program(program, arguments)]


def assert_same(got: Results, want: Results, context: str) -> None:
    """Equal dtypes, shapes and bits, NaN alike; the message shows the first difference."""
    assert len(got) == len(want), context
    for position, (x, y) in enumerate(zip(got, want, strict=True)):
        where = f"{context}, result {position}"
        assert x.dtype == y.dtype, f"{where}: dtype {x.dtype}, expected {y.dtype}"
        assert x.shape == y.shape, f"{where}: shape {x.shape}, expected {y.shape}"
        different = _bits(x) != _bits(y)
        if different.any():
            index = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(different)))
            a, b = np.atleast_1d(x)[index], np.atleast_1d(y)[index]
            raise AssertionError(
                f"{where}: {int(different.sum())} of {x.size} elements differ, "
                f"first at {index}: {a!r}, expected {b!r}"
            )


def _bits(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "f":
        return x
    integer = {4: np.uint32, 8: np.uint64}[x.dtype.itemsize]
    return np.where(np.isnan(x), x.dtype.type(np.nan), x).view(integer)
