"""Signature text: exact round trips and refusals that name the column."""

import pytest

from jitdialects.bytecode import dims
from jitdialects.bytecode.dtypes import FLOAT32, INT64, WEAK_FLOAT
from jitdialects.bytecode.signature import ArgumentType, Signature, parse, value_symbol
from jitdialects.errors import BytecodeError


@pytest.mark.parametrize(
    "text",
    [
        "main()",
        "main(f32[n,784], f32[784,512]:strided, i64[], float)",
        "f.inner(bool[0], int, pybool, bool[n,n,m]:strided)",
        "main(f32[n,m], i64[m]) where 2 <= n, 3 <= m",
        "main(f32[n,m]) where 2 <= n, n <= 64, m <= 7, 8 divides n",
        "f(f32[9223372036854775807])",
    ],
)
def test_round_trip(text: str) -> None:
    assert str(parse(text)) == text
    assert parse(str(parse(text))) == parse(text)


def test_meaning() -> None:
    n = dims.symbol("n")
    assert parse(" main ( f32[ n , 784] :strided,i64[] , float ) ") == Signature(
        "main",
        (
            ArgumentType(FLOAT32, (n, 784), strided=True),
            ArgumentType(INT64, ()),
            ArgumentType(WEAK_FLOAT, ()),
        ),
    )


def test_values_of_arguments_are_symbols() -> None:
    signature = parse("f(f32[n], i64[], int, float, i64[2])")
    assert [a.is_integer_scalar for a in signature.arguments] == [False, True, True, False, False]
    assert str(value_symbol(1)) == "s1"


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("", 1, "a name"),
        ("main", 5, "expected '('"),
        ("main(f32)", 9, "expected '['"),
        ("main(f16[n])", 6, "unknown dtype 'f16'"),
        ("main(f32[n) ", 11, "expected ','"),
        ("main(f32[n] f32[n])", 13, "expected ','"),
        ("main(f32[n+1])", 11, "unexpected '+'"),
        ("main(f32[s0])", 10, "value of an argument"),
        ("main(f32[max])", 10, "name of a size"),
        ("main(f32[n]:packed)", 13, ":strided"),
        ("main(i64[]:strided)", 6, "never strided"),
        ("main(float:strided)", 11, "expected ','"),
        ("main(f32[n]", 12, "expected ','"),
        ("main() x", 8, "expected the end"),
        ("main(f32[9223372036854775808])", 10, "no array has the size"),
        ("main(f32[-1])", 10, "no array has the size -1"),
        ("main(f32[n],)", 13, "a name"),
        ("main(f32[n]) where", 19, "a number"),
        ("main(f32[n]) where 2", 21, "2 <= n"),
        ("main(f32[n]) where 2 <= m", 25, "no argument has a size 'm'"),
        ("main(f32[n]) where m <= 2", 20, "no argument has a size 'm'"),
        ("main(f32[n]) where n 2", 22, "n <= 64"),
        ("main(f32[n]) where n <= m", 25, "a number"),
        ("main(f32[n]) where 0 divides n", 30, "a divisor is at least 1"),
        ("main(f32[n]) where 8 divides m", 30, "no argument has a size 'm'"),
        ("main(f32[n]) where 2 <= n n", 27, "expected the end"),
    ],
)
def test_refusals(text: str, column: int, words: str) -> None:
    with pytest.raises(BytecodeError) as error:
        parse(text)
    assert f"column {column}:" in str(error.value)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("general", "special", "covered"),
    [
        ("f(f32[n])", "f(f32[3])", True),
        ("f(f32[n,n])", "f(f32[3,3])", True),
        ("f(f32[n,n])", "f(f32[3,4])", False),
        ("f(f32[n,8])", "f(f32[3,8])", True),
        ("f(f32[n,8])", "f(f32[3,4])", False),
        ("f(f32[n])", "f(f64[3])", False),
        ("f(f32[n])", "f(f32[3]:strided)", False),
        ("f(f32[n])", "f(f32[3,3])", False),
        ("f(f32[n])", "f(f32[3], float)", False),
        ("f(f32[n]) where 2 <= n", "f(f32[2])", True),
        ("f(f32[n]) where 2 <= n", "f(f32[1])", False),
        ("f(f32[3])", "f(f32[3])", True),
        ("f(f32[n]) where 2 <= n", "f(f32[m])", False),
        ("f(f32[n]) where n <= 8", "f(f32[8])", True),
        ("f(f32[n]) where n <= 8", "f(f32[9])", False),
        ("f(f32[n]) where 4 divides n", "f(f32[8])", True),
        ("f(f32[n]) where 4 divides n", "f(f32[9])", False),
        ("f(f32[n]) where 4 divides n", "f(f32[m])", False),
    ],
)
def test_what_a_signature_covers(general: str, special: str, covered: bool) -> None:
    assert parse(general).covers(parse(special)) is covered
