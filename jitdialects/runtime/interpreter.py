"""The interpreter: runs the blocks of a function over a register file, operator by operator (`tier0`).

Each block is counted in the function's profile, and timed now and then. At the end of a block, blocks of dead values
become free (`MemoryPool.safe_point`). The first failing instruction in program order raises, with its location.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NoReturn, Protocol

from jitdialects.bytecode.attributes import Ints
from jitdialects.bytecode.program import Function, Instruction
from jitdialects.errors import DTypeError, Error, PoolError, ShapeError
from jitdialects.runtime.pool import MemoryPool
from jitdialects.runtime.profile import TIMED_EVERY, TIMED_FIRST, Profile
from jitdialects.runtime.tier0 import Site
from jitdialects.runtime.values import Value, as_integer, dtype_of, shape_of


class Machine(Protocol):
    """What an activation asks of the virtual machine."""

    pool: MemoryPool

    def call(self, name: str, values: Sequence[Value], depth: int) -> Sequence[Value]:
        """A call from bytecode."""
        ...

    def constant(self, number: int) -> Value:
        """Entry `number` of the constant pool."""
        ...


class Code(Protocol):
    """What it asks of the function that it runs: a site for each operator instruction."""

    @property
    def function(self) -> Function: ...
    @property
    def profile(self) -> Profile: ...
    @property
    def blocks(self) -> Sequence[Sequence[Site | Instruction]]: ...


class Activation:
    """One activation of a function."""

    def __init__(self, vm: Machine, code: Code, depth: int) -> None:
        self.vm = vm
        self.code = code
        self.depth = depth
        self.registers: list[Value | None] = [None] * code.function.registers
        self.results: Sequence[Value] = ()

    def run(self, values: Sequence[Value]) -> Sequence[Value]:
        """Run the function on arguments; its results."""
        self.registers[: len(values)] = values
        code, pool = self.code, self.vm.pool
        counts = code.profile.counts
        block: int | None = 0
        while block is not None:
            number, count = block, counts[block]
            counts[block] = count + 1
            timed = count < TIMED_FIRST or not count & TIMED_EVERY - 1
            started = time.perf_counter() if timed else 0.0
            for step in code.blocks[block][:-1]:
                self._step(step)
            terminator = code.blocks[block][-1]
            assert isinstance(terminator, Instruction)
            block = self._leave(terminator)
            pool.safe_point()
            if timed:
                code.profile.times[number].add(time.perf_counter() - started)
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
        except MemoryError as error:  # of an array that NumPy allocates
            _locate(PoolError(f"{instruction.opcode}: {error}; release arrays"), instruction)

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
