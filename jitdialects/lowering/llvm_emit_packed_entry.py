"""`llvm-emit-packed-entry`: a function of the llvm dialect takes its arguments from an array of slots.

    llvm.func @main(%allocated, %aligned, %offset, %size, %stride, %x: f64)
        attributes {jd.abi = ["memref<1>", "f64"]}
    ->
    llvm.func @jd_entry(%slots: !llvm.ptr) -> i32 {
      %p = llvm.getelementptr %slots[1] : (!llvm.ptr) -> !llvm.ptr, i64
      %size = llvm.load %p {alignment = 8 : i64} : !llvm.ptr -> i64
      ...                     // the body of @main; each return gives 0, or its `jd.status`
    }

This is the kernel ABI, version 2 (docs/architecture.md): the function itself is turned into the entry, so
that nothing is pushed for a second call and an argument that nobody reads is not loaded. Needs `jd.abi`
from `convert-func-to-llvm` and a function that returns nothing. Where the function says `tssa.arena`, its
last argument is the arena, for which there is a pointer only; the context that `llvm-outline-parallel` adds
comes after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.hints import isa

from jitdialects.dialects.interned import i32_array, integer_attr
from jitdialects.dialects.new_operation import new_operation
from jitdialects.lowering.convert_func_to_llvm import ABI
from jitdialects.lowering.llvm_conversion import PTR
from jitdialects.lowering.llvm_outline_parallel import CONTEXT
from jitdialects.lowering.lower_scf_to_cf import STATUS

ARENA = "tssa.arena"
ENTRY = "jd_entry"
_UNBOUNDED = 2**63 - 1
_SCALARS = {"f64": f64, "i64": i64, "i1": i64, "index": i64}


@dataclass(frozen=True)
class Source:
    """Where an argument of the function comes from: a slot of a type, or a known number."""

    slot: int | None
    type: Attribute
    number: int = 0


def memref_sources(slot: int, rank: int) -> list[Source]:
    """Sources of (allocated, aligned, offset, sizes, strides) of a memref that starts at `slot`."""
    pointer = Source(slot, PTR)
    rest = [Source(slot + 1 + i, i64) for i in range(2 * rank)]
    return [pointer, pointer, Source(None, i64, 0), *rest]


def argument_sources(abi: Sequence[str], last_is_arena: bool) -> list[Source]:
    """One source for each llvm argument of a function with original arguments `abi`."""
    sources: list[Source] = []
    slot = 0
    arena = len(abi) - (2 if CONTEXT in abi else 1) if last_is_arena else None
    for index, name in enumerate(abi):
        if index == arena:
            pointer, unbounded = Source(slot, PTR), Source(None, i64, _UNBOUNDED)
            sources += [pointer, pointer, Source(None, i64, 0), unbounded, Source(None, i64, 1)]
            slot += 1
        elif name == CONTEXT:
            sources.append(Source(slot, PTR))
        elif name.startswith("memref<"):
            rank = int(name.removeprefix("memref<").removesuffix(">"))
            sources += memref_sources(slot, rank)
            slot += 1 + 2 * rank
        elif (type := _SCALARS.get(name)) is not None:
            sources.append(Source(slot, type))
            slot += 1
        else:
            raise PassFailedException(
                f"llvm-emit-packed-entry: an argument of type {name} has no slot; "
                "memrefs, f64, i64, index and i1 have"
            )
    return sources


_LOAD: Mapping[str, Attribute] = {
    "alignment": IntegerAttr(8, i64),
    "ordering": IntegerAttr(0, i64),
}


def _read(source: Source, slots: SSAValue) -> list[Operation]:
    """Operations that yield the value of `source`; the last one has it as its result."""
    if source.slot is None:
        return [
            new_operation(
                llvm.ConstantOp,
                result_types=(i64,),
                properties={"value": integer_attr(source.number, i64)},
            )
        ]
    at: dict[str, Attribute] = {
        "rawConstantIndices": i32_array(source.slot),
        "elem_type": i64,
        "noWrapFlags": integer_attr(0, i32),
    }
    pointer = new_operation(llvm.GEPOp, (slots,), (PTR,), at)
    load = new_operation(llvm.LoadOp, pointer.results, (source.type,), _LOAD)
    return [pointer, load]


def _load_arguments(entry: Block, sources: Sequence[Source]) -> None:
    arguments = entry.args
    slots = entry.insert_arg(PTR, len(arguments))
    first = entry.first_op
    assert first is not None
    # From the last one: removing an argument renumbers those behind it.
    for argument, source in reversed([*zip(arguments, sources, strict=True)]):
        if argument.first_use is not None:
            ops = _read(source, slots)
            if argument.type == i1:
                ops.append(llvm.TruncOp(ops[-1].results[0], i1))
            entry.insert_ops_before(ops, first)
            argument.replace_all_uses_with(ops[-1].results[0])
        entry.erase_arg(argument)


def _return_status(block: Block) -> None:
    """Return the `jd.status` that the return says, or 0."""
    last = block.last_op
    if last is None or last.name != "llvm.return":
        return
    status = llvm.ConstantOp(last.attributes.get(STATUS, IntegerAttr(0, i32)), i32)
    block.insert_ops_before([status, llvm.ReturnOp(status.results[0])], last)
    block.erase_op(last)


def make_packed_entry(function: llvm.FuncOp, name: str) -> None:
    """Turn `function` into the entry `name`, in place."""
    abi = function.attributes.pop(ABI)
    assert isa(abi, ArrayAttr[StringAttr])
    names = [name.data for name in abi]
    if not isinstance(function.function_type.output, llvm.LLVMVoidType):
        raise PassFailedException(
            f"llvm-emit-packed-entry: {function.sym_name.data} returns a value; "
            "results must be memref arguments"
        )
    entry = function.body.first_block
    assert entry is not None
    _load_arguments(entry, argument_sources(names, ARENA in function.attributes))
    for block in function.body.blocks:
        _return_status(block)
    function.sym_name = StringAttr(name)
    function.function_type = llvm.LLVMFunctionType([PTR], i32)
    function.linkage = llvm.LinkageAttr("external")


@dataclass(frozen=True)
class LlvmEmitPackedEntryPass(ModulePass):
    """`llvm-emit-packed-entry{function=main entry=jd_entry}`; see the module.

    Without `function`, the one definition that has `jd.abi`.
    """

    name = "llvm-emit-packed-entry"

    function: str | None = None
    entry: str = ENTRY

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = [f for f in op.ops if isinstance(f, llvm.FuncOp) and self._is_chosen(f)]
        if len(found) != 1:
            raise PassFailedException(
                f"llvm-emit-packed-entry needs one function with {ABI}, found {len(found)}: "
                "run convert-func-to-llvm before, and name the function if there are several"
            )
        make_packed_entry(found[0], self.entry)

    def _is_chosen(self, function: llvm.FuncOp) -> bool:
        if function.body.first_block is None or ABI not in function.attributes:
            return False
        return self.function is None or function.sym_name.data == self.function
