"""The interpreter: runs the blocks of a function over a register file, operator by operator (`tier0`).

Each block is counted in the function's profile, and timed now and then. Parts of a function that are compiled by
themselves (`units`) are entered here. At the end of a block, blocks of dead values
become free (`MemoryPool.safe_point`). The first failing instruction in program order raises, with its location.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn, Protocol

from jitdialects.bytecode.attributes import Ints
from jitdialects.bytecode.outline import Loop
from jitdialects.bytecode.program import Function, Instruction
from jitdialects.errors import DTypeError, Error, PoolError, ShapeError
from jitdialects.runtime.pool import MemoryPool
from jitdialects.runtime.profile import TIMED_EVERY, TIMED_FIRST, Profile
from jitdialects.runtime.profiler import profiler
from jitdialects.runtime.units import Step, Stretch, Unit, Units
from jitdialects.runtime.values import Value, as_integer, dtype_of, shape_of

CLOCK_EVERY = 8
"""Blocks between two looks at the clock."""
ASK_EVERY = 64
"""Blocks between two requests for the code of a loop that is being interpreted."""


class Machine(Protocol):
    """What an activation asks of the virtual machine."""

    pool: MemoryPool

    @property
    def loop_seconds(self) -> float:
        """How long an activation runs before its loops are compiled."""
        ...

    def enter_loop(self, unit: Unit, values: Sequence[Value], ask: bool) -> Sequence[Value] | None:
        """The results of a loop if there is code for it, which is asked for otherwise."""
        ...

    def run_stretch(
        self, unit: Unit, values: Sequence[Value], interpret: Callable[[], Sequence[Value]]
    ) -> Sequence[Value]:
        """The results of a stretch, by code or by `interpret`."""
        ...

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
    def blocks(self) -> Sequence[Sequence[Step]]: ...
    @property
    def units(self) -> Units: ...
    def replace(self, stretch: Stretch) -> None:
        """Halve a stretch that cannot be compiled."""
        ...


class Activation:
    """One activation of a function."""

    def __init__(self, vm: Machine, code: Code, depth: int) -> None:
        self.vm = vm
        self.code = code
        self.depth = depth
        self.registers: list[Value | None] = [None] * code.function.registers
        self.results: Sequence[Value] = ()
        self._started = time.monotonic()
        self._entered = 0
        self._is_long = False

    def run(self, values: Sequence[Value]) -> Sequence[Value]:
        """Run the function on arguments; its results."""
        self.registers[: len(values)] = values
        code, pool = self.code, self.vm.pool
        counts = code.profile.counts
        block: int | None = 0
        while block is not None:
            behind = self._run_loop(block) if self._looks_for_loops() else None
            if behind is not None:
                block = behind
                pool.safe_point()
                continue
            number, count = block, counts[block]
            counts[block] = count + 1
            timed = count < TIMED_FIRST or not count & TIMED_EVERY - 1
            started = time.perf_counter() if timed else 0.0
            *steps, terminator = code.blocks[block]
            for step in steps:
                self._step(step)
            assert isinstance(terminator, Instruction)
            block = self._leave(terminator)
            pool.safe_point()
            if timed:
                code.profile.times[number].add(time.perf_counter() - started)
        return self.results

    def _looks_for_loops(self) -> bool:
        """Whether this activation has run for so long that its loops are worth compiling."""
        self._entered += 1
        if not self._is_long and not self._entered % CLOCK_EVERY:
            self._is_long = time.monotonic() - self._started >= self.vm.loop_seconds
        return self._is_long

    def _run_loop(self, block: int) -> int | None:
        """Run the loop of which `block` is the header as a unit; the block behind it, None if it was not run."""
        unit = self.code.units.loop(block)
        if unit is None:
            return None
        values = [self._value(r) for r in unit.part.inputs]
        results = self.vm.enter_loop(unit, values, ask=not self._entered % ASK_EVERY)
        if results is None:
            return None
        self._take(unit, results)
        assert isinstance(unit.part, Loop)
        return unit.part.exit

    def _run_stretch(self, stretch: Stretch) -> None:
        unit = stretch.unit

        def interpret() -> Sequence[Value]:
            for step in stretch.steps:
                self._step(step)
            return [self._value(r) for r in unit.part.outputs]

        values = [self._value(r) for r in unit.part.inputs]
        self._take(unit, self.vm.run_stretch(unit, values, interpret))
        if unit.code.tiers.is_hopeless:
            self.code.replace(stretch)

    def _take(self, unit: Unit, results: Sequence[Value]) -> None:
        for register, value in zip(unit.part.outputs, results, strict=True):
            self.registers[register] = value
        for register in unit.part.dead:
            self.registers[register] = None

    def _value(self, register: int) -> Value:
        value = self.registers[register]
        assert value is not None  # the verifier proves it
        return value

    def _step(self, step: Step) -> None:
        if isinstance(step, Instruction):
            self._core(step)
            return
        if isinstance(step, Stretch):
            self._run_stretch(step)
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


class ProfiledActivation(Activation):
    """An activation each of whose operators is an event."""

    def _step(self, step: Step) -> None:
        started = time.perf_counter()
        super()._step(step)
        instruction = getattr(step, "instruction", None)
        if instruction is not None:
            ended = time.perf_counter()
            where = instruction.location
            details: dict[str, object] = {} if where is None else {"location": str(where)}
            details["shapes"] = [list(shape_of(v)) for v in self._found(instruction.results)]
            profiler.span(instruction.opcode, "operator", started, ended, **details)

    def _found(self, registers: Sequence[int]) -> Iterator[Value]:
        for register in registers:
            value = self.registers[register]
            if value is not None:
                yield value


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
