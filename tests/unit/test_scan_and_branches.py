"""`fori_loop`, `scan`, `cond`, `switch`: under jit and outside of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import jitdialects as jd
import jitdialects.numpy as jnp

X = np.arange(3, dtype=np.float32)


def both(function):
    """The function as it is, and jitted."""
    return function, jd.jit(function)


# ---- fori_loop -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("lower", "upper"), [(0, 5), (-3, 4), (2, 2), (5, 1), (-8, -5)])
def test_fori_loop_takes_the_steps_of_range(lower, upper):
    want = 1
    for i in range(lower, upper):
        want = want * 3 + i
    for f in both(lambda a, b: jd.fori_loop(a, b, lambda i, v: v * 3 + i, 1)):
        assert int(f(lower, upper)) == want
        assert int(f(np.int64(lower), upper)) == want


def test_the_counter_is_weak_and_the_last_integer_is_reached():
    for f in both(lambda x: jd.fori_loop(0, 3, lambda i, v: v + i, x)):
        assert np.asarray(f(X)).dtype == np.float32
    last = 2**63 - 1
    assert int(jd.fori_loop(last - 2, last, lambda i, v: v + 1, 0)) == 2


def test_fori_loop_refuses():
    with pytest.raises(jd.ArgumentError, match="fori_loop: a bound must be an integer, got float"):
        jd.fori_loop(0, 1.5, lambda i, v: v, 0)
    with pytest.raises(jd.ShapeError, match="fori_loop: carried value 1 has rank 1 and becomes"):
        jd.fori_loop(0, 3, lambda i, v: (v[0], v[1].sum()), (X, X))
    with pytest.raises(jd.TraceError, match=r"structure \*, the function returned \(\*, \*\)"):
        jd.fori_loop(0, 3, lambda i, v: (v, v), X)
    with pytest.raises(jd.ArgumentError, match="body_fun must be a function .* got int"):
        jd.fori_loop(0, 3, 4, X)


# ---- scan ----------------------------------------------------------------------------------------


def rnn(w, h, xs):
    def step(h, x):
        h = jnp.tanh(w @ h + x)
        return h, h

    return jd.scan(step, h, xs)


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_scan_is_the_loop_in_python(steps):
    rng = np.random.default_rng(steps)
    w, h = rng.random((4, 4), np.float32), rng.random(4, np.float32)
    xs = rng.random((steps, 4), np.float32)
    want, one = [], jnp.asarray(h)
    for x in xs:
        one = jnp.tanh(jnp.asarray(w) @ one + x)
        want.append(np.asarray(one))
    for f in both(rnn):
        last, ys = f(w, h, xs)
        np.testing.assert_array_equal(np.asarray(last), want[-1] if want else h)
        assert np.asarray(ys).shape == (steps, 4) and np.asarray(ys).dtype == np.float32
        if steps:
            np.testing.assert_array_equal(np.asarray(ys), want)


class State(NamedTuple):
    total: object
    steps: object


def test_structures_reverse_and_weak_carries():
    xs = {"a": np.arange(5, dtype=np.float32), "b": np.arange(5) > 2}

    def run(xs):
        def f(c, x):
            return State(c.total + x["a"], c.steps + 1), (c.total, [x["b"]], None)

        return jd.scan(f, State(0, 0), xs, reverse=True)

    for f in both(run):
        last, (before, [flags], none) = f(xs)
        assert none is None and type(last) is State
        assert float(last.total) == 10 and int(last.steps) == 5
        assert np.asarray(before).tolist() == [10, 9, 7, 4, 0]
        assert np.asarray(before).dtype == np.float32
        assert np.asarray(flags).tolist() == [False, False, False, True, True]


def test_scan_without_arrays():
    for f in both(lambda n: jd.scan(lambda c, _: (c * 2, c), 1, length=n)):
        last, ys = f(6)
        assert int(last) == 64 and np.asarray(ys).tolist() == [1, 2, 4, 8, 16, 32]
        assert np.asarray(f(0)[1]).shape == (0,)


def test_a_scan_in_a_scan():
    def run(x):
        def row(c, r):
            return jd.scan(lambda c, v: (c + v, c * v), c, r)

        return jd.scan(row, np.float32(0), x)

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for f in both(run):
        last, ys = f(x)
        flat = x.reshape(-1)
        assert float(last) == flat.sum()
        before = np.concatenate([[0], np.cumsum(flat)[:-1]])
        np.testing.assert_array_equal(np.asarray(ys), (before * flat).reshape(3, 4))


MISTAKES = {
    "rank": (lambda c, x: (c.sum(), x), X, X, "carried value 0 has rank 1 and becomes rank 0"),
    "dtype": (lambda c, x: (c > 0, x), X, X, "carried value 0 is float32 and becomes bool"),
    "leaf": (
        lambda c, x: ({"w": c["w"] > 0}, x),
        {"w": X},
        X,
        r"carried value \['w'\] is float32 and becomes bool",
    ),
    "structure": (lambda c, x: ((c, c), x), X, X, r"has the structure \*, f returned \(\*, \*\)"),
    "pair": (lambda c, x: c, X, X, "f returned Array, needs the pair"),
    "scalar": (lambda c, x: (c, x), X, 3.0, "xs 0 has rank 0"),
    "nothing": (lambda c, x: (c, x), X, None, "give length="),
    "sizes": (lambda c, x: (c, None), X, (X, X[:2]), "leading size of xs 0 is 3, .* xs 1 is 2"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_scan_is_one_sentence(name):
    f, init, xs, match = MISTAKES[name]
    with pytest.raises(jd.Error, match=match) as caught:
        jd.scan(f, init, xs)
    text = str(caught.value)
    assert "\n" not in text and "scan: " in text and not text.endswith(".")


def test_sizes_that_differ_when_a_capture_runs():
    f = jd.jit(lambda x, y: jd.scan(lambda c, v: (c + v[0] * v[1], None), np.float32(0), (x, y))[0])
    assert float(f(X, X)) == 5
    with pytest.raises(jd.ShapeError, match="2.*3|3.*2") as caught:
        f(X, X[:2])
    assert "\n" not in str(caught.value)
    with pytest.raises(jd.ShapeError):
        f(X, X[:1])


# ---- cond and switch -----------------------------------------------------------------------------


def test_cond_takes_one_way():
    def run(p, x):
        return jd.cond(p, lambda x, y: (x + y, 1), lambda x, y: (x - y, 0.5), x, 2)

    for f in both(run):
        for p in (True, False, np.bool_(True), 0, 2.5):
            value, weak = f(p, X)
            np.testing.assert_array_equal(np.asarray(value), X + 2 if p else X - 2)
            assert float(weak) == (1 if p else 0.5)


def test_a_python_scalar_takes_the_dtype_of_the_other_function():
    for f in both(lambda p, x: jd.cond(p, lambda: 0, lambda: x)):
        for p in (True, False):
            assert np.asarray(f(p, np.float32(3))).dtype == np.float32


def test_conds_and_loops_inside_each_other():
    def collatz(n):
        def body(s):
            n, k = s
            half = n >> 1
            return jd.cond(half * 2 == n, lambda: half, lambda: 3 * n + 1), k + 1

        return jd.while_loop(lambda s: s[0] != 1, body, (n, 0))[1]

    for f in both(collatz):
        assert [int(f(n)) for n in (1, 2, 3, 7, 27)] == [0, 1, 7, 16, 111]


def test_switch_clamps():
    for f in both(lambda i, x: jd.switch(i, [lambda x: x, lambda x: x * 2, lambda x: 7], x)):
        assert [float(f(i, np.float32(5))) for i in (-9, 0, 1, 2, 8)] == [5, 5, 10, 7, 7]


def test_branches_refuse():
    with pytest.raises(jd.DTypeError, match="cond: result 0 is float32 and becomes bool"):
        jd.cond(True, lambda: X, lambda: X > 0)
    with pytest.raises(jd.TraceError, match=r"cond: one function returned the structure \*"):
        jd.cond(True, lambda: X, lambda: (X, X))
    with pytest.raises(jd.ShapeError, match="cond: result 1 has rank 1 and becomes rank 0"):
        jd.cond(True, lambda: (X, X), lambda: (X, X.max()))
    with pytest.raises(jd.ShapeError, match="cond: the choice is an array of rank 1"):
        jd.cond(X > 0, lambda: X, lambda: X)
    with pytest.raises(jd.ArgumentError, match="false_fun must be a function"):
        jd.cond(True, lambda: X, 3)
    with pytest.raises(jd.ArgumentError, match="index must be an integer, got float"):
        jd.switch(1.0, [lambda: X])
    with pytest.raises(jd.ArgumentError, match="branches is empty"):
        jd.switch(1, [])
    kept = []
    with pytest.raises(jd.TraceError, match="inside a loop or branch"):
        jd.cond(True, lambda: kept.append(jnp.asarray(X) + 1) or X, lambda: kept[0])
