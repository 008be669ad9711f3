"""Calls of small functions: what a call costs, and what NumPy takes for the same.

Arrays of 8 float32, so that computing is next to nothing. Ours and NumPy take turns within a row.
"""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import jitdialects as jd
import jitdialects.numpy as jnp
from benchmarks.runtime.row import Row

Call = Callable[[], object]
X, Y = np.arange(8, dtype=np.float32), np.ones(8, np.float32)
SIGNATURES = 200
ROUND_SECONDS = 40e-6
"""A round is short, so that most are undisturbed on a busy machine."""
KEPT = 100
"""Results that are alive at once."""


def nanoseconds(*calls: Call, rounds: int = 401) -> list[float]:
    """Per call the median over short rounds of its mean time; in each round all take their turn."""
    numbers = [max(1, int(ROUND_SECONDS / timeit.timeit(c, number=20) * 20)) for c in calls]
    times = [
        [timeit.timeit(c, number=n) / n for c, n in zip(calls, numbers, strict=True)]
        for _ in range(rounds)
    ]
    return [statistics.median(column) * 1e9 for column in zip(*times, strict=True)]


def warm(call: Call, runs: int = 60) -> None:
    """Until compiled code serves it."""
    for _ in range(3):
        for _ in range(runs):
            call()
        jd.wait()


def compared(
    name: str, ours: Call, numpy: Call, aim: str = "", note: str = "", per: int = 1
) -> list[Row]:
    """A row for us, one for NumPy, one for the ratio; `per`: each makes so many calls."""
    warm(ours)
    mine, its = (time / per for time in nanoseconds(ours, numpy))
    return [
        Row(name, mine, "ns", note=note),
        Row(f"{name}: NumPy", its, "ns"),
        Row(f"{name}: ratio", mine / its, "x NumPy", aim),
    ]


def formula(x: Any, y: Any) -> Any:
    """Two operators."""
    return x * y + x


def total(*arrays: Any) -> Any:
    """One operator less than there are arguments; one for one."""
    result = arrays[0] + arrays[-1]
    for array in arrays[1:-1]:
        result = result + array
    return result


class Model:
    """A method, compiled and not."""

    weight = 2.0

    @jd.jit
    def jitted(self, x: Any) -> Any:
        return x * self.weight + x

    def plain(self, x: Any) -> Any:
        return x * np.float32(self.weight) + x


def positional() -> list[Row]:
    """Calls with positional arguments."""
    f = jd.jit(formula)
    rows = compared("x*y+x", lambda: f(X, Y), lambda: formula(X, Y), "<= 0.15", "recycled result")
    many = range(KEPT)
    ours, numpy = lambda: [f(X, Y) for _ in many], lambda: [formula(X, Y) for _ in many]
    note = f"a list of {KEPT} results"
    rows += compared("x*y+x, kept", ours, numpy, "<= 0.25", note, KEPT)
    for count in (1, 4, 12):
        g, arrays = jd.jit(total), [X] * count
        name = f"sum of {count} argument(s)"
        rows += compared(name, lambda: g(*arrays), lambda: total(*arrays), "<= 0.15")  # noqa: B023
    return rows


def other_ways() -> list[Row]:
    """Keywords, scalars, methods, many signatures."""
    f, g, model = jd.jit(formula), jd.jit(formula), Model()
    rows = compared("f(x, y=y)", lambda: f(X, y=Y), lambda: formula(X, y=Y), "<= 0.15")
    rows += compared("f(y=y, x=x)", lambda: f(y=Y, x=X), lambda: formula(y=Y, x=X), "<= 0.15")
    rows += compared("f(x, 2.0)", lambda: g(X, 2.0), lambda: formula(X, 2.0), "<= 0.15")
    method = "model.method(x)"
    return rows + compared(method, lambda: model.jitted(X), lambda: model.plain(X), "<= 0.15")


def many_signatures() -> list[Row]:
    """A function with a stub for each of many sizes, called with all in turn."""
    f = jd.jit(formula, shapes="exact")
    arrays = [np.ones(size, np.float32) for size in range(1, SIGNATURES + 1)]
    for _ in range(12):
        for x in arrays:
            f(x, x)
    f.wait()

    def ours() -> None:
        for x in arrays:
            f(x, x)

    def numpy() -> None:
        for x in arrays:
            formula(x, x)

    ours()
    mine, its = nanoseconds(ours, numpy)
    return [
        Row(f"{SIGNATURES} exact signatures in turn", mine / SIGNATURES, "ns", "<= 200"),
        Row(f"{SIGNATURES} exact signatures in turn: NumPy", its / SIGNATURES, "ns"),
    ]


def machines() -> list[Row]:
    """`VM.run` and lazy arrays."""
    f = jd.jit(formula)
    f(X, Y)
    vm = jd.VM(f.program)
    rows = compared("VM.run", lambda: vm.run("main", X, Y), lambda: formula(X, Y), "<= 1000 ns")
    a, b = jnp.asarray(X), jnp.asarray(Y)
    rows += compared("f of lazy arrays", lambda: f(a, b), lambda: formula(X, Y))

    def block() -> object:
        return np.asarray(jnp.tanh(a * b + a))

    def record() -> None:
        jnp.tanh(a * b + a)

    rows += compared("lazy block of 3 operators", block, lambda: np.tanh(X * Y + X))
    rows[-3] = Row(rows[-3].name, rows[-3].value, "ns", note="recorded, keyed, run, and fetched")
    (recorded,) = nanoseconds(record)
    return [*rows, Row("of that: recording", recorded, "ns", note="nobody asks for the result")]


def measure() -> list[Row]:
    """The rows of this topic."""
    return [*positional(), *other_ways(), *many_signatures(), *machines()]
