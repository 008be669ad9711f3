"""Which sizes of a function's arguments may be padded: computed for more rows, with the results cropped.

    y = tanh(x @ w + b); return y / sum(y, axis=1)      x: [n, k]      n may be padded, k may not

A size may be padded if every value is the same, row for row, whatever stands in further rows and however many there
are. It is so if each operator maps the axis to one axis of its result and computes the rows apart. What a reduction, a
product or an index runs over is not padded, nor a size that the program computes with: nothing is ever masked.

The claim is made on bytecode, where shapes are settled, so that the process that computes can ask.
"""

from __future__ import annotations

from dataclasses import dataclass

from jitdialects.analysis.inference import Fact, Inferred, Source, Step, infer
from jitdialects.analysis.symbols import SymbolicFacts
from jitdialects.bytecode import dims
from jitdialects.bytecode.attributes import Ellipsis, IndexSpec, NewAxis, Slice
from jitdialects.bytecode.dims import Dim, Shape, Symbol
from jitdialects.bytecode.inlining import inline_calls
from jitdialects.bytecode.operators import OPERATORS, Kind
from jitdialects.bytecode.program import Program
from jitdialects.bytecode.shape_rules import reduced_axes
from jitdialects.bytecode.signature import Signature, is_value_symbol, value_symbol
from jitdialects.errors import Error

SMALLEST = 2
"""Sizes from here on are padded: 1 broadcasts, and of nothing there is no maximum."""


@dataclass(frozen=True)
class Padding:
    """What is known of the sizes of a signature in which every size that could be padded has a name of its own."""

    same: dict[str, str]
    """Size -> the size that represents it: those that must be equal have one representative."""
    refused: dict[str, str]
    """Representative -> why it may not be padded. All others may."""
    results: tuple[Shape, ...]
    """In terms of representatives; empty if `failure`."""
    failure: str = ""
    """Why nothing may be padded: the shapes of this function cannot be settled."""

    def may_pad(self, size: str) -> bool:
        """Whether `size` may be padded, together with those that it must be equal to."""
        return not self.failure and self.same[size] not in self.refused


def padding_of(program: Program, signature: Signature) -> Padding:
    """Decide about the named sizes of `signature`, a function of a verified program."""
    function = program.function(signature.function)
    assert function is not None
    named = {n for a in signature.arguments for s in a.shape for n in dims.symbols_of(s)}
    symbols = sorted(named) + [f"s{k}" for k in range(len(signature.arguments))]
    facts = SymbolicFacts(symbols)
    arguments = [
        Fact(frozenset({a.dtype}), a.shape, value_symbol(k) if a.is_integer_scalar else None)
        for k, a in enumerate(signature.arguments)
    ]
    try:
        inferred = infer(inline_calls(program, function), program.constants, arguments, facts)
        results = tuple(facts.resolve_shape(f.shape) for f in inferred.results(function.results))
    except Error as error:
        return Padding({n: n for n in named}, {}, (), error.message)
    if any(map(is_value_symbol, (n for r in results for s in r for n in dims.symbols_of(s)))):
        why = "the size of a result depends on the value of an argument"
        return Padding({n: n for n in named}, {}, (), why)
    check = _Check(inferred, facts)
    check.run()
    same = {n: _name(facts.resolve(dims.symbol(n))) or n for n in named}
    refused = {same.get(n, n): why for n, why in reversed(check.refused.items())}
    return Padding(same, refused, results)


def _name(size: Dim) -> str | None:
    """The name of a size that is nothing but a name."""
    if isinstance(size, int) or size.constant or len(size.terms) != 1:
        return None
    ((atom, coefficient),) = size.terms
    return atom.name if isinstance(atom, Symbol) and coefficient == 1 else None


class _Check:
    """Collects, for the sizes of one function, the first reason against each."""

    def __init__(self, inferred: Inferred, facts: SymbolicFacts) -> None:
        self.inferred = inferred
        self.facts = facts
        self.refused: dict[str, str] = {}
        self.measured: dict[Source, set[str]] = {}
        """Values that are sizes -> which."""

    def run(self) -> None:
        """Look at every guard, step and join."""
        for relation, left, right in self.facts.guards:
            merged = relation == "==" and _name(left) and _name(right)
            small = relation == "<=" and isinstance(left, int) and left <= SMALLEST
            if not merged and not (small and _name(right)):
                self._refuse(f"the program needs {left} {relation} {right}", left, right)
        for block in self.inferred.order:
            for step in self.inferred.steps.get(block, ()):
                self._step(step)
        self._joins()

    def _refuse(self, why: str, *sizes: Dim) -> None:
        for size in sizes:
            for name in dims.symbols_of(size):
                if not is_value_symbol(name):
                    self.refused.setdefault(name, why)

    def _refuse_names(self, why: str, names: set[str]) -> None:
        self._refuse(why, *map(dims.symbol, names))

    def _step(self, step: Step) -> None:
        opcode = step.instruction.opcode
        if opcode == "destroy":
            return
        shapes = [self.facts.resolve_shape(h.fact.shape) for h in step.operands]
        out = self.facts.resolve_shape(step.result.fact.shape) if step.result else ()
        for shape in (*shapes, out):
            self._shape(opcode, shape)
        operator = OPERATORS.get(opcode)
        data = len(step.operands) if operator is None else operator.arity
        if operator is not None and operator.name in ("broadcast_to", "reshape"):
            read = step.operands[:data]
        else:
            read = step.operands
        for held in read:
            names = self.measured.get(self.inferred.source(held), set())
            self._refuse_names(f"{opcode} computes with it", names)
        if operator is None:
            return
        if operator.name == "size":
            assert step.result is not None and step.result.fact.value is not None
            names = dims.symbols_of(self.facts.resolve(step.result.fact.value))
            self.measured[self.inferred.source(step.result)] = names
        elif operator.kind is Kind.REDUCTION:
            axes = reduced_axes(opcode, len(shapes[0]), step.instruction.attributes)
            self._refuse(f"{opcode} runs over it", *(shapes[0][a] for a in axes))
        elif opcode == "matmul":
            self._refuse("matmul runs over it", shapes[0][-1], shapes[1][0])
        elif opcode == "reshape":
            self._reshape(shapes[0], out)
        elif opcode in ("getitem", "setitem"):
            spec = step.instruction.attributes["index"]
            assert isinstance(spec, IndexSpec)
            self._index(opcode, shapes[0], spec)
        elif operator.kind is not Kind.ELEMENTWISE and opcode not in ("broadcast_to", "transpose"):
            self._refuse(f"{opcode} may mix rows", *(s for shape in shapes for s in shape))

    def _shape(self, opcode: str, shape: Shape) -> None:
        """A size is alone in its axis, and in one axis."""
        names: list[str] = []
        for size in shape:
            name = _name(size)
            if name is None:
                self._refuse(f"{opcode} has an axis of size {size}", size)
            else:
                names.append(name)
        self._refuse_names(
            f"{opcode} has two axes of that size", {n for n in names if names.count(n) > 1}
        )

    def _reshape(self, before: Shape, after: Shape) -> None:
        """In C order, rows stay rows if as many elements lie before the axis."""
        for axis, size in enumerate(before):
            name = _name(size)
            if name is None:
                continue
            outer = self.facts.resolve(dims.product(before[:axis]))
            places = [a for a, s in enumerate(after) if s == size]
            if not any(self.facts.resolve(dims.product(after[:a])) == outer for a in places):
                self._refuse("reshape mixes rows", size)

    def _index(self, opcode: str, shape: Shape, spec: IndexSpec) -> None:
        """What is taken whole stays an axis; of everything else rows are picked."""
        entries = [e for e in spec.entries if not isinstance(e, NewAxis)]
        at = next((i for i, e in enumerate(entries) if isinstance(e, Ellipsis)), len(entries))
        after = entries[at + 1 :]
        whole = [Slice()] * (len(shape) - at - len(after))
        for size, entry in zip(shape, [*entries[:at], *whole, *after], strict=True):
            if entry != Slice():
                self._refuse(f"{opcode} picks rows of it", size)

    def _joins(self) -> None:
        """A size that meets another value, around a loop or behind a branch, is lost from sight."""
        for block in self.inferred.order:
            for target in self.inferred.steps[block][-1].instruction.targets:
                for register in self.inferred.joins(target):
                    source = self.inferred.source(self.inferred.exit[block][register])
                    self._refuse_names("a loop computes with it", self.measured.get(source, set()))
