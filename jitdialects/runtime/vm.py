"""The register machine: runs any verified program on any input at once.

A function runs block by block over a register file; operators are computed by `tier0`. Each block has an
execution count in the function's profile. At the end of a block, blocks of dead values become free
(`MemoryPool.safe_point`). The first failing instruction in program order raises, with its location;
whatever is raised, machine and pool stay usable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from jitdialects.bytecode.attributes import Ints
from jitdialects.bytecode.operators import OPERATORS
from jitdialects.bytecode.program import Function, Instruction, Program
from jitdialects.bytecode.verifier import verify
from jitdialects.errors import ArgumentError, DTypeError, Error, ShapeError
from jitdialects.runtime.pool import MemoryPool, default_pool
from jitdialects.runtime.tier0 import Site
from jitdialects.runtime.values import (
    Array,
    Value,
    as_integer,
    dtype_of,
    export,
    from_argument,
    from_constant,
    shape_of,
)

CALL_DEPTH = 100
"""Bytecode calls that may be active at once."""


class VM:
    """A virtual machine for one program, with its own profile. Threads may share it."""

    def __init__(self, program: Program, pool: MemoryPool | None = None) -> None:
        verify(program)
        self.program = program
        self.pool = default_pool if pool is None else pool
        self._constants = tuple(map(from_constant, program.constants))
        self._code = {f.name: FunctionCode(f) for f in program.functions}

    def run(self, name: str, *arguments: object) -> tuple[Array, ...]:
        """Call function `name`; the results are arrays that belong to the caller.

        Arguments are NumPy arrays (never written, never aliased by results), NumPy scalars or Python
        scalars. Weak results are rank-0 arrays of bool, int64 or float64, as NumPy would make them.
        """
        code = self._code.get(name)
        if code is None:
            names = ", ".join(f"@{n}" for n in self._code) or "none"
            raise ArgumentError(f"the program has no function @{name} (it has: {names})")
        expected = code.function.parameters
        if len(arguments) != expected:
            raise ArgumentError(f"@{name} takes {expected} argument(s), got {len(arguments)}")
        values = [from_argument(a, p, f"@{name}") for p, a in enumerate(arguments)]
        try:
            with np.errstate(all="ignore"):
                return export(self._call(code, values, 0), self.pool)
        except Error as error:
            # the frames of the interpreter would keep the arrays of this run alive
            raise error.with_traceback(None) from None
        finally:
            self.pool.safe_point()

    def _call(self, code: FunctionCode, values: Sequence[Value], depth: int) -> Sequence[Value]:
        return _Interpreter(self, code, depth).run(values)

    def call(self, name: str, values: Sequence[Value], depth: int) -> Sequence[Value]:
        """A call from bytecode, `depth` calls below `run`."""
        if depth > CALL_DEPTH:
            raise Error(
                f"@{name}: calls nest deeper than {CALL_DEPTH}; "
                "let the recursion end earlier or write it as a loop"
            )
        return self._call(self._code[name], values, depth)

    def constant(self, number: int) -> Value:
        """Entry `number` of the constant pool."""
        return self._constants[number]


class FunctionCode:
    """A function ready to run: its operator instructions as sites, and block counters."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.counts = [0] * len(function.blocks)
        self.blocks: list[list[Site | Instruction]] = [
            [Site(i) if i.opcode in OPERATORS else i for i in block.instructions]
            for block in function.blocks
        ]


class _Interpreter:
    """One activation of a function."""

    def __init__(self, vm: VM, code: FunctionCode, depth: int) -> None:
        self.vm = vm
        self.code = code
        self.depth = depth
        self.registers: list[Value | None] = [None] * code.function.registers
        self.results: Sequence[Value] = ()

    def run(self, values: Sequence[Value]) -> Sequence[Value]:
        self.registers[: len(values)] = values
        code, pool = self.code, self.vm.pool
        block: int | None = 0
        while block is not None:
            code.counts[block] += 1
            for step in code.blocks[block][:-1]:
                self._step(step)
            terminator = code.blocks[block][-1]
            assert isinstance(terminator, Instruction)
            block = self._leave(terminator)
            pool.safe_point()
        return self.results

    def _value(self, register: int) -> Value:
        value = self.registers[register]
        assert value is not None  # the verifier proves it
        return value

    def _step(self, step: Site | Instruction) -> None:
        if isinstance(step, Instruction):
            self._core(step)
            return
        instruction = step.instruction
        operands = [self._value(r) for r in instruction.operands]
        try:
            self.registers[instruction.results[0]] = step.apply(operands, self.vm.pool)
        except Error as error:
            _locate(error, instruction)

    def _core(self, instruction: Instruction) -> None:
        registers = self.registers
        if instruction.opcode == "destroy":
            registers[instruction.operands[0]] = None
        elif instruction.opcode == "move":
            registers[instruction.results[0]] = registers[instruction.operands[0]]
        elif instruction.opcode == "const":
            number = instruction.attributes["constant"]
            assert isinstance(number, int)
            registers[instruction.results[0]] = self.vm.constant(number)
        else:
            self._bytecode_call(instruction)

    def _bytecode_call(self, instruction: Instruction) -> None:
        values = [self._value(r) for r in instruction.operands]
        try:
            callee = str(instruction.attributes["callee"])
            results = self.vm.call(callee, values, self.depth + 1)
        except Error as error:
            _locate(error, instruction)
        for register, value in zip(instruction.results, results, strict=True):
            self.registers[register] = value

    def _leave(self, terminator: Instruction) -> int | None:
        """The next block, or None after `return`."""
        if terminator.opcode == "br":
            return terminator.targets[0]
        values = [self._value(r) for r in terminator.operands]
        if terminator.opcode == "return":
            self.results = values
            return None
        if shape_of(values[0]):
            _locate(
                ShapeError(
                    f"{terminator.opcode} needs a value of rank 0, got shape "
                    f"{shape_of(values[0])}; reduce or index it first"
                ),
                terminator,
            )
        if terminator.opcode == "cond_br":
            return terminator.targets[0 if values[0] else 1]
        return _switch(terminator, values[0])


def _switch(terminator: Instruction, selector: Value) -> int:
    number = as_integer(selector)
    if number is None:
        error = DTypeError(f"switch needs an integer, got {dtype_of(selector)}; cast it first")
        _locate(error, terminator)
    cases = terminator.attributes["cases"]
    assert isinstance(cases, Ints)
    position = cases.values.index(number) if number in cases.values else -1
    return terminator.targets[position]


def _locate(error: Error, instruction: Instruction) -> NoReturn:
    """Raise `error` with the location of the innermost instruction that failed."""
    if error.location is None:
        error.location = instruction.location
    raise error
