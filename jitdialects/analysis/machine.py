"""What the machine levels are like: the numbers that schedules are chosen by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Level:
    """What a machine is like.

    lanes    4-byte elements in a vector register
    registers  of vectors
    rows     of the register tile of a product, at most; `rest`: of the tile for what such tiles leave over
    vectors  of the register tile; `row_vectors`: if it has one row, when loading is what takes the time
    fma      whether it is one instruction; else a step of an elementary function is a call for each lane
    scale    whether a product with a power of two whose exponent is a float is one instruction, of whole registers
    """

    lanes: int
    registers: int
    rows: int
    rest: int
    vectors: int
    row_vectors: int
    fma: bool
    scale: bool = False


LEVELS = {
    "x86-64-v1": Level(4, 16, 2, 0, 1, 4, fma=False),
    "x86-64-v2": Level(4, 16, 2, 0, 1, 4, fma=False),
    "x86-64-v3": Level(8, 16, 6, 4, 2, 8, fma=True),
    "x86-64-v4": Level(16, 32, 8, 4, 2, 16, fma=True, scale=True),
}


@dataclass(frozen=True)
class Core:
    """What one core of a machine of a level is taken to be, where a judgement compares instead of measuring.

    vector_registers  that hold values of a loop's body
    addresses         general registers that are left for the buffers of a loop
    decoded           micro-operations of a body that the front end keeps decoded
    bandwidth         (bytes that a level of the memory holds, bytes per cycle from and to it); the last one holds all
    divide            cycles that the divider takes for a register, by the bytes of an element
    issue             operations on vectors that begin in a cycle
    test              of these it takes to ask whether lanes are tiny, zero or NaN, and to branch if any is: less
                      with registers for masks
    mispredicted      cycles that a branch taken the wrong way costs
    """

    vector_registers: int
    addresses: int
    decoded: int
    bandwidth: tuple[tuple[float, float], ...]
    divide: Mapping[int, float]
    issue: int
    test: int
    mispredicted: float = 18


_BANDWIDTH = ((32 << 10, 48.0), (512 << 10, 24.0), (16 << 20, 10.0), (float("inf"), 4.0))
CORES = {
    "x86-64-v1": Core(16, 12, 1024, _BANDWIDTH, {4: 4, 8: 4}, 3, 7),
    "x86-64-v2": Core(16, 12, 1024, _BANDWIDTH, {4: 4, 8: 4}, 3, 7),
    "x86-64-v3": Core(16, 12, 1536, _BANDWIDTH, {4: 5, 8: 8}, 3, 8),
    "x86-64-v4": Core(32, 12, 2048, _BANDWIDTH, {4: 10, 8: 16}, 2, 5),
}

STEPS = {
    "divide": 8,
    "sqrt": 10,
    "rsqrt": 20,
    "exp": 20,
    "tanh": 36,
    "log": 28,
    "erf": 40,
    "sigmoid": 30,
    "erfc": 66,
    "softplus": 38,
    "silu": 36,
    "gelu": 68,
    "gelu_tanh": 48,
}
"""Vector operations that an operator of `tssa` takes the time of; all others take 1. Divisions and roots are one
slow instruction."""
TEMPORARIES = {
    "rsqrt": 3,
    "exp": 4,
    "tanh": 5,
    "log": 5,
    "erf": 6,
    "sigmoid": 5,
    "erfc": 8,
    "softplus": 6,
    "silu": 6,
    "gelu": 8,
    "gelu_tanh": 6,
}
"""Registers that an elementary function needs beside its operand and result."""
