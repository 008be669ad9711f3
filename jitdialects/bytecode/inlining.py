"""Replaces every call by the callee's blocks, so that one function remains.

    a:  ...; %2 = call @g(%0); rest     ->     a:    ...; %5 = move %0; br g0.entry
                                               g0.entry: ...; %2 = move %7; br a.1     (return %7)
                                               a.1:  rest

Registers of each inlined body are fresh ones. A function that calls itself, on whatever way, is
refused, and so is a result of more than `MAX_INSTRUCTIONS`: inlining doubles at each level of f
calling g twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from jitdialects.bytecode.program import Block, Function, Instruction, Program
from jitdialects.errors import CompileError

MAX_INSTRUCTIONS = 20_000
MAX_DEPTH = 100


def inline_calls(program: Program, function: Function) -> Function:
    """`function` of a verified program without calls; `CompileError` for recursion or size."""
    if not any(i.opcode == "call" for b in function.blocks for i in b.instructions):
        return function
    inliner = _Inliner(program, function.registers)
    entry = inliner.copy(function, 0, "", None, (function.name,))
    assert entry == 0
    blocks = tuple(Block(name, tuple(body)) for name, body in inliner.blocks)
    return replace(function, registers=inliner.registers, blocks=blocks)


@dataclass
class _Inliner:
    program: Program
    registers: int
    blocks: list[tuple[str, list[Instruction]]] = field(
        default_factory=list[tuple[str, list[Instruction]]]
    )
    instructions: int = 0
    calls: int = 0

    def copy(
        self,
        function: Function,
        base: int,
        prefix: str,
        on_return: tuple[tuple[int, ...], int] | None,
        stack: tuple[str, ...],
    ) -> int:
        """Append the blocks of `function`, registers shifted by `base`. A return moves its operands
        to the registers of `on_return` and jumps to its block; without one it stays a return. Gives
        the number of the entry."""
        first = len(self.blocks)
        self.blocks.extend((prefix + block.name, []) for block in function.blocks)
        for offset, block in enumerate(function.blocks):
            at = first + offset
            for instruction in block.instructions:
                at = self._instruction(instruction, at, first, base, on_return, stack)
        return first

    def _instruction(
        self,
        old: Instruction,
        at: int,
        first: int,
        base: int,
        on_return: tuple[tuple[int, ...], int] | None,
        stack: tuple[str, ...],
    ) -> int:
        """Append the copy of one instruction to block `at`; gives the block that takes the next
        one."""
        self.instructions += 1
        if self.instructions > MAX_INSTRUCTIONS:
            raise CompileError(
                f"@{stack[0]} has more than {MAX_INSTRUCTIONS} instructions with its calls inlined",
                old.location,
            )
        new = replace(
            old,
            results=tuple(r + base for r in old.results),
            operands=tuple(r + base for r in old.operands),
            targets=tuple(t + first for t in old.targets),
        )
        if old.opcode == "call":
            return self._call(new, at, stack)
        if old.opcode == "return" and on_return is not None:
            self._jump_with(at, on_return[0], new.operands, on_return[1], old)
            return at
        self.blocks[at][1].append(new)
        return at

    def _call(self, call: Instruction, at: int, stack: tuple[str, ...]) -> int:
        name = str(call.attributes["callee"])
        if name in stack:
            raise CompileError(
                f"@{name} calls itself (@{' -> @'.join((*stack, name))}), which is not compiled",
                call.location,
            )
        if len(stack) > MAX_DEPTH:
            raise CompileError(f"@{stack[0]} nests more than {MAX_DEPTH} calls", call.location)
        callee = self.program.function(name)
        assert callee is not None  # the program is verified
        base = self.registers
        self.registers += callee.registers
        self.calls += 1
        after = len(self.blocks)
        self.blocks.append((f"{self.blocks[at][0]}.{self.calls}", []))
        prefix = f"{name}.{self.calls}."
        entry = self.copy(callee, base, prefix, (call.results, after), (*stack, name))
        parameters = range(base, base + callee.parameters)
        self._jump_with(at, parameters, call.operands, entry, call)
        return after

    def _jump_with(
        self,
        at: int,
        registers: Sequence[int],
        values: Sequence[int],
        target: int,
        beside: Instruction,
    ) -> None:
        """`registers <- values`, which are disjoint sets, then a branch to `target`."""
        location = beside.location
        body = self.blocks[at][1]
        for register, value in zip(registers, values, strict=True):
            body.append(Instruction("move", (register,), (value,), location=location))
        body.append(Instruction("br", targets=(target,), location=location))
