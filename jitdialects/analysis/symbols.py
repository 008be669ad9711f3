"""What a compiled function may assume of its sizes, collected while its shapes are inferred.

`SymbolicFacts` answers the questions of the shape rules (`operators.ShapeFacts`) for expressions. A
question that the expressions themselves settle costs nothing: provably true is accepted, provably
false raises. Everything else becomes a *guard*, a condition that the dispatcher checks before every
call:

    f32[n] + f32[m]     guard n == m, and from now on m is written n
    f32[n] + f32[8]     guard n == 8, and n is 8
    max of f32[n]       guard 1 <= n

An equality is solved for one atom, which is replaced everywhere (`resolve`), so that equal sizes
are equal expressions again and later questions about them find nothing to ask. Proofs are by
intervals only: a size is at least 0 and at most `MAX_SIZE`, the value of an argument is any int64,
each `<=` guard tightens one atom.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Apply, Atom, Dim, Expr, Shape, Symbol
from jitdialects.bytecode.signature import is_value_symbol
from jitdialects.errors import CompileError

INFINITY = math.inf
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
MAX_SIZE = 2**60
"""No axis is longer: its elements would not fit any address space, nor be visited in a lifetime."""
Bound = int | float
"""An integer, or plus or minus infinity."""


class SymbolicFacts:
    """Implements `operators.ShapeFacts`. `symbols` are the names of sizes and values in the order
    of the signature: of two equal ones the earlier represents both, a size before a value."""

    def __init__(self, symbols: Iterable[str]) -> None:
        ordered = sorted(symbols, key=is_value_symbol)
        self._rank = {name: position for position, name in enumerate(ordered)}
        self._solved: dict[Atom, Dim] = {}
        self._at_least: dict[Atom, int] = {}
        self._at_most: dict[Atom, int] = {}
        self._resolved: dict[Shape, Shape] = {}  # under the guards of now
        self.guards: list[tuple[str, Dim, Dim]] = []
        """`(relation, left, right)`, relation `==` or `<=`, in the order in which they were
        needed."""

    def resolve(self, x: Dim) -> Dim:
        """`x` in terms of representatives only."""
        if isinstance(x, int):
            return x
        out: Dim = x.constant
        for atom, coefficient in x.terms:
            out = dims.add(out, dims.scale(self._resolve_atom(atom), coefficient))
        return out

    def resolve_shape(self, shape: Shape) -> Shape:
        """`shape` in terms of representatives only."""
        known = self._resolved.get(shape)
        if known is None:
            known = self._resolved[shape] = tuple(self.resolve(s) for s in shape)
        return known

    def _resolve_atom(self, atom: Atom) -> Dim:
        if atom in self._solved:
            return self._solved[atom]
        if isinstance(atom, Symbol):
            return Expr(((atom, 1),))
        left, right = (self.resolve(a) for a in atom.arguments)
        rebuilt = self._rebuild(atom.function, left, right)
        single = _single_atom(rebuilt)
        return rebuilt if single is None else self._solved.get(single, rebuilt)

    def _rebuild(self, function: str, left: Dim, right: Dim) -> Dim:
        """`function(left, right)`, without it where intervals decide which side a min or max
        takes."""
        if function == "mul":
            return dims.mul(left, right)
        if function in ("min", "max"):
            low, high = self.interval(dims.sub(left, right))
            if low >= 0 or high <= 0:
                return left if (low >= 0) == (function == "max") else right
        return dims.apply(function, left, right)

    # ---- the questions -------------------------------------------------------------------------

    def require_equal(self, x: Dim, y: Dim, error: Exception) -> Dim:
        """The common size of `x` and `y`; `error` if they differ for all values of the symbols."""
        x, y = self.resolve(x), self.resolve(y)
        if x == y:
            return x
        difference = dims.sub(x, y)
        low, high = self.interval(difference)
        if low > 0 or high < 0 or not _has_integer_solution(difference):
            raise error
        self._refuse_run_time(difference)
        self._solve(x, y, difference)
        return self.resolve(x)

    def require_at_most(self, x: Dim, y: Dim, error: Exception) -> None:
        """Demand `x <= y`; `error` if it fails for all values of the symbols."""
        x, y = self.resolve(x), self.resolve(y)
        difference = dims.sub(y, x)
        low, high = self.interval(difference)
        if low >= 0:
            return
        if high < 0:
            raise error
        self._refuse_run_time(difference)
        left, right = _sides(difference)
        if ("<=", left, right) not in self.guards:
            self.guards.append(("<=", left, right))
            self._resolved.clear()
            self._tighten(difference)

    def assume_multiple(self, x: Dim, number: int) -> None:
        """Demand that `x`, a size, is a multiple of `number`; nothing is learnt from it."""
        if number > 1:
            self.guards.append(("==", dims.scale(dims.floordiv(x, number), number), x))

    def is_settled(self, x: Dim) -> bool:
        """Whether a guard can speak of `x`."""
        return dims.is_settled(self.resolve(x))

    def require_representable(self, x: Dim, error: Exception) -> None:
        """Demand that `x`, and every part of it that does not follow int64's wrapping, is an int64;
        then the number and what wrapping arithmetic makes of it are the same."""
        x = self.resolve(x)
        if isinstance(x, int):
            return
        for atom, _ in x.terms:
            for argument in atom.arguments if isinstance(atom, Apply) else ():
                self.require_representable(argument, error)
        self.require_at_most(INT64_MIN, x, error)
        self.require_at_most(x, INT64_MAX, error)

    def _refuse_run_time(self, difference: Dim) -> None:
        """Guards are checked before the code runs."""
        if not dims.is_settled(difference):
            raise CompileError("a size or index depends on tensor data where it may not")

    # ---- equalities ----------------------------------------------------------------------------

    def _solve(self, x: Dim, y: Dim, difference: Dim) -> None:
        """Record `x == y` and replace one atom by what the equation says it is."""
        assert isinstance(difference, Expr)
        divisor = math.gcd(difference.constant, *(c for _, c in difference.terms))
        equation = {atom: c // divisor for atom, c in difference.terms}
        candidates = [
            atom
            for atom, coefficient in equation.items()
            if abs(coefficient) == 1 and not _occurs(atom, equation.keys() - {atom})
        ]
        if not candidates:
            raise CompileError(
                f"sizes {x} and {y} must be equal, which cannot be solved for a size"
            )
        atom = max(candidates, key=self._replaced_first)
        rest = {a: c for a, c in equation.items() if a != atom}
        value = _sum(rest, difference.constant // divisor, -equation[atom])
        left, right = (_of(atom), value) if isinstance(value, int) else (value, _of(atom))
        self.guards.append(("==", left, right))
        self._resolved.clear()
        self._carry_bounds(atom, value)
        self._solved = {a: _replace(v, atom, value) for a, v in self._solved.items()}
        self._solved[atom] = value
        self._solved = {a: self.resolve(v) for a, v in self._solved.items()}

    def _replaced_first(self, atom: Atom) -> tuple[bool, int, str]:
        """Later symbols before earlier ones, functions before symbols: those stay readable."""
        rank = max(
            (self._rank.get(n, len(self._rank)) for n in dims.symbols_of(_of(atom))), default=0
        )
        return (isinstance(atom, Apply), rank, str(atom))

    def _carry_bounds(self, atom: Atom, value: Dim) -> None:
        """What was known of the replaced atom holds for its value."""
        low, high = self._atom_interval(atom)
        if isinstance(low, int):
            self._tighten(dims.sub(value, low))
        if isinstance(high, int):
            self._tighten(dims.sub(high, value))

    # ---- intervals -----------------------------------------------------------------------------

    def interval(self, x: Dim) -> tuple[Bound, Bound]:
        """Numbers between which `x` lies whenever the guards hold."""
        if isinstance(x, int):
            return x, x
        low: Bound = x.constant
        high: Bound = x.constant
        for atom, coefficient in x.terms:
            ends = [_times(end, coefficient) for end in self._atom_interval(atom)]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def _atom_interval(self, atom: Atom) -> tuple[Bound, Bound]:
        low: Bound
        high: Bound
        if isinstance(atom, Symbol):
            any_value = is_value_symbol(atom.name) or atom.name.startswith(dims.RUN_TIME)
            low, high = (INT64_MIN, INT64_MAX) if any_value else (0, MAX_SIZE)
        else:
            low, high = _function_interval(atom, *(self.interval(a) for a in atom.arguments))
        low, high = (
            max(low, self._at_least.get(atom, low)),
            min(high, self._at_most.get(atom, high)),
        )
        return low, high

    def _tighten(self, non_negative: Dim) -> None:
        """Learn `0 <= non_negative` where it bounds a single atom."""
        if isinstance(non_negative, int) or len(non_negative.terms) != 1:
            return
        ((atom, coefficient),) = non_negative.terms
        if coefficient > 0:
            bound = -(non_negative.constant // coefficient)
            self._at_least[atom] = max(bound, self._at_least.get(atom, bound))
        else:
            bound = non_negative.constant // -coefficient
            self._at_most[atom] = min(bound, self._at_most.get(atom, bound))


# ---- expressions -------------------------------------------------------------------------------


def _of(atom: Atom) -> Expr:
    return Expr(((atom, 1),))


def _sides(non_negative: Dim) -> tuple[Dim, Dim]:
    """`left <= right` that says `0 <= non_negative` without a minus sign."""
    assert isinstance(non_negative, Expr)
    constant = non_negative.constant
    left = dims.add(
        max(-constant, 0), *(dims.scale(_of(a), -c) for a, c in non_negative.terms if c < 0)
    )
    right = dims.add(
        max(constant, 0), *(dims.scale(_of(a), c) for a, c in non_negative.terms if c > 0)
    )
    return left, right


def _single_atom(x: Dim) -> Atom | None:
    """The atom that `x` consists of and nothing else."""
    if isinstance(x, Expr) and x.constant == 0 and len(x.terms) == 1 and x.terms[0][1] == 1:
        return x.terms[0][0]
    return None


def _sum(terms: dict[Atom, int], constant: int, sign: int) -> Dim:
    """`sign * (constant + terms)` for a sign of 1 or -1."""
    return dims.add(*(dims.scale(_of(a), sign * c) for a, c in terms.items()), sign * constant)


def _occurs(atom: Atom, others: Iterable[Atom]) -> bool:
    """Whether `atom` is part of the arguments of one of `others`."""
    return any(atom in _atoms_inside(other) for other in others)


def _atoms_inside(atom: Atom) -> set[Atom]:
    out: set[Atom] = set()
    for argument in atom.arguments if isinstance(atom, Apply) else ():
        for inner, _ in argument.terms if isinstance(argument, Expr) else ():
            out |= {inner} | _atoms_inside(inner)
    return out


def _replace(x: Dim, atom: Atom, value: Dim) -> Dim:
    """`x` with a top-level `atom` replaced."""
    if isinstance(x, int):
        return x
    parts = [dims.scale(value if a == atom else _of(a), c) for a, c in x.terms]
    return dims.add(x.constant, *parts)


def _has_integer_solution(difference: Dim) -> bool:
    """Whether `difference == 0` passes the divisibility test: 2 n == 2 m + 1 does not."""
    assert isinstance(difference, Expr)
    return difference.constant % math.gcd(*(c for _, c in difference.terms)) == 0


def _times(end: Bound, factor: Bound) -> Bound:
    """A product of ends of intervals; zero times infinity is zero."""
    return 0 if end == 0 or factor == 0 else end * factor


def _function_interval(
    atom: Apply, x: tuple[Bound, Bound], y: tuple[Bound, Bound]
) -> tuple[Bound, Bound]:
    """The interval of a function of two expressions, one case per member of `dims.FUNCTIONS`."""
    match atom.function:
        case "min":
            return min(x[0], y[0]), min(x[1], y[1])
        case "max":
            return max(x[0], y[0]), max(x[1], y[1])
        case "mul":
            corners = [_times(a, b) for a in x for b in y]
            return min(corners), max(corners)
        case "floordiv" if y[0] > 0:
            return (0 if x[0] >= 0 else -INFINITY), (x[1] if x[1] >= 0 else -1)
        case "wrap" if x[0] >= 0:
            return x
        case _:
            return -INFINITY, INFINITY
