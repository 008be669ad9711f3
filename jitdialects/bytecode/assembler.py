"""Program text. `assemble` and `disassemble` are inverse; one instruction to a line.

    // y = max(x @ w, 0), and a loop that never runs
    #0 = float 0.0
    #1 = f32[2,2] [1.0, 2.0, 3.0, 4.0]

    func @main(%0) -> 1 {
    ^entry:
      %1 = const #1
      %2 = matmul %0, %1                               loc("model.py":3:5)
      %3 = sum %2 {axis = -1, keepdims = true}
      %4 = getitem %2, %3 {index = [0:$1, ..., newaxis]}
      cond_br %3, ^loop, ^exit
    ^loop:
      switch %3 [1: ^loop, 2: ^exit, default: ^loop]
    ^exit:
      %5, %6 = call @helper(%2, %3)
      destroy %5
      return %2
    }

Constants come in order, before or between functions. Attributes with a default may be left out. An
instruction without `loc` is located at its own line. ` registers 9` before the brace makes the register
file larger than its highest number asks for.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from jitdialects.bytecode.attributes import Attribute, Ints
from jitdialects.bytecode.lexer import Cursor
from jitdialects.bytecode.literals import (
    attribute_text,
    constant_text,
    parse_attribute,
    parse_constant,
)
from jitdialects.bytecode.operators import OPERATORS, default_attributes
from jitdialects.bytecode.program import (
    CORE_OPCODES,
    Block,
    Constant,
    Function,
    Instruction,
    Location,
    Program,
)
from jitdialects.bytecode.verifier import attribute_names, attribute_types, check_location, verify
from jitdialects.errors import BytecodeError


def assemble(text: str, file: str = "<text>") -> Program:
    """The verified program written in `text`; `BytecodeError` is located at `file:line:col`."""
    assembler = _Assembler()
    line = 0
    for line, content in enumerate(text.split("\n"), start=1):
        assembler.read(Cursor(content, file, line))
    if assembler.open is not None:
        raise BytecodeError(
            f"function @{assembler.open.name} is not closed; end it with '}}'", Location(file, line)
        )
    # Verified with the places in this text, so that errors point here; then those of `loc` move in.
    verify(Program(tuple(assembler.constants), tuple(f.build(None) for f in assembler.functions)))
    functions = tuple(f.build(f.locations) for f in assembler.functions)
    return Program(tuple(assembler.constants), functions)


@dataclass
class _OpenBlock:
    name: str
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    targets: list[list[tuple[str, Location]]] = field(
        default_factory=list[list[tuple[str, Location]]]
    )


@dataclass
class _OpenFunction:
    """A function while it is read: targets are names, since blocks may come later."""

    name: str
    parameters: int
    results: int
    registers: int | None
    blocks: list[_OpenBlock] = field(default_factory=list[_OpenBlock])
    locations: dict[tuple[int, int], Location] = field(
        default_factory=dict[tuple[int, int], Location]
    )
    """(block, instruction) -> what `loc` says."""

    def build(self, locations: Mapping[tuple[int, int], Location] | None) -> Function:
        numbers = {b.name: n for n, b in reversed(list(enumerate(self.blocks)))}
        highest = self.parameters - 1
        blocks: list[Block] = []
        for number, block in enumerate(self.blocks):
            instructions: list[Instruction] = []
            for index, (instruction, names) in enumerate(
                zip(block.instructions, block.targets, strict=True)
            ):
                targets = tuple(_resolve(self, numbers, name, where) for name, where in names)
                location = (locations or {}).get((number, index), instruction.location)
                instructions.append(replace(instruction, targets=targets, location=location))
                highest = max(highest, *instruction.results, *instruction.operands, -1)
            blocks.append(Block(block.name, tuple(instructions)))
        registers = highest + 1 if self.registers is None else self.registers
        return Function(self.name, self.parameters, self.results, registers, tuple(blocks))


def _resolve(
    function: _OpenFunction, numbers: Mapping[str, int], name: str, where: Location
) -> int:
    if name not in numbers:
        raise BytecodeError(
            f"function @{function.name} has no block ^{name}{_nearest(name, numbers)}", where
        )
    return numbers[name]


def _nearest(name: str, known: Sequence[str] | Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name[:64], list(known)[:1024], n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


class _Assembler:
    """Takes the lines in order."""

    def __init__(self) -> None:
        self.constants: list[Constant] = []
        self.functions: list[_OpenFunction] = []
        self.open: _OpenFunction | None = None

    def read(self, cursor: Cursor) -> None:
        if cursor.kind == "end":
            return
        if self.open is None:
            self._top_level(cursor)
        elif cursor.skip("}"):
            self.open = None
        elif cursor.kind == "block":
            self.open.blocks.append(_OpenBlock(cursor.take("block")))
            cursor.expect(":")
        else:
            self._instruction(cursor, self.open)
        cursor.take("end")

    def _top_level(self, cursor: Cursor) -> None:
        if cursor.kind == "constant":
            if int(cursor.value) != len(self.constants):
                raise cursor.error(
                    f"constants come in order; expected #{len(self.constants)}, found #{cursor.value}"
                )
            cursor.advance()
            cursor.expect("=")
            self.constants.append(parse_constant(cursor))
            return
        if not cursor.skip_word("func"):
            raise cursor.error(
                f"expected 'func @name(...)' or a constant '#{len(self.constants)} = ...', "
                f"found {cursor.value!r}"
            )
        name = cursor.take("function")
        cursor.expect("(")
        here = cursor.location
        parameters = cursor.registers()
        if parameters != tuple(range(len(parameters))):
            raise cursor.error("parameters are the first registers: write %0, %1, ...", here)
        cursor.expect(")")
        cursor.expect("->")
        results = cursor.integer()
        registers: int | None = None
        if cursor.skip_word("registers"):
            registers = cursor.integer()
        cursor.expect("{")
        self.open = _OpenFunction(name, len(parameters), results, registers)
        self.functions.append(self.open)

    def _instruction(self, cursor: Cursor, function: _OpenFunction) -> None:
        where = cursor.location
        if not function.blocks:
            raise cursor.error("an instruction outside a block; start one with '^entry:'")
        results = cursor.registers()
        if results:
            cursor.expect("=")
        here = cursor.location
        opcode = cursor.take("name")
        if opcode not in OPERATORS and opcode not in CORE_OPCODES:
            known = [*OPERATORS, *CORE_OPCODES]
            raise cursor.error(f"unknown opcode '{opcode}'{_nearest(opcode, known)}", here)
        operands, attributes, targets = _rest(cursor, opcode)
        block = function.blocks[-1]
        if cursor.skip_word("loc"):
            key = (len(function.blocks) - 1, len(block.instructions))
            function.locations[key] = _location(cursor)
        block.instructions.append(
            Instruction(opcode, results, operands, attributes, location=where)
        )
        block.targets.append(targets)


Targets = list[tuple[str, Location]]


def _rest(cursor: Cursor, opcode: str) -> tuple[tuple[int, ...], dict[str, Attribute], Targets]:
    """Operands, attributes and targets: what stands after the opcode."""
    if opcode == "const":
        return (), {"constant": int(cursor.take("constant"))}, []
    if opcode == "call":
        callee = cursor.take("function")
        cursor.expect("(")
        operands = cursor.registers()
        cursor.expect(")")
        return operands, {"callee": callee}, []
    if opcode == "br":
        return (), {}, [_target(cursor)]
    if opcode == "cond_br":
        condition = int(cursor.take("register"))
        cursor.expect(",")
        then = _target(cursor)
        cursor.expect(",")
        return (condition,), {}, [then, _target(cursor)]
    if opcode == "switch":
        return _switch(cursor)
    operands = cursor.registers()
    operator = OPERATORS.get(opcode)
    attributes = default_attributes(operator) if operator else {}
    return operands, attributes | _attributes(cursor, opcode), []


def _target(cursor: Cursor) -> tuple[str, Location]:
    where = cursor.location
    return cursor.take("block"), where


def _switch(cursor: Cursor) -> tuple[tuple[int, ...], dict[str, Attribute], Targets]:
    selector = int(cursor.take("register"))
    cursor.expect("[")
    cases: list[int] = []
    targets: Targets = []
    while not cursor.skip_word("default"):
        cases.append(cursor.integer())
        cursor.expect(":")
        targets.append(_target(cursor))
        cursor.expect(",")
    cursor.expect(":")
    targets.append(_target(cursor))
    cursor.expect("]")
    return (selector,), {"cases": Ints(tuple(cases))}, targets


def _attributes(cursor: Cursor, opcode: str) -> dict[str, Attribute]:
    out: dict[str, Attribute] = {}
    if not cursor.skip("{"):
        return out
    while not cursor.skip("}"):
        if out:
            cursor.expect(",")
        where = cursor.location
        name = cursor.take("name")
        known = attribute_names(opcode)
        if name not in known:
            has = ", ".join(known) or "none"
            raise cursor.error(f"{opcode} has no attribute '{name}'; it has {has}", where)
        if name in out:
            raise cursor.error(f"attribute '{name}' is given twice", where)
        cursor.expect("=")
        out[name] = parse_attribute(cursor, attribute_types(opcode, name))
    return out


def _location(cursor: Cursor) -> Location:
    cursor.expect("(")
    here = cursor.location
    try:
        file = str(json.loads(cursor.take("string")))
    except ValueError:
        raise cursor.error("the file name is not a JSON string", here) from None
    cursor.expect(":")
    line = cursor.integer()
    cursor.expect(":")
    column = cursor.integer()
    cursor.expect(")")
    location = Location(file, line, column)
    with cursor.blaming(here):
        check_location("loc", location)
    return location


# ---- printing ----------------------------------------------------------------------------------


def disassemble(program: Program, *, locations: bool = True) -> str:
    """Text that assembles to an equal program; with `locations`, each instruction's stands behind it."""
    lines = [f"#{n} = {constant_text(c)}" for n, c in enumerate(program.constants)]
    for function in program.functions:
        lines += [""] if lines else []
        parameters = ", ".join(f"%{n}" for n in range(function.parameters))
        registers = f" registers {function.registers}" if _has_spare(function) else ""
        lines.append(f"func @{function.name}({parameters}) -> {function.results}{registers} {{")
        for block in function.blocks:
            lines.append(f"^{block.name}:")
            lines += [f"  {_line(function, i, locations)}" for i in block.instructions]
        lines.append("}")
    return "\n".join(lines) + "\n"


def _has_spare(function: Function) -> bool:
    used = [r for b in function.blocks for i in b.instructions for r in (*i.results, *i.operands)]
    return function.registers != max(function.parameters, max(used, default=-1) + 1)


def _line(function: Function, instruction: Instruction, locations: bool) -> str:
    results = ", ".join(f"%{r}" for r in instruction.results)
    text = f"{results} = " if results else ""
    text += " ".join(filter(None, (instruction.opcode, _rest_text(function, instruction))))
    location = instruction.location
    if location is None or not locations:
        return text
    return f"{text} loc({json.dumps(location.file)}:{location.line}:{location.column})"


def _rest_text(function: Function, instruction: Instruction) -> str:
    """The inverse of `_rest`."""
    operands = ", ".join(f"%{r}" for r in instruction.operands)
    targets = [f"^{function.blocks[t].name}" for t in instruction.targets]
    attributes = instruction.attributes
    if instruction.opcode == "const":
        return f"#{attributes['constant']}"
    if instruction.opcode == "call":
        return f"@{attributes['callee']}({operands})"
    if instruction.opcode == "switch":
        cases = attributes["cases"]
        assert isinstance(cases, Ints)
        pairs = [f"{c}: {t}" for c, t in zip((*cases.values, "default"), targets, strict=True)]
        return f"{operands} [{', '.join(pairs)}]"
    operator = OPERATORS.get(instruction.opcode)
    defaults = default_attributes(operator) if operator else {}
    shown = [
        f"{n} = {attribute_text(attributes[n])}"
        for n in attribute_names(instruction.opcode)
        if n not in defaults or attributes[n] != defaults[n]
    ]
    head = ", ".join(filter(None, (operands, *targets)))
    return " ".join(filter(None, (head, f"{{{', '.join(shown)}}}" if shown else "")))
