"""Inserts `destroy` after the last use of every register, on every path, edges included.

    %2 = add %0, %1                          %2 = add %0, %1
    %3 = exp %2                              destroy %0, then %1
    return %3                      ->        %3 = exp %2
                                             destroy %2
                                             return %3

Needs a verified function; explicit destroys stay and count. What `return` hands out is never destroyed.
A register that dies on an edge dies at the head of the block it leads to if it dies on every edge there,
otherwise in a new block on the edge. Liveness is the classical backward dataflow over bit sets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from jitdialects.bytecode.definedness import reverse_postorder
from jitdialects.bytecode.program import Block, Function, Instruction


def insert_destroys(function: Function) -> Function:
    """The same function with every register destroyed where it dies. Blocks that cannot be reached
    stay as they are."""
    if any(0 in b.instructions[-1].targets for b in function.blocks):
        function = _with_fresh_entry(function)
    reached = reverse_postorder(function)
    live_in = live_at_entry(function, reached)
    dying = _dying_on_edges(function, reached, live_in)
    heads: dict[int, int] = {0: _bits(range(function.parameters)) & ~live_in[0]}
    for (_, target), registers in dying.items():
        heads[target] = heads.get(target, registers) & registers
    blocks = [
        _destroy_inside(b, heads[n], _live_out(b, live_in)) if n in heads else b
        for n, b in enumerate(function.blocks)
    ]
    names = {b.name for b in blocks}
    for (source, target), registers in dying.items():
        rest = registers & ~heads[target]
        if rest:
            name = _fresh(f"{blocks[source].name}.{blocks[target].name}", names)
            blocks[source] = _retarget(blocks[source], {target: len(blocks)})
            goto = Instruction("br", targets=(target,))
            blocks.append(Block(name, (*_destroys(rest, goto), goto)))
    return replace(function, blocks=tuple(blocks))


def _with_fresh_entry(function: Function) -> Function:
    """An entry that no branch leads to, so that edges into the old one can be told from the call."""
    shifted = [
        _retarget(b, {n: n + 1 for n in b.instructions[-1].targets}) for b in function.blocks
    ]
    name = _fresh("entry", {b.name for b in function.blocks})
    return replace(function, blocks=(Block(name, (Instruction("br", targets=(1,)),)), *shifted))


def _fresh(name: str, taken: set[str]) -> str:
    candidate, number = name, 1
    while candidate in taken:
        candidate, number = f"{name}.{number}", number + 1
    taken.add(candidate)
    return candidate


def _retarget(block: Block, new: Mapping[int, int]) -> Block:
    *body, last = block.instructions
    targets = tuple(new.get(t, t) for t in last.targets)
    return replace(block, instructions=(*body, replace(last, targets=targets)))


def _bits(registers: Sequence[int]) -> int:
    out = 0
    for register in registers:
        out |= 1 << register
    return out


def _registers(bits: int) -> Iterator[int]:
    while bits:
        yield (bits & -bits).bit_length() - 1
        bits &= bits - 1


def _destroys(bits: int, beside: Instruction) -> list[Instruction]:
    return [
        Instruction("destroy", operands=(r,), location=beside.location) for r in _registers(bits)
    ]


# ---- liveness ----------------------------------------------------------------------------------


def _live_out(block: Block, live_in: Mapping[int, int]) -> int:
    out = 0
    for target in block.instructions[-1].targets:
        out |= live_in.get(target, 0)
    return out


def live_at_entry(function: Function, reached: Sequence[int]) -> dict[int, int]:
    """Block number -> registers whose value may still be read, at the entry of the block."""
    facts = {n: _reads_and_writes(function.blocks[n]) for n in reached}
    predecessors: defaultdict[int, list[int]] = defaultdict(list)
    for number in reached:
        for target in function.blocks[number].instructions[-1].targets:
            predecessors[target].append(number)
    live = dict.fromkeys(reached, 0)
    work = list(reached)
    while work:
        number = work.pop()
        reads, writes = facts[number]
        new = reads | _live_out(function.blocks[number], live) & ~writes
        if new != live[number]:
            live[number] = new
            work.extend(predecessors[number])
    return live


def _reads_and_writes(block: Block) -> tuple[int, int]:
    """Registers read before they are written, and registers written, in the block."""
    reads = writes = 0
    for instruction in block.instructions:
        reads |= _bits(instruction.operands) & ~writes
        writes |= _bits(instruction.results)
    return reads, writes


def _dying_on_edges(
    function: Function, reached: Sequence[int], live_in: Mapping[int, int]
) -> dict[tuple[int, int], int]:
    """Edge -> registers that hold a value when it is taken and that nobody reads after it."""
    out: dict[tuple[int, int], int] = {}
    for number in reached:
        block = function.blocks[number]
        last = block.instructions[-1]
        held = _live_out(block, live_in) | _bits(last.operands)
        for target in last.targets:
            out[number, target] = held & ~live_in[target]
    return out


def _destroy_inside(block: Block, head: int, live: int) -> Block:
    """`head` dies at the start; inside, each register dies after the last instruction that names it."""
    *body, last = block.instructions
    live |= _bits(last.operands)
    out: list[Instruction] = [last]
    for instruction in reversed(body):
        results, operands = _bits(instruction.results), _bits(instruction.operands)
        dead = 0 if instruction.opcode == "destroy" else (results | operands) & ~live
        out.extend(reversed(_destroys(dead, instruction)))
        out.append(instruction)
        live = live & ~results | operands
    out.extend(reversed(_destroys(head, block.instructions[0])))
    return replace(block, instructions=tuple(reversed(out)))
