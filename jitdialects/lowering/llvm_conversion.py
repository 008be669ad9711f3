"""The walk that all `convert-*-to-llvm` passes share: tables of converters, values, addresses' places.

A conversion pass is a table from operation names to converters. The walk visits the operations of a
function once, in an order in which definitions come before uses, and calls the converter of each name in
the table. `convert-to-llvm` is the union of the tables; alone, each pass does what MLIR's pass of that name
does, with `builtin.unrealized_conversion_cast` where a value crosses to operations that it leaves.

Two things keep the number of operations low. A memref is a `Descriptor` in this walk, and becomes an
`llvm.struct` only where an operation outside the table asks for one. And an operation made with
`hoisted` stands right behind the last of its operands, however deep the loop that needs it: what it
computes must be free of side effects, and one made before with the same key is used again.

Converters match by name, never by class: an embedding compiler may hold its own `arith.cmpf`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    FunctionType,
    IndexType,
    IntegerType,
    MemRefType,
    ModuleOp,
    UnrealizedConversionCastOp,
    VectorType,
    i64,
)
from xdsl.dialects.llvm import (
    AllocaOp,
    ConstantOp,
    ExtractValueOp,
    InsertValueOp,
    LLVMArrayType,
    LLVMPointerType,
    LLVMStructType,
    UndefOp,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import PassFailedException

from jitdialects.dialects.interfaces import AllocationScope, has_trait
from jitdialects.dialects.interned import i64_array, integer_attr, vector_type
from jitdialects.dialects.new_operation import new_operation

PTR = LLVMPointerType()
_CAST = UnrealizedConversionCastOp.name
_KEPT_UNUSED = frozenset({"llvm.call", "llvm.call_intrinsic"})
"""Operations with a result that the final sweep leaves even when nothing reads it."""

Size = SSAValue | int
"""A size, stride or offset: an i64 value, or a number known from the type."""
Term: TypeAlias = tuple[int, Size]
"""A part of an offset, after the `depth` of its definition."""


@dataclass(frozen=True)
class Descriptor:
    """A strided memref: element i is at `aligned + offset + sum(i_k * strides_k)`, in elements."""

    allocated: SSAValue
    aligned: SSAValue
    offset: Size
    sizes: tuple[Size, ...]
    strides: tuple[Size, ...]


# ---- types


def as_memref(type: Attribute) -> MemRefType[Attribute] | None:
    """`type` if it is a ranked memref."""
    return cast("MemRefType[Attribute]", type) if isinstance(type, MemRefType) else None


def as_vector(type: Attribute) -> VectorType[Attribute] | None:
    """`type` if it is a vector."""
    return cast("VectorType[Attribute]", type) if isinstance(type, VectorType) else None


def memref_layout(type: MemRefType[Attribute]) -> tuple[Sequence[int | None], int | None]:
    """Strides and offset in elements, None where only known at run time."""
    strides = type.get_strides()
    if strides is None:
        raise PassFailedException(f"conversion to llvm needs a strided layout, not that of {type}")
    return strides, type.get_offset()


def descriptor_type(rank: int) -> LLVMStructType:
    """MLIR's descriptor: `!llvm.struct<(ptr, ptr, i64, array<r x i64>, array<r x i64>)>`."""
    fields: list[Attribute] = [PTR, PTR, i64]
    if rank:
        fields += [LLVMArrayType(rank, i64)] * 2
    return LLVMStructType.from_type_list(fields)


def _vector_type(type: Attribute) -> Attribute:
    vector = cast("VectorType[Attribute]", type)
    if len(vector.shape.data) != 1:
        raise PassFailedException(f"conversion to llvm needs vectors of one dimension, not {type}")
    if isinstance(vector.element_type, IndexType):
        return vector_type(i64, *vector.get_shape())
    return type


def _struct_type(type: Attribute) -> Attribute:
    memref = as_memref(type)
    assert memref is not None
    memref_layout(memref)
    return descriptor_type(memref.get_num_dims())


def _no_function_type(type: Attribute) -> Attribute:
    raise PassFailedException("conversion to llvm does not know functions as values")


_TYPES: Mapping[type[Attribute], Callable[[Attribute], Attribute]] = {
    IndexType: lambda _: i64,
    VectorType: _vector_type,
    MemRefType: _struct_type,
    FunctionType: _no_function_type,
}


def llvm_type(type: Attribute) -> Attribute:
    """The type that stands for `type` in the llvm dialect; `type` itself where it is one already."""
    convert = _TYPES.get(type.__class__)
    return type if convert is None else convert(type)


@cache
def byte_width(type: Attribute) -> int:
    """Bytes of one element in memory: its alignment too. `i1` takes one byte."""
    if isinstance(type, IndexType):
        return 8
    if isinstance(type, IntegerType | AnyFloat):
        return max(1, type.bitwidth // 8)
    raise PassFailedException(f"conversion to llvm does not know how {type} lies in memory")


# ---- the walk


class Conversion:
    """State of one walk over one function. Converters use the methods without underscore."""

    def __init__(self, table: Mapping[str, Converter]) -> None:
        self._table = table
        self._convert_block_arguments = "cf.br" in table
        # All of these live through the walk, and are looked up by identity: hashing them costs more.
        self._values: dict[int, SSAValue] = {}
        self._descriptors: dict[int, Descriptor] = {}
        self._known: dict[object, SSAValue] = {}
        self.terms: dict[tuple[int, bool, int], tuple[int, list[Term]]] = {}
        """What `llvm_addresses` found out about an index with a stride."""
        # Visit number of the operation or block that defines a value, and the place behind it.
        self._visit: dict[int, int] = {}
        self._places: list[tuple[Block, Operation | None]] = []
        self._frame = 0
        """Visit number of the block that stack memory is allocated in."""
        self._now = -1
        """Visit number of the operation that is being converted."""
        self._replaced: list[Operation] = []
        self._old_arguments: list[BlockArgument] = []
        self._created: list[Operation] = []
        self._casts: list[Operation] = []

    # -- what converters ask for

    def value(self, original: SSAValue) -> SSAValue:
        """The llvm-typed value that stands for `original`."""
        known = self._values.get(id(original))
        if known is None:
            known = self._values[id(original)] = self._bridge(original)
        return known

    def descriptor(self, memref: SSAValue) -> Descriptor:
        """The parts of `memref`, taken apart from an `llvm.struct` where it comes as one."""
        known = self._descriptors.get(id(memref))
        if known is None:
            known = self._descriptors[id(memref)] = self._unpack(self.value(memref), memref.type)
        return known

    def emit(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result: Attribute,
        properties: Mapping[str, Attribute] = {},
    ) -> SSAValue:
        """Create an operation with one result in front of the current one."""
        op = self._insert(kind, operands, (result,), properties)
        self._created.append(op)
        return op.results[0]

    def emit_effect(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        properties: Mapping[str, Attribute] = {},
        successors: Sequence[Block] = (),
    ) -> Operation:
        """Create an operation without result in front of the current one."""
        return self._insert(kind, operands, (), properties, successors)

    def _insert(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        results: Sequence[Attribute],
        properties: Mapping[str, Attribute],
        successors: Sequence[Block] = (),
    ) -> Operation:
        block, current = self._places[self._now]
        assert current is not None
        op = new_operation(kind, operands, results, properties, {}, current.location, successors)
        block.insert_op_before(op, current)
        self._visit[id(op)] = self._now
        return op

    def hoisted(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result: Attribute,
        properties: Mapping[str, Attribute] = {},
        key: object = None,
    ) -> SSAValue:
        """Create a pure operation behind the last of its operands, or return the one made for `key`."""
        if key is not None and (known := self._known.get(key)) is not None:
            return known
        last = 0
        for operand in operands:
            last = max(last, self._visit[id(operand.owner)])
        if last == self._now:
            created = self.emit(kind, operands, result, properties)
        else:
            op = new_operation(kind, operands, (result,), properties)
            self._insert_behind(last, op)
            self._created.append(op)
            [created] = op.results
        if key is not None:
            self._known[key] = created
        return created

    def on_stack(
        self, count: SSAValue, result: Attribute, properties: Mapping[str, Attribute]
    ) -> SSAValue:
        """Stack memory for all of the function, or of the region of an `AllocationScope`."""
        op = new_operation(AllocaOp, (count,), (result,), properties)
        self._insert_behind(max(self._frame, self._visit[id(count.owner)]), op)
        self._created.append(op)
        return op.results[0]

    def known(self, key: object) -> SSAValue | None:
        """What `hoisted` made for `key`."""
        return self._known.get(key)

    def constant(self, value: int, type: IntegerType = i64) -> SSAValue:
        """An integer constant, one in each function."""
        key = ("constant", value, type.bitwidth)
        if (known := self.known(key)) is not None:
            return known
        return self.hoisted(ConstantOp, (), type, {"value": integer_attr(value, type)}, key)

    def sized(self, size: Size) -> SSAValue:
        """`size` as a value."""
        return self.constant(size) if isinstance(size, int) else size

    def depth(self, size: Size) -> int:
        """Rank of the definition of `size` in the order of the walk: later means deeper."""
        return 0 if isinstance(size, int) else self._visit[id(size.owner)]

    def replace(self, op: Operation, *values: SSAValue) -> None:
        """`values` stand for the results of `op`, which goes away."""
        self._values.update(zip(map(id, op.results), values, strict=True))
        self._replaced.append(op)

    def replace_memref(self, op: Operation, descriptor: Descriptor) -> None:
        """`descriptor` stands for the one result of `op`, which goes away."""
        self._descriptors[id(op.results[0])] = descriptor
        self._replaced.append(op)

    def define(self, result: SSAValue, value: SSAValue) -> None:
        """`value` stands for one result of an operation whose other results are memrefs."""
        self._values[id(result)] = value

    def set_argument(self, argument: BlockArgument, *values: SSAValue) -> None:
        """`values` stand for a block argument that goes away: one, or the parts of a memref."""
        type = as_memref(argument.type)
        if type is not None:
            rank = type.get_num_dims()
            strides, offset = memref_layout(type)
            self._descriptors[id(argument)] = Descriptor(
                values[0],
                values[1],
                values[2] if offset is None else offset,
                _static_or(type.get_shape(), values[3 : 3 + rank]),
                _static_or(strides, values[3 + rank :]),
            )
        else:
            self._values[id(argument)] = values[0]
        self._old_arguments.append(argument)

    # -- struct and descriptor

    def pack(self, descriptor: Descriptor) -> SSAValue:
        """`descriptor` as an `llvm.struct`, behind its last part."""
        type = descriptor_type(len(descriptor.sizes))
        struct = self.hoisted(UndefOp, (), type, key=("undef", len(descriptor.sizes)))
        parts: list[tuple[tuple[int, ...], SSAValue]] = [
            ((0,), descriptor.allocated),
            ((1,), descriptor.aligned),
            ((2,), self.sized(descriptor.offset)),
        ]
        parts += [((3, i), self.sized(s)) for i, s in enumerate(descriptor.sizes)]
        parts += [((4, i), self.sized(s)) for i, s in enumerate(descriptor.strides)]
        for position, part in parts:
            at: dict[str, Attribute] = {"position": i64_array(*position)}
            struct = self.hoisted(InsertValueOp, (struct, part), type, at)
        return struct

    def _unpack(self, struct: SSAValue, type: Attribute) -> Descriptor:
        memref = as_memref(type)
        assert memref is not None
        strides, offset = memref_layout(memref)

        def part(kind: Attribute, *position: int) -> SSAValue:
            at: dict[str, Attribute] = {"position": i64_array(*position)}
            return self.hoisted(ExtractValueOp, (struct,), kind, at)

        return Descriptor(
            part(PTR, 0),
            part(PTR, 1),
            part(i64, 2) if offset is None else offset,
            tuple(part(i64, 3, i) if s < 0 else s for i, s in enumerate(memref.get_shape())),
            tuple(part(i64, 4, i) if s is None else s for i, s in enumerate(strides)),
        )

    def _bridge(self, original: SSAValue) -> SSAValue:
        """A value that no converter has replaced: itself, the source of a cast, or a new cast."""
        if (descriptor := self._descriptors.get(id(original))) is not None:
            return self.pack(descriptor)
        wanted = llvm_type(original.type)
        if wanted == original.type:
            return original
        owner = original.owner
        if isinstance(owner, Operation) and owner.name == _CAST:
            sources = tuple(owner.operands)
            if len(sources) == 1 and sources[0].type == wanted:
                return sources[0]
        return self.hoisted(UnrealizedConversionCastOp, (original,), wanted)

    # -- order and places

    def _enter(self, owner: Operation | Block, block: Block, place: Operation | None) -> None:
        """Count a block or operation: what is inserted behind it goes to `block`, after `place`."""
        self._visit[id(owner)] = len(self._places)
        self._places.append((block, place))

    def _insert_behind(self, visit: int, op: Operation) -> None:
        block, place = self._places[visit]
        if place is not None:
            block.insert_op_after(op, place)
        elif block.first_op is not None:
            block.insert_op_before(op, block.first_op)
        else:
            block.add_op(op)
        self._places[visit] = (block, op)
        self._visit[id(op)] = visit

    def run(self, region: Region) -> None:
        """Convert everything inside `region`, the body of a function."""
        self._walk(region)
        self._finish()

    def _walk(self, region: Region) -> None:
        for index, block in enumerate(blocks_in_order(region)):
            self._enter(block, block, None)
            if index and self._convert_block_arguments:
                self._convert_arguments(block)
            following = block.first_op
            while (op := following) is not None:
                following = op.next_op
                self._enter(op, block, op)
                if (converter := self._table.get(op.name)) is not None:
                    self._now = self._visit[id(op)]
                    converter(op, self)
                    self._now = -1
                elif op.name == _CAST:
                    self._fold_cast(op)
                around = self._frame
                for inner in op.regions:
                    if has_trait(op, IsolatedFromAbove):
                        Conversion(self._table).run(inner)
                    else:
                        if has_trait(op, AllocationScope):
                            self._frame = len(self._places)  # its first block
                        self._walk(inner)
                self._frame = around

    def _convert_arguments(self, block: Block) -> None:
        for argument in block.args:
            wanted = llvm_type(argument.type)
            if wanted != argument.type:
                self._values[id(argument)] = block.insert_arg(wanted, argument.index)
                self._old_arguments.append(argument)

    def _fold_cast(self, op: Operation) -> None:
        """A cast that leads to the value that now stands for its operand has done its duty."""
        self._casts.append(op)
        if len(op.operands) != 1 or len(op.results) != 1:
            return
        source, result = op.operands[0], op.results[0]
        is_known = id(source) in self._values or id(source) in self._descriptors
        if is_known and llvm_type(source.type) == result.type:
            result.replace_all_uses_with(self.value(source))

    # -- the end of the walk

    def _finish(self) -> None:
        for op in reversed(self._replaced):
            for result in op.results:
                if result.first_use is not None:
                    self._hand_over(result)
            _take_out(op)
        for argument in self._old_arguments:
            if argument.first_use is not None:
                self._hand_over(argument)
            argument.block.erase_arg(argument)
        for op in reversed(self._created):
            if op.results[0].first_use is None and op.name not in _KEPT_UNUSED:
                _take_out(op)
        for op in self._casts:
            if all(result.first_use is None for result in op.results):
                _take_out(op)

    def _hand_over(self, original: SSAValue) -> None:
        """Operations that stay read `original`: give them its value, through a cast if types differ."""
        value = self.value(original)
        if value.type != original.type:
            value = self.hoisted(UnrealizedConversionCastOp, (value,), original.type)
        original.replace_all_uses_with(value)


Converter = Callable[[Operation, Conversion], None]
Table = Mapping[str, Converter]


def _take_out(op: Operation) -> None:
    """Remove `op`, whose results have no uses. (`Block.erase_op` checks that again, at some cost.)"""
    assert op.parent is not None
    op.parent.detach_op(op)
    op.drop_all_references()


def blocks_in_order(region: Region) -> list[Block]:
    """Reachable blocks, dominators first (reverse post-order), then the others as they stand."""
    if region.first_block is None or region.first_block.next_block is None:
        return list(region.blocks)
    order: list[Block] = []
    seen = {region.first_block}
    stack = [(region.first_block, iter(_successors(region.first_block)))]
    while stack:
        block, rest = stack[-1]
        following = next((b for b in rest if b not in seen), None)
        if following is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(_successors(following))))
    order.reverse()
    return order + [block for block in region.blocks if block not in seen]


def _static_or(known: Sequence[int | None], values: Sequence[SSAValue]) -> tuple[Size, ...]:
    """The known numbers, and values where a number is None or negative (dynamic)."""
    pairs = zip(known, values, strict=True)
    return tuple(value if n is None or n < 0 else n for n, value in pairs)


def _successors(block: Block) -> Sequence[Block]:
    return block.last_op.successors if block.last_op is not None else ()


def convert_module(module: ModuleOp, table: Table) -> None:
    """Apply `table` to every function of `module`: one walk each."""
    signature = table.get("func.func")
    for function in tuple(module.ops):
        if isinstance(function, ModuleOp):
            convert_module(function, table)
            continue
        if not function.regions:
            continue
        if signature is not None and function.name == "func.func":
            signature(function, Conversion(table))
        else:
            for region in function.regions:
                Conversion(table).run(region)
