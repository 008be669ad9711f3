"""The `c` target: a module of scalar loops as readable C99, to look at and as a second opinion in tests.

    jit-opt program.mlir -p 'convert-tssa-to-loop' -t c
    gcc -std=c99 -O1 -ffp-contract=off -fno-fast-math -Wall -Werror -shared -fPIC view.c -lm

Takes `func.func` over `loop` or `scf`, `cf`, `arith`, `math` and `memref`, before `loop-vectorize`. Calls
nothing of the compiler's lower levels: its bits are what gcc and libm make of the definition of each operation.

Arguments arrive by the kernel ABI, version 2 (docs/architecture.md): `int32_t jd_entry(const int64_t *slots)`
with, per memref, a data pointer, its sizes and its strides in elements; per scalar one slot; and for the last
memref of a function with `tssa.arena` a pointer only. A module of several functions gets `jd_entry_<name>`s.
Integers wrap (arithmetic on unsigned), shift amounts are taken modulo the width, floats are never contracted.
`math.exp`, `rsqrt`, `tanh`, `log`, `erf` and `loop.elementary` are refused: `expand-elementary` replaces them by their
definitions first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, ClassVar, cast

from xdsl.context import Context
from xdsl.dialects import cf, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FloatAttr,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import DiagnosticException
from xdsl.utils.target import Target

from jitdialects.analysis.memory import is_pure, memref_type
from jitdialects.dialects.interfaces import name_of
from jitdialects.dialects.loop import NestOp
from jitdialects.lowering.c_operations import FUNCTIONS, HELPERS, OPERATORS, c_type, literal

ARENA = "tssa.arena"
PROLOGUE = """\
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
"""


@dataclass(frozen=True)
class Buffer:
    """A memref: where its element 0 is, and sizes and strides as C expressions."""

    element: str
    pointer: str
    sizes: tuple[str, ...]
    strides: tuple[str, ...]

    def at(self, indices: Sequence[str]) -> str:
        """The element at `indices`."""
        terms = [
            index if stride == "1" else f"{_factor(index)} * {_factor(stride)}"
            for index, stride in zip(indices, self.strides, strict=True)
            if index != "0"
        ]
        return f"{self.pointer}[{' + '.join(terms) or '0'}]"


def module_to_c(module: ModuleOp) -> str:
    """All functions of `module` as one C file. Raises `DiagnosticException` for what C cannot show."""
    functions = [op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration]
    names = (
        ["jd_entry"] if len(functions) == 1 else [f"jd_entry_{f.sym_name.data}" for f in functions]
    )
    printers = [CFunction(f, name) for f, name in zip(functions, names, strict=True)]
    texts = [printer.text() for printer in printers]
    used = {helper for printer in printers for helper in printer.helpers}
    helpers = [text for name, text in HELPERS.items() if name in used]
    return "\n".join([PROLOGUE, *helpers, *texts])


@dataclass(frozen=True)
class CTarget(Target):
    """Scalar loops as C99; see `jitdialects.lowering.c_view`."""

    name: ClassVar[str] = "c"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        output.write(module_to_c(module))


class CFunction:
    """Writes one function, statement by statement."""

    def __init__(self, function: FuncOp, name: str) -> None:
        self.function = function
        self.name = name
        self.helpers: set[str] = set()
        self.lines: list[str] = []
        self.depth = 1
        self.expressions: dict[SSAValue, str] = {}
        self.buffers: dict[SSAValue, Buffer] = {}
        self.taken: dict[str, int] = {"slots": 1}
        self.labels: dict[Block, str] = {}
        self.dead: dict[Operation, bool] = {}

    def text(self) -> str:
        """The definition of the function."""
        arguments = self._arguments()
        self._body()
        body = "\n".join(self.lines)
        used = [line for name, line in arguments if re.search(rf"\b{name}\b", body)]
        head = [f"  {line}" for line in used]
        return "\n".join(
            [
                f"/* {self.function.sym_name.data} */",
                f"int32_t {self.name}(const int64_t *slots) {{",
                *head,
                body,
                "}",
                "",
            ]
        )

    # ---- names and lines

    def put(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def fresh(self, hint: str | None) -> str:
        """A C name not yet taken, like `hint`."""
        base = re.sub(r"\W", "_", hint or "v")
        base = f"v{base}" if not base[0].isalpha() or base in _RESERVED else base
        count = self.taken.get(base, 0)
        self.taken[base] = count + 1
        return f"{base}_{count}" if count else base

    def value(self, value: SSAValue) -> str:
        """The expression for a scalar."""
        return self.expressions[value]

    def values(self, values: Sequence[SSAValue]) -> list[str]:
        return [self.expressions[value] for value in values]

    def define(self, value: SSAValue, expression: str, constant: bool = True) -> str:
        """Declare a variable for `value`."""
        name = self.fresh(value.name_hint)
        qualifier = "const " if constant else ""
        self.put(f"{qualifier}{c_type(value.type)} {name} = {expression};")
        self.expressions[value] = name
        return name

    def refuse(self, op: Operation, why: str) -> DiagnosticException:
        return DiagnosticException(f"the C view cannot show {name_of(op)}: {why}")

    # ---- arguments

    def _arguments(self) -> list[tuple[str, str]]:
        """Name the arguments; returns declarations of what the slots hold, as (name, line)."""
        declarations: list[tuple[str, str]] = []
        slot = 0

        def declare(hint: str, type: str, conversion: str) -> str:
            nonlocal slot
            name = self.fresh(hint)
            declarations.append((name, f"{type} const {name} = {conversion}slots[{slot}];"))
            slot += 1
            return name

        arguments = self.function.body.blocks[0].args
        for number, argument in enumerate(arguments):
            hint = argument.name_hint or f"a{number}"
            if not isinstance(argument.type, MemRefType):
                kind = c_type(argument.type)
                if kind == "double":
                    self.helpers.add("slot_as_double")
                    name = self.fresh(hint)
                    line = f"double const {name} = slot_as_double(slots[{slot}]);"
                    declarations.append((name, line))
                    self.expressions[argument] = name
                    slot += 1
                else:
                    self.expressions[argument] = declare(hint, kind, f"({kind})")
                continue
            type = memref_type(argument)
            element, rank = c_type(type.element_type), type.get_num_dims()
            pointer = declare(hint, f"{element} *", f"({element} *)")
            if ARENA in self.function.attributes and number == len(arguments) - 1:
                self.buffers[argument] = Buffer(element, pointer, ("0",) * rank, ("1",) * rank)
                continue
            sizes = [declare(f"{hint}_size{axis}", "int64_t", "") for axis in range(rank)]
            strides = [declare(f"{hint}_stride{axis}", "int64_t", "") for axis in range(rank)]
            static = type.get_shape()
            known = tuple(
                size if number == DYNAMIC_INDEX else str(number)
                for size, number in zip(sizes, static, strict=True)
            )
            is_plain = isinstance(type.layout, NoneAttr)
            self.buffers[argument] = Buffer(
                element, pointer, known, contiguous(known) if is_plain else tuple(strides)
            )
        return declarations

    # ---- blocks

    def _body(self) -> None:
        blocks = list(self.function.body.blocks)
        for number, block in enumerate(blocks[1:], 1):
            self.labels[block] = f"block{number}"
            for argument in block.args:
                name = self.fresh(argument.name_hint)
                self.put(f"{c_type(argument.type)} {name};")
                self.expressions[argument] = name
        for block in blocks:
            if block in self.labels:
                self.lines.append(f"{self.labels[block]}:;")
            self.block(block)

    def block(self, block: Block) -> None:
        """All operations of a block in order."""
        for op in block.ops:
            if not self.is_dead(op):
                self.statement(op)

    def is_dead(self, op: Operation) -> bool:
        """Nothing that is shown needs its results."""
        if op not in self.dead:
            self.dead[op] = (
                bool(op.results)
                and (is_pure(op) or op.name in _VIEWS)
                and all(self.is_dead(use.operation) for result in op.results for use in result.uses)
            )
        return self.dead[op]

    def braced(self, head: str, inside: Callable[[], None]) -> None:
        """`head { inside }`."""
        self.put(f"{head} {{")
        self.depth += 1
        inside()
        self.depth -= 1
        self.put("}")

    # ---- operations

    def statement(self, op: Operation) -> None:
        """Write one operation."""
        name = op.name
        if name in _STATEMENTS:
            _STATEMENTS[name](self, op)
        elif name == "arith.constant":
            attribute = op.properties["value"]
            if not isinstance(attribute, IntegerAttr | FloatAttr):
                raise self.refuse(op, "it is no scalar; take the view before loop-vectorize")
            self.expressions[op.results[0]] = literal(attribute.value.data, op.results[0].type)
        elif name in OPERATORS or name in FUNCTIONS:
            self._scalar(op)
        elif name in _REPLACED:
            raise self.refuse(op, "run expand-elementary first")
        elif name.startswith("vector."):
            raise self.refuse(op, "it works on vectors; take the view before loop-vectorize")
        else:
            raise self.refuse(op, "it has no scalar form here")

    def _scalar(self, op: Operation) -> None:
        operands = self.values(op.operands)
        source, result = op.operands[0].type, op.results[0].type
        if op.name in OPERATORS:
            expression = OPERATORS[op.name](op, operands, source, result)
        else:
            helper = FUNCTIONS[op.name](op, source, result)
            if helper in HELPERS:
                self.helpers.add(helper)
            expression = f"{helper}({', '.join(operands)})"
        self.define(op.results[0], expression)

    def load(self, op: Operation) -> None:
        buffer = self.buffers[op.operands[0]]
        self.define(op.results[0], buffer.at(self.values(op.operands[1:])))

    def store(self, op: Operation) -> None:
        value, base, *indices = op.operands
        self.put(f"{self.buffers[base].at(self.values(indices))} = {self.value(value)};")

    def allocate(self, op: Operation) -> None:
        type = memref_type(op.results[0])
        shape = type.get_shape()
        if DYNAMIC_INDEX in shape:
            raise self.refuse(op, "its size is dynamic")
        name, element = self.fresh(op.results[0].name_hint), c_type(type.element_type)
        self.put(f"{element} {name}[{math.prod(shape)}] = {{0}};")
        sizes = tuple(str(size) for size in shape)
        self.buffers[op.results[0]] = Buffer(element, name, sizes, contiguous(sizes))

    def dimension(self, op: Operation) -> None:
        axis = int(self.value(op.operands[1]))
        self.expressions[op.results[0]] = self.buffers[op.operands[0]].sizes[axis]

    def cast_memref(self, op: Operation) -> None:
        self.buffers[op.results[0]] = self.buffers[op.operands[0]]

    def view(self, op: Operation) -> None:
        """Bytes seen as a contiguous buffer of elements."""
        type = memref_type(op.results[0])
        base, offset, *dynamic = op.operands
        sizes = _filled(type.get_shape(), iter(self.values(dynamic)))
        pointer = f"{self.buffers[base].pointer} + {_factor(self.value(offset))}"
        self._bind_buffer(op.results[0], pointer, sizes, contiguous(sizes))

    def reinterpret(self, op: Operation) -> None:
        """The same memory under other sizes and strides."""
        assert isinstance(op, memref.ReinterpretCastOp)
        (offset,) = _filled(op.static_offsets.get_values(), iter(self.values(op.offsets)))
        sizes = _filled(op.static_sizes.get_values(), iter(self.values(op.sizes)))
        strides = _filled(op.static_strides.get_values(), iter(self.values(op.strides)))
        pointer = self.buffers[op.source].pointer
        self._bind_buffer(
            op.results[0],
            pointer if offset == "0" else f"{pointer} + {_factor(offset)}",
            sizes,
            strides,
        )

    def metadata(self, op: Operation) -> None:
        """Base, offset, sizes and strides; pointers here have their offset in them."""
        buffer = self.buffers[op.operands[0]]
        base, offset, *numbers = op.results
        self.buffers[base] = Buffer(buffer.element, buffer.pointer, (), ())
        self.expressions[offset] = "0"
        known = (_factor(number) for number in (*buffer.sizes, *buffer.strides))
        self.expressions.update(zip(numbers, known, strict=True))

    def _bind_buffer(
        self, value: SSAValue, pointer: str, sizes: tuple[str, ...], strides: tuple[str, ...]
    ) -> None:
        element = c_type(memref_type(value).element_type)
        name = self.fresh(value.name_hint)
        self.put(f"{element} *const {name} = ({element} *)({pointer});")
        self.buffers[value] = Buffer(element, name, sizes, strides)

    # ---- control flow

    def nest(self, op: Operation) -> None:
        assert isinstance(op, NestOp)
        bounds = list(zip(op.ivs, op.lower, op.upper, op.step_values, strict=True))

        def loops(axis: int) -> None:
            if axis == len(bounds):
                self.block(op.body.block)
                return
            iv, low, high, step = bounds[axis]
            head = self._loop_head(iv, self.value(low), self.value(high), str(step))
            self.braced(f"{head} /* {op.kind_names[axis]} */", lambda: loops(axis + 1))

        loops(0)

    def loop(self, op: Operation) -> None:
        assert isinstance(op, scf.ForOp)
        block = op.body.block
        carried = block.args[1:]
        for argument, result, init in zip(carried, op.results, op.iter_args, strict=True):
            hint = argument.name_hint or result.name_hint
            name = self.fresh(hint)
            self.put(f"{c_type(argument.type)} {name} = {self.value(init)};")
            self.expressions[argument] = self.expressions[result] = name
        low, high, step = self.values(op.operands[:3])
        self.braced(self._loop_head(block.args[0], low, high, step), lambda: self.block(block))

    def _loop_head(self, iv: SSAValue, low: str, high: str, step: str) -> str:
        name = self.fresh(iv.name_hint or "i")
        self.expressions[iv] = name
        advance = f"{name}++" if step == "1" else f"{name} += {step}"
        return f"for ({c_type(iv.type)} {name} = {low}; {name} < {high}; {advance})"

    def branch_on(self, op: Operation) -> None:
        """`scf.if`: its results are variables that both sides assign."""
        for result in op.results:
            name = self.fresh(result.name_hint)
            self.put(f"{c_type(result.type)} {name};")
            self.expressions[result] = name
        then, otherwise = op.regions
        self.braced(f"if ({self.value(op.operands[0])})", lambda: self._region(then))
        if otherwise.blocks:
            self.braced("else", lambda: self._region(otherwise))

    def _region(self, region: Region) -> None:
        self.block(region.block)

    def yields(self, op: Operation) -> None:
        """Assign what the operation around this block carries or results in."""
        around = op.parent_op()
        assert around is not None
        targets = around.body.block.args[1:] if isinstance(around, scf.ForOp) else around.results
        self.assign(targets, op.operands)

    def assign(self, targets: Sequence[SSAValue], sources: Sequence[SSAValue]) -> None:
        """All assignments at once: every source is read before a target changes."""
        pairs = [
            (self.value(target), self.value(source), c_type(target.type))
            for target, source in zip(targets, sources, strict=True)
        ]
        names = {target for target, _, _ in pairs}
        if any(source in names and source != target for target, source, _ in pairs):
            held = [(target, self.fresh(f"{target}_next"), s, t) for target, s, t in pairs]
            for _, name, source, type in held:
                self.put(f"const {type} {name} = {source};")
            pairs = [(target, name, type) for target, name, _, type in held]
        for target, source, _ in pairs:
            if target != source:
                self.put(f"{target} = {source};")

    def jump(self, op: Operation) -> None:
        assert isinstance(op, cf.BranchOp)
        self.assign(op.successor.args, op.arguments)
        self.put(f"goto {self.labels[op.successor]};")

    def jump_if(self, op: Operation) -> None:
        assert isinstance(op, cf.ConditionalBranchOp)

        def to(block: Block, arguments: Sequence[SSAValue]) -> None:
            self.assign(block.args, arguments)
            self.put(f"goto {self.labels[block]};")

        self.braced(f"if ({self.value(op.cond)})", lambda: to(op.then_block, op.then_arguments))
        to(op.else_block, op.else_arguments)

    def asserts(self, op: Operation) -> None:
        """A function that cannot go on returns; its caller tells by its results that are missing."""
        self.put(f"if (!{self.value(op.operands[0])}) return;")

    def returns(self, op: Operation) -> None:
        if op.operands:
            raise self.refuse(op, "a kernel returns nothing but writes to memrefs")
        self.put("return 0;")

    def nothing(self, op: Operation) -> None:
        """Terminators that say nothing."""


_REPLACED = frozenset(
    ("math.exp", "math.rsqrt", "math.tanh", "math.log", "math.erf", "loop.elementary")
)
"""What `expand-elementary` replaces."""
_VIEWS = frozenset(
    {
        "memref.cast",
        "memref.dim",
        "memref.extract_strided_metadata",
        "memref.load",
        "memref.reinterpret_cast",
        "memref.view",
    }
)
_TAKEN_IN_C = """
auto bool break case char const continue default do double else enum extern false float for goto if inline
int long register return short signed sizeof static struct switch true typedef union unsigned void volatile
while ceil ceilf copysign copysignf fabs fabsf floor floorf fma fmaf gamma isnan isunordered j0 j1 jn memcpy
nearbyint nearbyintf signbit sqrt sqrtf trunc truncf y0 y1 yn
"""
_RESERVED = frozenset(_TAKEN_IN_C.split())
_STATEMENTS: dict[str, Callable[[CFunction, Operation], None]] = {
    "cf.assert": CFunction.asserts,
    "cf.br": CFunction.jump,
    "cf.cond_br": CFunction.jump_if,
    "func.return": CFunction.returns,
    "loop.nest": CFunction.nest,
    "loop.yield": CFunction.nothing,
    "memref.alloca": CFunction.allocate,
    "memref.cast": CFunction.cast_memref,
    "memref.dim": CFunction.dimension,
    "memref.extract_strided_metadata": CFunction.metadata,
    "memref.load": CFunction.load,
    "memref.reinterpret_cast": CFunction.reinterpret,
    "memref.store": CFunction.store,
    "memref.view": CFunction.view,
    "scf.for": CFunction.loop,
    "scf.if": CFunction.branch_on,
    "scf.yield": CFunction.yields,
}


def contiguous(sizes: Sequence[str]) -> tuple[str, ...]:
    """Strides of a row-major buffer; products of numbers are computed, others written out."""
    strides = ["1"]
    for size in reversed(sizes[1:]):
        last = strides[0]
        if size.isdigit() and last.isdigit():
            strides.insert(0, str(int(size) * int(last)))
        else:
            strides.insert(0, size if last == "1" else f"{_factor(size)} * {_factor(last)}")
    return tuple(strides[: len(sizes)])


def _filled(static: Sequence[int], dynamic: Sequence[str] | object) -> tuple[str, ...]:
    """Static numbers, with the dynamic ones taken in order."""
    values = iter(cast("Sequence[str]", dynamic))
    return tuple(next(values) if size == DYNAMIC_INDEX else str(size) for size in static)


def _factor(expression: str) -> str:
    """`expression` as an operand of `*`."""
    return expression if re.fullmatch(r"\w+", expression) else f"({expression})"
