"""Symbolic sizes: normal form, text round trip, evaluation against plain integers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitdialects.bytecode import dims
from jitdialects.errors import ShapeError

NAMES = ("n", "m", "s0")


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> tuple[str, dims.Dim]:
    """Python text with the same value, and the expression."""
    if depth == 0 or draw(st.booleans()):
        if draw(st.booleans()):
            value = draw(st.integers(-9, 9))
            return f"({value})", value
        name = draw(st.sampled_from(NAMES))
        return name, dims.symbol(name)
    left_text, left = draw(expressions(depth - 1))
    right_text, right = draw(expressions(depth - 1))
    text, value = draw(
        st.sampled_from(
            [
                (f"({left_text} + {right_text})", dims.add(left, right)),
                (f"({left_text} - {right_text})", dims.sub(left, right)),
                (f"({left_text} * {right_text})", dims.mul(left, right)),
                (f"min({left_text}, {right_text})", dims.minimum(left, right)),
                (f"max({left_text}, {right_text})", dims.maximum(left, right)),
            ]
        )
    )
    return text, value


@given(expressions(), st.tuples(*[st.integers(-5, 40)] * 3))
def test_evaluates_like_python(expression: tuple[str, dims.Dim], values: tuple[int, ...]) -> None:
    text, value = expression
    env = dict(zip(NAMES, values, strict=True))
    assert dims.evaluate(value, env) == eval(text, {"min": min, "max": max}, dict(env))


@given(expressions())
def test_text_round_trip(expression: tuple[str, dims.Dim]) -> None:
    assert dims.parse(str(expression[1])) == expression[1]


def test_normal_form_proves_equality() -> None:
    n, m = dims.symbol("n"), dims.symbol("m")
    assert dims.add(n, m, 1) == dims.add(1, m, n)
    assert dims.sub(dims.add(n, 3), 3) == n
    assert dims.sub(n, n) == 0
    assert dims.mul(n, m) == dims.mul(m, n)
    assert dims.minimum(n, m) != dims.minimum(n, n)


@pytest.mark.parametrize("size", [0, 1, 5, 9])
@pytest.mark.parametrize("bound", [-12, -9, -5, -1, 0, 1, 5, 8, 9, 30])
def test_clamp_index_is_python_slicing(bound: int, size: int) -> None:
    expected = slice(bound, None).indices(size)[0]
    assert dims.clamp_index(bound, size) == expected
    n, s = dims.symbol("n"), dims.symbol("s0")
    assert dims.evaluate(dims.clamp_index(bound, n), {"n": size}) == expected
    assert dims.evaluate(dims.clamp_index(s, n), {"n": size, "s0": bound}) == expected


@pytest.mark.parametrize(
    ("text", "column"), [("n +", 4), ("(n", 3), ("n ? 2", 3), ("max(n)", 6), ("foo(n, 1)", 1)]
)
def test_bad_text_is_one_sentence(text: str, column: int) -> None:
    with pytest.raises(ShapeError) as caught:
        dims.parse(text)
    message = str(caught.value)
    assert f"column {column}" in message or "unknown function" in message


def test_a_missing_symbol_is_named() -> None:
    with pytest.raises(ShapeError, match=r"needs a value for \['n'\]"):
        dims.evaluate(dims.add(dims.symbol("n"), 1), {})


def test_exact_quotients_are_affine() -> None:
    n, m = dims.symbol("n"), dims.symbol("m")
    assert dims.floordiv(dims.scale(n, 16), 16) == n
    assert dims.floordiv(dims.add(dims.scale(n, 6), dims.scale(m, -4), 8), 2) == dims.add(
        dims.scale(n, 3), dims.scale(m, -2), 4
    )
    assert str(dims.floordiv(dims.add(dims.scale(n, 4), 1), 4)) == "floordiv(4 * n + 1, 4)"
    assert str(dims.floordiv(dims.scale(n, 4), 8)) == "floordiv(4 * n, 8)"
    assert str(dims.floordiv(dims.scale(n, 4), -4)) == "floordiv(4 * n, -4)"
