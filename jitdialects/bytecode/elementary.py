"""The specification of exp and tanh in float32: one fixed sequence of steps per function.

`elementary.json` holds, per function, named constants and steps; a step is `[name, op, operand,
...]`, in order, each name assigned once. Operands are the argument `x`, constants, or earlier
steps; the last step, called `result`, is the value of the function. Whoever computes the function
(the expansion in the compiler, the oracle of the tests) executes exactly these steps, each rounded
once, so that every vector width and every engine gives the same bits. No pass may look inside,
reassociate or contract.

Constants: `floats` are float32 values written as C hexadecimal floats, hence exact; `ints` are
int32.

Operations, lane by lane. Float operands and results are float32, with round-to-nearest-even,
subnormals kept, and IEEE 754's answers for inf and NaN (payload and sign of a NaN are not
specified):

    fma a b c         a * b + c, rounded once
    add sub mul div   a op b, rounded once
    abs a             a with the sign bit cleared
    copysign a b      the magnitude of a with the sign bit of b
    less a b          i1: a < b; false if either is NaN
    greater a b       i1: a > b; false if either is NaN
    select c a b      c ? a : b; both float32
    to_bits a         int32: the bits of a
    from_bits i       float32: the value with the bits i
    add_int sub_int   int32, wrap at 32 bits
    shift_left i k    int32: i << k; k is a constant below 32
    shift_right i k   int32: arithmetic i >> k; k is a constant below 32

How they work. exp: clamp x to where the result leaves 0 and inf (a NaN passes both compares); n =
round-half-even(x / ln 2) by adding and subtracting 1.5 * 2**23, which also leaves n in the low bits
of the sum; r = x - n * ln 2 with ln 2 in two parts; a polynomial for e**r; times 2**n in two
factors, since n runs from -151 to 128 and one float32 power of two reaches neither end: the last
product alone rounds a subnormal result. tanh of a = |x|: an odd polynomial up to 0.625, else 1 - 2
/ (e**(2a) + 1) with 2a clamped to 20, where the result is 1 already; the sign of x last, so that
tanh(-0.0) = -0.0.

Measured accuracy: docs/numerics.md, made by `benchmarks/ulp_table.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
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
    "abs": 1,
    "copysign": 2,
    "less": 2,
    "greater": 2,
    "select": 3,
    "to_bits": 1,
    "from_bits": 1,
    "add_int": 2,
    "sub_int": 2,
    "shift_left": 2,
    "shift_right": 2,
}
"""Operations that a step may use, with their number of operands."""


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
    floats: Mapping[str, float]
    """Exact float32 values, held as Python floats."""
    ints: Mapping[str, int]
    """int32 values."""
    steps: tuple[Step, ...]
    """In order of execution; the last one is called `result`."""


@cache
def elementary_functions() -> Mapping[str, ElementaryFunction]:
    """All functions of the specification by name: `exp`, `tanh`."""
    text = (files("jitdialects.bytecode") / "elementary.json").read_text(encoding="utf-8")
    return {name: _function(name, data) for name, data in json.loads(text)["functions"].items()}


def _function(name: str, data: Mapping[str, Any]) -> ElementaryFunction:
    floats = {k: float.fromhex(v) for k, v in data["floats"].items()}
    steps = tuple(Step(s[0], s[1], tuple(s[2:])) for s in data["steps"])
    return ElementaryFunction(name, floats, data["ints"], steps)
