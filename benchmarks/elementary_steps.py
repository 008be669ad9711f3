"""A function of bytecode/elementary.json under construction: its constants and steps."""

# pyright: basic
# mpmath has no types
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import mpmath

from benchmarks.minimax import Format

LONGEST_CHAIN = 7
"""Coefficients of a polynomial that is computed by Horner's scheme."""


@dataclass
class Spec:
    """A function under construction. `step` names a value and returns the name."""

    source: str
    format: Format
    floats: dict[str, float] = field(default_factory=dict[str, float])
    ints: dict[str, int] = field(default_factory=dict[str, int])
    steps: list[list[str]] = field(default_factory=list[list[str]])
    names: set[str] = field(default_factory=set[str])

    def number(self, name: str, value: Any) -> str:
        """A float constant, rounded to the format."""
        finite = mpmath.isfinite(value)
        self.floats[name] = self.format.round(value) if finite else float(value)
        return name

    def integer(self, name: str, value: int) -> str:
        """An integer constant of the width of the format, wrapped."""
        half = 1 << (self.format.width - 1)
        self.ints[name] = (value + half) % (2 * half) - half
        return name

    def step(self, name: str, op: str, *operands: str) -> str:
        """One operation."""
        assert name not in self.names, f"{name} is there already"
        self.names.add(name)
        self.steps.append([name, op, *operands])
        return name

    def at_most(self, name: str, x: str, bound: str) -> str:
        """min(x, bound); NaN passes."""
        above = self.step(f"{name}_above", "greater", x, bound)
        return self.step(name, "select", above, bound, x)

    def at_least(self, name: str, x: str, bound: str) -> str:
        """max(x, bound); NaN passes."""
        below = self.step(f"{name}_below", "less", x, bound)
        return self.step(name, "select", below, bound, x)

    def polynomial(self, letter: str, coefficients: Sequence[float], u: str) -> str:
        """The polynomial in u; constants `letter`0, `letter`1, ..., steps `letter`_0, ...

        Horner's scheme if it is short, else Estrin's: pairs c0 + c1 u, pairs of pairs by u**2, and from
        there Horner by u**4, so that the chain of dependent steps is a third for the price of two
        products.
        """
        parts = [self.number(f"{letter}{k}", c) for k, c in enumerate(coefficients)]
        names = (f"{letter}_{k}" for k in range(len(parts)))
        power = u
        if len(parts) > LONGEST_CHAIN:
            for square in (f"{u}_2", f"{u}_4"):
                parts = self._in_pairs(names, parts, power)
                if square not in self.names:
                    self.step(square, "mul", power, power)
                power = square
        value = parts[-1]
        for part in reversed(parts[:-1]):
            value = self.step(next(names), "fma", value, power, part)
        return value

    def _in_pairs(self, names: Iterator[str], parts: Sequence[str], power: str) -> list[str]:
        """p0 + p1 * power, p2 + p3 * power, ..."""
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        return [
            self.step(next(names), "fma", pair[1], power, pair[0]) if len(pair) == 2 else pair[0]
            for pair in pairs
        ]

    def exponential(self, coefficients: Sequence[float], r: str) -> str:
        """The polynomial in r, where the last two steps are Horner's: they decide its accuracy."""
        zeroth, first, *others = coefficients
        q = self.step("q", "fma", self.polynomial("e", others, r), r, self.number("e_slope", first))
        return self.step("p", "fma", q, r, self.number("e_at_0", zeroth))

    def power_of_two(self, name: str, bits: str) -> str:
        """2**n, where the low bits of `bits` are n + bias: they become the exponent."""
        shift = self.integer("mantissa_bits", self.format.mantissa)
        word = self.step(f"exponent{name}", "shift_left", bits, shift)
        return self.step(f"scale{name}", "from_bits", word)

    def data(self) -> dict[str, Any]:
        """What the file holds."""
        return {
            "source": self.source,
            "floats": {k: _hexadecimal(v) for k, v in self.floats.items()},
            "ints": self.ints,
            "steps": self.steps,
        }


def _hexadecimal(x: float) -> str:
    """C's hexadecimal form without trailing zeros."""
    if not math.isfinite(x):
        return str(x)
    digits, exponent = x.hex().split("p")
    return f"{digits.rstrip('0').rstrip('.')}p{exponent}"
