"""Every schedule that the policy can choose is carried out, on one thread and on three: the same bits.

The facts of nests are varied systematically, family by family, for each level and width of element; `choose_schedule`
says what it would do. For each answer that is new a program is built whose nest has these facts. It must get
this schedule, and compute what the definitions say: a schedule that the policy learns is run here at once, or
the test of it fails since no program gets it. Nor may a program get one that was not enumerated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from differential.harness import Compiled, assert_same, by_oracle, program
from xdsl.dialects.builtin import ModuleOp

import jitdialects as jd
from jitdialects.analysis.machine import LEVELS
from jitdialects.analysis.nest_facts import NestFacts
from jitdialects.analysis.schedule_reduction import SHORT as SHORT_LOOP
from jitdialects.bytecode.builder import FunctionBuilder
from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import parse
from jitdialects.dialects.loop import ScheduleAttr
from jitdialects.dialects.schedules import FAMILIES, Schedule, parse_schedule
from jitdialects.lowering.loop_reduction import BLOCK, FEW
from jitdialects.lowering.pipelines import lower_program
from jitdialects.passes.loop_rewrite import nest_schedule, nests_in_order
from jitdialects.passes.loop_schedule import choose_schedule, family_of
from jitdialects.runtime.engines.codegen import compile_llvm_module
from jitdialects.runtime.identity import feature_level
from jitdialects.runtime.native import native_library
from jitdialects.runtime.threads import default_threads

WIDTHS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
"""x86-64-v1 is as v2. What is chosen for v4 runs as code for this machine."""
LARGE = 1 << 20
SHORT, LONG = 4, 30
"""Operations of the bodies of elementwise nests."""

Key = tuple[str, Schedule]


def key(family: str, schedule: Schedule) -> Key:
    """What decides which code is made; of sizes that only say how much is done at a time, whether they are there.
    Axes in front count alike."""

    def there(value: int) -> int:
        return int(bool(value))

    return family, replace(
        schedule,
        tile=(1,) if schedule.tile else (),
        order=(0,) if schedule.order else (),
        jam=tuple(copies for copies in schedule.jam if copies > 1),
        stream=there(schedule.stream),
        prefetch=there(schedule.prefetch),
        threads=there(schedule.threads),
        distribute=there(schedule.distribute),
        panel=there(schedule.panel),
    )


# ---- the facts, varied -------------------------------------------------------------------------

BASE = NestFacts(
    kinds=("parallel",),
    extents=(None,),
    at_most=None,
    contiguous=True,
    encloses_loops=False,
    accumulators="none",
    streams=3,
    element_bytes=4,
    operations=SHORT,
    functions=0,
    shares=False,
    private_bytes=0,
    lane_bytes=0,
    along=False,
    read_bytes=None,
    written_bytes=None,
    row=None,
    sweeps=0,
    partial=False,
)
ELEMENTWISE = ((None,), (1,), (2,), (3,), (8,), (13,), (32,), (33,), (40000,), (LARGE,))
PLANES = ((None, None), (None, 64), (3, 13), (7, 40))
ROWS = (None, 1, 2, 3, 4, 5, 9)
COLUMNS = (None, 2, 5, 64, 5000)
PRODUCTS = [(m, n) for m in (None, 1, 2, 5, 6, 7, 8, 13) for n in (None, 3, 16, 40)]
CHAINS = (None, 2, 3, 4, 8, 9)


def nests(size: int) -> Iterator[tuple[str, NestFacts]]:
    """The kind of program and the facts, of elements of `size` bytes."""
    base = replace(BASE, element_bytes=size)
    for extents in ELEMENTWISE:
        for operations in (SHORT, LONG):
            yield "vector", replace(base, extents=extents, operations=operations)
    for extents in PLANES:
        yield "plane", replace(base, kinds=("parallel",) * 2, extents=extents)
    around = replace(base, encloses_loops=True, accumulators="arrays")
    for n in COLUMNS:
        yield "columns", replace(around, extents=(n,), private_bytes=40 * size)
    for m in ROWS:
        if m != 1:  # one row is no axis
            yield "rows", replace(around, extents=(m,), contiguous=False, lane_bytes=32 * size)
        yield "dots", replace(around, extents=(m,), contiguous=False, shares=True)
    yield "blocks", replace(around, contiguous=False, partial=True)
    around = replace(base, encloses_loops=True, accumulators="scalars", shares=True)
    for extents in PRODUCTS:
        yield "product", replace(around, kinds=("parallel",) * 2, extents=extents)
    yield "product", replace(around, kinds=("parallel",) * 2, extents=(None, 1))
    for k in CHAINS:
        yield "chain", replace(base, kinds=("reduction",), extents=(k,), contiguous=False)


def enumerated() -> dict[tuple[Key, str], tuple[str, NestFacts]]:
    """Each different schedule with the first facts that it is chosen for."""
    found: dict[tuple[Key, str], tuple[str, NestFacts]] = {}
    for level in WIDTHS:
        for size in (4, 8):
            for kind, facts in nests(size):
                chosen = key(family_of(facts), choose_schedule(facts, LEVELS[level]))
                if not any(known == chosen for known, _ in found):
                    found[chosen, level] = kind, facts
    return found


CASES = enumerated()


# ---- programs ----------------------------------------------------------------------------------


def written(kind: str, facts: NestFacts) -> tuple[Program, str, list[tuple[int, ...]]]:
    """A program with a nest of these facts, its signature, and the shapes of its arguments."""
    dtype = "f32" if facts.element_bytes == 4 else "f64"
    names = iter("mnpq")
    sizes = [next(names) if extent is None else str(extent) for extent in facts.extents]
    values = [extent or value for extent, value in zip(facts.extents, (19, 150), strict=False)]
    if kind == "vector" and facts.extents[0] is None:
        values = [1000]
    m, n = sizes[0], sizes[-1]
    match kind:
        case "vector":
            made = program(2, lambda main: _chain(main, facts.operations))
            return made, _types(dtype, [m], [m]), [(values[0],)] * 2
        case "plane":
            made = program(2, lambda main: _chain(main, facts.operations))
            return made, _types(dtype, [m, n], [n]), [tuple(values), tuple(values[1:])]
        case "columns":
            made = program(1, lambda main: _reduce(main, "sum", 0))
            return made, _types(dtype, ["k", m]), [(37, values[0])]
        case "rows":
            made = program(1, lambda main: _reduce(main, "sum", 1))
            return made, _types(dtype, [m, "k"]), [(values[0], 77)]
        case "blocks":
            made = program(1, lambda main: _reduce(main, "sum", 0))
            return made, _types(dtype, ["k"]), [(5 * BLOCK + 77,)]
        case "dots":
            made = program(2, _product)
            return made, _types(dtype, [m, "k"], ["k"]), [(values[0], 77), (77,)]
        case "product":
            made = program(2, _product)
            return made, _types(dtype, [m, "k"], ["k", n]), [(values[0], 21), (21, values[1])]
        case _:
            if facts.extents[0] is None or facts.extents[0] > SHORT_LOOP:
                made = program(2, _product)
                return made, _types(dtype, ["r", m], [m, "c"]), [(5, values[0]), (values[0], 18)]
            made = program(1, lambda main: _reduce(main, "max", 0))
            length = FEW + values[0]  # what is left after steps of 8; shorter columns have no loop
            return made, _types(dtype, [str(length), "c"]), [(length, 18)]


def _types(dtype: str, *shapes: list[str]) -> str:
    return f"main({', '.join(dtype + '[' + ','.join(shape) + ']' for shape in shapes)})"


def _chain(main: FunctionBuilder, operations: int) -> None:
    x, y = main.parameters
    value = main.apply("add", x, y)
    for number in range(operations - SHORT):
        value = main.apply(("multiply", "subtract")[number % 2], value, y)
    main.returns(value)


def _reduce(main: FunctionBuilder, name: str, axis: int) -> None:
    main.returns(main.apply(name, *main.parameters, axis=axis))


def _product(main: FunctionBuilder) -> None:
    main.returns(main.apply("matmul", *main.parameters))


LINE = re.compile(r"(\d+): (.*) \(([\w-]+)\)")


def keys(schedules: list[str]) -> set[Key]:
    """What the nests of a program got."""
    lines = map(LINE.fullmatch, schedules)
    return {key(m[3], parse_schedule(m[2])) for m in lines if m is not None}


class InSmallChunks(Compiled):
    """A program whose schedules for threads have chunks of which the arguments of a test are several."""

    def __init__(self, made: Program, signature: str, level: str) -> None:
        parsed = parse(signature)
        module, facts = lower_program(made, parsed, level, observe=self._shrink)
        self._load(made, parsed, facts, compile_llvm_module(module, feature_level()))

    def _shrink(self, stage: str, module: ModuleOp) -> None:
        if stage == "loop-schedule":
            for nest in nests_in_order(module):
                schedule = nest_schedule(nest)
                if schedule.threads:
                    nest.schedule = ScheduleAttr(replace(schedule, threads=64))


# ---- the tests ---------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def threads_as_they_were() -> Iterator[None]:
    before = jd.config.threads
    default_threads.load(native_library("thread_pool", feature_level()))
    yield
    jd.config.threads = before


@pytest.mark.parametrize(
    ("chosen", "level"), CASES, ids=[f"{level[-2:]} {k[0]}: {k[1]}" for k, level in CASES]
)
def test_a_schedule_computes_what_the_definitions_say(chosen: Key, level: str) -> None:
    kind, facts = CASES[chosen, level]
    made, signature, shapes = written(kind, facts)
    code = InSmallChunks(made, signature, level)
    got = keys(code.facts.schedules)
    assert chosen in got, code.facts.schedules
    assert got <= {chosen for chosen, _ in CASES}, "a nest has facts that are not enumerated"
    rng = np.random.default_rng(1)
    dtype = np.float32 if facts.element_bytes == 4 else np.float64
    arguments = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    want = by_oracle(made, arguments)
    for threads in (1, 3):
        jd.config.threads = threads
        assert_same(code.run(arguments), want, f"{signature}, {threads} threads")


def test_every_family_has_schedules() -> None:
    assert {family for (family, _), _ in CASES} | {"other"} == set(FAMILIES)
