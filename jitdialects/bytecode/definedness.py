"""Which registers are defined on every path to every use: forward dataflow over bit sets.

A set of registers is a Python integer, bit r for register r. Blocks are visited in reverse postorder
until nothing changes, which takes (depth of loops + 2) rounds; a bound on the work keeps hostile
control flow from taking for ever. What cannot be reached from the entry is never wrong.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from jitdialects.bytecode.program import Block, Function
from jitdialects.errors import BytecodeError

MAX_STEPS = 1 << 18
"""Visits of a block during the analysis of one program, 8192 registers at a time: a few seconds at most."""


@dataclass(frozen=True)
class Use:
    """Instruction number `instruction` of block number `block` reads `register`."""

    block: int
    instruction: int
    register: int


@dataclass
class Effort:
    """Steps spent on one program."""

    steps: int = 0

    def spend(self, function: Function) -> None:
        """Count one visit of a block, or refuse to go on."""
        self.steps += 1 + function.registers // 8192
        if self.steps > MAX_STEPS:
            raise BytecodeError(
                f"function @{function.name} has control flow too tangled to check; "
                "split it into functions that call each other"
            )


def reverse_postorder(function: Function) -> list[int]:
    """Numbers of the blocks that can be reached, each before its successors except along back edges."""
    order: list[int] = []
    seen = {0}
    stack = [(0, iter(function.blocks[0].instructions[-1].targets))]
    while stack:
        block, successors = stack[-1]
        successor = next(successors, None)
        if successor is None:
            order.append(block)
            stack.pop()
        elif successor not in seen:
            seen.add(successor)
            stack.append((successor, iter(function.blocks[successor].instructions[-1].targets)))
    return order[::-1]


def first_undefined_use(function: Function, effort: Effort) -> Use | None:
    """The first use of a register that some path leaves undefined; None if there is none.

    Needs a function whose blocks end in terminators with targets and registers in range.
    """
    undefined = _undefined_at_entry(function, effort)
    for number in sorted(undefined):
        use = _scan(function.blocks[number], number, undefined[number])
        if use is not None:
            return use
    return None


def _undefined_at_entry(function: Function, effort: Effort) -> dict[int, int]:
    """Block number -> registers undefined on some path to it, for the blocks that can be reached."""
    order = reverse_postorder(function)
    rank = {block: position for position, block in enumerate(order)}
    undefined = dict.fromkeys(order, 0)
    undefined[0] = (1 << function.registers) - (1 << function.parameters)
    effects = {block: _effect(function.blocks[block]) for block in order}
    queue, queued = list(range(len(order))), set(order)
    while queue:
        block = order[heapq.heappop(queue)]
        queued.discard(block)
        effort.spend(function)
        defines, destroys = effects[block]
        leaving = undefined[block] & ~defines | destroys
        for successor in function.blocks[block].instructions[-1].targets:
            if leaving & ~undefined[successor]:
                undefined[successor] |= leaving
                if successor not in queued:
                    queued.add(successor)
                    heapq.heappush(queue, rank[successor])
    return undefined


def _effect(block: Block) -> tuple[int, int]:
    """The registers that are defined, and destroyed, when the block has run."""
    state: dict[int, bool] = {}
    for instruction in block.instructions:
        if instruction.opcode == "destroy":
            state[instruction.operands[0]] = False
        for register in instruction.results:
            state[register] = True
    defines = destroys = 0
    for register, defined in state.items():
        defines, destroys = (
            (defines | 1 << register, destroys) if defined else (defines, destroys | 1 << register)
        )
    return defines, destroys


def _scan(block: Block, number: int, undefined: int) -> Use | None:
    state: dict[int, bool] = {}
    for index, instruction in enumerate(block.instructions):
        for register in instruction.operands:
            if not state.get(register, not undefined >> register & 1):
                return Use(number, index, register)
        if instruction.opcode == "destroy":
            state[instruction.operands[0]] = False
        for register in instruction.results:
            state[register] = True
    return None
