"""Types, shapes, known integers and SSA sources of every register, for one signature.

Abstract interpretation of one bytecode function without calls and destroys, to a fixpoint over its
loops. What is known of a register is a `Held`: the *source* of its value and a `Fact` about it.

- A source is an argument, a constant, the result of an instruction, or a join: block b joins
  register r where different sources reach it. Only live registers are looked at, so joins are the
  block arguments of pruned SSA.
- A fact is the set of dtypes the value may have, its shape, and its value if that is an integer
  expression over sizes and arguments. Around loops dtypes grow, a shape must not change.
- An integer that depends on data, or changes around a loop, is a *run-time symbol*, named after its
  source (`_j2_5`, `_r3_0`): sums and differences of such can still be followed, so that `x[i:i+4]` has
  size 4. A size or a guard with a run-time symbol in it is refused.

Sources and facts start optimistic (only the edges seen so far count) and move one way, hence it
ends. Python scalars are weak: a register that is weak on one path and strong on another is carried
as strong, which is right as long as every use treats both alike; a use that would not is refused.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TypeAlias

from jitdialects.analysis.symbols import SymbolicFacts
from jitdialects.bytecode import dims
from jitdialects.bytecode.definedness import reverse_postorder
from jitdialects.bytecode.dims import Dim, Shape
from jitdialects.bytecode.dtypes import INT64, DType, integer_range, must_fit, promote
from jitdialects.bytecode.lifetimes import live_at_entry
from jitdialects.bytecode.operators import OPERATORS, Operator
from jitdialects.bytecode.program import Constant, Function, Instruction
from jitdialects.bytecode.shape_rules import shape_text, size_axis
from jitdialects.errors import CompileError, Error, IntegerRangeError, ShapeError

Source: TypeAlias = tuple[str, int, int]
"""`("argument", k, 0)`, `("constant", k, 0)`, `("result", block, instruction)`, `("join", block,
register)`."""

MAX_ATOMS = 32
"""Integer expressions with more atoms than this are not followed."""


@dataclass(frozen=True)
class Fact:
    """What is known of a value. `value` only for a rank-0 integer."""

    dtypes: frozenset[DType]
    shape: Shape
    value: Dim | None = None

    @property
    def dtype(self) -> DType:
        """The dtype in which the value is carried: the strong one, or the wider of the weak
        ones."""
        return max(self.dtypes, key=lambda d: (not d.weak, d.name == "int64"))

    def must_fit(self, used: DType) -> bool:
        """Whether this may be a Python integer for which `used` is too small."""
        return any(must_fit(dtype, used) for dtype in self.dtypes)

    @property
    def mixed(self) -> bool:
        """Whether the value has different element types on different paths."""
        return len({d.name for d in self.dtypes}) > 1


def run_time_symbol(source: Source) -> Dim:
    """The value of an integer of which nothing is known."""
    return dims.symbol(f"{dims.RUN_TIME}{source[0][0]}{source[1]}_{source[2]}")


@dataclass(frozen=True)
class Held:
    """The content of a register at one point."""

    source: Source
    fact: Fact


State: TypeAlias = Mapping[int, Held]


@dataclass(frozen=True)
class Step:
    """An instruction that computes or branches. `uses` are the dtypes in which it takes its data
    operands."""

    instruction: Instruction
    operands: tuple[Held, ...]
    uses: tuple[DType, ...] = ()
    result: Held | None = None


@dataclass
class Inferred:
    """The fixpoint. Blocks are named by their number in the function; unreachable ones are
    absent."""

    order: Sequence[int]
    """Reverse postorder."""
    entry: dict[int, dict[int, Held]] = field(default_factory=dict[int, dict[int, Held]])
    """Live registers at the entry of each block, in ascending order."""
    steps: dict[int, list[Step]] = field(default_factory=dict[int, list[Step]])
    exit: dict[int, dict[int, Held]] = field(default_factory=dict[int, dict[int, Held]])
    """All registers at the end of each block."""
    trivial: dict[Source, Source] = field(default_factory=dict[Source, Source])
    """Joins that turned out to have one source, with that source."""

    def source(self, held: Held) -> Source:
        """Where the value comes from, behind trivial joins."""
        source = held.source
        while source in self.trivial:
            source = self.trivial[source]
        return source

    def joins(self, block: int) -> list[int]:
        """The registers for which the block needs an argument."""
        own = ((r, ("join", block, r)) for r in self.entry[block])
        return [r for r, join in own if self.source(self.entry[block][r]) == join]

    def results(self, count: int) -> tuple[Fact, ...]:
        """What the function returns, over all its returns."""
        returns = [s[-1] for s in self.steps.values() if s[-1].instruction.opcode == "return"]
        if count and not returns:
            raise CompileError("the function never returns, so that its results have no type")
        return tuple(_returned([r.operands[k].fact for r in returns]) for k in range(count))


def infer(
    function: Function,
    constants: Sequence[Constant],
    arguments: Sequence[Fact],
    facts: SymbolicFacts,
) -> Inferred:
    """Run to the fixpoint; guards accumulate in `facts`. `CompileError` where an error is certain
    or where shapes or dtypes cannot be settled before running."""
    return _Inference(function, constants, arguments, facts).run()


class _Inference:
    def __init__(
        self,
        function: Function,
        constants: Sequence[Constant],
        arguments: Sequence[Fact],
        facts: SymbolicFacts,
    ) -> None:
        self.function = function
        self.constants = constants
        self.facts = facts
        self.out = Inferred(reverse_postorder(function))
        self.live = live_at_entry(function, self.out.order)
        initial = {k: Held(("argument", k, 0), fact) for k, fact in enumerate(arguments)}
        self.incoming: dict[int, dict[int, State]] = {b: {} for b in self.out.order}
        self.incoming[0][-1] = initial
        self.joined: set[tuple[int, int]] = set()
        self.changing: set[Source] = set()
        """Joins of different integers."""
        self.varying = _written_around(function, self.out.order)

    def run(self) -> Inferred:
        rank = {block: position for position, block in enumerate(self.out.order)}
        queue = [0]
        while queue:
            block = self.out.order[heapq.heappop(queue)]
            entry = self._entry(block)
            if self.out.entry.get(block) == entry:
                continue
            self.out.entry[block] = entry
            state = self._block(block, entry)
            for target in self.function.blocks[block].instructions[-1].targets:
                self.incoming[target][block] = state
                if rank[target] not in queue:
                    heapq.heappush(queue, rank[target])
        self._find_trivial_joins()
        return self.out

    def _find_trivial_joins(self) -> None:
        """A join was made when two sources met; those of an outer loop may have become one since.
        (Braun et al., "Simple and Efficient Construction of Static Single Assignment Form", 2013,
        section 3.1)"""
        pending = set(self.joined)
        changed = True
        while changed:
            changed = False
            for block, register in sorted(pending):
                join: Source = ("join", block, register)
                states = self.incoming[block].values()
                reaching = {self.out.source(state[register]) for state in states} - {join}
                if len(reaching) == 1:
                    self.out.trivial[join] = reaching.pop()
                    pending.discard((block, register))
                    changed = True

    # ---- joins ---------------------------------------------------------------------------------

    def _entry(self, block: int) -> dict[int, Held]:
        states = self.incoming[block].values()
        live = self.live[block]
        out: dict[int, Held] = {}
        for register in range(live.bit_length()):
            if not live >> register & 1:
                continue
            reaching = [state[register] for state in states]
            out[register] = self._join(block, register, reaching)
        return out

    def _join(self, block: int, register: int, reaching: Sequence[Held]) -> Held:
        first = reaching[0]
        if register in self.varying.get(block, ()) and _is_integer(first.fact):
            self.changing.add(("join", block, register))
        elif all(held == first for held in reaching) and (block, register) not in self.joined:
            return first
        fact = first.fact
        where = f"register {register} at block {self.function.blocks[block].name}"
        join: Source = ("join", block, register)
        if join in self.changing:
            fact = replace(fact, value=run_time_symbol(join))
        for held in reaching[1:]:
            fact = self._join_facts(fact, held.fact, where, join)
        if any(held.source != first.source for held in reaching):
            self.joined.add((block, register))
        joined = (block, register) in self.joined
        return Held(join if joined else first.source, fact)

    def _join_facts(self, x: Fact, y: Fact, where: str, join: Source) -> Fact:
        left, right = self.facts.resolve_shape(x.shape), self.facts.resolve_shape(y.shape)
        if left != right:
            raise CompileError(
                f"{where} has shape {shape_text(left)} on one path and {shape_text(right)} on "
                "another; give it one shape, for example with broadcast_to before the branch"
            )
        values = {None if v is None else self.facts.resolve(v) for v in (x.value, y.value)}
        if len(values) > 1 and None not in values:
            self.changing.add(join)
        value = None if len(values) > 1 else values.pop()
        if join in self.changing:
            value = run_time_symbol(join)
        return Fact(_join_dtypes(x.dtypes | y.dtypes, where), left, value)

    # ---- instructions --------------------------------------------------------------------------

    def _block(self, block: int, entry: State) -> dict[int, Held]:
        state = dict(entry)
        steps: list[Step] = []
        for index, instruction in enumerate(self.function.blocks[block].instructions):
            try:
                self._instruction(("result", block, index), instruction, state, steps)
            except Error as error:
                location = error.location or instruction.location
                raise CompileError(error.message, location) from error
        self.out.steps[block] = steps
        self.out.exit[block] = state
        return state

    def _instruction(
        self, source: Source, instruction: Instruction, state: dict[int, Held], steps: list[Step]
    ) -> None:
        opcode = instruction.opcode
        operands = tuple(state[r] for r in instruction.operands)
        if opcode == "move":
            state[instruction.results[0]] = operands[0]
        elif opcode == "const":
            number = instruction.attributes["constant"]
            assert isinstance(number, int)
            held = Held(("constant", number, 0), constant_fact(self.constants[number]))
            state[instruction.results[0]] = held
        elif opcode in OPERATORS:
            uses, fact = self._operator(OPERATORS[opcode], instruction, operands)
            if fact.value is None and _is_integer(fact):
                fact = replace(fact, value=run_time_symbol(source))
            result = Held(source, fact)
            state[instruction.results[0]] = result
            steps.append(Step(instruction, operands, uses, result))
        else:
            _check_terminator(opcode, operands)
            steps.append(Step(instruction, operands))

    def _operator(
        self, operator: Operator, instruction: Instruction, operands: Sequence[Held]
    ) -> tuple[tuple[DType, ...], Fact]:
        operator.check_operand_count(len(operands))
        attributes = instruction.attributes
        held = [h.fact for h in operands]
        uses, dtypes = _typing(operator, instruction, held)
        for fact, used in zip(held, uses, strict=False):
            self._check_fit(operator.name, fact, used)
        shapes = [self.facts.resolve_shape(f.shape) for f in held]
        values = [None if f.value is None else self.facts.resolve(f.value) for f in held]
        for value in values[operator.arity :]:
            if value is not None and dims.is_settled(value):
                error = ShapeError(f"{operator.name}: the size or index {value} is not an int64")
                self.facts.require_representable(value, error)
        shape = operator.infer_shape(shapes, attributes, values, self.facts)
        if not all(map(dims.is_settled, shape)):
            raise ShapeError(
                f"{operator.name}: the shape {shape_text(shape)} depends on tensor data"
            )
        known: Dim | None = None
        if operator.name == "size":
            known = shapes[0][size_axis("size", shapes[0], attributes)]
        elif shape == () and all(d.is_integer for d in dtypes):
            known = _known_value(operator.name, held, values, {d.name for d in dtypes})
        return uses, Fact(dtypes, self.facts.resolve_shape(shape), known)

    def _check_fit(self, who: str, operand: Fact, used: DType) -> None:
        """A Python integer in the place of an int32: guards say that it is one where it is known before the
        code runs."""
        if not operand.must_fit(used) or operand.value is None:
            return
        if not self.facts.is_settled(operand.value):
            return
        value = self.facts.resolve(operand.value)
        error = IntegerRangeError(f"{who}: the Python integer {value} does not fit {used}")
        low, high = integer_range(used.name)
        self.facts.require_at_most(low, value, error)
        self.facts.require_at_most(value, high, error)
        self.facts.require_representable(value, error)  # its parts


def _written_around(function: Function, order: Sequence[int]) -> dict[int, set[int]]:
    """For each block at the head of a loop the registers that the loop writes. The integers among them are
    taken to change from the start: a guard on their first value would be one too many."""
    rank = {block: position for position, block in enumerate(order)}
    before: dict[int, list[int]] = {}
    for block in order:
        for target in function.blocks[block].instructions[-1].targets:
            before.setdefault(target, []).append(block)
    out: dict[int, set[int]] = {}
    for head in order:
        back = [b for b in before.get(head, ()) if rank[b] >= rank[head]]
        inside = {head} if back else set[int]()
        while back:
            block = back.pop()
            if block not in inside:
                inside.add(block)
                back.extend(before.get(block, ()))
        if inside:
            instructions = (i for b in inside for i in function.blocks[b].instructions)
            out[head] = {r for i in instructions for r in i.results}
    return out


def constant_fact(constant: Constant) -> Fact:
    """What is known of an entry of the constant pool."""
    shape = constant.value.shape
    integer = constant.dtype.is_integer and shape == ()
    return Fact(frozenset({constant.dtype}), shape, int(constant.value) if integer else None)


def _is_integer(fact: Fact) -> bool:
    """Whether the value is one integer."""
    return fact.shape == () and all(d.is_integer for d in fact.dtypes)


# ---- dtypes ------------------------------------------------------------------------------------


def _join_dtypes(dtypes: frozenset[DType], where: str) -> frozenset[DType]:
    """Check that values of all `dtypes` can be carried as one; gives them back."""
    if len(dtypes) == 1:
        return dtypes
    strong = [d for d in dtypes if not d.weak]
    names = {d.name for d in dtypes}
    if strong:
        fits = len(strong) == 1 and all(_becomes(weak, strong[0]) for weak in dtypes if weak.weak)
    else:
        fits = "float64" not in names or len(names) == 1
    if fits:
        return dtypes
    kinds = " and ".join(sorted(map(str, dtypes)))
    raise CompileError(f"{where} is {kinds} on different paths; cast it before the branch")


def _becomes(weak: DType, strong: DType) -> bool:
    return promote(weak, strong) == strong and not must_fit(weak, strong)


def _typing(
    operator: Operator, instruction: Instruction, operands: Sequence[Fact]
) -> tuple[tuple[DType, ...], frozenset[DType]]:
    """The dtypes of the data operands and of the result, which must be the same on all paths."""
    typings = [
        operator.infer_dtypes(dtypes, instruction.attributes)
        for dtypes in product(*(f.dtypes for f in operands))
    ]
    uses = typings[0].operands
    names = [u.name for u in uses]
    alike = all(
        [u.name for u in t.operands] == names and t.result.name == typings[0].result.name
        for t in typings
    )
    carried = all(
        not fact.mixed or fact.dtype.name == name
        for fact, name in zip(operands, names, strict=False)
    )
    if not alike or not carried:
        mixed = next(f for f in operands if len(f.dtypes) > 1)
        raise CompileError(
            f"{operator.name} of a value that is {' or '.join(sorted(map(str, mixed.dtypes)))}, "
            "depending on the path, has no one dtype; cast it before the branch"
        )
    return uses, frozenset(t.result for t in typings)


def _returned(facts: Sequence[Fact]) -> Fact:
    """The join of what different returns give in one place."""
    dtypes = frozenset[DType]().union(*(f.dtypes for f in facts))
    if len(dtypes) > 1 or len({f.shape for f in facts}) > 1:
        kinds = sorted({f"{d} {shape_text(f.shape)}" for f in facts for d in f.dtypes})
        raise CompileError(f"the function returns {' or '.join(kinds)}; give its results one type")
    return Fact(dtypes, facts[0].shape)


def _check_terminator(opcode: str, operands: Sequence[Held]) -> None:
    if opcode not in ("cond_br", "switch"):
        return
    fact = operands[0].fact
    if fact.shape != ():
        raise CompileError(
            f"{opcode} needs a value of rank 0, got shape {shape_text(fact.shape)}; reduce it first"
        )
    if fact.mixed or (opcode == "switch" and not fact.dtype.is_integer):
        kinds = " or ".join(sorted(map(str, fact.dtypes)))
        raise CompileError(f"{opcode} cannot branch on {kinds}; cast it first")


# ---- values ------------------------------------------------------------------------------------


def _itself(x: Dim) -> Dim:
    return x


def _negated(x: Dim) -> Dim:
    return dims.scale(x, -1)


_VALUE_FUNCTIONS: Mapping[str, Callable[..., Dim]] = {
    "add": dims.add,
    "subtract": dims.sub,
    "multiply": dims.mul,
    "negative": _negated,
    "minimum": dims.minimum,
    "maximum": dims.maximum,
    "cast": _itself,
}
"""Operators on rank-0 integers that type inference computes with."""


def _known_value(
    name: str, operands: Sequence[Fact], values: Sequence[Dim | None], dtypes: set[str]
) -> Dim | None:
    """What the result, of one of `dtypes`, is known to be. Wrapping of int64 is up to who asks for the
    value; int32 has wrapped before."""
    function = _VALUE_FUNCTIONS.get(name)
    if function is None or any(v is None for v in values) or any(f.shape for f in operands):
        return None
    value = function(*values)
    if isinstance(value, int):
        low, high = integer_range(min(dtypes))
        return value if low <= value <= high else None  # it wraps, expressions do not
    if dtypes != {INT64.name} or not all(map(dims.is_settled, _arguments(value))):
        return None  # sums of values that wrap are followed, functions of them are not
    return value if _atoms(value) <= MAX_ATOMS else None


def _arguments(x: Dim) -> list[Dim]:
    """What the functions in `x` are applied to."""
    terms = () if isinstance(x, int) else x.terms
    return [a for atom, _ in terms if isinstance(atom, dims.Apply) for a in atom.arguments]


def _atoms(x: Dim) -> int:
    if isinstance(x, int):
        return 0
    return len(x.terms) + sum(map(_atoms, _arguments(x)))
