"""Capture: Python code runs once on traced values, what it calls becomes a function of a program.

A traced value knows its dtype and its rank; its sizes are expressions over the sizes of the arguments,
with a fresh symbol wherever a size depends on data, so that what is known to be wrong is refused at
the line that says it, and nothing is ever assumed. Every instruction carries the user's line.
Constants are loaded at the head of every block that uses them: many branches with constants of their own
would else each destroy those of all others.

Values that are recorded inside a loop belong to that loop's *scope*; using one after the loop would
read a register that may not be defined, and is refused.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from jitdialects.bytecode import dims
from jitdialects.bytecode.attributes import Attribute, Attributes
from jitdialects.bytecode.dims import Dim, Shape
from jitdialects.bytecode.dtypes import DType
from jitdialects.bytecode.lifetimes import insert_destroys
from jitdialects.bytecode.operators import OPERATORS, Operator
from jitdialects.bytecode.program import (
    NO_ATTRIBUTES,
    Block,
    Constant,
    Function,
    Instruction,
    Program,
)
from jitdialects.bytecode.shape_rules import shape_text
from jitdialects.bytecode.verifier import verify
from jitdialects.errors import TraceError
from jitdialects.frontends.recorder import (
    NumPyValue,
    Recorder,
    Scalar,
    Value,
    check_array,
    infer,
    plain_scalar,
    refuse,
    user_location,
    weak_dtype,
)


class Scope:
    """A region of the captured function: its body, or that of a loop."""


class TracedValue(Value):
    """The content of `register` of the function that `tracer` captures."""

    __slots__ = ("integer", "register", "scope", "tracer")

    def __init__(
        self, tracer: Tracer, register: int, dtype: DType, sizes: Shape, integer: Dim | None = None
    ) -> None:
        super().__init__(dtype, sizes)
        self.tracer = tracer
        self.register = register
        self.scope = tracer.scopes[-1]
        self.integer = integer

    def shape(self) -> tuple[int | Value, ...]:
        return tuple(
            s if isinstance(s, int) else self.tracer.size_of(self, axis)
            for axis, s in enumerate(self.sizes)
        )

    def fetch(self, wanted: str) -> NDArray[np.generic]:
        raise TraceError(
            f"{self.tracer.name}: {wanted} needs the elements of an array that is known only when "
            "the captured function runs; use jd.while_loop for a loop, jd.cond or jnp.where for a choice, or "
            "lazy arrays without jd.jit, where Python control flow simply runs",
            user_location(),
        )

    def text(self, separator: str, prefix: str) -> str:
        return f"<traced {shape_text(self.sizes)}>"

    def known_integer(self) -> Dim | None:
        if self.integer is None:
            self.integer = self.tracer.fresh_symbol()
        return self.integer


class TraceFacts:
    """Refuses what is known to be wrong; of two sizes that may differ neither is believed."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def require_equal(self, x: Dim, y: Dim, error: Exception) -> Dim:
        if x == y:
            return x
        if isinstance(x, int) and isinstance(y, int):
            raise error
        if isinstance(x, int):
            return x
        return y if isinstance(y, int) else self._tracer.fresh_symbol()

    def require_at_most(self, x: Dim, y: Dim, error: Exception) -> None:
        if isinstance(x, int) and isinstance(y, int) and x > y:
            raise error

    def is_settled(self, x: Dim) -> bool:
        return True


@dataclass
class OpenBlock:
    """A basic block that still grows."""

    name: str
    instructions: list[Instruction] = field(default_factory=list[Instruction])


class Tracer(Recorder):
    """Captures one function. `hoist` makes arrays and numbers from outside run-time arguments instead
    of constants; `hoisted` lists them in the order of their parameters."""

    def __init__(self, name: str, *, hoist: bool = False) -> None:
        self.name = name
        self.scopes: list[Scope] = [Scope()]
        self.blocks: list[OpenBlock] = [OpenBlock("entry")]
        self.hoisted: list[NDArray[np.generic] | Scalar] = []
        self._hoist = hoist
        self._hoisted: dict[int, int] = {}
        self._parameters: list[int] = []
        self._constants: dict[Constant, int] = {}
        self._registers = 0
        self._symbols = 0
        self._facts = TraceFacts(self)

    # ---- registers, symbols, scopes

    def fresh_symbol(self) -> Dim:
        """A size of which nothing is known."""
        self._symbols += 1
        return dims.symbol(f"u{self._symbols}")

    def fresh_value(self, dtype: DType, sizes: Shape, integer: Dim | None = None) -> TracedValue:
        """A value in a new register of the innermost scope."""
        self._registers += 1
        return TracedValue(self, self._registers - 1, dtype, sizes, integer)

    def unknown_sizes(self, rank: int) -> Shape:
        """Sizes of which nothing is known."""
        return tuple(self.fresh_symbol() for _ in range(rank))

    def parameter(self, dtype: DType, rank: int) -> TracedValue:
        """A new argument of the captured function."""
        value = self.fresh_value(dtype, self.unknown_sizes(rank))
        self._parameters.append(value.register)
        return value

    @contextmanager
    def scope(self) -> Generator[None]:
        """Values recorded in the body may not be used after it."""
        self.scopes.append(Scope())
        try:
            yield
        finally:
            self.scopes.pop()

    # ---- instructions

    def emit(
        self,
        opcode: str,
        results: tuple[int, ...] = (),
        operands: tuple[int, ...] = (),
        attributes: Attributes = NO_ATTRIBUTES,
        targets: tuple[int, ...] = (),
    ) -> None:
        """Append one instruction to the last block."""
        self.blocks[-1].instructions.append(
            Instruction(opcode, results, operands, attributes, targets, user_location())
        )

    def open_block(self, name: str) -> int:
        """Begin a new block and give its number."""
        self.blocks.append(OpenBlock(f"{name}{len(self.blocks)}"))
        return len(self.blocks) - 1

    def retarget(self, block: int, targets: tuple[int, ...]) -> None:
        """Give the terminator of `block` its targets, once they are known."""
        instructions = self.blocks[block].instructions
        instructions[-1] = replace(instructions[-1], targets=targets)

    def at_register(self, value: TracedValue) -> TracedValue:
        """What the register of `value` holds here and now, of unknown size."""
        sizes = self.unknown_sizes(len(value.sizes))
        return TracedValue(self, value.register, value.dtype, sizes)

    def record(
        self, operator: Operator, operands: Sequence[Value], attributes: Attributes
    ) -> TracedValue:
        dtype, sizes = infer(operator, operands, attributes, self._facts)
        value = self.fresh_value(dtype, sizes)
        registers = tuple(self.own(v).register for v in operands)
        self.emit(operator.name, (value.register,), registers, attributes)
        return value

    def size_of(self, value: TracedValue, axis: int) -> TracedValue:
        """The size of one axis as a rank-0 int64."""
        attributes: dict[str, Attribute] = {"axis": axis}
        out = self.record(OPERATORS["size"], [value], attributes)
        out.integer = value.sizes[axis]
        return out

    # ---- operands

    def lift(self, value: object, who: str) -> TracedValue:
        if isinstance(value, TracedValue):
            return self.own(value)
        if isinstance(value, Value):
            return self._outside(value.fetch(who), value.dtype)
        if isinstance(value, np.ndarray | np.generic):
            array = check_array(cast(NumPyValue, value), who)
            return self._outside(array, DType(array.dtype.name))
        if isinstance(value, bool | int | float):
            dtype = weak_dtype(value, who)
            if self._hoist:
                return self._hoisted_parameter(plain_scalar(value), dtype, ())
            return self.constant(np.asarray(value, dtype.numpy), dtype)
        raise refuse(value, who)

    def own(self, value: Value) -> TracedValue:
        """`value`, checked to be readable here."""
        if not isinstance(value, TracedValue) or value.tracer is not self:
            raise TraceError(
                f"{self.name}: an array of another capture is used here; pass it as an argument",
                user_location(),
            )
        if value.scope not in self.scopes:
            raise TraceError(
                f"{self.name}: an array that was made inside a loop or branch is used outside of it; carry "
                "it as part of the value that is returned",
                user_location(),
            )
        return value

    def _outside(self, array: NDArray[np.generic], dtype: DType) -> TracedValue:
        if not self._hoist:
            return self.constant(array, dtype)
        return self._hoisted_parameter(array, dtype, array.shape)

    def _hoisted_parameter(
        self, argument: NDArray[np.generic] | Scalar, dtype: DType, sizes: Shape
    ) -> TracedValue:
        """The parameter for something from outside; an array that was seen before keeps its own. A
        number never does: equal numbers may differ when the program runs again."""
        is_array = isinstance(argument, np.ndarray)
        register = self._hoisted.get(id(argument)) if is_array else None
        if register is None:
            self.hoisted.append(argument)  # keeps an array alive, so that its id stays its own
            register = self._hoisted[id(argument)] = self.parameter(dtype, len(sizes)).register
        value = TracedValue(self, register, dtype, sizes)
        value.scope = self.scopes[0]
        return value

    def constant(self, array: NDArray[np.generic], dtype: DType) -> TracedValue:
        """A constant of the program, also where arrays and numbers from outside are arguments."""
        constant = Constant.of(array, dtype)
        if constant not in self._constants:
            self._constants[constant] = self.fresh_value(dtype, array.shape).register
        integer = int(array.item()) if array.ndim == 0 and dtype.is_integer else None
        value = TracedValue(self, self._constants[constant], dtype, array.shape, integer)
        value.scope = self.scopes[0]
        return value

    def _constants_of(self, block: list[Instruction]) -> list[Instruction]:
        """Loads of the constants that a block reads."""
        read = {r for instruction in block for r in instruction.operands}
        return [
            Instruction("const", (register,), (), {"constant": index})
            for index, register in enumerate(self._constants.values())
            if register in read
        ]

    # ---- undoing and finishing

    def mark(self) -> tuple[int, int]:
        """A point to which `undo` returns: number of blocks, instructions in the last one."""
        return len(self.blocks), len(self.blocks[-1].instructions)

    def undo(self, mark: tuple[int, int]) -> None:
        """Forget the instructions since `mark`; constants and parameters stay."""
        blocks, instructions = mark
        del self.blocks[blocks:]
        del self.blocks[-1].instructions[instructions:]

    def finish(self, results: Sequence[TracedValue]) -> Program:
        """The program with the one function `main`."""
        returned = tuple(self.own(v).register for v in results)
        self.blocks[-1].instructions.append(Instruction("return", (), returned))
        blocks = _without_unused_sizes([b.instructions for b in self.blocks])
        blocks = [self._constants_of(b) + b for b in blocks]
        order = {r: i for i, r in enumerate(self._parameters)}
        number = {r: order.get(r, -1) for r in range(self._registers)}
        others = [r for r in range(self._registers) if r not in order]
        number.update({r: len(order) + i for i, r in enumerate(others)})
        function = Function(
            "main",
            len(order),
            len(results),
            self._registers,
            tuple(
                Block(b.name, tuple(_renumbered(i, number) for i in instructions))
                for b, instructions in zip(self.blocks, blocks, strict=True)
            ),
        )
        program = Program(tuple(self._constants), (insert_destroys(function),))
        verify(program)
        return program


def _without_unused_sizes(blocks: list[list[Instruction]]) -> list[list[Instruction]]:
    """`x.shape` measures every axis; what nobody uses is dropped (`size` cannot fail)."""
    used = {r for b in blocks for i in b for r in i.operands}
    return [[i for i in b if i.opcode != "size" or i.results[0] in used] for b in blocks]


def _renumbered(instruction: Instruction, number: dict[int, int]) -> Instruction:
    return Instruction(
        instruction.opcode,
        tuple(number[r] for r in instruction.results),
        tuple(number[r] for r in instruction.operands),
        instruction.attributes,
        instruction.targets,
        instruction.location,
    )
