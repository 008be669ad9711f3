"""Compile time against the size of the program: straight lines, switches, independent statements.

CPU time of this process, which compiles as the compile server does, without garbage collection. An exponent is
the slope of log time over log size, fitted over all sizes. `python -m benchmarks.runtime.compile_time` goes up to
8,000 operators and 2,048 branches, which takes a minute and a half.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import numpy as np

from benchmarks.runtime.row import Row
from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import parse
from jitdialects.errors import CompileError
from jitdialects.lowering.pipelines import lower_program
from jitdialects.runtime.engines.codegen import compile_llvm_module

LEVEL = "x86-64-v3"
SIGNATURE = parse("main(f32[n], f32[n])")
SWITCHED = parse("main(i64[], f32[n])")


def measure(most_operators: int = 4000, most_branches: int = 1024) -> list[Row]:
    """The rows of this topic."""
    gc.disable()
    _seconds(_straight(20))
    lengths = tuple(most_operators >> k for k in (3, 2, 1, 0))
    branches = tuple(most_branches >> k for k in (3, 2, 1, 0))
    return [
        *_growth("straight line", _straight, lengths, "operators", "<= 1.3"),
        *_growth("switch", _switch, branches, "branches", "<= 1.3"),
        *_growth("independent", _independent, (125, 250, 500), "statements", "<= 1.3"),
        *_budget(),
    ]


def _program(lines: list[str]) -> Program:
    return Program.from_text("\n".join(["func @main(%0, %1) -> 1 {", "^entry:", *lines, "}"]))


def _straight(length: int) -> Program:
    """Each operator reads the one before (jax-ml/jax#2777)."""
    names = ("multiply", "add", "exp", "subtract", "maximum")
    chosen = [names[k % len(names)] for k in range(length)]
    lines = [
        f"  %{k + 2} = {name} %{k + 1}" + ("" if name == "exp" else ", %0")
        for k, name in enumerate(chosen)
    ]
    return _program([*lines, f"  return %{length + 1}"])


def _switch(branches: int) -> Program:
    """One of many branches, each with an operator or two (jax-ml/jax#4453)."""
    targets = ", ".join(f"{k}: ^b{k}" for k in range(branches))
    lines = [f"  switch %0 [{targets}, default: ^b0]"]
    for k in range(branches):
        name = ("multiply", "add", "subtract")[k % 3]
        lines += [
            f"^b{k}:",
            f"  %2 = {name} %1, %1",
            f"  %3 = {('exp', 'abs')[k % 2]} %2",
            "  br ^end",
        ]
    return _program([*lines, "^end:", "  return %3"])


def _independent(statements: int) -> Program:
    """Statements that read nothing of each other, and a sum of all (inducer/loopy#178)."""
    lines = [
        f"  %{k + 2} = {('multiply', 'exp')[k % 2]} %0{(', %1', '')[k % 2]}"
        for k in range(statements)
    ]
    sums = [
        f"  %{statements + k + 2} = add %{statements + k + 1}, %{k + 2}" for k in range(statements)
    ]
    return _program([*lines, *sums, f"  return %{2 * statements + 1}"])


def _seconds(program: Program, signature: object = SIGNATURE) -> float:
    started = time.process_time()
    module, _ = lower_program(program, signature, LEVEL)  # pyright: ignore[reportArgumentType]
    compile_llvm_module(module, LEVEL)
    return time.process_time() - started


def _growth(
    name: str, build: Callable[[int], Program], sizes: tuple[int, ...], unit: str, aim: str
) -> list[Row]:
    signature = SWITCHED if build is _switch else SIGNATURE
    times: list[float] = []
    for size in sizes:
        times.append(_seconds(build(size), signature))
        gc.collect()
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    each = ", ".join(f"{size}: {spent:.2f} s" for size, spent in zip(sizes, times, strict=True))
    return [
        Row(f"{name}, {sizes[-1]:,} {unit}", times[-1], "s"),
        Row(f"{name}, exponent", float(slope), "", aim, each),
    ]


def _budget() -> list[Row]:
    started = time.process_time()
    try:
        lower_program(_straight(8000), SIGNATURE, LEVEL, seconds=1.0)
    except CompileError:
        return [
            Row(
                "8,000 operators with a budget of 1 s", time.process_time() - started, "s", "<= 1.5"
            )
        ]
    return [
        Row("8,000 operators within a budget of 1 s", time.process_time() - started, "s", "<= 1")
    ]


if __name__ == "__main__":
    for row in measure(8000, 2048):
        print(" | ".join(row.cells()))
