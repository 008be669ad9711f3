"""What a valid program is. `verify` checks everything before anything runs.

A program that passes has known opcodes with the right counts of operands, results, targets and
attributes; terminators at the end of every block and nowhere else; calls that agree with their callees
(recursion is legal); registers that are defined on every path at every use (`destroy` undefines); sane
constants; and sizes within the limits below. Dtypes and shapes are not checked: they are known only when
the program runs.

Each error is one `BytecodeError`: who (function, block, instruction number), what, and the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType, NoneType

import numpy as np

from jitdialects.bytecode import attributes as attr
from jitdialects.bytecode.attributes import (
    At,
    Attribute,
    Ellipsis,
    IndexSpec,
    Ints,
    NewAxis,
    OperandRef,
    ShapeSpec,
    Slice,
)
from jitdialects.bytecode.definedness import Effort, first_undefined_use
from jitdialects.bytecode.dtypes import SUPPORTED
from jitdialects.bytecode.operators import OPERATORS
from jitdialects.bytecode.program import (
    CORE_OPCODES,
    TERMINATORS,
    Block,
    Constant,
    Function,
    Instruction,
    Location,
    Program,
)
from jitdialects.errors import BytecodeError

MAX_FUNCTIONS = 1 << 16
"""Functions of a program."""
MAX_CONSTANTS = 1 << 20
"""Entries of the constant pool."""
MAX_CONSTANT_BYTES = 1 << 31
"""Bytes of one constant, sizes of 0 counted as 1, so that every product of sizes is harmless."""
MAX_RANK = 32
"""Axes of a constant; entries of a shape, an index, an order of axes."""
MAX_BLOCKS = 1 << 14
"""Blocks of a function."""
MAX_INSTRUCTIONS = 1 << 20
"""Instructions of a program."""
MAX_REGISTERS = 1 << 16
"""Registers of a function."""
MAX_STATE = 1 << 26
"""Blocks times registers of a function: the bits of one dataflow analysis, 8 MiB."""
MAX_OPERANDS = 1 << 12
"""Operands, results or targets of an instruction."""
MAX_NAME = 1 << 10
"""Characters of the name of a function or block."""
MAX_FILE_NAME = 1 << 12
"""Characters of the file name of a location."""
MAX_LINE = 1 << 31
"""Largest line or column of a location."""

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
"""Names of functions and blocks."""
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
WEAK = ("bool", "int64", "float64")
"""Dtypes of Python scalars."""

# opcode -> (operands, results, targets), None where it depends on the instruction
_CORE_COUNTS: Mapping[str, tuple[int | None, int | None, int | None]] = MappingProxyType(
    {
        "const": (0, 1, 0),
        "move": (1, 1, 0),
        "destroy": (1, 0, 0),
        "call": (None, None, 0),
        "br": (0, 0, 1),
        "cond_br": (1, 0, 2),
        "switch": (1, 0, None),
        "return": (None, 0, 0),
    }
)
_CORE_ATTRIBUTES = {"const": ("constant",), "call": ("callee",), "switch": ("cases",)}


def attribute_names(opcode: str) -> tuple[str, ...]:
    """The attributes that an instruction with this (known) opcode has, no more and no less."""
    operator = OPERATORS.get(opcode)
    return operator.attributes if operator else _CORE_ATTRIBUTES.get(opcode, ())


def attribute_types(opcode: str, name: str) -> tuple[type, ...]:
    """The types that this attribute may have; `size` measures one axis, reductions any set of them."""
    return (int,) if opcode == "size" else attr.TYPES[name]


def verify(program: Program) -> None:
    """Raise `BytecodeError` for the first thing that makes `program` invalid."""
    _at_most("the program", len(program.functions), MAX_FUNCTIONS, "functions")
    _at_most("the program", len(program.constants), MAX_CONSTANTS, "constants")
    total = sum(len(b.instructions) for f in program.functions for b in f.blocks)
    _at_most("the program", total, MAX_INSTRUCTIONS, "instructions")
    for number, constant in enumerate(program.constants):
        _check_constant(f"constant #{number}", constant)
    functions: dict[str, Function] = {}
    for function in program.functions:
        _check_name("function", function.name, _start(function))
        if function.name in functions:
            raise BytecodeError(
                f"two functions are called @{function.name}; rename one", _start(function)
            )
        functions[function.name] = function
    effort = Effort()
    for function in program.functions:
        _check_function(function, _Surroundings(functions, len(program.constants)), effort)


def verify_function(function: Function) -> None:
    """What can be said of a function alone: everything but callees and numbers of constants."""
    _check_name("function", function.name, _start(function))
    _check_function(function, None, Effort())


@dataclass(frozen=True)
class _Surroundings:
    """The functions by name and the number of constants."""

    functions: Mapping[str, Function]
    constants: int


# ---- constants and functions -------------------------------------------------------------------


def _at_most(who: str, count: int, limit: int, what: str, where: Location | None = None) -> None:
    if count > limit:
        raise BytecodeError(f"{who} has {count} {what}, the limit is {limit}; split it", where)


def _check_name(what: str, name: object, where: Location | None) -> None:
    if type(name) is not str or len(name) > MAX_NAME or NAME.fullmatch(name) is None:
        shown = repr(name)[:60]
        raise BytecodeError(
            f"{shown} cannot be the name of a {what}; use at most {MAX_NAME} letters, digits, '_' and "
            "'.', no digit first",
            where,
        )


def check_sizes(who: str, sizes: tuple[int, ...], itemsize: int) -> None:
    """Refuse the shape of a constant that is over the limits."""
    _at_most(who, len(sizes), MAX_RANK, "axes")
    total = itemsize
    for size in sizes:
        total *= max(size, 1)
        if size < 0 or total > MAX_CONSTANT_BYTES:
            raise BytecodeError(
                f"{who} has the shape {list(sizes)}; sizes must not be negative, and "
                f"{MAX_CONSTANT_BYTES} bytes are the limit of a constant"
            )


def check_location(who: str, location: Location) -> None:
    """Refuse a location over the limits."""
    if type(location.file) is not str or len(location.file) > MAX_FILE_NAME:
        raise BytecodeError(f"{who} has a file name over {MAX_FILE_NAME} characters; shorten it")
    for number in (location.line, location.column):
        if type(number) is not int or not 1 <= number <= MAX_LINE:
            raise BytecodeError(
                f"{who} has line or column {number!r}; both count from 1 to {MAX_LINE}"
            )


def _check_constant(who: str, constant: Constant) -> None:
    dtype, value = constant.dtype, constant.value
    if dtype.name not in (WEAK if dtype.weak else SUPPORTED):
        raise BytecodeError(
            f"{who} has the dtype {dtype.name}; constants are {', '.join(SUPPORTED)} or Python scalars"
        )
    if type(value) is not np.ndarray or value.dtype != np.dtype(dtype.name):
        found = getattr(value, "dtype", type(value).__name__)
        raise BytecodeError(
            f"{who} is declared {dtype} but holds {found}; store a NumPy array of that dtype"
        )
    check_sizes(who, value.shape, value.itemsize)
    if dtype.weak and value.ndim:
        raise BytecodeError(f"{who} is a Python scalar of rank {value.ndim}; its rank must be 0")
    if not value.flags.c_contiguous or value.flags.writeable:
        raise BytecodeError(
            f"{who} is not a read-only C-contiguous array; make it with Constant.of"
        )


def _start(function: Function) -> Location | None:
    """Where an error of the whole function is shown: at its first instruction."""
    for block in function.blocks:
        for instruction in block.instructions:
            return instruction.location
    return None


def _check_function(function: Function, surroundings: _Surroundings | None, effort: Effort) -> None:
    who, where = f"function @{function.name}", _start(function)
    for what in ("parameters", "results", "registers"):
        count: object = getattr(function, what)
        if type(count) is not int or count < 0:
            raise BytecodeError(f"{who} has {count!r} {what}; a count is an integer >= 0", where)
    _at_most(who, function.registers, MAX_REGISTERS, "registers", where)
    _at_most(who, max(function.parameters, function.results), MAX_OPERANDS, "values", where)
    _at_most(who, len(function.blocks), MAX_BLOCKS, "blocks", where)
    state = function.registers * len(function.blocks)
    _at_most(who, state, MAX_STATE, "registers times blocks", where)
    if function.registers < function.parameters:
        raise BytecodeError(
            f"{who} has {function.parameters} parameters but {function.registers} registers; "
            "parameters are the first registers",
            where,
        )
    if not function.blocks:
        raise BytecodeError(f"{who} has no block; give it one that returns", where)
    names: set[str] = set()
    for block in function.blocks:
        _check_name("block", block.name, where)
        if block.name in names:
            raise BytecodeError(f"{who} has two blocks ^{block.name}; rename one", where)
        names.add(block.name)
        _check_block(_Checker(function, block, surroundings))
    _check_definedness(function, effort)


def _check_definedness(function: Function, effort: Effort) -> None:
    use = first_undefined_use(function, effort)
    if use is None:
        return
    block = function.blocks[use.block]
    instruction = block.instructions[use.instruction]
    raise BytecodeError(
        f"{_who(function, block, use.instruction, instruction)}: register %{use.register} is not "
        "defined on every path to here; define it, or destroy it later",
        instruction.location,
    )


def _who(function: Function, block: Block, index: int, instruction: Instruction) -> str:
    return f"function @{function.name}, block ^{block.name}, instruction {index} ({instruction.opcode})"


def _check_block(checker: _Checker) -> None:
    block = checker.block
    if not block.instructions or block.instructions[-1].opcode not in TERMINATORS:
        raise BytecodeError(
            f"function @{checker.function.name}, block ^{block.name} does not end in a terminator; "
            f"end it with one of {', '.join(TERMINATORS)}",
            block.instructions[-1].location if block.instructions else _start(checker.function),
        )
    for index, instruction in enumerate(block.instructions):
        checker.check(index, instruction)


# ---- one instruction ---------------------------------------------------------------------------


class _Checker:
    """Checks the instructions of one block, one at a time."""

    def __init__(
        self, function: Function, block: Block, surroundings: _Surroundings | None
    ) -> None:
        self.function, self.block, self.surroundings = function, block, surroundings

    def refuse(self, sentence: str) -> BytecodeError:
        who = _who(self.function, self.block, self.index, self.instruction)
        return BytecodeError(f"{who}: {sentence}", self.instruction.location)

    def check(self, index: int, instruction: Instruction) -> None:
        self.index, self.instruction = index, instruction
        if instruction.location is not None:
            check_location(f"a location in function @{self.function.name}", instruction.location)
        if instruction.opcode not in OPERATORS and instruction.opcode not in CORE_OPCODES:
            raise self.refuse("unknown opcode; operators.OPERATORS and CORE_OPCODES list them")
        last = index == len(self.block.instructions) - 1
        if instruction.opcode in TERMINATORS and not last:
            raise self.refuse(
                "a terminator before the end of its block; start a new block after it"
            )
        self._check_registers()
        self._check_counts()
        self._check_attributes()
        if instruction.opcode == "call" and self.surroundings:
            self._check_call(self.surroundings.functions)

    def _check_registers(self) -> None:
        instruction, registers = self.instruction, self.function.registers
        for register in (*instruction.operands, *instruction.results):
            if type(register) is not int or not 0 <= register < registers:
                raise self.refuse(
                    f"no register %{register}; the function has {registers}, numbered from 0"
                )
        if len(set(instruction.results)) != len(instruction.results):
            raise self.refuse("writes a register twice; give each result its own")
        blocks = len(self.function.blocks)
        for target in instruction.targets:
            if type(target) is not int or not 0 <= target < blocks:
                raise self.refuse(f"no block {target}; the function has {blocks}, numbered from 0")

    def _check_counts(self) -> None:
        instruction = self.instruction
        operands, results, targets = _CORE_COUNTS.get(instruction.opcode, (None, 1, 0))
        if instruction.opcode == "return":
            operands = self.function.results
        cases = instruction.attributes.get("cases")
        if instruction.opcode == "switch" and isinstance(cases, Ints):
            targets = len(cases.values) + 1
        for what, found, wanted in (
            ("operand(s)", len(instruction.operands), operands),
            ("result(s)", len(instruction.results), results),
            ("target(s)", len(instruction.targets), targets),
        ):
            if found > MAX_OPERANDS:
                raise self.refuse(f"has {found} {what}, the limit is {MAX_OPERANDS}; split it")
            if wanted is not None and found != wanted:
                raise self.refuse(f"takes {wanted} {what}, got {found}")
        operator = OPERATORS.get(instruction.opcode)
        if operator and (
            len(instruction.operands) < operator.arity
            or (len(instruction.operands) > operator.arity and not operator.indexed)
        ):
            more = " or more" if operator.indexed else ""
            raise self.refuse(
                f"takes {operator.arity}{more} operand(s), got {len(instruction.operands)}"
            )

    def _check_attributes(self) -> None:
        instruction = self.instruction
        wanted = attribute_names(instruction.opcode)
        for name in instruction.attributes:
            if name not in wanted:
                has = ", ".join(wanted) or "none"
                raise self.refuse(f"unknown attribute '{name}'; it has {has}")
        for name in wanted:
            if name not in instruction.attributes:
                raise self.refuse(f"needs the attribute '{name}'; add it")
            value = instruction.attributes[name]
            types = attribute_types(instruction.opcode, name)
            if type(value) not in types:  # exact, so that True is not an axis
                names = " or ".join("none" if t is NoneType else t.__name__ for t in types)
                raise self.refuse(f"attribute '{name}' must be of type {names}, got {value!r}")
            self._check_value(name, value)
            self._check_references(value)

    def _check_value(self, name: str, value: Attribute) -> None:
        """Checks beyond the type, for each kind of attribute."""
        if isinstance(value, int):
            self._check_int(name, int(value))
            pool = self.surroundings.constants if self.surroundings else INT64_MAX
            if name == "constant" and not 0 <= value < pool:
                raise self.refuse(f"no constant #{value}; the pool has {pool}, numbered from 0")
        if name == "dtype" and value not in SUPPORTED:
            raise self.refuse(
                f"dtype {value!r} is not supported; use one of {', '.join(SUPPORTED)}"
            )
        if isinstance(value, Ints):
            self._check_ints(name, value)
        if isinstance(value, ShapeSpec):
            self._check_shape(value)
        if isinstance(value, IndexSpec):
            self._check_index(value)

    def _check_int(self, name: str, value: object) -> None:
        if type(value) is not int or not INT64_MIN <= value <= INT64_MAX:
            raise self.refuse(f"attribute '{name}' has {value!r}, which is not an int64")

    def _check_length(self, name: str, count: int) -> None:
        limit = MAX_OPERANDS if name == "cases" else MAX_RANK
        if count > limit:
            raise self.refuse(f"attribute '{name}' has {count} entries, the limit is {limit}")

    def _check_ints(self, name: str, value: Ints) -> None:
        self._check_length(name, len(value.values))
        for number in value.values:
            self._check_int(name, number)
        if len(set(value.values)) != len(value.values):
            raise self.refuse(f"attribute '{name}' has a number twice: {value}; each may come once")

    def _check_shape(self, value: ShapeSpec) -> None:
        self._check_length("shape", len(value.sizes))
        holes = 0
        for size in value.sizes:
            if isinstance(size, OperandRef):
                continue
            self._check_int("shape", size)
            holes += size == -1
            if size < -1:
                raise self.refuse(f"shape {value} has a negative size; sizes are at least 0")
        if holes and self.instruction.opcode != "reshape":
            raise self.refuse(
                f"shape {value} has a -1, which only reshape can fill in; write the size"
            )
        if holes > 1:
            raise self.refuse(f"shape {value} has more than one -1; write the other sizes")

    def _check_index(self, value: IndexSpec) -> None:
        self._check_length("index", len(value.entries))
        if sum(isinstance(e, Ellipsis) for e in value.entries) > 1:
            raise self.refuse(f"index {value} has more than one '...'; write ':' for the others")
        for entry in value.entries:
            self._check_entry(value, entry)

    def _check_entry(self, value: IndexSpec, entry: object) -> None:
        if not isinstance(entry, Slice | At | Ellipsis | NewAxis):
            raise self.refuse(f"index has the entry {entry!r}; use Slice, At, Ellipsis, NewAxis")
        bounds = (entry.start, entry.stop) if isinstance(entry, Slice) else ()
        for bound in (*bounds, entry.index if isinstance(entry, At) else None):
            if bound is not None and not isinstance(bound, OperandRef):
                self._check_int("index", bound)
        if isinstance(entry, Slice):
            self._check_int("index", entry.step)
            if entry.step == 0:
                raise self.refuse(f"index {value} has a step of 0; steps are positive or negative")

    def _check_references(self, value: Attribute) -> None:
        operator = OPERATORS.get(self.instruction.opcode)
        count = len(self.instruction.operands)
        for reference in attr.references(value):
            first = operator.arity if operator else 0
            if type(reference.position) is not int or not first <= reference.position < count:
                raise self.refuse(
                    f"{value} refers to operand {reference}; sizes and indices are the operands "
                    f"from ${first} on, and there are {count} operands"
                )

    def _check_call(self, functions: Mapping[str, Function]) -> None:
        instruction = self.instruction
        callee = functions.get(str(instruction.attributes["callee"]))
        if callee is None:
            raise self.refuse(
                f"no function @{instruction.attributes['callee']}; "
                f"the program has {', '.join('@' + n for n in list(functions)[:8])}"
            )
        for what, found, wanted in (
            ("argument(s)", len(instruction.operands), callee.parameters),
            ("result(s)", len(instruction.results), callee.results),
        ):
            if found != wanted:
                raise self.refuse(f"@{callee.name} has {wanted} {what}, got {found}")
