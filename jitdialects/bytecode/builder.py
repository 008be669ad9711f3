"""Makes programs from Python.

    program = ProgramBuilder()
    main = program.function("main", parameters=2)
    x, w = main.parameters
    y = main.apply("matmul", x, w)
    main.returns(main.apply("maximum", y, main.constant(0.0)))
    program.finish()

Registers are numbers. Instructions go to the end of the current block; `block` makes another one and
`enter` selects it. Every method that emits takes `into` to write to registers that exist already,
which is how values are carried around loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from numpy.typing import ArrayLike

from jitdialects.bytecode import lifetimes
from jitdialects.bytecode.attributes import Attribute, Ints
from jitdialects.bytecode.dtypes import DType
from jitdialects.bytecode.operators import OPERATORS, default_attributes
from jitdialects.bytecode.program import (
    NO_ATTRIBUTES,
    Block,
    Constant,
    Function,
    Instruction,
    Location,
    Program,
)
from jitdialects.bytecode.verifier import verify
from jitdialects.errors import BytecodeError


class ProgramBuilder:
    """Collects constants (equal bits are stored once) and functions."""

    def __init__(self) -> None:
        self._constants: dict[Constant, int] = {}
        self._functions: list[FunctionBuilder] = []

    def constant(self, value: ArrayLike, dtype: DType | None = None) -> int:
        """The number of a constant of the pool; see `Constant.of` for its dtype."""
        return self._constants.setdefault(Constant.of(value, dtype), len(self._constants))

    def function(self, name: str, parameters: int) -> FunctionBuilder:
        """A new function; its parameters are registers 0 to `parameters - 1`."""
        self._functions.append(FunctionBuilder(self, name, parameters))
        return self._functions[-1]

    def finish(self, *, insert_destroys: bool = True) -> Program:
        """The verified program; `insert_destroys` ends every register's life after its last use."""
        functions = tuple(f.finish() for f in self._functions)
        program = Program(tuple(self._constants), functions)
        verify(program)
        if not insert_destroys:
            return program
        return Program(program.constants, tuple(map(lifetimes.insert_destroys, functions)))


@dataclass
class _OpenBlock:
    name: str
    instructions: list[Instruction] = field(default_factory=list[Instruction])


class FunctionBuilder:
    """One function in the making; `ProgramBuilder.function` makes them. Its first block is `entry`."""

    def __init__(self, program: ProgramBuilder, name: str, parameters: int) -> None:
        self.program = program
        self.name = name
        self.parameters = tuple(range(parameters))
        self.registers = parameters
        self.location: Location | None = None
        """Given to the instructions emitted from now on."""
        self._blocks = [_OpenBlock("entry")]
        self._current = 0

    def register(self) -> int:
        """A new register, undefined until something is written to it."""
        self.registers += 1
        return self.registers - 1

    def block(self, name: str) -> int:
        """A new, empty block; its number is what branches take."""
        self._blocks.append(_OpenBlock(name))
        return len(self._blocks) - 1

    def enter(self, block: int) -> None:
        """Emit to the end of `block` from now on."""
        self._current = block

    @property
    def current(self) -> int:
        """The block that instructions go to."""
        return self._current

    def apply(
        self, operator: str, *operands: int, into: int | None = None, **attributes: Attribute
    ) -> int:
        """Apply an operator of the table; attributes that have a default may be left out."""
        entry = OPERATORS.get(operator)
        defaults = default_attributes(entry) if entry else {}
        (result,) = self._emit(operator, operands, defaults | attributes, 1, _wrap(into))
        return result

    def constant(
        self, value: ArrayLike, dtype: DType | None = None, *, into: int | None = None
    ) -> int:
        """Load a constant."""
        number = self.program.constant(value, dtype)
        (result,) = self._emit("const", (), {"constant": number}, 1, _wrap(into))
        return result

    def move(self, source: int, *, into: int | None = None) -> int:
        """Copy a register; values are immutable, so this is cheap."""
        (result,) = self._emit("move", (source,), NO_ATTRIBUTES, 1, _wrap(into))
        return result

    def destroy(self, register: int) -> None:
        """Make a register undefined."""
        self._emit("destroy", (register,), NO_ATTRIBUTES, 0)

    def call(
        self, callee: str, *operands: int, results: int = 1, into: Sequence[int] | None = None
    ) -> tuple[int, ...]:
        """Call a function of the same program, which may be defined later."""
        return self._emit("call", operands, {"callee": callee}, results, into)

    def branch(self, target: int) -> None:
        """Go to a block."""
        self._emit("br", (), NO_ATTRIBUTES, 0, targets=(target,))

    def branch_if(self, condition: int, then: int, otherwise: int) -> None:
        """Go to `then` if the rank-0 `condition` is not zero."""
        self._emit("cond_br", (condition,), NO_ATTRIBUTES, 0, targets=(then, otherwise))

    def switch(self, selector: int, cases: Mapping[int, int], otherwise: int) -> None:
        """Go to `cases[selector]`, a block, or to `otherwise`."""
        targets = (*cases.values(), otherwise)
        self._emit("switch", (selector,), {"cases": Ints(tuple(cases))}, 0, targets=targets)

    def returns(self, *results: int) -> None:
        """Return the values of `results`; every return of a function has equally many."""
        self._emit("return", results, NO_ATTRIBUTES, 0)

    def finish(self) -> Function:
        """The function as data, not verified."""
        blocks = tuple(Block(b.name, tuple(b.instructions)) for b in self._blocks)
        returns = (i for b in blocks for i in b.instructions if i.opcode == "return")
        results = next((len(i.operands) for i in returns), 0)
        return Function(self.name, len(self.parameters), results, self.registers, blocks)

    def _emit(
        self,
        opcode: str,
        operands: Sequence[int],
        attributes: Mapping[str, Attribute],
        results: int,
        into: Sequence[int] | None = None,
        targets: tuple[int, ...] = (),
    ) -> tuple[int, ...]:
        if into is not None and len(into) != results:
            raise BytecodeError(f"{opcode} gives {results} result(s), `into` names {len(into)}")
        registers = (
            tuple(into) if into is not None else tuple(self.register() for _ in range(results))
        )
        self._blocks[self._current].instructions.append(
            Instruction(opcode, registers, tuple(operands), attributes, targets, self.location)
        )
        return registers


def _wrap(into: int | None) -> tuple[int, ...] | None:
    return None if into is None else (into,)
