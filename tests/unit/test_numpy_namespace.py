"""`jitdialects.numpy` against NumPy: results, promotion, names."""

from __future__ import annotations

import math
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.bytecode.dtypes import SUPPORTED
from jitdialects.bytecode.operators import OPERATORS
from jitdialects.numpy.__main__ import operator_table

RNG = np.random.default_rng(3)
SHAPES = [
    ((), ()),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((2, 1), (1, 4)),
    ((0, 3), (1, 3)),
    ((5, 1, 2), (3, 1)),
]
VALUES = {
    "float32": lambda s: (RNG.standard_normal(s) * 4).astype(np.float32),
    "int64": lambda s: RNG.integers(-9, 9, s),
    "bool": lambda s: RNG.integers(0, 2, s).astype(bool),
}
LAYOUTS = {
    "contiguous": lambda a: a,
    "reversed": lambda a: np.flip(np.flip(a).copy()),
    "fortran": lambda a: np.asfortranarray(a),
    "every second": lambda a: np.repeat(a, 2, -1)[..., ::2] if a.ndim else a,
}


def units(got: np.ndarray, want: np.ndarray) -> int:
    """The largest distance in units in the last place; NaN and infinities must agree."""
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite])
    lines = [a[finite].view(np.int32).astype(np.int64) for a in (got, want)]
    ordered = [np.where(i < 0, -(i & 0x7FFFFFFF), i) for i in lines]
    return int(np.max(np.abs(ordered[0] - ordered[1]), initial=0))


def check(got: jd.Array, want: object, ulp: int = 0) -> None:
    expected, actual = np.asarray(want), np.asarray(got)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if ulp:
        assert units(np.atleast_1d(actual), np.atleast_1d(expected)) <= ulp
    else:
        np.testing.assert_array_equal(actual, expected)


# ---- operators ---------------------------------------------------------------------------------

BINARY = {
    "float32": "add subtract multiply divide minimum maximum",
    "int64": "add subtract multiply minimum maximum left_shift right_shift",
    "bool": "add multiply minimum maximum",
}
COMPARING = "equal not_equal less less_equal greater greater_equal logical_and logical_or"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", VALUES)
def test_binary_operators(dtype: str, shapes: tuple, layout: str) -> None:
    x, y = (LAYOUTS[layout](np.asarray(VALUES[dtype](s))) for s in shapes)
    for name in (*BINARY[dtype].split(), *COMPARING.split()):
        with np.errstate(all="ignore"):
            check(getattr(jnp, name)(jnp.asarray(x), y), getattr(np, name)(x, y))


@pytest.mark.parametrize("shape", [(), (7,), (3, 4), (0, 2)], ids=str)
def test_unary_operators(shape: tuple) -> None:
    x = np.asarray(VALUES["float32"](shape))
    for name in ("negative", "abs", "absolute", "sqrt", "logical_not"):
        with np.errstate(all="ignore"):
            check(getattr(jnp, name)(x), getattr(np, name)(x))
    for name in ("exp", "tanh"):
        check(getattr(jnp, name)(x), getattr(np, name)(x), ulp=4)
    i = np.asarray(VALUES["int64"](shape))
    for name in ("negative", "abs", "logical_not"):
        check(getattr(jnp, name)(i), getattr(np, name)(i))


def test_special_values() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 3e38], np.float32)
    with np.errstate(all="ignore"):
        check(jnp.exp(x), np.exp(x), ulp=4)
        check(jnp.tanh(x), np.tanh(x), ulp=4)
        check(jnp.sqrt(x), np.sqrt(x))
        check(jnp.asarray(x) / 0, x / np.float32(0))
    pairs = np.array([[0.0, -0.0], [-0.0, 0.0], [np.nan, 1.0], [1.0, np.nan]], np.float32)
    low, high = np.asarray(jnp.minimum(*pairs.T)), np.asarray(jnp.maximum(*pairs.T))
    assert np.signbit(low[:2]).all() and not np.signbit(high[:2]).any()
    assert np.isnan(low[2:]).all() and np.isnan(high[2:]).all()


@pytest.mark.parametrize("shape", [(), (5,), (3, 70), (2, 3, 4), (0,), (4, 0)], ids=str)
@pytest.mark.parametrize("dtype", VALUES)
def test_reductions(dtype: str, shape: tuple) -> None:
    x = np.asarray(VALUES[dtype](shape))
    for axis, keepdims in product((None, -1) if shape else (None,), (False, True)):
        got = jnp.sum(x, axis=axis, keepdims=keepdims)
        want = x.sum(axis=axis, keepdims=keepdims)
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-4)
        if dtype != "float32":
            check(got, want)
        if x.size:
            check(jnp.max(x, axis=axis, keepdims=keepdims), x.max(axis=axis, keepdims=keepdims))


@pytest.mark.parametrize(
    "shapes",
    [((3, 4), (4, 2)), ((4,), (4, 2)), ((3, 4), (4,)), ((4,), (4,)), ((3, 0), (0, 2))],
    ids=str,
)
def test_matmul(shapes: tuple) -> None:
    x, y = (VALUES["float32"](s) for s in shapes)
    for got in (jnp.matmul(x, y), jnp.dot(x, y), jnp.asarray(x) @ y, x @ jnp.asarray(y)):
        want = x @ y
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-5)
    i, j = (VALUES["int64"](s) for s in shapes)
    check(jnp.matmul(i, j), i @ j)


def test_shapes_and_casts() -> None:
    x = VALUES["float32"]((2, 3, 4))
    check(jnp.reshape(x, (4, -1)), x.reshape(4, -1))
    check(jnp.permute_dims(x, (2, 0, 1)), x.transpose(2, 0, 1))
    check(jnp.transpose(x), x.T)
    check(jnp.matrix_transpose(x), np.matrix_transpose(x))
    check(jnp.asarray(x).transpose(1, 0, 2), x.transpose(1, 0, 2))
    check(jnp.broadcast_to(x[0, 0], (2, 3, 4)), np.broadcast_to(x[0, 0], (2, 3, 4)))
    check(jnp.astype(x, jnp.int64), x.astype(np.int64))
    check(jnp.astype(x > 0, jnp.float32), (x > 0).astype(np.float32))
    check(jnp.where(x > 0, x, 0), np.where(x > 0, x, np.float32(0)))
    out_of_range = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30], np.float32)
    assert (np.asarray(jnp.astype(out_of_range, jnp.int64)) == -(2**63)).all()


def test_making_arrays() -> None:
    check(jnp.asarray([[1, 2], [3, 4]]), np.array([[1, 2], [3, 4]]))
    check(jnp.asarray([1.5, 2]), np.array([1.5, 2], np.float32))
    check(jnp.asarray(np.arange(3.0), dtype=jnp.float32), np.arange(3, dtype=np.float32))
    check(jnp.asarray(True), np.array(True))
    check(jnp.asarray([0.1, 2], jnp.float64), np.array([0.1, 2]))  # not by way of float32
    check(jnp.asarray([1, 2], "int32"), np.array([1, 2], np.int32))
    check(jnp.full((2,), 0.1, jnp.float64), np.full((2,), 0.1))
    check(jnp.asarray(np.linspace(0, 1, 3)), np.linspace(0, 1, 3))
    check(jnp.zeros(2, np.int32), np.zeros(2, np.int32))
    out_of_range = np.array([np.nan, 1e30, -2.9])
    check(jnp.asarray(out_of_range, np.int32), np.array([-(2**31), -(2**31), -2], np.int32))
    check(jnp.asarray(np.array([2**32 + 1]), np.int32), np.array([1], np.int32))  # as astype
    with pytest.raises(jd.IntegerRangeError, match="does not fit int32"):
        jnp.asarray([1, 2**31], np.int32)
    check(jnp.zeros((2, 3)), np.zeros((2, 3), np.float32))
    check(jnp.ones(3, jnp.int64), np.ones(3, np.int64))
    check(jnp.full((2,), 7), np.full((2,), 7))
    check(jnp.full((2,), 7, jnp.bool_), np.full((2,), True))
    like = np.ones((2, 3), np.int64)
    check(jnp.zeros_like(like), np.zeros_like(like))
    check(jnp.ones_like(like), like)
    x = jnp.asarray([1.0])
    assert jnp.asarray(x) is x and jnp.asarray(x, jnp.int64).dtype == np.int64


def test_compositions() -> None:
    x = VALUES["float32"]((3, 5))
    check(jnp.relu(x), np.maximum(x, 0))
    check(jnp.clip(x, -1, 1.5), np.clip(x, np.float32(-1), np.float32(1.5)))
    check(jnp.clip(x, min=0), np.maximum(x, 0))
    check(jnp.clip(x, max=0), np.minimum(x, 0))
    check(jnp.max(x, np.int64(-1)), x.max(-1))
    e = np.exp(x - x.max(-1, keepdims=True))
    np.testing.assert_allclose(np.asarray(jnp.softmax(x)), e / e.sum(-1, keepdims=True), rtol=1e-5)


# ---- promotion ---------------------------------------------------------------------------------

OPERANDS = {
    "float32": np.array([1, 2], np.float32),
    "float64": np.array([1.5, 2]),
    "int32": np.array([1, 2], np.int32),
    "int64": np.array([1, 2]),
    "bool": np.array([True, False]),
    "float": 2.5,
    "int": 3,
    "pybool": True,
    "np.float32": np.float32(2),
    "np.float64": np.float64(2),
    "np.int64": np.int64(2),
    "np.int32": np.int32(2),
    "np.bool": np.True_,
    "rank 0": np.array(3, np.int32),
    "huge": 2**40,
    "np.float16": np.float16(2),
}


def numpys(function: object, *operands: object) -> np.ndarray | None:
    """What NumPy computes, or None where it refuses."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(function(*operands))
    except (TypeError, OverflowError):
        return None


@pytest.mark.parametrize("name", ["add", "subtract", "divide", "maximum", "less", "where"])
@pytest.mark.parametrize("left, right", list(product(SUPPORTED, OPERANDS)))
def test_promotion_is_numpys_or_refused(name: str, left: str, right: str) -> None:
    """The same dtype and values where NumPy stays within what is supported; one sentence elsewhere."""
    for pair in ((OPERANDS[left], OPERANDS[right]), (OPERANDS[right], OPERANDS[left])):
        operands = (np.array([True, False]), *pair) if name == "where" else pair
        want = numpys(getattr(np, name), *operands)
        if name == "where" and {left, right} == {"int32", "huge"}:
            want = None  # NumPy's own where lets it wrap
        inputs = [np.result_type(*pair).name, *(x.dtype.name for x in pair if hasattr(x, "dtype"))]
        if want is None or want.dtype.name not in SUPPORTED or not set(inputs) <= set(SUPPORTED):
            with pytest.raises(jd.Error) as caught:
                np.asarray(getattr(jnp, name)(*operands))
            huge = want is None and "huge" in (left, right)
            assert isinstance(caught.value, jd.IntegerRangeError if huge else jd.DTypeError)
            assert "\n" not in str(caught.value)
        else:
            check(getattr(jnp, name)(*operands), want)


# ---- names -------------------------------------------------------------------------------------


def test_every_operator_of_the_table_is_here() -> None:
    spelled = {"cast": "astype", "gelu_tanh": "gelu"}
    methods = {"getitem", "setitem", "size"}  # x[...], x.at[...].set(), x.shape
    for name, operator in OPERATORS.items():
        if name not in methods:
            function = getattr(jnp, spelled.get(name, name))
            assert function.__doc__, name
            if operator.arity <= 2 and not operator.attributes and "gelu" not in name:
                assert function.__doc__ == operator.doc


def test_every_public_name_exists_and_is_documented() -> None:
    for name in jnp.__all__:
        assert hasattr(jnp, name), name


def test_a_missing_name_says_what_there_is() -> None:
    with pytest.raises(AttributeError, match="has no 'sin' yet; it has: .*tanh") as caught:
        _ = jnp.sin
    assert isinstance(caught.value, jd.Error) and "\n" not in str(caught.value)
    assert not hasattr(jnp, "concat")


def test_a_missing_method_says_what_there_is() -> None:
    with pytest.raises(
        jd.MissingNameError, match="no 'cumsum' yet; it has: .*reshape, .*sum"
    ) as caught:
        jnp.zeros(3).cumsum()
    assert isinstance(caught.value, AttributeError) and "\n" not in str(caught.value)
    assert not hasattr(jnp.zeros(3), "__array_interface__")


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x**2,
        lambda x: 2.0**x,
        lambda x: x // 2,
        lambda x: x % 2,
        lambda x: x ^ x,
        lambda x: np.sin(x),
        lambda x: np.add.reduce(x),
        lambda x: np.add(x, x, out=np.zeros(3, np.float32)),
        lambda x: np.ones(3, np.float32).__iadd__(x),
    ],
)
def test_operations_that_are_missing_are_refused_in_one_sentence(operation) -> None:
    with pytest.raises(jd.ArgumentError, match=r"; (write|divide|subtract|use) "):
        operation(jnp.ones(3))
    with pytest.raises(jd.ArgumentError, match=r"; (write|divide|subtract|use) "):
        jd.jit(operation)(np.ones(3, np.float32))


def test_ufuncs_of_numpy_mean_our_operators() -> None:
    a, mask = np.float32([-1, 0, 2]), np.array([True, False, True])
    for got, want in [
        (np.tanh(jnp.asarray(a)), jnp.tanh(a)),
        (a + jnp.asarray(a), a + a),
        (np.float32(2) * jnp.asarray(a), a * 2),
        (np.absolute(jnp.asarray(a)), abs(a)),
        (mask & jnp.asarray(a > 0), a > 0),
        (a @ jnp.asarray(a), np.float32(5)),
    ]:
        assert isinstance(got, jnp.Array)
        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


# ---- docs --------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs" / "numpy-differences.md"


def test_the_table_in_the_docs_is_the_operator_table() -> None:
    assert (
        PAGE.read_text().split("<!-- python -m jitdialects.numpy -->\n")[1]
        == operator_table() + "\n"
    )


def test_the_example_in_the_docs_does_what_it_says() -> None:
    example = PAGE.read_text().split("```python\n")[1].split("```")[0]
    done = subprocess.run(
        [sys.executable, "-c", example], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == example.rstrip().rsplit("# ", 1)[1], done.stderr


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compositions_of_elementary_functions(dtype: str) -> None:
    x = np.linspace(-4, 4, 60).astype(dtype).reshape(3, 20)
    eps = 40 * np.finfo(dtype).eps
    erf = np.vectorize(math.erf)(x / math.sqrt(2))
    smooth = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    sums = np.log(np.exp(x).sum(-1, keepdims=True))
    for got, want in (
        (jnp.gelu(x), x / 2 * (1 + smooth)),
        (jnp.gelu(x, approximate=False), x / 2 * (1 + erf)),
        (jnp.silu(x), x / (1 + np.exp(-x))),
        (jnp.square(x), x * x),
        (jnp.reciprocal(x), 1 / x),
        (jnp.rsqrt(jnp.abs(x)), 1 / np.sqrt(np.abs(x))),
        (jnp.logsumexp(x, axis=-1, keepdims=True), sums),
        (jnp.logsumexp(x, axis=-1), sums[:, 0]),
    ):
        assert got.dtype == dtype and got.shape == want.shape
        np.testing.assert_allclose(np.asarray(got), want, rtol=eps, atol=eps)


def test_logsumexp_of_infinities() -> None:
    x = np.array([[-np.inf, -np.inf], [np.inf, 0], [800, 800]], np.float32)
    got = np.asarray(jnp.logsumexp(x, axis=-1))
    np.testing.assert_allclose(got, [-np.inf, np.inf, 800 + math.log(2)], rtol=1e-6)
