"""Which sizes may be padded: one case for each way in which rows stay rows, and one for each refusal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.analysis.padding import Padding, padding_of
from jitdialects.bytecode.signature import parse
from jitdialects.runtime.padded_calls import PaddedCall
from jitdialects.runtime.pool import MemoryPool


def padding(function: Callable[..., object], arguments: str, *ranks: int) -> Padding:
    """What is decided for `function` of float32 arrays of these ranks."""
    jitted = jd.jit(function)
    jitted(*(np.ones((4,) * rank, np.float32) for rank in ranks))
    return padding_of(jitted.program, parse(f"main({arguments})"))


def inner(x):
    return jnp.exp(x) / jnp.sum(x, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("function", "arguments", "ranks"),
    [
        (lambda x: jnp.tanh(x) * 2, "f32[n]", (1,)),
        (lambda x, w, b: jnp.relu(x @ w + b), "f32[n,4], f32[4,4], f32[4]", (2, 2, 1)),
        (lambda w, x: w @ x, "f32[4,4], f32[4,n]", (2, 2)),
        (lambda x, w: x @ w, "f32[n,4], f32[4]", (2, 1)),
        (inner, "f32[n,4]", (2,)),
        (lambda x: jnp.reshape(jnp.reshape(x, (-1, 16)), (-1, 2, 8)), "f32[n,4,4]", (3,)),
        (lambda x: x.T + 1, "f32[n,4]", (2,)),
        (lambda x: x[:, 1:3] + x[..., 0:1], "f32[n,4]", (2,)),
        (lambda x: x[:, None, 0], "f32[n,4]", (2,)),
        (lambda x, b: jnp.broadcast_to(b, (x.shape[0], 4)) + x, "f32[n,4], f32[4]", (2, 1)),
        (lambda x: jd.fori_loop(0, 3, lambda i, s: s * x + i, x), "f32[n,4]", (2,)),
        (lambda x, y: x + jnp.max(y), "f32[n], f32[4]", (1, 1)),
    ],
)
def test_rows_stay_rows(function: Callable[..., object], arguments: str, ranks: tuple[int]) -> None:
    found = padding(function, arguments, *ranks)
    assert found.may_pad("n"), found


@pytest.mark.parametrize(
    ("function", "arguments", "ranks", "why"),
    [
        (lambda x: jnp.sum(x), "f32[n]", (1,), "sum runs over it"),
        (lambda x: x - jnp.mean(x, axis=0), "f32[n,4]", (2,), "mean runs over it"),
        (lambda x, y: x @ y, "f32[4,n], f32[n,4]", (2, 2), "matmul runs over it"),
        (lambda x, y: x @ y, "f32[n], f32[n,4]", (1, 2), "matmul runs over it"),
        (lambda x: x @ x.T, "f32[n,4]", (2,), "matmul has two axes of that size"),
        (lambda x: x[:, None] * x, "f32[n]", (1,), "multiply has two axes of that size"),
        (lambda x, y: x + y, "f32[n,4], f32[4,4]", (2, 2), "the program needs n == 4"),
        (lambda x: jnp.reshape(x, (-1,)), "f32[n,4]", (2,), "axis of size 4 * n"),
        (lambda x: jnp.reshape(x, (2, -1, 2)), "f32[4,n]", (2,), "reshape mixes rows"),
        (lambda x: x[0], "f32[n,4]", (2,), "getitem picks rows of it"),
        (lambda x: x[::-1], "f32[n,4]", (2,), "getitem picks rows of it"),
        (lambda x: x[:-1], "f32[n]", (1,), "has an axis of size"),
        (lambda x: x * x.shape[0], "f32[n]", (1,), "multiply computes with it"),
        (lambda x: (x, x.shape[0]), "f32[n]", (1,), "return computes with it"),
        (
            lambda x: jd.fori_loop(0, x.shape[0], lambda i, s: s + i, x),
            "f32[n]",
            (1,),
            "computes with it",
        ),
        (lambda x: jnp.max(x[2:, :], axis=1), "f32[4,n]", (2,), "max runs over it"),
    ],
)
def test_do_not_pad(
    function: Callable[..., object], arguments: str, ranks: tuple[int], why: str
) -> None:
    found = padding(function, arguments, *ranks)
    assert not found.may_pad("n")
    assert why in "; ".join(found.refused.values()), found


def test_do_not_pad_where_a_branch_meets_a_size() -> None:
    """Which of two sizes a block gets is not followed."""

    def f(x, y):
        return jd.cond(jnp.max(y) > 0, lambda: x.shape[0], lambda: 3) * y

    assert "n" in padding(f, "f32[n], f32[4]", 1, 1).refused


def test_do_not_pad_where_shapes_depend_on_values() -> None:
    f = jd.jit(lambda x, i: x[:, i:])
    f(np.ones((4, 4), np.float32), 2)
    found = padding_of(f.program, parse("main(f32[n,4], int)"))
    assert not found.may_pad("n")
    assert found.failure == "the size of a result depends on the value of an argument"


def test_do_not_pad_what_has_no_settled_shape() -> None:
    f = jd.jit(lambda x, i: x[:, i])
    f(np.ones((4, 4), np.float32), np.int64(2))
    found = padding_of(f.program, parse("main(f32[n,4], f32[2])"))
    assert found.failure and not found.may_pad("n")


def test_sizes_that_must_be_equal_are_padded_together() -> None:
    found = padding(lambda x, y: x * y, "f32[n,4], f32[m,4]", 2, 2)
    assert found.same["n"] == found.same["m"] and found.may_pad("n") and found.may_pad("m")
    both = padding(lambda x, y: (x * 2, jnp.sum(y)), "f32[n], f32[m]", 1, 1)
    assert both.may_pad("n") and not both.may_pad("m")


def test_padding_writes_zeros_and_never_the_arguments() -> None:
    pool = MemoryPool()
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    call = PaddedCall(((4, 5), None), ((2, 3),), 5, 4)
    whole, other = call.bind([x, 2.5], pool)
    assert isinstance(whole, np.ndarray) and other == 2.5
    assert whole.shape == (4, 5) and (whole[:2, :3] == x).all()
    assert not whole[2:].any() and not whole[:, 3:].any()
    (cropped,) = call.crop([whole], pool)
    assert (cropped == x).all() and cropped.flags.c_contiguous and cropped.flags.writeable
    assert not np.shares_memory(cropped, whole)
    fits, _ = PaddedCall(((2, 3), None), ((2, 3),), 5, 0).bind([x, 1], pool)
    assert fits is x
    strided, _ = PaddedCall(((3, 2), None), ((3, 2),), 5, 0).bind([x.T, 1], pool)
    assert isinstance(strided, np.ndarray) and strided.flags.c_contiguous and (strided == x.T).all()
