"""`Emitter`: creates operations at one place of a function, and what a whole function shares at its top.

Constants and sizes are made once per function, in front of everything else, so that equal bounds are one
SSA value and no pass has to prove them equal. Sizes are expressions (`bytecode.dims`) over symbols; a
symbol is the size of an argument that has `tssa.dims` as argument attribute, or `s<k>`, the value of
argument k.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Protocol, cast

from xdsl.dialects import arith, memref
from xdsl.dialects.arith import CMPI_COMPARISON_OPERATIONS
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ArrayAttr,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    StringAttr,
    i1,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import PassFailedException

from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Apply, Atom, Dim, Expr, Shape, Symbol, is_settled
from jitdialects.dialects.interned import INDEX, i32_array, i64_array, index_attr
from jitdialects.dialects.loop import NestOp, YieldOp
from jitdialects.dialects.new_operation import new_operation
from jitdialects.dialects.tssa_types import DimsAttr
from jitdialects.dialects.upstream import CmpiOp, SelectOp

IDENTITY = NoneAttr()
"""The layout of a contiguous buffer."""
DIMS = "tssa.dims"
"""Argument attribute of a memref argument: its sizes, `#tssa.dims<[n, 784]>`."""

STRICT: Mapping[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr("none")}
WRAP: Mapping[str, Attribute] = {"overflowFlags": arith.IntegerOverflowAttr("none")}
PREDICATES: Mapping[str, Mapping[str, Attribute]] = {
    name: {"predicate": IntegerAttr(code, i64)}
    for code, name in enumerate(CMPI_COMPARISON_OPERATIONS)
}
_NO_SIZES: Mapping[str, Attribute] = {
    "operandSegmentSizes": i32_array(0, 0),
}


@cache
def _nest_properties(steps: tuple[int, ...], kinds: tuple[str, ...]) -> Mapping[str, Attribute]:
    """Attributes are immutable and made once: making them is half the cost of a nest."""
    rank = len(steps)
    return {
        "operandSegmentSizes": i32_array(rank, rank),
        "steps": i64_array(*steps),
        "kinds": ArrayAttr(map(StringAttr, kinds)),
    }


@cache
def memref_type(
    element: Attribute, shape: tuple[int, ...], layout: StridedLayoutAttr | NoneAttr = IDENTITY
) -> MemRefType[Attribute]:
    """The type of a buffer, made once: xDSL's constructor inspects its arguments at length."""
    sizes = ArrayAttr(map(IntAttr, shape))
    return MemRefType[Attribute].new([sizes, element, layout, NoneAttr()])


def collapse(at: Emitter, buffer: SSAValue, shape: Shape) -> SSAValue:
    """The elements of a contiguous buffer under another shape; the buffer itself if it has that rank."""
    type = memref_of(buffer)
    if type.get_num_dims() == len(shape):
        return buffer
    static = tuple(s if isinstance(s, int) else DYNAMIC_INDEX for s in shape)
    strides = [dims.product(shape[axis + 1 :]) for axis in range(len(shape))]
    sizes, steps = (
        [x if isinstance(x, int) else at.size(x) for x in xs] for xs in (shape, strides)
    )
    new = memref_type(type.get_element_type(), static)
    op = memref.ReinterpretCastOp.from_dynamic(buffer, [0], sizes, steps, new)
    at.insert(op)
    return op.results[0]


def memref_of(buffer: SSAValue) -> MemRefType[Attribute]:
    """The type of a value that is a memref."""
    type = buffer.type
    assert isinstance(type, MemRefType)
    return cast("MemRefType[Attribute]", type)


class Make(Protocol):
    """`Emitter.emit` or `Emitter.top`."""

    def __call__(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result: Attribute,
        properties: Mapping[str, Attribute] | None = None,
    ) -> SSAValue: ...


class Emitter:
    """Emits in front of `before`, or at the end of `block`; see the module's documentation."""

    def __init__(self, function: FuncOp) -> None:
        self.function = function
        self.block: Block = function.body.blocks[0]
        self.before: Operation | None = self.block.first_op
        self._entry = self.block
        self._last: Operation | None = None
        self._constants: dict[tuple[Attribute, str], SSAValue] = {}
        self._sizes: dict[Dim | Atom, SSAValue] = {}
        self._sources = _size_sources(function)

    # ---- at the current place

    def emit(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result: Attribute,
        properties: Mapping[str, Attribute] | None = None,
    ) -> SSAValue:
        """A new operation with one result; returns the result."""
        op = new_operation(kind, operands, (result,), properties or {})
        self.insert(op)
        return op.results[0]

    def insert(self, op: Operation) -> None:
        """Put `op` at the current place."""
        if self.before is None:
            self.block.add_op(op)
        else:
            self.block.insert_op_before(op, self.before)

    def place_before(self, op: Operation) -> None:
        """Emit in front of `op` from now on."""
        block = op.parent
        assert block is not None
        self.block, self.before = block, op

    @contextmanager
    def nest(
        self,
        lower: Sequence[SSAValue],
        upper: Sequence[SSAValue],
        kinds: Sequence[str],
        steps: Sequence[int] | None = None,
    ) -> Generator[tuple[SSAValue, ...], None, None]:
        """Emit into the body of a new `loop.nest`; gives its index variables. Rank 0 is no nest."""
        if not lower:
            yield ()
            return
        outside = self.block, self.before
        self.block, self.before = Block(arg_types=[INDEX] * len(lower)), None
        yield self.block.args
        body, (self.block, self.before) = self.block, outside
        body.add_op(YieldOp.create())
        properties = _nest_properties(tuple(steps or [1] * len(lower)), tuple(kinds))
        self.insert(
            NestOp.create(
                operands=(*lower, *upper), properties=dict(properties), regions=(Region(body),)
            )
        )

    def add(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """left + right, on index or integers."""
        return self.emit(arith.AddiOp, (left, right), left.type, WRAP)

    def compare(self, predicate: str, left: SSAValue, right: SSAValue) -> SSAValue:
        """An `arith.cmpi`."""
        return self.emit(CmpiOp, (left, right), i1, PREDICATES[predicate])

    def select(self, condition: SSAValue, left: SSAValue, right: SSAValue) -> SSAValue:
        """condition ? left : right."""
        return self.emit(SelectOp, (condition, left, right), left.type)

    def load(self, buffer: SSAValue, indices: Sequence[SSAValue] = ()) -> SSAValue:
        """The element as it lies in memory."""
        return self.emit(memref.LoadOp, (buffer, *indices), memref_of(buffer).get_element_type())

    def store(self, value: SSAValue, buffer: SSAValue, indices: Sequence[SSAValue] = ()) -> None:
        """Write one element."""
        self.insert(new_operation(memref.StoreOp, (value, buffer, *indices)))

    def alloca(self, element: Attribute, *sizes: int) -> SSAValue:
        """A buffer on the stack of the surrounding function, for the current iteration."""
        return self.emit(memref.AllocaOp, (), memref_type(element, sizes), _NO_SIZES)

    # ---- at the top of the function

    def constant(self, type: Attribute, value: float) -> SSAValue:
        """An `arith.constant`; `value` is wrapped or rounded to `type`."""
        key = (type, repr(value))
        if key not in self._constants:
            properties = {"value": _number(type, value)}
            self._constants[key] = self.top(arith.ConstantOp, (), type, properties)
        return self._constants[key]

    def index(self, value: int) -> SSAValue:
        """A constant of type index."""
        return self.constant(INDEX, value)

    def top(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result: Attribute,
        properties: Mapping[str, Attribute] | None = None,
    ) -> SSAValue:
        """Like `emit`, at the top of the function. The operands must be arguments or from there too."""
        op = new_operation(kind, operands, (result,), properties or {})
        self.insert_at_top(op)
        return op.results[0]

    def insert_at_top(self, op: Operation) -> None:
        """Put `op` after everything that was put at the top before."""
        if self._last is not None:
            self._entry.insert_op_after(op, self._last)
        elif self._entry.first_op is not None:
            self._entry.insert_op_before(op, self._entry.first_op)
        else:
            self._entry.add_op(op)
        self._last = op

    def bind(self, symbol: str, value: SSAValue) -> None:
        """Give a symbol a value of type index, from the top of the function."""
        self._sizes[Symbol(symbol)] = value

    def size(self, size: Dim) -> SSAValue:
        """The value of an expression, of type index, at the top of the function."""
        if isinstance(size, int):
            return self.index(size)
        if size not in self._sizes:
            terms = [(self._atom(atom), coefficient) for atom, coefficient in size.terms]
            self._sizes[size] = self._sum(terms, size.constant, self.top)
        return self._sizes[size]

    def size_here(self, size: Dim, run_time: Mapping[str, SSAValue]) -> SSAValue:
        """The value of an expression over run-time symbols, whose values of type index are `run_time`, at
        the current place; what is settled stands at the top."""
        if isinstance(size, int) or is_settled(size):
            return self.size(size)
        terms = [(self._atom_here(a, run_time), coefficient) for a, coefficient in size.terms]
        return self._sum(terms, size.constant, self.emit)

    def _sum(self, terms: Sequence[tuple[SSAValue, int]], constant: int, make: Make) -> SSAValue:
        total: SSAValue | None = None
        for term, coefficient in terms:
            if coefficient != 1:
                term = make(arith.MuliOp, (term, self.index(coefficient)), INDEX, WRAP)
            total = term if total is None else make(arith.AddiOp, (total, term), INDEX, WRAP)
        assert total is not None
        if constant:
            total = make(arith.AddiOp, (total, self.index(constant)), INDEX, WRAP)
        return total

    def _atom(self, atom: Atom) -> SSAValue:
        if atom not in self._sizes:
            self._sizes[atom] = (
                self._symbol(atom.name)
                if isinstance(atom, Symbol)
                else self._apply(atom, [self.size(a) for a in atom.arguments], self.top)
            )
        return self._sizes[atom]

    def _atom_here(self, atom: Atom, run_time: Mapping[str, SSAValue]) -> SSAValue:
        if is_settled(Expr(((atom, 1),))):
            return self._atom(atom)
        if isinstance(atom, Symbol):
            return run_time[atom.name]
        arguments = [self.size_here(a, run_time) for a in atom.arguments]
        return self._apply(atom, arguments, self.emit)

    def _symbol(self, name: str) -> SSAValue:
        if name not in self._sources:
            raise PassFailedException(
                f"no argument of @{self.function.sym_name.data} has a size '{name}' in its "
                f"'{DIMS}' attribute; run tssa-bufferize first"
            )
        argument, axis = self._sources[name]
        value = self._entry.args[argument]
        if axis is not None:
            return self.top(memref.DimOp, (value, self.index(axis)), INDEX)
        if isinstance(value.type, MemRefType):
            value = self.top(memref.LoadOp, (value,), i64)
        return self.top(arith.IndexCastOp, (value,), INDEX)

    def _apply(self, atom: Apply, arguments: Sequence[SSAValue], make: Make) -> SSAValue:
        """Each of `dims.FUNCTIONS`."""
        left, right = arguments
        match atom.function:
            case "min":
                return make(arith.MinSIOp, (left, right), INDEX)
            case "max":
                return make(arith.MaxSIOp, (left, right), INDEX)
            case "mul":
                return make(arith.MuliOp, (left, right), INDEX, WRAP)
            case "wrap":
                wrapped = make(arith.AddiOp, (left, right), INDEX, WRAP)
                return make(SelectOp, (self._below_zero(left, make), wrapped, left), INDEX)
            case "floordiv":
                return self._floordiv(left, right, atom.arguments[1], make)
            case _:
                raise PassFailedException(f"size function '{atom.function}' has no lowering")

    def _below_zero(self, value: SSAValue, make: Make) -> SSAValue:
        return make(CmpiOp, (value, self.index(0)), i1, PREDICATES["slt"])

    def _floordiv(self, left: SSAValue, right: SSAValue, divisor: Dim, make: Make) -> SSAValue:
        """Floor division by a divisor that guards keep positive. A divisor that is not a constant is at
        least 1 here in any case: a division by zero would be a signal, not an exception."""
        if isinstance(divisor, int) and divisor & (divisor - 1) == 0:
            shift = self.index(divisor.bit_length() - 1)
            return make(arith.ShRSIOp, (left, shift), INDEX)
        if not isinstance(divisor, int):
            right = make(arith.MaxSIOp, (right, self.index(1)), INDEX)
        quotient = make(arith.DivSIOp, (left, right), INDEX)
        rest = make(arith.RemSIOp, (left, right), INDEX)
        below = make(arith.AddiOp, (quotient, self.index(-1)), INDEX, WRAP)
        return make(SelectOp, (self._below_zero(rest, make), below, quotient), INDEX)


def _number(type: Attribute, value: float) -> Attribute:
    """The attribute of a constant."""
    if isinstance(type, IndexType):
        return index_attr(int(value))
    if isinstance(type, IntegerType):
        return IntegerAttr(int(value), cast("IntegerType", type))
    assert isinstance(type, AnyFloat)
    return cast("Attribute", FloatAttr(float(value), type))


def _size_sources(function: FuncOp) -> dict[str, tuple[int, int | None]]:
    """Symbol -> (argument, axis), or (argument, None) for the value of a scalar argument."""
    sources: dict[str, tuple[int, int | None]] = {
        f"s{number}": (number, None) for number in range(len(function.function_type.inputs))
    }
    for number, attributes in enumerate(function.arg_attrs or ()):
        sizes = attributes.data.get(DIMS)
        if not isinstance(sizes, DimsAttr):
            continue
        for axis, size in enumerate(sizes.data):
            if isinstance(size, int) or size.constant or len(size.terms) != 1:
                continue
            ((atom, coefficient),) = size.terms
            if isinstance(atom, Symbol) and coefficient == 1:
                sources.setdefault(atom.name, (number, axis))
    return sources
