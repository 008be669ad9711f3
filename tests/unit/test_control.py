"""`while_loop`: control flow of the program, under jit and outside of it."""

from __future__ import annotations

import inspect
from typing import NamedTuple

import numpy as np
import pytest

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.frontends import control


def newton(a, limit):
    """Square roots by Newton's iteration: (roots, steps)."""

    def cond(state):
        x, steps = state
        return (jnp.max(jnp.abs(x * x - a)) > 1e-4) & (steps < limit)

    def body(state):
        x, steps = state
        return 0.5 * (x + a / x), steps + 1

    return jd.while_loop(cond, body, (jnp.ones_like(a), 0))


def opcodes(f: object) -> list[str]:
    blocks = f.program.functions[0].blocks
    return [i.opcode for b in blocks for i in b.instructions if i.opcode != "destroy"]


def test_newton_as_one_program_of_four_blocks() -> None:
    f = jd.jit(newton)
    a = np.array([2, 3, 4, 100], np.float32)
    roots, steps = f(a, 50)
    np.testing.assert_allclose(roots, np.sqrt(a), rtol=1e-5)
    assert roots.dtype == np.float32 and 5 < steps < 15
    assert f(a, 3)[1] == 3
    assert f(np.ones(2, np.float32), 50)[1] == 0
    names = [b.name for b in f.program.functions[0].blocks]
    assert names[:4] == ["entry", "header1", "body2", "exit3"]
    assert opcodes(f).count("cond_br") == 1 and len(f._captures) == 1


def test_outside_of_jit_it_runs_at_once_on_lazy_arrays() -> None:
    a = jnp.asarray([2.0, 3.0])
    roots, steps = newton(a * 1.0, 50)
    assert isinstance(roots, jd.Array) and roots.value.block is None
    np.testing.assert_allclose(np.asarray(roots), np.sqrt([2, 3]), rtol=1e-5)
    assert 1 < int(steps) < 10


def repeated_sum(scale, times, start):
    """Closes over an array and a number, which are arguments of the loop and no constants."""
    return jd.while_loop(lambda s: s[1] < times, lambda s: (s[0] + scale, s[1] + 1), (start, 0))


def test_equal_loops_outside_of_jit_share_a_machine() -> None:
    control.clear_loops()
    for n in range(1, 5):
        total, k = repeated_sum(jnp.asarray(float(n)), 3 * n, np.zeros(n, np.float32))
        np.testing.assert_array_equal(np.asarray(total), np.full(n, 3 * n * n, np.float32))
        assert int(k) == 3 * n
    assert len(control._kept) == 1


def test_carried_values_are_exchanged_at_once() -> None:
    fibonacci = jd.jit(lambda n: jd.while_loop(lambda s: s[2] < n, _step, (0, 1, 0)))
    assert [int(fibonacci(n)[0]) for n in range(10)] == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]


def _step(state):
    a, b, i = state
    return b, a + b, i + 1


def test_a_body_that_gives_back_what_it_got() -> None:
    def run(x):
        return jd.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[2], s[1]), (0, x, x + 1))

    x = np.arange(3, dtype=np.float32)
    for function in (run, jd.jit(run)):
        _, first, second = function(x)
        np.testing.assert_array_equal(np.asarray(first), x)
        np.testing.assert_array_equal(np.asarray(second), x + 1)


class State(NamedTuple):
    x: object
    more: object


def test_structures_are_kept() -> None:
    @jd.jit
    def f(x):
        return jd.while_loop(
            lambda s: s.more["i"] < 3,
            lambda s: State(s.x * 2, {"i": s.more["i"] + 1, "none": None}),
            State(x, {"i": 0, "none": None}),
        )

    got = f(np.ones(2, np.float32))
    assert type(got) is State and got.x.tolist() == [8, 8] and got.more["none"] is None


def test_nested_loops() -> None:
    @jd.jit
    def table(n):
        def row(state):
            i, total = state
            _, total = jd.while_loop(
                lambda s: s[0] < i, lambda s: (s[0] + 1, s[1] + s[0] * i), (0, total)
            )
            return i + 1, total

        return jd.while_loop(lambda s: s[0] < n, row, (0, 0))[1]

    assert table(6) == sum(i * j for i in range(6) for j in range(i))
    assert opcodes(table).count("cond_br") == 2


def test_two_loops_in_a_row_and_use_of_the_results() -> None:
    @jd.jit
    def f(x):
        a = jd.while_loop(lambda v: v.max() < 10, lambda v: v * 2, x)
        b = jd.while_loop(lambda v: v.max() > 1, lambda v: v / 4, a)
        return a + b, a

    x = np.array([1, 3], np.float32)
    got, a = f(x)
    np.testing.assert_array_equal(a, [4, 12])
    np.testing.assert_array_equal(got, [4 + 0.25, 12 + 0.75])


def test_sizes_may_change_around_the_loop() -> None:
    @jd.jit
    def f(x):
        return jd.while_loop(lambda v: v.sum() > 10, lambda v: v[1:], x)

    assert f(np.arange(8)[::-1].copy()).tolist() == [4, 3, 2, 1, 0]
    assert f(np.arange(3)).tolist() == [0, 1, 2]


# ---- dtypes ------------------------------------------------------------------------------------


def test_python_scalars_take_the_dtype_of_the_body() -> None:
    x = np.array([1.5], np.float32)

    def sums(x):
        return jd.while_loop(lambda s: s[1] < 4, lambda s: (s[0] + x.max(), s[1] + 1), (0, 0))

    for function in (sums, jd.jit(sums)):
        total, count = function(x)
        assert np.asarray(total).dtype == np.float32 and float(total) == 6 and int(count) == 4


def test_promotions_reach_each_other() -> None:
    @jd.jit
    def f(x):  # b becomes float32 through x, then a through b
        return jd.while_loop(lambda s: s[2] < 3, lambda s: (s[1], s[1] + x, s[2] + 1), (0, 1.0, 0))

    a, b, _ = f(np.float32(2))
    assert a.dtype == b.dtype == np.float32 and a == 5 and b == 7


def test_weak_integers_become_weak_floats() -> None:
    assert jd.jit(lambda: jd.while_loop(lambda v: v < 3, lambda v: v + 0.75, 0))() == 3.0
    assert float(jd.while_loop(lambda v: v < 3, lambda v: v + 0.75, 0)) == 3.0


def test_a_python_scalar_from_the_body_is_cast_to_what_is_carried() -> None:
    got = jd.jit(lambda x: jd.while_loop(lambda v: v < 1, lambda v: 2, x))(np.float32(0))
    assert got.dtype == np.float32 and got == 2


# ---- errors ------------------------------------------------------------------------------------

X = np.arange(3, dtype=np.float32)
MISTAKES = {
    "structure": (lambda v: v.max() < 9, lambda v: (v, v), X, jd.TraceError),
    "rank": (lambda v: v.max() < 9, lambda v: v.sum(), X, jd.ShapeError),
    "dtype": (lambda v: v.max() < 9, lambda v: v > 0, X, jd.DTypeError),
    "wider": (lambda v: v < 9, lambda v: v + 0.5, np.int64(1), jd.DTypeError),
    "float into int": (lambda v: v < 9, lambda v: 0.5, np.int64(1), jd.DTypeError),
    "condition": (lambda v: v < 9, lambda v: v + 1, X, jd.ShapeError),
    "no truth": (lambda v: "yes", lambda v: v + 1, X, jd.ArgumentError),
    "text": (lambda v: True, lambda v: v, "text", jd.ArgumentError),
    "branch": (lambda v: v.max() < 9 and v, lambda v: v, X, jd.TraceError),
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence_and_work_goes_on(name: str, jitted: bool) -> None:
    cond, body, init, error = MISTAKES[name]
    with pytest.raises(error) as caught:
        if jitted and not isinstance(init, str):
            jd.jit(lambda x: jd.while_loop(cond, body, x))(init)
        else:
            jd.while_loop(cond, body, init)
    text = str(caught.value)
    assert isinstance(caught.value, jd.Error)
    assert "\n" not in text and not text.endswith(".") and len(text) < 350
    assert int(jd.while_loop(lambda v: v < 5, lambda v: v + 2, 0)) == 6


def test_errors_name_the_users_line() -> None:
    def body(v):
        return v.sum()

    with pytest.raises(jd.ShapeError, match="carried value 0 has rank 1") as caught:
        jd.while_loop(lambda v: v.max() < 9, body, X)
    here = inspect.currentframe().f_lineno - 1
    assert str(caught.value).startswith(f"{__file__}:{here}:")


def test_arrays_of_the_loop_do_not_leave_it() -> None:
    kept = []

    def body(v):
        kept.append(v * 2)
        return v + 1

    @jd.jit
    def f(x):
        y = jd.while_loop(lambda v: v.max() < 9, body, x)
        return y + kept[-1]

    with pytest.raises(jd.TraceError, match="inside a loop"):
        f(X)


def test_an_endless_index_in_a_loop_raises_its_own_error() -> None:
    f = jd.jit(lambda x: jd.while_loop(lambda i: x[i] >= 0, lambda i: i + 1, 0))
    with pytest.raises(jd.OutOfBoundsError):
        f(X)
    assert f(np.array([1, 1, -1], np.float32)) == 2


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(
        jd.ArgumentError, match="while_loop: body_fun must be a function .* got int"
    ):
        jd.while_loop(lambda x: x < 3, 3, 0)


def test_numbers_that_a_loop_carries_stay_python_numbers() -> None:
    """A counter that comes out of a loop takes the dtype of what it meets, under jit and without."""

    def run(x):
        i, half, y = jd.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 0.5, s[2] + s[1]), (0, 1.0, x)
        )
        return y * i + half

    for dtype in (np.float32, np.float64):
        x = np.arange(3, dtype=dtype)
        want = (x + 1 + 0.5 + 0.25) * 3 + 0.125
        for function in (jd.jit(run), lambda x: run(jnp.asarray(x))):
            got = np.asarray(function(x))
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, want)


def test_what_a_loop_carries_keeps_its_dtype() -> None:
    @jd.jit
    def count(x):
        return jd.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * x), (x[0], x))

    x = np.array([2, 3], np.int32)
    i, power = count(x)
    assert i.dtype == power.dtype == np.int32 and int(i) == 5
    np.testing.assert_array_equal(power, x**4)
    with pytest.raises(jd.DTypeError, match="is int32.* int64; cast it"):
        jd.while_loop(lambda v: v.max() < 9, lambda v: v + np.int64(1), jnp.asarray(x))


def test_a_python_integer_that_a_loop_changes_meets_int32() -> None:
    """The counter is known only when it runs: compiled code checks it, the interpreter raises."""

    @jd.jit
    def f(x, step):
        return jd.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + step, s[1] + s[0]), (0, x))

    x = np.array([1, 2**31 - 1], np.int32)
    for _ in range(30):
        i, total = f(x, 4)
        f.wait()
        assert int(i) == 12 and total.tolist() == [13, -(2**31) + 11]
    assert f.machines()[0].block_counts()[0]["served"]
    with pytest.raises(OverflowError, match="4294967296 does not fit int32"):
        jd.jit(lambda x: jd.while_loop(lambda s: s[0] < 1, lambda s: (s[1], x), (2**32, x)))(x[0])


def test_a_counter_that_leaves_int32_is_refused_by_compiled_code_too() -> None:
    @jd.jit
    def f(x, step):
        return jd.while_loop(
            lambda s: s[0] < 3 * step, lambda s: (s[0] + step, s[1] + s[0]), (0, x)
        )

    x = np.arange(3, dtype=np.int32)
    for _ in range(30):
        f(x, 2)
        f.wait()
    served = f.machines()[0].block_counts()[0]["served"]
    assert served
    with pytest.raises(OverflowError, match="Python integer 3221225472 does not fit int32"):
        f(x, 3 * 2**30)
    assert f.machines()[0].block_counts()[0]["served"] == served
