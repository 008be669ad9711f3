"""`llvm-outline-parallel`: the body of each `loop.parallel` becomes a function that threads can call.

    llvm.func @f(...) { ... loop.parallel (%b, %e) = (%lower) to (%upper) chunk (%c) : i64 { B } ... }
    ->
    llvm.func internal @f.parallel.0(%env: !llvm.ptr, %b: i64, %e: i64) { loads of what B needs; B; return }
    llvm.func @f(..., %context: !llvm.ptr) { ...
      store what B needs to %env
      if %upper - %lower > %c and context.threads > 1:
        context.parallel_for(%context, @f.parallel.0, %env, %lower, %upper, %c)
      else: @f.parallel.0(%env, %lower, %upper)
    ... }

as MLIR's OpenMP dialect keeps its regions up to the translation to LLVM, where a live value is a register and
no longer a memref. The context is a pointer to two words: how many threads there are, and the function that
calls a body for ranges that make up [lower, upper), each a multiple of the chunk but the last
(docs/architecture.md). A function without `loop.parallel` stays as it is. Constants are made again in the body.
Needs `convert-to-llvm`. Functions that get a context must not be called inside the module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.hints import isa

from jitdialects.dialects.interned import i32_array, integer_attr
from jitdialects.dialects.loop import ParallelOp
from jitdialects.dialects.new_operation import new_operation
from jitdialects.lowering.blocks import split_before
from jitdialects.lowering.convert_func_to_llvm import ABI, call_properties
from jitdialects.lowering.llvm_addresses import access_properties
from jitdialects.lowering.llvm_conversion import PTR, as_vector, byte_width

CONTEXT = "context"
"""What `jd.abi` calls the argument that this pass adds."""
_CONSTANTS = frozenset({"llvm.mlir.constant", "llvm.mlir.undef", "llvm.mlir.zero"})
_SLT = {"predicate": IntegerAttr(2, i64)}
_BODY = llvm.LLVMFunctionType([PTR, i64, i64], llvm.LLVMVoidType())


# ---- what a body needs


Uses: TypeAlias = dict[SSAValue, list[tuple[Operation, int]]]
"""Values with the operations that read them and the number of the operand."""


def live_ins(region: Region) -> tuple[Uses, Uses]:
    """Values from outside that `region` uses, in the order of their first use: constants, and others."""
    inside = {id(block) for block in region.blocks}
    constants: Uses = {}
    others: Uses = {}
    for block in region.blocks:
        for op in block.ops:
            if op.regions:
                raise PassFailedException(
                    f"llvm-outline-parallel: {op.name} inside loop.parallel has a region; lower it before"
                )
            for index, value in enumerate(op.operands):
                defined = value.op.parent if isinstance(value, OpResult) else value.owner
                if id(defined) not in inside:
                    is_constant = isinstance(value, OpResult) and value.op.name in _CONSTANTS
                    uses = constants if is_constant else others
                    uses.setdefault(value, []).append((op, index))
    return constants, others


def _alignment(type: Attribute) -> int:
    """That of one element: vectors in the environment lie where they come to lie. A struct is a descriptor."""
    if isinstance(type, llvm.LLVMPointerType | llvm.LLVMStructType):
        return 8
    vector = as_vector(type)
    return byte_width(type if vector is None else vector.element_type)


class _Writer:
    """Appends llvm operations to a list."""

    def __init__(self) -> None:
        self.ops: list[Operation] = []

    def make(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue] = (),
        result: Attribute | None = None,
        properties: Mapping[str, Attribute] = {},
        successors: Sequence[Block] = (),
    ) -> Operation:
        """An operation with at most one result."""
        results = () if result is None else (result,)
        op = new_operation(kind, operands, results, properties, successors=successors)
        self.ops.append(op)
        return op

    def value(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result: Attribute,
        properties: Mapping[str, Attribute] = {},
    ) -> SSAValue:
        return self.make(kind, operands, result, properties).results[0]

    def field(self, pointer: SSAValue, type: Attribute, *path: int) -> SSAValue:
        """Address of a part of the `type` at `pointer`."""
        at: dict[str, Attribute] = {
            "rawConstantIndices": i32_array(*path),
            "elem_type": type,
            "noWrapFlags": integer_attr(0, i32),
        }
        return self.value(llvm.GEPOp, (pointer,), PTR, at)

    def load(self, pointer: SSAValue, type: Attribute) -> SSAValue:
        return self.value(llvm.LoadOp, (pointer,), type, _access(type))


def _access(type: Attribute) -> Mapping[str, Attribute]:
    return access_properties(_alignment(type))


# ---- rewrite


def outline(op: ParallelOp, name: str, context: SSAValue) -> llvm.FuncOp:
    """Replace `op` by calls of the function `name`, which is returned and not in the module yet."""
    body = op.detach_region(op.body)
    constants, values = live_ins(body)
    environment = llvm.LLVMStructType.from_type_list([value.type for value in values])
    _call_site(op, name, context, environment, list(values))
    _receive(body, environment, constants, values)
    return llvm.FuncOp(name, _BODY, llvm.LinkageAttr("internal"), body=body)


def _receive(
    body: Region,
    environment: Attribute,
    constants: Uses,
    values: Uses,
) -> None:
    """Give `body` its environment as first argument, and everything from there."""
    entry = body.first_block
    assert entry is not None
    pointer = entry.insert_arg(PTR, 0)
    w = _Writer()
    for constant, uses in constants.items():
        assert isinstance(constant, OpResult)
        _replace(uses, w.value(type(constant.op), (), constant.type, constant.op.properties))
    for number, (value, uses) in enumerate(values.items()):
        _replace(uses, w.load(w.field(pointer, environment, 0, number), value.type))
    for block in body.blocks:
        last = block.last_op
        if last is not None and last.name == "loop.yield":
            block.insert_op_before(llvm.ReturnOp(), last)
            block.erase_op(last)
    assert entry.first_op is not None
    entry.insert_ops_before(w.ops, entry.first_op)


def _replace(uses: Sequence[tuple[Operation, int]], value: SSAValue) -> None:
    for op, index in uses:
        op.operands[index] = value


def _call_site(
    op: ParallelOp,
    name: str,
    context: SSAValue,
    environment: Attribute,
    values: Sequence[SSAValue],
) -> None:
    """Fill the environment, then let threads call the function, or call it."""
    before = op.parent
    region = before.parent if before is not None else None
    assert before is not None and region is not None and region.first_block is not None
    frame = _Writer()  # at the top of the function: a loop must not grow the stack
    one = frame.value(llvm.ConstantOp, (), i64, {"value": integer_attr(1, i64)})
    allocated: dict[str, Attribute] = {"alignment": IntegerAttr(64, i64), "elem_type": environment}
    env = frame.value(llvm.AllocaOp, (one,), PTR, allocated)
    lower, upper, chunk = op.operands
    w = _Writer()
    for number, value in enumerate(values):
        w.make(
            llvm.StoreOp,
            (value, w.field(env, environment, 0, number)),
            None,
            _access(value.type),
        )
    wraps: Mapping[str, Attribute] = {"overflowFlags": integer_attr(0, i32)}
    extent = w.value(llvm.SubOp, (upper, lower), i64, wraps)
    large = w.value(llvm.ICmpOp, (chunk, extent), i1, _SLT)
    threads = w.load(context, i64)
    one_more = w.value(llvm.ConstantOp, (), i64, {"value": integer_attr(1, i64)})
    several = w.value(llvm.ICmpOp, (one_more, threads), i1, _SLT)
    both = w.value(llvm.AndOp, (large, several), i1)
    after = split_before(op)
    shared, alone = Block(), Block()
    region.insert_block_before((shared, alone), after)
    w.make(
        llvm.CondBrOp,
        (both,),
        None,
        {"operandSegmentSizes": i32_array(1, 0, 0)},
        (shared, alone),
    )
    before.add_ops(w.ops)
    top = region.first_block
    assert top.first_op is not None
    top.insert_ops_before(frame.ops, top.first_op)
    shared.add_ops(_shared(name, context, (env, lower, upper, chunk), after))
    call, leave = _Writer(), (after,)
    callee = {"callee": SymbolRefAttr(name)}
    call.make(llvm.CallOp, (env, lower, upper), None, call_properties(3) | callee)
    call.make(llvm.BrOp, (), None, {}, leave)
    alone.add_ops(call.ops)
    Rewriter.erase_op(op)


def _shared(
    name: str, context: SSAValue, operands: Sequence[SSAValue], after: Block
) -> Sequence[Operation]:
    """context.parallel_for(context, body, environment, lower, upper, chunk)"""
    w = _Writer()
    function = w.load(w.field(context, i64, 1), PTR)
    body = w.value(llvm.AddressOfOp, (), PTR, {"global_name": SymbolRefAttr(name)})
    arguments = (function, context, body, *operands)
    w.make(llvm.CallOp, arguments, None, call_properties(len(arguments)))
    w.make(llvm.BrOp, (), None, {}, (after,))
    return w.ops


def _parallel_ops(function: llvm.FuncOp) -> list[ParallelOp]:
    return [op for block in function.body.blocks for op in block.ops if isinstance(op, ParallelOp)]


def outline_function(function: llvm.FuncOp, module: ModuleOp) -> None:
    """Outline every `loop.parallel` of `function`."""
    found = _parallel_ops(function)
    entry = function.body.first_block
    if not found or entry is None:
        return
    name = function.sym_name.data
    if _is_called(module, name):
        raise PassFailedException(
            f"llvm-outline-parallel: {name} is called in the module and gets a further argument, the context; "
            "inline it before"
        )
    context = entry.insert_arg(PTR, len(entry.args))
    type = function.function_type
    function.function_type = llvm.LLVMFunctionType([*type.inputs, PTR], type.output)
    abi = function.attributes.get(ABI)
    if isa(abi, ArrayAttr[StringAttr]):
        function.attributes[ABI] = ArrayAttr([*abi, StringAttr(CONTEXT)])
    for number, op in enumerate(found):
        made = outline(op, f"{name}.parallel.{number}", context)
        Rewriter.insert_op(made, InsertPoint.before(function))


def _is_called(module: ModuleOp, name: str) -> bool:
    """Whether `name` is called anywhere. (`Operation.walk` takes three times as long.)"""
    regions = list(module.regions)
    while regions:
        for block in regions.pop().blocks:
            for op in block.ops:
                regions += op.regions
                if _calls(op, name):
                    return True
    return False


def _calls(op: Operation, name: str) -> bool:
    callee = op.properties.get("callee") if op.name == "llvm.call" else None
    return isinstance(callee, SymbolRefAttr) and callee.root_reference.data == name


class LlvmOutlineParallelPass(ModulePass):
    """`loop.parallel` in the llvm dialect to functions and calls; see the module."""

    name = "llvm-outline-parallel"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in tuple(op.ops):
            if isinstance(function, llvm.FuncOp):
                outline_function(function, op)
