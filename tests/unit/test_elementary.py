"""The specification of the elementary functions is well formed; its meaning is tested with the oracle."""

from __future__ import annotations

import numpy as np
import oracle
import pytest

from jitdialects.bytecode.elementary import ARITY, ElementaryFunction, elementary_functions

FUNCTIONS = [
    function
    for dtype in ("float32", "float64")
    for function in elementary_functions(dtype).values()
]
WIDTH = {"float32": 32, "float64": 64}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f"{f.name}-{f.dtype}")
def test_steps_are_in_single_assignment_form_and_end_in_result(
    function: ElementaryFunction,
) -> None:
    known = {"x", *function.floats, *function.ints}
    assert len(known) == 1 + len(function.floats) + len(function.ints)
    for step in function.steps:
        assert step.name not in known
        assert len(step.operands) == ARITY[step.op]
        assert known.issuperset(step.operands)
        known.add(step.name)
    assert function.steps[-1].name == "result"


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f"{f.name}-{f.dtype}")
def test_every_constant_and_step_is_used(function: ElementaryFunction) -> None:
    used = {name for step in function.steps for name in step.operands}
    defined = {*function.floats, *function.ints, *(s.name for s in function.steps)}
    assert defined - used == {"result"}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f"{f.name}-{f.dtype}")
def test_constants_are_exact(function: ElementaryFunction) -> None:
    values = list(function.floats.values())
    np.testing.assert_array_equal(np.array(values, function.dtype), values)  # NaN equals NaN
    half = 2 ** (WIDTH[function.dtype] - 1)
    assert all(-half <= number < half for number in function.ints.values())


@pytest.mark.parametrize("dtype", WIDTH)
def test_what_is_called_scaled_is_a_product_with_a_power_of_two(dtype: str) -> None:
    """Rounded once, also to subnormals, for every n that occurs; and a NaN is one before and behind."""
    scaled = {name: f.scaled for name, f in elementary_functions(dtype).items() if f.scaled}
    assert scaled == {"exp": ("p", "n", "smallest")}
    smallest = np.array(elementary_functions(dtype)["exp"].floats["smallest"], dtype)
    below = oracle.elementary("exp", np.array([smallest, -np.inf], dtype))
    assert below.tobytes() == np.zeros(2, dtype).tobytes()
    ends = {"float32": (-106, 91), "float64": (-748, 712)}[dtype]
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.uniform(*ends, 60_000), [np.inf, -np.inf, 0.0, -0.0, np.nan]])
    values = oracle.elementary_steps("exp", x.astype(dtype))
    p, n, result = (values[name][:-1] for name in ("p", "n", "result"))
    assert set(np.unique(n)) == set(range(int(n.min()), int(n.max()) + 1))
    with np.errstate(over="ignore"):
        assert np.ldexp(p, n.astype(np.int32)).tobytes() == result.tobytes()
    assert all(np.isnan(values[name][-1]) for name in ("p", "n", "result"))


def test_steps_that_a_value_needs() -> None:
    exp = elementary_functions("float32")["exp"]
    assert exp.steps_for(["result"]) == exp.steps
    names = [step.name for step in exp.steps_for(["n", "p"])]
    assert names == [step.name for step in exp.steps if step.name in names]
    assert {"n", "p", "shifted"} <= set(names) and {"bits", "half", "result"}.isdisjoint(names)
