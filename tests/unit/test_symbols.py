"""`SymbolicFacts`: what is proved, what becomes a guard, what is refused."""

from __future__ import annotations

import pytest

from jitdialects.analysis.symbols import SymbolicFacts
from jitdialects.bytecode import dims
from jitdialects.errors import CompileError, ShapeError

ERROR = ShapeError("sizes differ")


def guards(facts: SymbolicFacts) -> list[str]:
    return [f"{left} {relation} {right}" for relation, left, right in facts.guards]


def equal(facts: SymbolicFacts, left: str, right: str) -> str:
    return str(facts.require_equal(dims.parse(left), dims.parse(right), ERROR))


def at_most(facts: SymbolicFacts, left: str, right: str) -> None:
    facts.require_at_most(dims.parse(left), dims.parse(right), ERROR)


def resolved(facts: SymbolicFacts, text: str) -> str:
    return str(facts.resolve(dims.parse(text)))


@pytest.mark.parametrize(
    ("left", "right", "guard", "common"),
    [
        ("n", "n", None, "n"),
        ("8", "8", None, "8"),
        ("n + 1", "1 + n", None, "n + 1"),
        ("n", "m", "n == m", "n"),
        ("m", "n", "n == m", "n"),
        ("n", "8", "n == 8", "8"),
        ("n + 1", "m", "n + 1 == m", "n + 1"),
        ("m + 1", "n", "m + 1 == n", None),
        ("2 * n", "2 * m", "n == m", "2 * n"),
        ("2 * n", "16", "n == 8", "16"),
        ("s3", "n", "n == s3", "n"),
        ("floordiv(n, 2)", "floordiv(m, 2)", "floordiv(n, 2) == floordiv(m, 2)", "floordiv(n, 2)"),
        ("floordiv(n, 2)", "m", "m == floordiv(n, 2)", "m"),
    ],
)
def test_equality(left: str, right: str, guard: str | None, common: str | None) -> None:
    facts = SymbolicFacts(["s3", "n", "m"])
    got = equal(facts, left, right)
    assert got == (resolved(facts, left) if common is None else common)
    assert resolved(facts, left) == resolved(facts, right) == got
    if guard != "m + 1 == n":
        assert guards(facts) == ([] if guard is None else [guard])
    assert equal(facts, left, right) == got
    assert len(facts.guards) <= 1, "asked twice, guarded once"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("3", "4"),
        ("n", "n + 1"),
        ("n", "-1"),
        ("2 * n", "2 * m + 1"),
        ("max(n, 3)", "2"),
        ("min(n, 3)", "4"),
        ("mul(n, m)", "-1"),
        ("floordiv(n, 2)", "-1"),
    ],
)
def test_sizes_that_never_agree(left: str, right: str) -> None:
    facts = SymbolicFacts(["n", "m"])
    with pytest.raises(ShapeError, match="sizes differ"):
        equal(facts, left, right)
    assert not facts.guards


def test_representatives_follow_each_other() -> None:
    facts = SymbolicFacts(["n", "m", "k"])
    equal(facts, "m", "k")
    equal(facts, "n", "m")
    equal(facts, "k", "8")
    assert [resolved(facts, x) for x in ("n", "m", "k", "mul(m, k)")] == ["8", "8", "8", "64"]
    assert guards(facts) == ["m == k", "n == m", "n == 8"]


def test_equal_functions_of_equal_sizes() -> None:
    facts = SymbolicFacts(["n", "m"])
    equal(facts, "n", "m")
    equal(facts, "floordiv(n, 2)", "floordiv(m, 2)")
    assert guards(facts) == ["n == m"]


def test_do_not_solve_for_a_size_inside_itself() -> None:
    facts = SymbolicFacts(["n"])
    assert equal(facts, "n", "mul(n, n)") == "n"
    assert guards(facts) == ["n == mul(n, n)"]
    assert resolved(facts, "mul(n, n)") == "n"


def test_do_not_guess_what_cannot_be_solved() -> None:
    with pytest.raises(CompileError, match="sizes 2 \\* n and 3 \\* m must be equal"):
        equal(SymbolicFacts(["n", "m"]), "2 * n", "3 * m")


@pytest.mark.parametrize(
    ("left", "right", "guard"),
    [
        ("0", "n", None),
        ("3", "4", None),
        ("n", "n + 1", None),
        ("0", "max(s0, 0)", None),
        ("min(s0, n)", "n", "min(n, s0) <= n"),
        ("1", "n", "1 <= n"),
        ("0", "s0", "0 <= s0"),
        ("s0 + 1", "n", "s0 + 1 <= n"),
        ("-1 * n", "s0", "0 <= n + s0"),
        ("-1 * n", "-1", "1 <= n"),
    ],
)
def test_at_most(left: str, right: str, guard: str | None) -> None:
    facts = SymbolicFacts(["n", "s0"])
    at_most(facts, left, right)
    if guard is None or not guard.startswith("min"):
        assert guards(facts) == ([] if guard is None else [guard])
    at_most(facts, left, right)
    assert len(facts.guards) <= 1


def test_a_guard_implies_weaker_ones() -> None:
    facts = SymbolicFacts(["n", "m"])
    at_most(facts, "3", "n")
    at_most(facts, "1", "n")
    at_most(facts, "2", "2 * n")
    at_most(facts, "n", "10")
    at_most(facts, "n", "11")
    assert guards(facts) == ["3 <= n", "n <= 10"]
    with pytest.raises(ShapeError):
        at_most(facts, "n", "2")
    with pytest.raises(ShapeError):
        equal(facts, "n", "11")
    equal(facts, "m", "n")
    at_most(facts, "3", "m")
    assert guards(facts) == ["3 <= n", "n <= 10", "n == m"]


def test_bounds_pass_to_the_representative() -> None:
    facts = SymbolicFacts(["n", "m"])
    at_most(facts, "1", "m")
    equal(facts, "n", "m")
    at_most(facts, "1", "n")
    assert guards(facts) == ["1 <= m", "n == m"]


@pytest.mark.parametrize(("left", "right"), [("4", "3"), ("n + 1", "n"), ("1", "0"), ("n", "-1")])
def test_at_most_that_never_holds(left: str, right: str) -> None:
    with pytest.raises(ShapeError, match="sizes differ"):
        at_most(SymbolicFacts(["n"]), left, right)


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("max(min(n, 1), 0)", "min(n, 1)"),
        ("max(n, 0)", "n"),
        ("min(n, -1)", "-1"),
        ("max(n, n + 2)", "n + 2"),
        ("max(s0, 0)", "max(s0, 0)"),
    ],
)
def test_intervals_decide_min_and_max(text: str, simple: str) -> None:
    assert resolved(SymbolicFacts(["n", "s0"]), text) == simple


def test_values_that_wrap_are_kept_out_by_guards() -> None:
    facts = SymbolicFacts(["n", "s0"])
    for harmless in ("7", "n + 1", "2 * n", "s0", "max(s0, n)"):
        facts.require_representable(dims.parse(harmless), ERROR)
    assert guards(facts) == []
    facts.require_representable(dims.parse("s0 + 1"), ERROR)
    facts.require_representable(dims.parse("min(2 * s0, n)"), ERROR)
    assert guards(facts) == [
        f"s0 <= {2**63 - 2}",
        f"0 <= 2 * s0 + {2**63}",
        f"2 * s0 <= {2**63 - 1}",
    ]
