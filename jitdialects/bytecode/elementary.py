"""The specification of the elementary functions: one fixed sequence of steps per function and dtype.

`elementary.json` holds, per dtype and function, named constants and steps; a step is `[name, op, operand,
...]`, in order, each name assigned once. Operands are the argument `x`, constants, or earlier
steps; the last step, called `result`, is the value of the function. Whoever computes the function
(the expansion in the compiler, the oracle of the tests) executes exactly these steps, each rounded
once, so that every vector width and every engine gives the same bits. No pass may look inside,
reassociate or contract.

Constants: `floats` are values of the dtype written as C hexadecimal floats, hence exact (or inf, nan);
`ints` are integers of the same width, int32 for float32 and int64 for float64.

Operations, lane by lane. Float operands and results have the dtype, with round-to-nearest-even,
subnormals kept, and IEEE 754's answers for inf and NaN (payload and sign of a NaN are not
specified); integers wrap at their width:

    fma a b c         a * b + c, rounded once
    add sub mul div   a op b, rounded once
    sqrt a            its square root, rounded once
    abs a             a with the sign bit cleared
    copysign a b      the magnitude of a with the sign bit of b
    less a b          i1: a < b; false if either is NaN
    greater a b       i1: a > b; false if either is NaN
    select c a b      c ? a : b; both floats
    to_bits a         integer: the bits of a
    from_bits i       float: the value with the bits i
    add_int sub_int   integers
    and_int or_int    integers, bit by bit
    shift_left i k    i << k; k is a constant below the width
    shift_right_logical i k   i >> k with zeros from the left; k is a constant below the width

No step converts between integers and floats, for which AVX2 has nothing at 64 bits: adding and
subtracting 1.5 * 2**p, or an integer below the bits of 2**p, does it.

Both dtypes have the same design, with more coefficients for float64. exp: clamp x to where the result
leaves 0 and inf (a NaN passes both compares); n = round(x / ln 2) by adding and subtracting 1.5 *
2**23 + 2 * bias, which leaves n + 2 * bias in the low bits of the sum, from where they become
exponents; a polynomial for e**r. tanh: an odd polynomial up to 0.6875, else 1 - 2 / (e**(2|x|) + 1),
clamped where that is 1; the sign of x last, so that tanh(-0.0) = -0.0. log: x = 2**k (1 + f), where
subnormals are scaled first; log(1 + f) from s = f / (2 + f), whose odd series is short. erf: x plus x
times a polynomial in x**2, and above a border 1 - e**h: h is a polynomial in |x| (float32), or
e**h = e**(-x**2) N(x) / D(x) (float64).

rsqrt: r = sqrt(x), y = 1 / r and one step of Newton's iteration, y - y / 2 (x y**2 - 1), whose bracket is y (x y - r) +
(r y - 1): both differences are exact. Where the step gives NaN, of zeros and inf, y is the result.

Functions that become small far from zero are off there by what their exponent is off, in units of 1. So w = -x**2
(erfc), -x**2 / 2 (gelu) or -|x| (c0 + c1 x**2) (gelu_tanh) comes in two parts: its rounded value, and from FMAs the
rounding, which is added after the reduction by ln 2. 2**n is made larger by a power of two, so that it is normal, and
the last product, which alone rounds a subnormal result, takes that back. silu and gelu_tanh are x - x h, or e**w (x -
x h) below zero, h = e**w / (1 + e**w); gelu is max(x, 0) - e**w h S, erfc e**w (1 - h) S / k, or 2 minus that below
zero: h = |x| / (|x| + k), S is half a line and half a polynomial in h; quotient, line and sum carry their roundings
along. softplus: max(x, 0) + log(1 + t), t = e**-|x|, by the series of log. Far below zero gelu, gelu_tanh and silu are
-0.0, their limit.

The file is made by `benchmarks/fit_elementary.py`, which says how each coefficient is fitted. Measured
accuracy: docs/numerics.md, made by `benchmarks/ulp_table.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

ARITY: Mapping[str, int] = {
    "fma": 3,
    "add": 2,
    "sub": 2,
    "mul": 2,
    "div": 2,
    "sqrt": 1,
    "abs": 1,
    "copysign": 2,
    "less": 2,
    "greater": 2,
    "select": 3,
    "to_bits": 1,
    "from_bits": 1,
    "add_int": 2,
    "sub_int": 2,
    "and_int": 2,
    "or_int": 2,
    "shift_left": 2,
    "shift_right_logical": 2,
}
"""Operations that a step may use, with their number of operands."""

SCALED: Mapping[str, tuple[str, str, str]] = {"exp": ("p", "n", "smallest")}
"""Functions whose last steps make p * 2**n, rounded once, of two earlier values p and n: a machine that has an
instruction for that may use it instead. n is a whole number, or both are NaN. (`shifted` is n + 1.5 * 2**23 + 2 * bias,
and the first of the two products is exact.) Below the third, a constant, the result is 0."""


@dataclass(frozen=True)
class Step:
    """`name = op(operands)`; operands are names."""

    name: str
    op: str
    operands: tuple[str, ...]


@dataclass(frozen=True)
class ElementaryFunction:
    """Constants and steps of one function of `x`."""

    name: str
    dtype: str
    """"float32" or "float64"."""
    floats: Mapping[str, float]
    """Exact values of the dtype, held as Python floats."""
    ints: Mapping[str, int]
    """Integers of the dtype's width."""
    steps: tuple[Step, ...]
    """In order of execution; the last one is called `result`."""
    scaled: tuple[str, str, str] | None = None
    """The entry of `SCALED`."""

    def steps_for(self, names: Sequence[str]) -> tuple[Step, ...]:
        """The steps that make these values, in order."""
        needed, found = set(names), list[Step]()
        for step in reversed(self.steps):
            if step.name in needed:
                needed.update(step.operands)
                found.append(step)
        return tuple(reversed(found))


@cache
def elementary_functions(dtype: str = "float32") -> Mapping[str, ElementaryFunction]:
    """All functions of the specification for a dtype, by name."""
    text = (files("jitdialects.bytecode") / "elementary.json").read_text(encoding="utf-8")
    functions = json.loads(text)["functions"][dtype]
    return {name: _function(name, dtype, data) for name, data in functions.items()}


def _function(name: str, dtype: str, data: Mapping[str, Any]) -> ElementaryFunction:
    floats = {k: float.fromhex(v) for k, v in data["floats"].items()}
    steps = tuple(Step(s[0], s[1], tuple(s[2:])) for s in data["steps"])
    return ElementaryFunction(name, dtype, floats, data["ints"], steps, SCALED.get(name))
