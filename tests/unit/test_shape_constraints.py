"""`jd.Dim` and `dims=`: hints that save compiles, promises whose breach is one clear error in every tier."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.bytecode.signature import parse
from jitdialects.lowering.convert_vm_to_tssa import typed_function
from jitdialects.runtime.shape_constraints import Constraints

F32 = np.float32


def dense(x, w):
    return jnp.tanh(x @ w)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, F32)


def called(f: Callable, *arguments: object, times: int = 12) -> None:
    for _ in range(times):
        f(*arguments)
    f.wait()
    f(*arguments)


def signatures(f: Callable) -> list[str]:
    return [e.key.signature for e in f.machines()[0].functions["main"].found]


def test_a_named_axis_is_general_from_the_first_compile() -> None:
    batch = jd.Dim("batch", min=2, max=64, multiple_of=2)
    f = jd.jit(dense, dims={"x": (batch, 8), "w": (8, None)})
    called(f, ones(4, 8), ones(8, 3))
    assert signatures(f) == ["main(f32[n0,8], f32[8,3]) where 2 <= n0, n0 <= 64, 2 divides n0"]
    served = f.machines()[0].functions["main"].profile.served
    for n in (2, 6, 64):
        assert f(ones(n, 8), ones(8, 3)).shape == (n, 3)
    assert f.machines()[0].functions["main"].profile.served == served + 3


@pytest.mark.parametrize("times", [1, 40])
@pytest.mark.parametrize(
    ("n", "sentence"),
    [
        (
            1,
            "axis 0 of argument x is 1; batch must be at least 2 and at most 64 and a multiple of 2",
        ),
        (66, "axis 0 of argument x is 66; batch must be"),
        (5, "axis 0 of argument x is 5; batch must be"),
    ],
)
def test_a_call_outside_is_one_error_in_every_tier(n: int, sentence: str, times: int) -> None:
    f = jd.jit(dense, dims={"x": (jd.Dim("batch", 2, 64, 2), 8)})
    called(f, ones(4, 8), ones(8, 3), times=times)
    with pytest.raises(jd.ShapeError, match=f"^dense: {sentence}"):
        f(ones(n, 8), ones(8, 3))
    assert (f(ones(4, 8), ones(8, 3)) == np.tanh(F32(8))).all()


def test_a_number_is_the_only_size() -> None:
    f = jd.jit(dense, dims={"x": ("batch", 8)}, shapes="symbolic")
    called(f, ones(4, 8), ones(8, 3))
    assert signatures(f)[0].startswith("main(f32[n0,8], f32[n1,n2])")
    with pytest.raises(jd.ShapeError, match="dense: axis 1 of argument x is 7; it must be 8"):
        f(ones(4, 7), ones(7, 3))


def test_one_name_is_one_size() -> None:
    f = jd.jit(lambda x, y: (x * 2, y + 1), dims={"x": ("batch",), "y": ("batch", None)})
    called(f, ones(4), ones(4, 3))
    assert signatures(f) == ["main(f32[n0], f32[n0,3])"]
    sentence = "axis 0 of argument y is 5, axis 0 of argument x is 4; both are batch, one size"
    with pytest.raises(jd.ShapeError, match=sentence):
        f(ones(4), ones(5, 3))


def test_bucketed_code_keeps_to_the_constraint() -> None:
    f = jd.jit(lambda x: jnp.tanh(x) + 1, dims={"x": (jd.Dim("n", 3, 50, 3),)}, shapes="bucketed")
    for n in (45, 33, 21, 18, 48):
        called(f, ones(n))
        assert (f(ones(n)) == np.tanh(F32(1)) + F32(1)).all()
    assert signatures(f) == ["main(f32[48])", "main(f32[33])"]
    with pytest.raises(jd.ShapeError, match="n must be at least 3 and at most 50 and a multiple"):
        f(ones(47))


def test_arguments_in_structures_have_the_names_of_messages() -> None:
    f = jd.jit(lambda p: p["w"] * 2, dims={"p['w']": ("n",)})
    f({"w": ones(3)})
    with pytest.raises(jd.ShapeError, match=r"argument p\['w'\] has 2 axes, dims gives 1"):
        f({"w": ones(3, 3)})
    g = jd.jit(lambda x: x, dims={"y": (3,)})
    with pytest.raises(
        jd.ArgumentError, match="dims has 'y', which is no array among the arguments: x"
    ):
        g(ones(3))


def test_methods_keep_their_options() -> None:
    class Model:
        @jd.jit(dims={"x": (jd.Dim("n", max=4),)}, shapes="symbolic")
        def double(self, x):
            return x * 2

    model = Model()
    assert model.double(ones(4)).shape == (4,)
    with pytest.raises(jd.ShapeError, match="n must be at most 4"):
        model.double(ones(5))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": "2x"}, "a name such as 'batch' is needed, got '2x'"),
        ({"name": 3}, "a name such as 'batch'"),
        ({"name": "n", "min": -1}, "min must be an int of at least 0, got -1"),
        ({"name": "n", "max": 2.0}, "max must be an int of at least 0, got 2.0"),
        ({"name": "n", "multiple_of": 0}, "multiple_of must be an int of at least 1, got 0"),
        ({"name": "n", "min": True}, "min must be an int"),
        (
            {"name": "n", "min": 5, "max": 4},
            "no size is at least 5 and at most 4; widen the bounds",
        ),
        ({"name": "n", "min": 9, "max": 15, "multiple_of": 8}, "and a multiple of 8; widen"),
    ],
)
def test_constraints_that_no_size_meets(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(jd.ConfigError, match=sentence):
        jd.Dim(**arguments)


@pytest.mark.parametrize(
    ("dims", "sentence"),
    [
        (3, "f: dims=3: a dict of argument names is needed"),
        ({"x": "batch"}, "f: dims of x: one entry per axis is needed"),
        ({"x": (2.5,)}, "an axis is a jd.Dim, a name, a size or None, got 2.5"),
        ({"x": (-1,)}, "got -1"),
        ({"x": (True,)}, "got True"),
        ({"x": ("2x",)}, "a name such as 'batch'"),
        (
            {"x": (jd.Dim("n", max=3),), "y": (jd.Dim("n", max=4),)},
            "'n' is at most 3 in one place and at most 4 in another; give one Dim to both",
        ),
    ],
)
def test_dims_that_are_none_or_contradict_themselves(dims: object, sentence: str) -> None:
    def f(x, y):
        return x, y

    with pytest.raises(jd.ConfigError, match=sentence):
        jd.jit(f, dims=dims)


def test_case_5_a_constraint_that_admits_one_size_is_said() -> None:
    """pytorch/pytorch#191833: a size that is called dynamic and can only have one value."""
    with pytest.warns(
        UserWarning, match=r"n can only be 8: it is at least 5 and at most 9 .*; write 8"
    ):
        f = jd.jit(lambda x: x * 2, dims={"x": (jd.Dim("n", 5, 9, 8),)})
    called(f, ones(8))
    assert signatures(f) == ["main(f32[8])"]
    with pytest.raises(jd.ShapeError, match="axis 0 of argument x is 7; n must be"):
        f(ones(7))


def test_names_may_come_before_their_constraint() -> None:
    constraints = Constraints("f", {"x": ("n",), "y": (jd.Dim("n", max=4),)}).of(["x", "y"])
    assert constraints.named()[0, 0] == jd.Dim("n", max=4) == constraints.named()[1, 0]


def test_case_11_more_than_the_declared_maximum() -> None:
    """apache/tvm#17322: an input above the declared maximum is refused before anything is written."""
    f = jd.jit(lambda x: jnp.sqrt(x), dims={"x": (jd.Dim("n", max=1024),)})
    called(f, ones(16))
    assert f(ones(1024)).shape == (1024,)
    with pytest.raises(jd.ShapeError, match="axis 0 of argument x is 1025; n must be at most 1024"):
        f(ones(1025))


def test_case_10_a_minimum_alone_is_no_size() -> None:
    """apache/tvm PR#18663: a dimension with a lower bound only, of sizes 2 and then 64."""
    f = jd.jit(lambda x: jnp.sum(x * 2, axis=0), dims={"x": (jd.Dim("n", min=1), None)})
    called(f, ones(2, 3))
    assert signatures(f) == ["main(f32[n0,3]) where 1 <= n0"]
    assert f(ones(64, 3)).tolist() == [128.0] * 3


def test_bounds_become_guards() -> None:
    f = jd.jit(lambda x: x + 1)
    f(ones(8))
    made = typed_function(f.program, parse("main(f32[n]) where 2 <= n, n <= 64, 8 divides n"))
    assert "guard<2 <= n>" in str(made) and "guard<n <= 64>" in str(made)
    assert "guard<8 * floordiv(n, 8) == n>" in str(made)
