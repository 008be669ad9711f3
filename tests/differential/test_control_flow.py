"""Loops and choices: interpreted, by the definitions and compiled they give the same bits, whatever the
number of steps; and what reaches out of an array is the interpreter's error."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from differential.harness import Compiled, assert_same, by_oracle, interpreted

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import parse

RNG = np.random.default_rng(3)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def rnn(w, h, xs):
    def step(h, x):
        h = jnp.tanh(w @ h + x)
        return h, h

    return jd.scan(step, h, xs)


def turned(w, x):
    """A matrix that every step reads by columns, beside a vector on either side of it."""

    def body(i, s):
        a, b = s
        return (w.T @ a) * 0.5 + b, b @ w.T - a

    return jd.fori_loop(0, 17, body, (x, x + 1))


def one_column(w, x):
    def step(h, x):
        h = jnp.maximum(h @ w, x)
        return h, (w @ h.T)[:, 0]

    return jd.scan(step, x[:1], x)


def backwards(h, xs):
    return jd.scan(lambda h, x: (h * 0.5 + x, (h, x > h)), h, xs, reverse=True)


def gather(x, indices):
    def body(i, y):
        k = indices[i]
        return y + x[k] * x[-1 - i], i

    return jd.fori_loop(0, indices.shape[0], lambda i, s: body(i, s[0]), (x[0] * 0, 0))


def windows(x, n):
    def body(i, total):
        return total + x[i : i + 3] - x[i + 1 : i + 6 : 2][::1] * 0.25

    return jd.fori_loop(0, n, body, jnp.zeros(3, jnp.float32))


def outer(x, y):
    def row(i, out):
        return jd.fori_loop(0, y.shape[0], lambda j, out: out.at[i, j].set(x[i] * y[j]), out)

    return jd.fori_loop(0, x.shape[0], row, jnp.zeros((x.shape[0], y.shape[0]), jnp.float32))


def columns(x):
    def step(c, t):
        column = x.T[t]
        return c + column, jd.cond(t > 1, lambda: column.sum(), lambda: -column.sum())

    return jd.scan(step, x[:, 0] * 0, np.arange(3))


def rotate(x, n):
    """Three values that change places, one of them updated."""

    def body(i, s):
        a, b, c = s
        return b, c, a * 0.5 + b

    return jd.fori_loop(-2, n, body, (x, x + 1, x * 2))


def choose(k, x):
    branches = [lambda x, j=j: x * (j + 1) - j for j in range(5)]
    return jd.fori_loop(0, k, lambda i, x: jd.switch(i - 1, branches, x), x)


def smooth(pad, h, w):
    """numba/numba#8007: a sum of shifted slices."""
    out = jnp.zeros((4, 6), jnp.float32)

    def body(k, out):
        i = (k * 52429) >> 18  # k // 5
        j = k - i * 5
        return out + pad[i : i + 4, j : j + 6]

    return jd.fori_loop(0, 25, body, out)


def settled(x, w, k, n):
    """What no step changes: an exp, a sum of it, and a row that must be checked first."""

    def body(i, v):
        e = jnp.exp(w * 0.5)
        return v * e.sum() + e - w[k]

    return jd.fori_loop(0, n, body, x)


def flags(x, n):
    """Bytes in memory: a bool that is carried, read and written by index."""

    def body(i, s):
        seen, any_negative = s
        return seen.at[i].set(x[i] < 0), any_negative | (x[i] < 0)

    return jd.fori_loop(0, n, body, (x > 100, x[0] > 100))


CASES: dict[str, tuple[Callable[..., object], str, list[Callable[[], tuple[object, ...]]]]] = {
    "rnn": (
        rnn,
        "f32[n,n], f32[n], f32[t,n]",
        [
            lambda n=n, t=t: (floats(n, n), floats(n), floats(t, n))
            for n, t in [(3, 0), (3, 1), (8, 2), (1, 5), (33, 7), (5, 70)]
        ],
    ),
    "rnn of whole lines": (
        rnn,
        "f32[32,32], f32[32], f32[20,32]",
        [lambda: (floats(32, 32), floats(32), floats(20, 32))],
    ),
    "rnn of part lines": (
        rnn,
        "f64[21,21], f64[21], f64[20,21]",
        [lambda: tuple(floats(*s).astype(np.float64) for s in ((21, 21), (21,), (20, 21)))],
    ),
    "rnn of strided rows": (
        rnn,
        "f32[n,n]:strided, f32[n], f32[t,n]",
        [lambda: (floats(40, 10)[::-2, ::-1][:10], floats(10), floats(17, 10))],
    ),
    "turned": (
        turned,
        "f32[n,n], f32[n]",
        [lambda n=n: (floats(n, n), floats(n)) for n in (1, 37)],
    ),
    "turned, of whole lines": (
        turned,
        "f32[16,16], f32[16]",
        [lambda: (floats(16, 16), floats(16))],
    ),
    "one column": (
        one_column,
        "i32[12,12], i32[30,12]",
        [lambda: tuple(RNG.integers(-9, 9, s).astype(np.int32) for s in ((12, 12), (30, 12)))],
    ),
    "backwards": (
        backwards,
        "f32[n], f32[t,n]",
        [lambda n=n, t=t: (floats(n), floats(t, n)) for n, t in [(3, 0), (70, 1), (4, 9)]],
    ),
    "gather": (
        gather,
        "f32[m,n], i64[k]",
        [lambda k=k: (floats(9, 5), RNG.integers(-9, 9, k)) for k in (0, 1, 9)],
    ),
    "gather by int32": (
        gather,
        "f32[m,n], i32[k]",
        [lambda k=k: (floats(9, 5), RNG.integers(-9, 9, k).astype(np.int32)) for k in (0, 9)],
    ),
    "windows": (windows, "f32[n], int", [lambda n=n: (floats(70), n) for n in (-1, 0, 1, 64)]),
    "outer": (
        outer,
        "f32[n], f32[m]",
        [lambda n=n, m=m: (floats(n), floats(m)) for n, m in [(0, 3), (3, 0), (1, 1), (7, 5)]],
    ),
    "columns": (columns, "f32[n,3]", [lambda n=n: (floats(n, 3),) for n in (0, 1, 17)]),
    "rotate": (rotate, "f32[n], int", [lambda n=n: (floats(n + 5), n) for n in range(-3, 4)]),
    "choose": (choose, "int, f32[n]", [lambda k=k: (k, floats(9)) for k in range(8)]),
    "smooth": (smooth, "f32[n,m], int, int", [lambda: (floats(8, 10), 4, 6)]),
    "settled": (
        settled,
        "f32[5], f32[5], int, int",
        [lambda n=n: (floats(5), floats(5), -2, n) for n in (-1, 0, 1, 4)],
    ),
    "flags": (flags, "f32[n], int", [lambda n=n: (floats(9), n) for n in (0, 3, 9)]),
}


@cache
def program_of(name: str) -> Program:
    function, _, arguments = CASES[name]
    f = jd.jit(function)
    f(*arguments[-1]())
    return f.program


@cache
def compiled(name: str, fuse: bool) -> Compiled:
    return Compiled(program_of(name), parse(f"main({CASES[name][1]})"), fuse=fuse)


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_every_engine_gives_the_same_bits(name: str, fuse: bool) -> None:
    for arguments in CASES[name][2]:
        given = arguments()
        want = interpreted(program_of(name), given)
        assert_same(by_oracle(program_of(name), given), want, f"{name} by definition")
        assert_same(compiled(name, fuse).run(given), want, f"{name} compiled")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("gather", (floats(9, 5), np.array([0, 9]))),
        ("gather", (floats(9, 5), np.array([0, 1, -10]))),
        ("flags", (floats(9), 10)),
        ("windows", (floats(70), 66)),
    ],
)
def test_what_reaches_out_is_left_to_the_interpreter(name: str, arguments: tuple) -> None:
    kernel = compiled(name, True).kernel
    from jitdialects.runtime.pool import default_pool

    assert kernel.invoke(arguments, default_pool) is None
    if name != "windows":  # a slice may reach out
        with pytest.raises(jd.OutOfBoundsError, match="out of range for axis 0"):
            interpreted(program_of(name), arguments)
