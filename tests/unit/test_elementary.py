"""The specification of the elementary functions is well formed; its meaning is tested with the oracle."""

from __future__ import annotations

import numpy as np
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
