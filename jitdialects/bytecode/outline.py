"""Parts of a function as functions of their own: loops, and stretches of a block.

A register machine keeps all of its state in registers, so a part is a function of the registers that it reads
before it writes them; its results are the registers that it writes and that somebody reads afterwards.

    ^step:                                      func @main.step(%0, %1, %2) -> 1 {   // of %0, %1, %3
      %4 = divide %0, %3                        ^main.step: br ^step
      %3 = add %3, %4              ->           ^step: ...
      %5 = greater %3, %1                         cond_br %5, ^step, ^exit
      cond_br %5, ^step, ^done                  ^exit: return %2
    ^done: return %3                            }

Needs verified programs. Destroys are left out: what is not read afterwards is no result. A loop is a natural one (its header dominates it; Aho, Sethi, Ullman) that is left to one
block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from jitdialects.bytecode.attributes import Attribute
from jitdialects.bytecode.definedness import reverse_postorder
from jitdialects.bytecode.lifetimes import live_at_entry
from jitdialects.bytecode.program import Block, Constant, Function, Instruction, Program


@dataclass(frozen=True)
class Part:
    """A part of a function: `program` has it as its first function, whose parameters are `inputs` and whose
    results are `outputs`, both registers of the whole. Afterwards nobody reads the registers in `dead`."""

    program: Program
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    dead: tuple[int, ...]

    @property
    def function(self) -> Function:
        """The part as a function."""
        return self.program.functions[0]


@dataclass(frozen=True)
class Loop(Part):
    """A loop, entered at its header. Afterwards block `exit` runs."""

    exit: int


def headers(function: Function) -> frozenset[int]:
    """Blocks that begin a natural loop."""
    order = reverse_postorder(function)
    place = {block: at for at, block in enumerate(order)}
    heads = {
        target
        for block in order
        for target in function.blocks[block].instructions[-1].targets
        if place[target] <= place[block]
    }
    return frozenset(head for head in heads if _natural_loop(function, head))


def outline_loop(program: Program, function: Function, header: int) -> Loop | None:
    """The natural loop of `header`, or None if there is none, or it is left to several blocks."""
    inside = _natural_loop(function, header)
    exits = {t for b in inside for t in function.blocks[b].instructions[-1].targets} - inside
    if len(exits) != 1:
        return None
    (exit,) = exits
    registers, function = function.registers, _without_destroys(function)
    reached = reverse_postorder(function)
    live = set(_registers(live_at_entry(function, reached)[exit]))
    outputs = tuple(sorted(live & _written(function.blocks[b] for b in inside)))
    order = [header, *(b for b in reached if b in inside and b != header)]
    number = {block: at + 1 for at, block in enumerate(order)} | {exit: len(order) + 1}
    name = f"{function.name}.{function.blocks[header].name}"
    blocks = [
        Block(name, (Instruction("br", targets=(1,)),)),
        *(_retargeted(function.blocks[b], number) for b in order),
        Block(f"{name}.exit", (Instruction("return", operands=outputs),)),
    ]
    dead = set(range(registers)) - live
    part = _part(program, replace(function, name=name, blocks=tuple(blocks)), outputs, dead)
    return Loop(part.program, part.inputs, outputs, part.dead, exit)


def outline_stretch(
    program: Program, function: Function, block: int, first: int, end: int
) -> Part | None:
    """Instructions `first` to `end` (not included, and not the terminator) of a block; None if nobody reads what
    they compute."""
    *body, last = function.blocks[block].instructions
    stretch = body[first:end]
    written = {r for i in stretch for r in i.results}
    destroyed = {r for i in stretch if i.opcode == "destroy" for r in i.operands}
    function = _without_destroys(function)
    live = live_at_entry(function, reverse_postorder(function))
    after = {r for t in last.targets for r in _registers(live.get(t, 0))} | set(last.operands)
    for instruction in reversed(body[end:]):
        if instruction.opcode != "destroy":
            after = after - set(instruction.results) | set(instruction.operands)
    outputs = tuple(sorted(after & written))
    if not outputs:
        return None
    name = f"{function.name}.{function.blocks[block].name}.{first}"
    code = [i for i in stretch if i.opcode != "destroy"]
    whole = Block(name, (*code, Instruction("return", operands=outputs)))
    dead = (written | destroyed) - after
    return _part(program, replace(function, name=name, blocks=(whole,)), outputs, dead)


# ---- control flow


def _natural_loop(function: Function, header: int) -> set[int]:
    """The blocks of the loop of `header`, empty if no branch from a block that it dominates leads back to it."""
    dominated = set(reverse_postorder(function)) - _reached_without(function, header)
    sources: dict[int, list[int]] = {}
    for block in dominated:
        for target in function.blocks[block].instructions[-1].targets:
            sources.setdefault(target, []).append(block)
    inside = {header} if header in sources else set[int]()
    work = [b for b in sources.get(header, ()) if b != header]
    while work:
        block = work.pop()
        if block not in inside:
            inside.add(block)
            work += sources.get(block, ())
    return inside


def _reached_without(function: Function, avoided: int) -> set[int]:
    """Blocks that the entry leads to on paths that do not go through `avoided`."""
    seen, work = {avoided}, [0]
    while work:
        block = work.pop()
        if block not in seen:
            seen.add(block)
            work += function.blocks[block].instructions[-1].targets
    return seen - {avoided}


def _retargeted(block: Block, number: Mapping[int, int]) -> Block:
    *body, last = block.instructions
    targets = tuple(number[t] for t in last.targets)
    return replace(block, instructions=(*body, replace(last, targets=targets)))


# ---- registers


def _registers(bits: int) -> Iterator[int]:
    while bits:
        yield (bits & -bits).bit_length() - 1
        bits &= bits - 1


def _without_destroys(function: Function) -> Function:
    blocks = tuple(
        replace(b, instructions=tuple(i for i in b.instructions if i.opcode != "destroy"))
        for b in function.blocks
    )
    return replace(function, blocks=blocks)


def _written(blocks: Iterable[Block]) -> set[int]:
    return {r for b in blocks for i in b.instructions for r in i.results}


# ---- a program of its own


def _part(
    program: Program, function: Function, outputs: tuple[int, ...], dead: Iterable[int]
) -> Part:
    """`function`, whose registers are still those of the whole, with parameters, and with what it needs of
    `program`."""
    order = reverse_postorder(function)
    inputs = tuple(_registers(live_at_entry(function, order)[0]))
    named = {r for b in function.blocks for i in b.instructions for r in (*i.results, *i.operands)}
    number = {r: at for at, r in enumerate((*inputs, *sorted(named - set(inputs))))}
    pool: dict[int, int] = {}
    function = replace(
        function,
        parameters=len(inputs),
        results=len(outputs),
        registers=len(number),
        blocks=tuple(_renumbered(b, number, pool) for b in function.blocks),
    )
    callees = [
        replace(f, blocks=tuple(_renumbered(b, None, pool) for b in f.blocks))
        for f in _called(program, function)
    ]
    constants: Sequence[Constant] = [program.constants[n] for n in pool]
    return Part(
        Program(tuple(constants), (function, *callees)), inputs, outputs, tuple(sorted(dead))
    )


def _renumbered(block: Block, number: Mapping[int, int] | None, pool: dict[int, int]) -> Block:
    """With other registers, and the constants of a pool that is being made."""
    out: list[Instruction] = []
    for instruction in block.instructions:
        if number is not None:
            results = tuple(number[r] for r in instruction.results)
            operands = tuple(number[r] for r in instruction.operands)
            instruction = replace(instruction, results=results, operands=operands)
        if instruction.opcode == "const":
            constant = instruction.attributes["constant"]
            assert isinstance(constant, int)
            new: dict[str, Attribute] = {"constant": pool.setdefault(constant, len(pool))}
            instruction = replace(instruction, attributes=MappingProxyType(new))
        out.append(instruction)
    return replace(block, instructions=tuple(out))


def _called(program: Program, function: Function) -> list[Function]:
    """What `function` calls, directly or not, each once."""
    found: dict[str, Function] = {}
    work = [function]
    while work:
        for block in work.pop().blocks:
            for instruction in block.instructions:
                name = str(instruction.attributes.get("callee"))
                callee = program.function(name) if instruction.opcode == "call" else None
                if callee is not None and name not in found:
                    found[name] = callee
                    work.append(callee)
    return list(found.values())
