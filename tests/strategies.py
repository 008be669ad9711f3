"""Hypothesis strategies for programs. What they make is valid for the verifier, nothing more: dtypes and
shapes are not made to fit, since only a running program knows them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from hypothesis import strategies as st

from jitdialects.bytecode.attributes import (
    At,
    Attribute,
    Bound,
    Ellipsis,
    IndexSpec,
    Ints,
    NewAxis,
    OperandRef,
    ShapeSpec,
    Slice,
)
from jitdialects.bytecode.dtypes import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    SUPPORTED,
    WEAK_BOOL,
    WEAK_FLOAT,
    WEAK_INT,
)
from jitdialects.bytecode.operators import OPERATORS
from jitdialects.bytecode.program import (
    Block,
    Constant,
    Function,
    Instruction,
    Location,
    Program,
)

INT64S = st.integers(-(2**63), 2**63 - 1)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.]{0,6}", fullmatch=True)
LOCATIONS = st.none() | st.builds(
    Location, st.text(max_size=6), st.integers(1, 2**31), st.integers(1, 200)
)


@st.composite
def constants(draw: st.DrawFn) -> Constant:
    """Constants of every dtype with any bits, NaN payloads included."""
    dtype = draw(
        st.sampled_from([BOOL, INT32, INT64, FLOAT32, FLOAT64, WEAK_BOOL, WEAK_INT, WEAK_FLOAT])
    )
    sizes = () if dtype.weak else tuple(draw(st.lists(st.integers(0, 5), max_size=3)))
    count = math.prod(sizes) * dtype.numpy.itemsize
    data = draw(st.binary(min_size=count, max_size=count))
    if dtype.name == "bool":
        data = (np.frombuffer(data, np.uint8) & 1).tobytes()
    return Constant.from_bytes(dtype, sizes, data)


@st.composite
def attributes(draw: st.DrawFn, opcode: str, operands: int) -> dict[str, Attribute]:
    """Attributes of an operator that has `operands` operands."""
    operator = OPERATORS[opcode]
    extra = range(operator.arity, operands)
    return {name: draw(_value(opcode, name, tuple(extra))) for name in operator.attributes}


@lru_cache
def _value(opcode: str, name: str, extra: tuple[int, ...]) -> st.SearchStrategy[Attribute]:
    """One attribute; `extra` are the operands that a shape or index may refer to. Cached: making
    strategies costs more than drawing from them."""
    reference = st.sampled_from(extra).map(OperandRef) if extra else st.nothing()
    match name:
        case "axes":
            return st.none() | st.lists(INT64S, max_size=3, unique=True).map(tuple).map(Ints)
        case "axis":
            several = st.lists(INT64S, max_size=3).map(tuple).map(Ints)
            return INT64S if opcode == "size" else st.none() | INT64S | several
        case "correction":
            return INT64S
        case "dtype":
            return st.sampled_from(SUPPORTED)
        case "keepdims":
            return st.booleans()
        case "shape":
            sizes = st.lists(st.integers(0, 2**63 - 1) | reference, max_size=3)
            hole = st.sampled_from([(), (-1,)] if opcode == "reshape" else [()])
            return st.builds(lambda x, y, z: ShapeSpec((*x, *y, *z)), sizes, hole, sizes)
    bound: st.SearchStrategy[Bound] = st.none() | INT64S | reference
    entry = st.one_of(
        st.builds(Slice, bound, bound, st.integers(1, 2**63 - 1) | st.integers(-(2**63), -1)),
        st.builds(At, INT64S | reference),
        st.just(NewAxis()),
    )
    entries, dots = st.lists(entry, max_size=2), st.sampled_from([(), (Ellipsis(),)])
    return st.builds(lambda x, y, z: IndexSpec((*x, *y, *z)), entries, dots, entries)


@st.composite
def _body(draw: st.DrawFn, registers: int, headers: Sequence[Function], pool: int) -> Instruction:
    """An instruction that reads and writes registers that are all defined."""
    register = st.integers(0, registers - 1)
    location = draw(LOCATIONS)
    opcode = draw(st.sampled_from(["const", "move", "call", *OPERATORS]))
    if opcode == "const":
        number = draw(st.integers(0, pool - 1))
        return Instruction("const", (draw(register),), (), {"constant": number}, (), location)
    if opcode == "call":
        callee = draw(st.sampled_from(headers))
        operands = tuple(draw(register) for _ in range(callee.parameters))
        some = st.lists(register, min_size=callee.results, max_size=callee.results, unique=True)
        return Instruction(
            "call", tuple(draw(some)), operands, {"callee": callee.name}, (), location
        )
    if opcode == "move":
        return Instruction("move", (draw(register),), (draw(register),), location=location)
    operator = OPERATORS[opcode]
    count = operator.arity + (draw(st.integers(0, 2)) if operator.indexed else 0)
    operands = tuple(draw(register) for _ in range(count))
    return Instruction(
        opcode,
        (draw(register),),
        operands,
        draw(attributes(opcode, count)),
        location=location,
    )


@st.composite
def _terminator(draw: st.DrawFn, function: Function, blocks: int) -> Instruction:
    register, target = st.integers(0, function.registers - 1), st.integers(0, blocks - 1)
    opcode = draw(st.sampled_from(["br", "cond_br", "switch", "return"]))
    location = draw(LOCATIONS)
    if opcode == "br":
        return Instruction("br", targets=(draw(target),), location=location)
    if opcode == "cond_br":
        targets = (draw(target), draw(target))
        return Instruction("cond_br", (), (draw(register),), targets=targets, location=location)
    if opcode == "switch":
        cases = tuple(draw(st.lists(INT64S, max_size=3, unique=True)))
        targets = tuple(draw(target) for _ in range(len(cases) + 1))
        selector = (draw(register),)
        return Instruction("switch", (), selector, {"cases": Ints(cases)}, targets, location)
    results = tuple(draw(register) for _ in range(function.results))
    return Instruction("return", (), results, location=location)


@st.composite
def _function(
    draw: st.DrawFn, header: Function, headers: Sequence[Function], pool: int
) -> Function:
    """Every register beyond the parameters is loaded first, so that any control flow is valid."""
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    loads = [
        Instruction("const", (r,), (), {"constant": draw(st.integers(0, pool - 1))})
        for r in range(header.parameters, header.registers)
    ]
    blocks: list[Block] = []
    for number, name in enumerate(names):
        body = draw(st.lists(_body(header.registers, headers, pool), max_size=4))
        for instruction in draw(st.lists(st.integers(0, header.registers - 1), max_size=1)):
            again = Instruction("const", (instruction,), (), {"constant": 0})
            body += [Instruction("destroy", (), (instruction,)), again]
        last = draw(_terminator(header, len(names)))
        blocks.append(Block(name, (*(loads if number == 0 else ()), *body, last)))
    return Function(header.name, header.parameters, header.results, header.registers, tuple(blocks))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Valid programs with loops, calls (recursive ones too), destroys, odd names and any constants."""
    pool = tuple(draw(st.lists(constants(), min_size=1, max_size=4)))
    headers: list[Function] = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)):
        parameters = draw(st.integers(0, 3))
        registers = draw(st.integers(max(parameters, 3), 6))
        headers.append(Function(name, parameters, draw(st.integers(0, 3)), registers, ()))
    functions = [draw(_function(header, headers, len(pool))) for header in headers]
    return Program(pool, tuple(functions))
