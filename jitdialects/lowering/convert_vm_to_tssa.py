"""`convert-vm-to-tssa{signature="main(f32[n], float)"}`: registers become SSA values with types.

    vm.func @main, blocks over        func.func @main(%a : tensor<?xf32, #tssa.dims<[n]>>,
    mutable registers, no types  ->                   %b : tensor<f64> {tssa.weak}) -> ...
                                      over cf blocks, operations of tssa

Needs a verified program in the `vm` dialect. Leaves one function in the module, what
docs/architecture.md promises of `tssa`: calls inlined, broadcasts and casts explicit, sizes as
expressions over the symbols of the signature, `tssa.guards` for what is assumed of them,
`tssa.weak` on arguments and results that are Python scalars. An argument whose size a guard
determines has that size in its type. A long constant is an argument too, after the ordinary ones,
with its number in the constant pool as `tssa.constant`: its elements stay out of the IR and of the
code. `CompileError`, and an unchanged module, where the program
certainly fails for this signature or cannot be typed before it runs: the VM interprets it and
raises what there is to raise.

The work is done by `analysis.inference`; here each step of its fixpoint becomes operations, in one
walk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    TensorType,
    UnitAttr,
    i1,
    i64,
)
from xdsl.dialects.cf import BranchOp, ConditionalBranchOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from jitdialects.analysis.inference import Fact, Held, Inferred, Source, Step, infer
from jitdialects.analysis.symbols import SymbolicFacts
from jitdialects.bytecode import dims
from jitdialects.bytecode import signature as signatures
from jitdialects.bytecode.attributes import Attributes, IndexSpec, Ints
from jitdialects.bytecode.dims import Dim, Shape, symbols_of
from jitdialects.bytecode.dtypes import BOOL, INT64, DType, integer_range
from jitdialects.bytecode.inlining import inline_calls
from jitdialects.bytecode.operators import OPERATORS, Kind
from jitdialects.bytecode.program import Constant, Function, Program
from jitdialects.bytecode.shape_rules import IndexPlan, permutation, plan_index
from jitdialects.bytecode.signature import Signature
from jitdialects.dialects.constants import CONSTANT, constant_op
from jitdialects.dialects.new_operation import new_operation
from jitdialects.dialects.tssa import (
    ELEMENTWISE_OPS,
    BroadcastOp,
    CheckBoundsOp,
    ExtractOp,
    InsertOp,
    MatmulOp,
    ReshapeOp,
    SizeOp,
    TransposeOp,
)
from jitdialects.dialects.tssa_types import DimsAttr, GuardAttr, tensor_type
from jitdialects.errors import ArgumentError
from jitdialects.lowering.tssa_reductions import Reduction

LONGEST_INLINE = 64
"""Elements; constants with more are arguments."""


@dataclass(frozen=True)
class ConvertVmToTssaPass(ModulePass):
    """See the module's docstring."""

    name = "convert-vm-to-tssa"

    signature: str
    """`main(f32[n,784], f32[784,512]:strided, i64[], float)`, see `bytecode.signature`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from jitdialects.lowering.bytecode_to_vm import module_to_program

        program = module_to_program(op)
        function = typed_function(program, signatures.parse(self.signature))
        for old in tuple(op.ops):
            op.body.block.erase_op(old)
        op.body.block.add_op(function)


def typed_function(program: Program, signature: Signature) -> FuncOp:
    """`signature.function` of a verified program as a `func.func` of `tssa` operations."""
    function = program.function(signature.function)
    if function is None:
        names = ", ".join(f"@{f.name}" for f in program.functions) or "none"
        raise PassFailedException(
            f"convert-vm-to-tssa: no function @{signature.function} in the module; it has {names}"
        )
    if len(signature.arguments) != function.parameters:
        raise ArgumentError(
            f"convert-vm-to-tssa: @{function.name} takes {function.parameters} argument(s), "
            f"the signature {signature} has {len(signature.arguments)}"
        )
    flat = _without_destroys(inline_calls(program, function))
    facts = SymbolicFacts(_symbols(signature))
    _assume_bounds(signature, facts)
    arguments = [_argument_fact(k, a) for k, a in enumerate(signature.arguments)]
    inferred = infer(flat, program.constants, arguments, facts)
    return _Emitter(flat, program.constants, inferred, facts).function(signature, arguments)


def _assume_bounds(signature: Signature, facts: SymbolicFacts) -> None:
    """What the signature says of its sizes becomes guards."""
    error = ArgumentError(f"convert-vm-to-tssa: {signature}: no size is within these bounds")
    for number, name in signature.at_least:
        facts.require_at_most(number, dims.symbol(name), error)
    for name, number in signature.at_most:
        facts.require_at_most(dims.symbol(name), number, error)
    for number, name in signature.divisors:
        facts.assume_multiple(dims.symbol(name), number)


def _without_destroys(function: Function) -> Function:
    """Values need no end: bufferisation finds it again."""
    return replace(
        function,
        blocks=tuple(
            replace(b, instructions=tuple(i for i in b.instructions if i.opcode != "destroy"))
            for b in function.blocks
        ),
    )


def _symbols(signature: Signature) -> list[str]:
    """The names of sizes and values in the order in which the signature brings them."""
    names: list[str] = []
    for k, argument in enumerate(signature.arguments):
        sizes = argument.shape or (signatures.value_symbol(k),)
        names.extend(sorted({n for s in sizes for n in symbols_of(s)} - set(names)))
    return names


def _argument_fact(k: int, argument: signatures.ArgumentType) -> Fact:
    value = signatures.value_symbol(k) if argument.is_integer_scalar else None
    return Fact(frozenset({argument.dtype}), argument.shape, value)


class _Emitter:
    """Turns the fixpoint into operations: one `Block` per reachable block, in reverse postorder, so
    that every source has its value before its first use."""

    def __init__(
        self,
        function: Function,
        constants: Sequence[Constant],
        inferred: Inferred,
        facts: SymbolicFacts,
    ) -> None:
        self.bytecode = function
        self.constants = constants
        self.inferred = inferred
        self.facts = facts
        self.values: dict[Source, SSAValue] = {}
        self.passed_constants: list[int] = []
        """Entries of the pool that are arguments, in their order."""
        self.types: dict[tuple[str, Shape], TensorType[Attribute]] = {}
        self.entry = Block()
        self.block = self.entry
        self.blocks: dict[int, Block] = {}
        self.placed: list[Block] = []

    def function(self, signature: Signature, arguments: Sequence[Fact]) -> FuncOp:
        """The whole function."""
        for k, fact in enumerate(arguments):
            value = self.entry.insert_arg(self.type(fact.dtype, fact.shape), k)
            value.name_hint = f"r{k}"
            self.values["argument", k, 0] = value
        results = self.inferred.results(self.bytecode.results)
        self._make_blocks()
        for number in self.inferred.order:
            self.block = self.blocks[number]
            self.placed.append(self.block)
            for step in self.inferred.steps[number]:
                self._step(step, number, results)
        region = Region([self.entry, *(b for b in self.placed if b is not self.entry)])
        result_types = [self.type(f.dtype, f.shape) for f in results]
        marks = [_marks(a) for a in signature.arguments]
        marks += [DictionaryAttr({CONSTANT: IntegerAttr(c, i64)}) for c in self.passed_constants]
        out = FuncOp(
            signature.function,
            FunctionType.from_lists([a.type for a in self.entry.args], result_types),
            region,
            arg_attrs=_unless_empty(marks),
            res_attrs=_unless_empty([_weak_mark(f.dtype) for f in results]),
        )
        if self.facts.guards:
            out.attributes["tssa.guards"] = ArrayAttr(map(GuardAttr, self.facts.guards))
        return out

    def _make_blocks(self) -> None:
        """Empty blocks with their arguments. A first block that is branched to needs an entry
        before it."""
        targets = {
            t for n in self.inferred.order for t in self.bytecode.blocks[n].instructions[-1].targets
        }
        for number in self.inferred.order:
            if number == 0 and 0 not in targets:
                self.blocks[0] = self.entry
                continue
            block = self.blocks[number] = Block()
            for register in self.inferred.joins(number):
                fact = self.inferred.entry[number][register].fact
                value = block.insert_arg(self.type(fact.dtype, fact.shape), len(block.args))
                value.name_hint = f"r{register}"
                self.values["join", number, register] = value
        if 0 in targets:
            initial = {
                k: Held(("argument", k, 0), self.inferred.entry[0][k].fact)
                for k in self.inferred.joins(0)
            }
            self.entry.add_op(BranchOp(self.blocks[0], *self._passed(0, initial)))

    # ---- types and uses ------------------------------------------------------------------------

    def type(self, dtype: DType, shape: Shape) -> TensorType[Attribute]:
        """The tensor type with every size resolved; one object per type."""
        key = dtype.name, self.facts.resolve_shape(shape)
        if key not in self.types:
            self.types[key] = tensor_type(dtype, key[1])
        return self.types[key]

    def emit(
        self,
        op_class: type[Operation],
        operands: Sequence[SSAValue],
        result_type: Attribute,
        **properties: Attribute,
    ) -> SSAValue:
        """Append an operation; gives its result."""
        op = new_operation(op_class, operands, (result_type,), properties)
        self.block.add_op(op)
        return op.results[0]

    def value(self, held: Held) -> SSAValue:
        """The SSA value of a source; constants are made at their first use, in the entry block."""
        source = self.inferred.source(held)
        value = self.values.get(source)
        if value is None:
            assert source[0] == "constant"
            value = self.values[source] = self._constant(source[1])
        return value

    def _constant(self, number: int) -> SSAValue:
        """Entry `number` of the pool: an operation, or an argument if it is long."""
        constant = self.constants[number]
        if constant.value.size > LONGEST_INLINE:
            type = self.type(constant.dtype, constant.value.shape)
            argument = self.entry.insert_arg(type, len(self.entry.args))
            argument.name_hint = f"c{number}"
            self.passed_constants.append(number)
            return argument
        op = constant_op(constant.dtype, constant.value)
        if self.entry.last_op is not None and self.block is not self.entry:
            self.entry.insert_op_before(op, self.entry.last_op)
        else:
            self.entry.add_op(op)
        return op.result

    def use(self, held: Held, dtype: DType, shape: Shape | None = None) -> SSAValue:
        """The value of `held` in `dtype`, broadcast to `shape` if one is given."""
        value = self.value(held)
        own = self.facts.resolve_shape(held.fact.shape)
        if held.fact.dtype.name != dtype.name:
            value = self.emit(ELEMENTWISE_OPS["cast"], [value], self.type(dtype, own))
        if shape is not None and shape != own:
            value = self.emit(BroadcastOp, [value], self.type(dtype, shape))
        return value

    def reshaped(self, value: SSAValue, dtype: DType, old: Shape, new: Shape) -> SSAValue:
        """`value` of shape `old` under the shape `new`."""
        return value if old == new else self.emit(ReshapeOp, [value], self.type(dtype, new))

    # ---- instructions --------------------------------------------------------------------------

    def _step(self, step: Step, number: int, results: Sequence[Fact]) -> None:
        if step.result is None:
            self._terminator(step, number, results)
            return
        value = self._operator(step, step.result.fact)
        if value.name_hint is None:
            value.name_hint = f"r{step.instruction.results[0]}"
        self.values[step.result.source] = value

    def _operator(self, step: Step, result: Fact) -> SSAValue:
        opcode = step.instruction.opcode
        attributes = step.instruction.attributes
        shape = self.facts.resolve_shape(result.shape)
        for held, used in zip(step.operands, step.uses, strict=False):
            self._check_fit(held, used)
        if opcode == "cast":
            return self.use(step.operands[0], result.dtype)
        if OPERATORS[opcode].kind is Kind.ELEMENTWISE:
            operands = [
                self.use(h, d, shape) for h, d in zip(step.operands, step.uses, strict=True)
            ]
            return self.emit(ELEMENTWISE_OPS[opcode], operands, self.type(result.dtype, shape))
        match opcode:
            case "size":
                assert result.value is not None
                return self._emit_op(SizeOp(self.facts.resolve(result.value)))
            case "matmul":
                left, right = (
                    self.use(h, d) for h, d in zip(step.operands, step.uses, strict=True)
                )
                return self.emit(MatmulOp, [left, right], self.type(result.dtype, shape))
            case "setitem":
                return self._setitem(step, result)
            case _:
                source = step.operands[0]
                value = self.use(source, step.uses[0])
                old = self.facts.resolve_shape(source.fact.shape)
                return self._one_operand(opcode, attributes, step, value, old, result)

    def _check_fit(self, held: Held, used: DType) -> None:
        """A check where a Python integer that is known only when the code runs takes the place of an int32;
        for others there are guards."""
        known = held.fact.value
        if held.fact.must_fit(used) and (known is None or not self.facts.is_settled(known)):
            low, high = integer_range(used.name)
            self.block.add_op(CheckBoundsOp([self.value(held)], low, high))

    def _emit_op(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def _one_operand(
        self,
        opcode: str,
        attributes: Attributes,
        step: Step,
        value: SSAValue,
        old: Shape,
        result: Fact,
    ) -> SSAValue:
        """Operators with one data operand `value` of shape `old`, already cast."""
        dtype, shape = result.dtype, self.facts.resolve_shape(result.shape)
        match opcode:
            case "reshape":
                return self.reshaped(value, dtype, old, shape)
            case "broadcast_to":
                return (
                    value
                    if old == shape
                    else self.emit(BroadcastOp, [value], self.type(dtype, shape))
                )
            case "transpose":
                axes = DenseArrayBase.from_list(i64, permutation(opcode, len(old), attributes))
                return self.emit(TransposeOp, [value], self.type(dtype, shape), permutation=axes)
            case "getitem":
                return self._getitem(step, value, old, result)
            case _:
                reduction = Reduction(self, value, dtype, old, attributes, opcode)
                return self.reshaped(reduction.result(), dtype, reduction.kept, shape)

    def _plan(self, step: Step, whole: Shape) -> IndexPlan:
        spec = step.instruction.attributes["index"]
        assert isinstance(spec, IndexSpec)
        known = (h.fact.value for h in step.operands)
        values = [None if v is None else self.facts.resolve(v) for v in known]
        return plan_index(step.instruction.opcode, whole, spec, values, self.facts)

    def _region(
        self, step: Step, plan: IndexPlan, whole: Shape
    ) -> tuple[Shape, list[SSAValue], dict[str, Attribute]]:
        """The selected part with all axes of the whole, the run-time values that say where it begins,
        and the properties that say where it lies. Checks are emitted."""
        part = self.facts.resolve_shape(tuple(a.size for a in plan.axes))
        indices: list[SSAValue] = []
        offsets: list[Dim] = []
        for axis, size in zip(plan.axes, whole, strict=True):
            values = [self.use(step.operands[k], INT64) for k in axis.run_time]
            if not values:
                offsets.append(self.facts.resolve(axis.start))
                continue
            lower, upper = (0, size) if axis.kept else (dims.scale(size, -1), dims.sub(size, 1))
            self.block.add_op(CheckBoundsOp(values, lower, upper))
            start = dims.symbol(f"{dims.RUN_TIME}{len(indices)}")
            indices.append(values[0])
            offsets.append(start if axis.kept else dims.apply("wrap", start, size))
        steps = DenseArrayBase.from_list(i64, [a.step for a in plan.axes])
        return part, indices, {"offsets": DimsAttr(tuple(offsets)), "steps": steps}

    def _getitem(self, step: Step, value: SSAValue, whole: Shape, result: Fact) -> SSAValue:
        plan = self._plan(step, whole)
        part, indices, properties = self._region(step, plan, whole)
        if part != whole or any(axis.step < 0 for axis in plan.axes):
            value = self.emit(
                ExtractOp, [value, *indices], self.type(result.dtype, part), **properties
            )
        return self.reshaped(value, result.dtype, part, self.facts.resolve_shape(result.shape))

    def _setitem(self, step: Step, result: Fact) -> SSAValue:
        target, stored = step.operands[:2]
        whole = self.facts.resolve_shape(result.shape)
        plan = self._plan(step, whole)
        part, indices, properties = self._region(step, plan, whole)
        selected = self.facts.resolve_shape(plan.shape)
        value = self.use(stored, step.uses[1], selected)
        value = self.reshaped(value, result.dtype, selected, part)
        operands = [self.use(target, step.uses[0]), value, *indices]
        return self.emit(InsertOp, operands, self.type(result.dtype, whole), **properties)

    # ---- control flow --------------------------------------------------------------------------

    def _passed(self, target: int, state: dict[int, Held]) -> list[SSAValue]:
        """What a branch to `target` hands over for its block arguments."""
        entry = self.inferred.entry[target]
        return [self.use(state[r], entry[r].fact.dtype) for r in self.inferred.joins(target)]

    def _terminator(self, step: Step, number: int, results: Sequence[Fact]) -> None:
        state = self.inferred.exit[number]
        targets = step.instruction.targets
        match step.instruction.opcode:
            case "return":
                values = [self.use(h, f.dtype) for h, f in zip(step.operands, results, strict=True)]
                self.block.add_op(ReturnOp(*values))
            case "br":
                values = self._passed(targets[0], state)
                self.block.add_op(BranchOp(self.blocks[targets[0]], *values))
            case "cond_br":
                condition = self.use(step.operands[0], BOOL)
                self._branch(condition, targets[0], self.blocks[targets[1]], targets[1], state)
            case _:
                self._switch(step, state)

    def _branch(
        self,
        condition: SSAValue,
        then: int,
        otherwise: Block,
        number: int | None,
        state: dict[int, Held],
    ) -> None:
        """`cf.cond_br` to block `then` or to `otherwise`, which is block `number` or one without
        arguments."""
        # A dialect that straight-line programs do not load.
        from xdsl.dialects.tensor import ExtractOp

        scalar = self._emit_op(ExtractOp(condition, (), i1))
        passed = self._passed(then, state)
        rest = [] if number is None else self._passed(number, state)
        op = ConditionalBranchOp(scalar, self.blocks[then], passed, otherwise, rest)
        self.block.add_op(op)

    def _switch(self, step: Step, state: dict[int, Held]) -> None:
        """A chain of comparisons, one new block for each but the last."""
        *matches, default = step.instruction.targets
        cases = step.instruction.attributes["cases"]
        assert isinstance(cases, Ints)
        subject = self.use(step.operands[0], INT64)
        chain = list(zip(cases.values, matches, strict=True))
        for position, (case, target) in enumerate(chain):
            constant = self._emit_op(constant_op(INT64, np.array(case, np.int64)))
            equal = self.emit(ELEMENTWISE_OPS["equal"], [subject, constant], self.type(BOOL, ()))
            last = position == len(chain) - 1
            following = self.blocks[default] if last else Block()
            self._branch(equal, target, following, default if last else None, state)
            if not last:
                self.block = following
                self.placed.append(following)
        if not chain:
            self.block.add_op(BranchOp(self.blocks[default], *self._passed(default, state)))


def _marks(argument: signatures.ArgumentType) -> DictionaryAttr:
    """Argument attributes: Python scalars and arrays that are not contiguous."""
    if argument.strided:
        return DictionaryAttr({"tssa.strided": UnitAttr()})
    return _weak_mark(argument.dtype)


def _weak_mark(dtype: DType) -> DictionaryAttr:
    return DictionaryAttr({"tssa.weak": UnitAttr()} if dtype.weak else {})


def _unless_empty(marks: Sequence[DictionaryAttr]) -> ArrayAttr[DictionaryAttr] | None:
    return ArrayAttr(marks) if any(m.data for m in marks) else None
