"""Lazy arrays: what NumPy gives, one instruction per call, run at synchronisation."""

from __future__ import annotations

import copy
import enum
import gc
import pickle
import sys
import threading

import numpy as np
import pytest

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.frontends import lazy
from jitdialects.frontends.recorder import lazy_recorder

FLOATS = (
    np.float32(1.5),
    np.array([0.0, -0.0, np.nan, np.inf, -2.5], np.float32),
    np.arange(12, dtype=np.float32).reshape(3, 4) - 5,
    np.arange(24, dtype=np.float32).reshape(4, 6)[::2, ::-2],
    np.zeros((0, 4), np.float32),
)


def recorded() -> list[str]:
    """The opcodes that this thread has recorded and not run."""
    recorder = lazy_recorder()
    return [e.opcode for e in recorder._block.entries()]


def check(got: jd.Array, want: object) -> None:
    """Equal bits, dtype and shape."""
    expected = np.asarray(want)
    actual = np.asarray(got)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(actual, expected)
    if expected.dtype == np.float32:
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual)[number], np.signbit(expected)[number])


# ---- recording ---------------------------------------------------------------------------------


def test_each_call_records_one_instruction_and_runs_nothing() -> None:
    jd.sync()
    x = jnp.asarray(np.ones((2, 3), np.float32))
    y = jnp.tanh(x * 2.0 + 1.0)
    assert recorded() == ["multiply", "add", "tanh"]
    assert y.shape == (2, 3) and y.dtype == np.float32 and y.ndim == 2 and y.size == 6
    assert len(recorded()) == 3
    np.asarray(y)
    assert recorded() == []


@pytest.mark.parametrize(
    "synchronise",
    [np.asarray, str, repr, lambda y: bool(y[0]), lambda y: float(y[0]), lambda y: int(y[0])]
    + [lambda y: y[0].item(), lambda y: jd.sync(), lambda y: jnp.ones((3,))[y.astype("int64")[0]]],
)
def test_what_needs_elements_runs_the_block(synchronise: object) -> None:
    y = jnp.asarray(np.ones(3, np.float32)) + 1
    synchronise(y)
    assert "add" not in recorded()
    assert y.value.block is None


def test_results_of_a_block_are_what_python_still_holds() -> None:
    jd.sync()
    x = jnp.asarray(np.ones(3, np.float32))
    kept = x + 1
    dropped = x + 2
    inner = (kept * 3) - 1
    del dropped
    gc.collect()
    assert [v() is not None for v in lazy_recorder()._block.values] == [True, False, False, True]
    check(inner, np.full(3, 5, np.float32))
    check(kept, np.full(3, 2, np.float32))


def test_nothing_runs_when_nobody_wants_it() -> None:
    jd.sync()
    x = jnp.asarray(np.ones(3, np.float32))
    x + 1
    gc.collect()
    jd.sync()
    assert recorded() == []


def test_a_block_has_a_limit() -> None:
    jd.sync()
    x = jnp.asarray(np.float32(0))
    for _ in range(lazy.BLOCK_LENGTH + 10):
        x = x + 1
    assert len(recorded()) == 10
    assert x.item() == lazy.BLOCK_LENGTH + 10


# ---- structure: the same block is the same program ---------------------------------------------


def programs() -> int:
    """How many programs this thread's blocks have."""
    return len(lazy_recorder()._kept)


@pytest.fixture(autouse=True)
def fresh_recorder() -> None:
    jd.sync()
    lazy.clear_blocks()


def test_repeated_blocks_are_one_program_whatever_the_scalars_and_sizes() -> None:
    for n in range(1, 6):
        x = jnp.asarray(np.full(n, n, np.float32))
        check(x * float(n) + n, np.full(n, n * n + n, np.float32))
    assert programs() == 1


def test_live_results_are_part_of_the_key() -> None:
    x = jnp.asarray(np.ones(3, np.float32))
    y = x + 1
    z = y * 2
    jd.sync()
    w = (x + 1) * 2
    check(w, np.full(3, 4, np.float32))
    check(y, np.full(3, 2, np.float32))
    check(z, np.full(3, 4, np.float32))
    assert programs() == 2


def test_changing_indices_become_arguments_at_their_second_value() -> None:
    x = np.arange(20, dtype=np.float32)
    lazy_x = jnp.asarray(x)
    seen = []
    for start in range(10):
        check(lazy_x[start : start + 3] + lazy_x[start], x[start : start + 3] + x[start])
        (compiled,) = lazy_recorder()._kept.values()
        seen.append(compiled.vm)
    assert len(set(map(id, seen))) == 2


def test_the_shape_of_a_result_follows_the_integers() -> None:
    x = np.arange(12, dtype=np.float32)
    for sizes in ((2, 6), (6, 2), (3, 4), (2, 6)):
        y = jnp.asarray(x).reshape(sizes)
        assert y.shape == sizes
        check(y[1:] + 1, x.reshape(sizes)[1:] + 1)


def test_a_refused_call_leaves_no_parameter_behind() -> None:
    x, y = jnp.asarray(np.ones(3, np.float32)), jnp.asarray(np.ones(4, np.float32))
    for _ in range(2):
        z = x + 1
        with pytest.raises(jd.ShapeError):
            z + y
        check(z * 2, np.full(3, 4, np.float32))
    assert programs() == 1


def test_structures_that_never_repeat_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "MOST_POINTS", 3)
    x = jnp.asarray(np.ones(3, np.float32))
    for n in range(1, 7):
        y = x
        for _ in range(n):
            y = y + 1
        check(y, np.full(3, n + 1, np.float32))
    assert lazy_recorder()._points <= 3 + 6 and programs() < 6


def test_changing_shapes_become_arguments_but_minus_one_does_not() -> None:
    x = np.arange(24, dtype=np.float32)
    lazy_x = jnp.asarray(x)
    for rows in (2, 3, 4, 6):
        check(lazy_x.reshape(rows, -1), x.reshape(rows, -1))
        check(jnp.broadcast_to(lazy_x, (rows, 24)), np.broadcast_to(x, (rows, 24)))
    assert programs() == 2


def test_programs_are_dropped_least_recently_used_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "KEPT_BLOCKS", 3)
    x = jnp.asarray(np.ones(2, np.float32))
    for length in (1, 2, 3, 4, 5):
        y = x
        for _ in range(length):
            y = y + 1
        check(y, np.full(2, length + 1, np.float32))
    assert programs() == 3


# ---- values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [4, 4096])
def test_writing_to_the_source_is_never_seen(n: int) -> None:  # jax-ml/jax#37830
    a = np.zeros(n, np.float32)
    x = jnp.asarray(a)
    y = x + a
    a[0] = 7
    check(x, np.zeros(n, np.float32))
    check(y, np.zeros(n, np.float32))


def test_results_cannot_be_written_behind_an_array() -> None:
    x = jnp.asarray(np.zeros(3, np.float32)) + 1
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(x)[0] = 5
    copy = np.array(x)
    copy[0] = 5
    check(x, np.ones(3, np.float32))


def test_setitem_makes_a_new_value_for_this_name_only() -> None:
    x = jnp.asarray(np.zeros((2, 3), np.float32))
    row, same = x[0], x
    doubled = x + 0
    x[0, 1:] = 5
    check(x, np.array([[0, 5, 5], [0, 0, 0]], np.float32))
    check(same, np.asarray(x))
    check(row, np.zeros(3, np.float32))
    check(doubled, np.zeros((2, 3), np.float32))


def test_output_used_as_input() -> None:  # pydata/numexpr#93
    x = jnp.asarray(np.ones(5, np.float32))
    x[...] = x - x * 0.001
    check(x, np.float32(1) - np.ones(5, np.float32) * np.float32(0.001))


def test_functional_update() -> None:
    a = np.arange(6, dtype=np.int64).reshape(2, 3)
    x = jnp.asarray(a)
    want = a.copy()
    want[:, 1] = [7, 8]
    check(x.at[:, 1].set(np.array([7, 8])), want)
    check(x, a)


INDICES = [
    0,
    -1,
    (1, 2),
    slice(None),
    slice(1, None),
    slice(-2, 10),
    slice(3, 1),
    (slice(None, None, 2), slice(1, 4, 3)),
    (..., 0),
    (None, 1),
    (..., None),
    (slice(0, 0), None, 2),
    (),
    np.int64(1),
    np.array(2),
]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_indexing_is_numpys(index: object) -> None:
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    check(jnp.asarray(a)[index], a[index])
    want = a.copy()
    want[index] = -1
    check(jnp.asarray(a).at[index].set(-1.0), want)


def test_arrays_of_rank_0_are_indices_and_bounds() -> None:
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    x, i = jnp.asarray(a), jnp.asarray(1)
    check(x[i, i + 1 :], a[1, 2:])
    check(x[-i], a[-1])
    check(x.at[i].set(x[0]), np.stack([a[0], a[0], a[2]]))


@pytest.mark.parametrize("a", FLOATS, ids=lambda a: str(np.shape(a)))
def test_methods_and_operators_are_numpys(a: np.ndarray) -> None:
    x, b = jnp.asarray(a), np.flip(a)
    check(-x, -a)
    check(abs(x), abs(a))
    check(+x, +a)
    check(x + b, a + b)
    check(b + x, b + a)
    check(1 - x, 1 - a)
    check(2.5 * x, 2.5 * a)
    with np.errstate(all="ignore"):
        check(x / b, a / b)
        check(1 / x, 1 / a)
    check(x < b, a < b)
    check(x >= 0, a >= 0)
    check(b == x, b == a)
    check(x != b, a != b)
    check((x > 0) & ~(x > 1) | (x == 0), (a > 0) & ~(a > 1) | (a == 0))
    check(x.T, a.T)
    check(x.astype(np.bool_), a.astype(np.bool_))
    check(x.reshape(-1, 1), a.reshape(-1, 1)) if a.size else check(x.reshape(0, 1), a.reshape(0, 1))


def test_shifts_and_integers() -> None:
    a = np.array([1, -5, 2**40], np.int64)
    x = jnp.asarray(a)
    check(x << 3, a << 3)
    check(x >> 2, a >> 2)
    check(1 << jnp.asarray([1, 2]), 1 << np.array([1, 2]))
    check(x * 3 - x, a * 3 - a)
    check(x.sum(), a.sum())
    check(x.max(), a.max())


def test_numpy_scalars_are_strong_and_python_scalars_weak() -> None:
    x = jnp.asarray([1.0, 2.0])
    assert (x * 2).dtype == (x * 2.5).dtype == (x * np.float32(2)).dtype == np.float32
    assert (x * np.float64(2)).dtype == np.float64
    assert (jnp.asarray([True]) + np.int64(1)).dtype == np.int64


class Color(enum.IntEnum):
    RED = 3


def test_enumerations_and_far_bounds_are_integers() -> None:
    x = jnp.asarray([1, 2, 3])
    check(x * Color.RED, np.array([3, 6, 9]))
    check(x[-(2**80) : 2**80], np.array([1, 2, 3]))
    check(x[: sys.maxsize], np.array([1, 2, 3]))


def test_arrays_as_numpy_arrays() -> None:
    x = jnp.asarray([1.0, 2.0])
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert np.asarray(x) is np.asarray(x)
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype=np.float64, copy=False)
    x += 1
    x[1:] += 1
    check(x, np.array([2, 4], np.float32))


def test_iteration_length_and_scalars() -> None:
    x = jnp.asarray([[1, 2], [3, 4]])
    assert [int(v.sum()) for v in x] == [3, 7]
    assert len(x) == 2 and x.item is not None
    assert list(range(10))[x[0, 1]] == 2
    assert str(x[0]) == "[1 2]"
    assert repr(x[0]) == "Array([1, 2], dtype=int64)"
    assert f"{x[0, 1]:03d}" == "002"
    assert f"{x[0]}" == "[1 2]"


# ---- errors ------------------------------------------------------------------------------------

A = jnp.asarray(np.zeros((2, 3), np.float32))
MISTAKES = {
    "broadcast": (lambda: A + A.T, jd.ShapeError),
    "matmul": (lambda: A @ A, jd.ShapeError),
    "reshape": (lambda: A.reshape(4), jd.ShapeError),
    "axis": (lambda: A.sum(axis=2), jd.ShapeError),
    "index": (lambda: A[2], jd.OutOfBoundsError),
    "too many": (lambda: A[0, 0, 0], jd.OutOfBoundsError),
    "two ellipses": (lambda: A[..., ...], jd.OutOfBoundsError),
    "float index": (lambda: A[1.0], jd.ArgumentError),
    "mask": (lambda: A[A > 0], jd.ArgumentError),
    "list": (lambda: A[[0, 1]], jd.ArgumentError),
    "step": (lambda: A[::0], jd.ArgumentError),
    "operand": (lambda: A + "x", jd.ArgumentError),
    "complex": (lambda: A + 1j, jd.ArgumentError),
    "float16": (lambda: A + np.zeros(3, np.float16), jd.DTypeError),
    "float16 of bool": (lambda: jnp.sqrt(A > 0), jd.DTypeError),
    "huge": (lambda: A + 2**70, jd.DTypeError),
    "swapped": (lambda: jnp.asarray(np.zeros(3, ">f4")), jd.DTypeError),
    "masked": (lambda: jnp.asarray(np.ma.masked_array([1.0], [True])), jd.ArgumentError),
    "cast": (lambda: A.astype("int16"), jd.DTypeError),
    "no dtype": (lambda: A.astype("no"), jd.ArgumentError),
    "none": (lambda: jnp.asarray(None), jd.ArgumentError),
    "ragged": (lambda: jnp.asarray([[1, 2], [3]]), jd.ArgumentError),
    "axes": (lambda: A.sum(axis=[0, 1]), jd.ArgumentError),
    "truth": (lambda: bool(A), jd.ShapeError),
    "item": (lambda: A.item(), jd.ShapeError),
    "len": (lambda: len(A[0, 0]), jd.ArgumentError),
    "bits": (lambda: A & A, jd.ArgumentError),
    "invert": (lambda: ~A, jd.ArgumentError),
    "as index": (lambda: [1, 2][A], jd.ArgumentError),
    "max": (lambda: A[:0].max(), jd.ShapeError),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence_at_its_line_and_work_goes_on(name: str) -> None:
    mistake, error = MISTAKES[name]
    pending = A + 1
    with pytest.raises(error) as caught:
        mistake()
    text = str(caught.value)
    assert isinstance(caught.value, jd.Error)
    assert "\n" not in text and not text.endswith(".") and len(text) < 250
    check(pending, np.ones((2, 3), np.float32))


def test_a_failing_block_hurts_only_what_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    x = jnp.asarray(np.ones(3, np.float32))
    good, bad = x + 1, jnp.tanh(x)
    behind = bad * 2
    run = lazy.VM.run

    def failing(vm: lazy.VM, name: str, *arguments: object) -> object:
        if any(i.opcode == "tanh" for i in vm.program.functions[0].blocks[0].instructions):
            raise jd.PoolError("pool: no memory; free some arrays")
        return run(vm, name, *arguments)

    monkeypatch.setattr(lazy.VM, "run", failing)
    with pytest.raises(jd.PoolError):
        jd.sync()
    check(good, np.full(3, 2, np.float32))
    for _ in range(2):
        with pytest.raises(jd.PoolError):
            np.asarray(behind)
    with pytest.raises(jd.PoolError):
        bad + 1
    check(good * 2, np.full(3, 4, np.float32))


def test_interruption_keeps_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    y = jnp.asarray(np.ones(3, np.float32)) + 1

    def interrupted(vm: lazy.VM, name: str, *arguments: object) -> object:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(lazy.VM, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            jd.sync()
    check(y, np.full(3, 2, np.float32))


# ---- threads -----------------------------------------------------------------------------------


def test_values_cross_threads() -> None:
    x = jnp.asarray(np.arange(5, dtype=np.float32)) + 1
    results: list[np.ndarray] = []

    def work() -> None:
        y = x * 2  # recorded by another thread, which has not run it
        results.append(np.asarray(y + x))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    for result in results:
        np.testing.assert_array_equal(result, (np.arange(5) + 1) * 3)


# ---- any program -------------------------------------------------------------------------------


def step(rng: np.random.Generator, pairs: list[tuple[jd.Array, np.ndarray]]) -> None:
    """One random operation on lazy arrays and on NumPy's; exact ones only."""
    (x, a), (y, b) = (pairs[rng.integers(len(pairs))] for _ in range(2))
    k = float(rng.integers(-3, 4))
    choice = rng.integers(9)
    if choice < 3:
        pairs.append(((x + y, a + b), (x * y - x, a * b - a), (x - k, a - np.float32(k)))[choice])
    elif choice == 3:
        pairs.append((jnp.where(x < y, x, k), np.where(a < b, a, np.float32(k))))
    elif choice == 4:
        pairs.append((x.T, a.T) if a.shape == b.shape[::-1] else (abs(x), abs(a)))
    elif choice == 5:
        row, column = (int(v) for v in rng.integers(0, 4, 2))
        copy = a.copy()
        copy[row, column:] = b[row, 0]
        pairs.append((x.at[row, column:].set(y[row, 0]), copy))
    elif choice == 6:
        copy = a.copy()
        copy[1:, 2] = k
        x[1:, 2] = k
        pairs[:] = [(p, copy if p is x else q) for p, q in pairs]
    elif choice == 7:
        pairs.pop(rng.integers(len(pairs))) if len(pairs) > 2 else None
    else:
        np.testing.assert_array_equal(np.asarray(x), a)


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_are_numpys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(-4, 5, (4, 4)).astype(np.float32) for _ in range(3)]
    pairs = [(jnp.asarray(a), a) for a in arrays]
    with np.errstate(all="ignore"):
        for _ in range(60):
            step(rng, pairs)
    for x, a in pairs:
        np.testing.assert_array_equal(np.asarray(x), a)


def test_arrays_are_copied_and_pickled_by_value() -> None:
    x = jnp.asarray(np.float32([1, 2])) + 1
    copies = [copy.copy(x), copy.deepcopy({"x": x})["x"], pickle.loads(pickle.dumps(x))]
    x[0] = 7
    for each in copies:
        assert isinstance(each, jnp.Array) and each.dtype == np.float32
        assert np.asarray(each).tolist() == [2, 3]
