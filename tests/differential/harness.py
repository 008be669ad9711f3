"""One function per way to run a program, and bitwise comparison.

Each takes the program and arguments and returns the results as arrays: `interpreted` (the VM at tier
0), `by_oracle`, and `Compiled(...).run` for a signature, a schedule, fused or not. NaN are equal
whatever payload and sign they have; every other bit counts.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import oracle
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from jitdialects.analysis.storage import StoragePlan
from jitdialects.analysis.storage_check import wrong_with
from jitdialects.bytecode.builder import FunctionBuilder, ProgramBuilder
from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import Signature, parse
from jitdialects.dialects.context import make_context
from jitdialects.lowering.c_view import module_to_c
from jitdialects.lowering.expand_elementary import ExpandElementaryPass
from jitdialects.lowering.pipelines import Facts, lower_program
from jitdialects.lowering.tssa_bufferize import copy_what_cannot_be_viewed
from jitdialects.runtime.compiler import ENTRY
from jitdialects.runtime.dispatch import Kernel
from jitdialects.runtime.engines.codegen import compile_llvm_module
from jitdialects.runtime.engines.dlopen import DlopenEngine
from jitdialects.runtime.identity import feature_level
from jitdialects.runtime.messages import CompileReply, encode_reply
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.pool import default_pool
from jitdialects.runtime.values import Value, export, from_argument
from jitdialects.runtime.vm import VM

Results = Sequence[np.ndarray]
Body = Callable[[FunctionBuilder], object]
"""Writes the instructions of `main`."""


def interpreted(program: Program, arguments: Sequence[object]) -> Results:
    """The VM, operator by operator."""
    return VM(program, Policy(threshold=2**62)).run("main", *arguments)


def by_oracle(program: Program, arguments: Sequence[object]) -> Results:
    """The definitions."""
    return [v.array for v in oracle.run_program(program, arguments)]


def check_plans(stage: str, module: ModuleOp) -> None:
    """After fusion, check the storage plan that bufferization is about to carry out."""
    if stage != "tssa-fuse":
        return
    for function in module.clone().ops:
        if isinstance(function, FuncOp):
            copy_what_cannot_be_viewed(function)
            assert wrong_with(function, StoragePlan(function)) is None


class Compiled:
    """A program compiled for a signature by the whole pipeline.

    `schedule` is the feature level that the loops are scheduled for, `target` the one that the machine
    code is for: a schedule of 16 lanes runs on a CPU of 8, with the same bits. `fuse=False` keeps every
    operator a loop nest of its own; `override` gives some nests other schedules; `typical` and `balance` are for
    the judges of fusion.
    """

    def __init__(
        self,
        program: Program,
        signature: Signature,
        schedule: str | None = None,
        target: str | None = None,
        fuse: bool = True,
        override: str = "",
        typical: str = "",
        balance: float = 1.0,
    ) -> None:
        target = target or feature_level()
        module, facts = lower_program(
            program,
            signature,
            schedule or target,
            fuse=fuse,
            schedule=override,
            machine=target,
            typical=typical,
            balance=balance,
            observe=check_plans,
        )
        self._load(program, signature, facts, compile_llvm_module(module, target))

    def _load(self, program: Program, signature: Signature, facts: Facts, library: bytes) -> None:
        reply = CompileReply.decode(encode_reply({"entry": ENTRY} | facts.as_json(), library))
        self.facts = facts
        loaded = DlopenEngine().load(library, "differential")
        self.kernel = Kernel(signature, reply, loaded, program.constants)

    def run(self, arguments: Sequence[object]) -> Results:
        """Run the machine code; fails if its guards send the call back to the interpreter."""
        results = self._invoke(arguments)
        assert results is not None, f"the code for {self.kernel.signature} refused its arguments"
        return export(results, default_pool)

    def accepts(self, arguments: Sequence[object]) -> bool:
        """Whether the guards let the call in."""
        return self._invoke(arguments) is not None

    def _invoke(self, arguments: Sequence[object]) -> Sequence[Value] | None:
        values = [from_argument(a, p, "main") for p, a in enumerate(arguments)]
        return self.kernel.invoke(values, default_pool)


C_FLAGS = ("-std=c99", "-O1", "-ffp-contract=off", "-fno-fast-math", "-shared", "-fPIC")


class CView(Compiled):
    """The C view of the scalar loops, built with gcc: shares nothing below `loop` with `Compiled`."""

    def __init__(self, program: Program, signature: Signature) -> None:
        self.text = ""
        # one lane and no tiles: the loops as the conversion leaves them
        _, facts = lower_program(program, signature, "x86-64-v2", observe=self._take)
        with TemporaryDirectory() as folder:
            source, library = Path(folder, "view.c"), Path(folder, "view.so")
            source.write_text(self.text)
            subprocess.run(["gcc", *C_FLAGS, source, "-o", library, "-lm"], check=True)
            facts.constants = [replace(c, tile=0) for c in facts.constants]  # packed after `loop`
            self._load(program, signature, facts, library.read_bytes())

    def _take(self, stage: str, module: ModuleOp) -> None:
        if stage == "convert-tssa-to-loop":
            loops = module.clone()
            ExpandElementaryPass().apply(make_context(), loops)
            self.text = module_to_c(loops)


def assert_same(got: Results, want: Results, context: str) -> None:
    """Equal dtypes, shapes and bits, NaN alike; the message shows the first difference."""
    assert len(got) == len(want), context
    for position, (x, y) in enumerate(zip(got, want, strict=True)):
        where = f"{context}, result {position}"
        assert x.dtype == y.dtype, f"{where}: dtype {x.dtype}, expected {y.dtype}"
        assert x.shape == y.shape, f"{where}: shape {x.shape}, expected {y.shape}"
        different = _bits(x) != _bits(y)
        if different.any():
            index = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(different)))
            a, b = np.atleast_1d(x)[index], np.atleast_1d(y)[index]
            raise AssertionError(
                f"{where}: {int(different.sum())} of {x.size} elements differ, "
                f"first at {index}: {a!r}, expected {b!r}"
            )


def program(parameters: int, body: Body) -> Program:
    """A program of one function, `main`."""
    builder = ProgramBuilder()
    body(builder.function("main", parameters))
    return builder.finish()


def everywhere(arguments: Sequence[object], types: str, body: Body) -> Results:
    """The results, after checking that interpreter, machine code (fused or not) and oracle agree."""
    return for_all([arguments], types, body)[0]


def for_all(calls: Sequence[Sequence[object]], types: str, body: Body) -> list[Results]:
    """`everywhere` for several calls of one program, compiled once for `types`."""
    made = program(len(calls[0]), body)
    want = [by_oracle(made, arguments) for arguments in calls]
    compiled = [Compiled(made, parse(f"main({types})"), fuse=fuse) for fuse in (True, False)]
    for arguments, expected in zip(calls, want, strict=True):
        assert_same(interpreted(made, arguments), expected, "interpreter")
        for engine, name in zip(compiled, ("compiled", "compiled, unfused"), strict=True):
            assert_same(engine.run(arguments), expected, name)
    return want


def _bits(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "f":
        return x
    integer = {4: np.uint32, 8: np.uint64}[x.dtype.itemsize]
    return np.where(np.isnan(x), x.dtype.type(np.nan), x).view(integer)
