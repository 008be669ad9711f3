"""Dimensions: plain integers, or symbolic expressions over named sizes and scalar arguments.

An expression is kept in one normal form, an affine sum `constant + coefficient * atom + ...`; an atom
is a symbol or an application of one of `FUNCTIONS` (the parts that are not affine).
Because the form is canonical, structural equality is the only equality that anything here claims:
equal expressions are equal sizes; different ones may still be equal at run time.

Text form (what `#tssa.dims` prints and parses): `n`, `8`, `n + 1`, `2 * n + -3`, `max(n - s0, 0)`,
`floordiv(n, 2)`, `mul(m, n)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from jitdialects.errors import ShapeError


@dataclass(frozen=True, order=True)
class Symbol:
    """A named size (`n`) or scalar argument (`s0`)."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Apply:
    """A non-affine function of two expressions, one of `FUNCTIONS`."""

    function: str
    arguments: tuple[Dim, ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


Atom: TypeAlias = Symbol | Apply


@dataclass(frozen=True)
class Expr:
    """`constant + sum(coefficient * atom)`; at least one term, atoms sorted by text, none zero."""

    terms: tuple[tuple[Atom, int], ...]
    constant: int = 0

    def __str__(self) -> str:
        parts = [str(a) if c == 1 else f"{c} * {a}" for a, c in self.terms]
        if self.constant:
            parts.append(str(self.constant))
        return " + ".join(parts)


Dim: TypeAlias = int | Expr
"""One dimension of a shape: known now, or an expression."""
Shape: TypeAlias = tuple[Dim, ...]


def symbol(name: str) -> Expr:
    """The size called `name`."""
    return Expr(((Symbol(name), 1),))


RUN_TIME = "_"
"""How the names of run-time symbols begin: values that are known only while the code runs."""


def is_settled(x: Dim) -> bool:
    """Whether `x` is known before the code runs: no run-time symbol is in it."""
    return isinstance(x, int) or not any(n.startswith(RUN_TIME) for n in symbols_of(x))


def _build(terms: Mapping[Atom, int], constant: int) -> Dim:
    kept = sorted(((a, c) for a, c in terms.items() if c), key=lambda t: str(t[0]))
    return Expr(tuple(kept), constant) if kept else constant


def _split(x: Dim) -> tuple[dict[Atom, int], int]:
    return (dict(x.terms), x.constant) if isinstance(x, Expr) else ({}, x)


def add(*xs: Dim) -> Dim:
    """The sum, in normal form."""
    terms: dict[Atom, int] = {}
    constant = 0
    for x in xs:
        part, c = _split(x)
        constant += c
        for atom, coefficient in part.items():
            terms[atom] = terms.get(atom, 0) + coefficient
    return _build(terms, constant)


def scale(x: Dim, factor: int) -> Dim:
    """`factor * x`."""
    terms, constant = _split(x)
    return _build({a: c * factor for a, c in terms.items()}, constant * factor)


def sub(x: Dim, y: Dim) -> Dim:
    """`x - y`."""
    return add(x, scale(y, -1))


def mul(x: Dim, y: Dim) -> Dim:
    """`x * y`; affine where one side is a constant."""
    if isinstance(x, int):
        return scale(y, x)
    if isinstance(y, int):
        return scale(x, y)
    return apply("mul", *sorted((x, y), key=str))


def product(xs: Iterable[Dim]) -> Dim:
    """The product of all `xs`; 1 when there are none."""
    out: Dim = 1
    for x in xs:
        out = mul(out, x)
    return out


def strides(shape: Shape) -> list[Dim]:
    """Strides in elements of a C-contiguous array."""
    out: list[Dim] = []
    stride: Dim = 1
    for size in reversed(shape):
        out.insert(0, stride)
        stride = mul(stride, size)
    return out


def floordiv(x: Dim, y: Dim) -> Dim:
    """`x // y`, floor; affine where every coefficient is a multiple of a constant `y`."""
    if isinstance(y, int) and y > 0 and isinstance(x, Expr):
        terms, constant = _split(x)
        if not any(c % y for c in (constant, *terms.values())):
            return _build({a: c // y for a, c in terms.items()}, constant // y)
    return apply("floordiv", x, y)


def is_multiple(x: Dim, number: int) -> bool:
    """Whether `x` is a multiple of `number` for all values of its symbols, as far as its coefficients tell."""
    known = (x,) if isinstance(x, int) else (x.constant, *(c for _, c in x.terms))
    return all(c % number == 0 for c in known)


def minimum(x: Dim, y: Dim) -> Dim:
    """The smaller of two sizes."""
    return x if x == y else apply("min", x, y)


def maximum(x: Dim, y: Dim) -> Dim:
    """The larger of two sizes."""
    return x if x == y else apply("max", x, y)


FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "min": min,
    "max": max,
    "floordiv": lambda x, y: x // y,
    "mul": lambda x, y: x * y,
    # wrap(i, n): a possibly negative Python index, counted from the end; no clamping
    "wrap": lambda i, n: i + n if i < 0 else i,
}
"""Name -> meaning of the functions that expressions may apply."""


def apply(function: str, x: Dim, y: Dim) -> Dim:
    """`function(x, y)`, folded when both are known."""
    if isinstance(x, int) and isinstance(y, int):
        return FUNCTIONS[function](x, y)
    return Expr(((Apply(function, (x, y)), 1),))


def clamp_index(bound: Dim, size: Dim) -> Dim:
    """A slice bound as Python normalises it: negative counts from the end, then clamped to 0..size."""
    return _clamped(bound, size, 0)


def _clamped(bound: Dim, size: Dim, shift: int) -> Dim:
    """`bound`, counted from the end if negative, plus `shift`, clamped to 0..size."""
    if isinstance(bound, int):
        wrapped = add(size, bound, shift) if bound < 0 else bound + shift
        if isinstance(wrapped, int) and isinstance(size, int):
            return max(0, min(wrapped, size))
        if wrapped in (0, size):
            return wrapped
        return maximum(wrapped, 0) if bound < 0 else minimum(wrapped, size)
    return maximum(minimum(add(apply("wrap", bound, size), shift), size), 0)


def clamp_index_down(bound: Dim, size: Dim) -> Dim:
    """A bound of a slice of negative step as Python normalises it: negative counts from the end, then
    clamped to -1..size - 1."""
    return sub(_clamped(bound, size, 1), 1)


def symbols_of(x: Dim) -> set[str]:
    """The names of all symbols in `x`."""
    if isinstance(x, int):
        return set()
    out: set[str] = set()
    for atom, _ in x.terms:
        if isinstance(atom, Symbol):
            out.add(atom.name)
        else:
            for argument in atom.arguments:
                out |= symbols_of(argument)
    return out


def evaluate(x: Dim, env: Mapping[str, int]) -> int:
    """The value of `x` where each symbol has the value `env[name]`."""
    return _as_int(substitute(x, env))


def _as_int(x: Dim) -> int:
    if isinstance(x, int):
        return x
    raise ShapeError(f"size '{x}' needs a value for {sorted(symbols_of(x))}")


def substitute(x: Dim, env: Mapping[str, Dim]) -> Dim:
    """`x` with each symbol in `env` replaced."""
    if isinstance(x, int):
        return x
    out: Dim = x.constant
    for atom, coefficient in x.terms:
        if isinstance(atom, Symbol):
            value = env.get(atom.name, Expr(((atom, 1),)))
        else:
            left, right = (substitute(a, env) for a in atom.arguments)
            value = (
                mul(left, right) if atom.function == "mul" else apply(atom.function, left, right)
            )
        out = add(out, scale(value, coefficient))
    return out


_TOKEN = re.compile(r"\s*(?:(?P<int>\d+)|(?P<name>[A-Za-z_]\w*)|(?P<op>[-+*(),]))")


def parse(text: str) -> Dim:
    """The expression written in `text`; `ShapeError` names the column of what does not fit."""
    tokens: list[tuple[str, str, int]] = []
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None:
            column = len(text) - len(text[position:].lstrip()) + 1
            raise ShapeError(f"size '{text}': unexpected character at column {column}")
        kind = match.lastgroup or ""
        tokens.append((kind, match[kind], match.start(kind) + 1))
        position = match.end()
    tokens.append(("end", "", len(text) + 1))
    cursor = _Cursor(text, tokens)
    out = cursor.sum()
    cursor.expect("end")
    return out


@dataclass
class _Cursor:
    """Recursive descent over the tokens of one expression."""

    text: str
    tokens: list[tuple[str, str, int]]
    at: int = 0

    def peek(self) -> str:
        return self.tokens[self.at][1]

    def expect(self, kind: str, value: str | None = None) -> str:
        found, text, column = self.tokens[self.at]
        if found != kind or (value is not None and text != value):
            wanted = value or {"end": "the end", "int": "a number", "name": "a name"}[kind]
            raise ShapeError(f"size '{self.text}': expected {wanted} at column {column}")
        self.at += 1
        return text

    def sum(self) -> Dim:
        out = self.term()
        while self.peek() in ("+", "-"):
            negative = self.expect("op") == "-"
            term = self.term()
            out = sub(out, term) if negative else add(out, term)
        return out

    def term(self) -> Dim:
        out = self.atom()
        while self.peek() == "*":
            self.expect("op")
            out = mul(out, self.atom())
        return out

    def atom(self) -> Dim:
        if self.peek() == "-":
            self.expect("op")
            return scale(self.atom(), -1)
        if self.peek() == "(":
            self.expect("op")
            out = self.sum()
            self.expect("op", ")")
            return out
        if self.tokens[self.at][0] == "int":
            return int(self.expect("int"))
        name = self.expect("name")
        if self.peek() != "(":
            return symbol(name)
        if name not in FUNCTIONS:
            raise ShapeError(f"size '{self.text}': unknown function '{name}'")
        self.expect("op", "(")
        left = self.sum()
        self.expect("op", ",")
        right = self.sum()
        self.expect("op", ")")
        return mul(left, right) if name == "mul" else apply(name, left, right)
