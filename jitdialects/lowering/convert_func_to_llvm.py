"""`convert-func-to-llvm`: functions, returns and calls, with MLIR's expansion of memref arguments.

    func.func @f(%m: memref<?x8xf32>, %x: f64)
    ->
    llvm.func @f(%allocated: !llvm.ptr, %aligned: !llvm.ptr, %offset: i64, %size0: i64, %size1: i64,
                 %stride0: i64, %stride1: i64, %x: f64) attributes {jd.abi = ["memref<2>", "f64"]}

`jd.abi` keeps what each original argument was, for `llvm-emit-packed-entry`; other attributes of the
function stay. One result is returned as it is, several as a struct, a memref as its descriptor.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FunctionType,
    MemRefType,
    ModuleOp,
    StringAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from jitdialects.lowering.convert_arith_to_llvm import STRICT
from jitdialects.lowering.llvm_conversion import (
    PTR,
    Conversion,
    Table,
    as_memref,
    convert_module,
    llvm_type,
)

ABI = "jd.abi"
_SIGNATURE = frozenset({"sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs"})


def expanded_types(type: Attribute) -> list[Attribute]:
    """The llvm arguments that one argument becomes."""
    if (memref := as_memref(type)) is not None:
        return [PTR, PTR, *([i64] * (1 + 2 * memref.get_num_dims()))]
    return [llvm_type(type)]


def abi_name(type: Attribute) -> str:
    """What `jd.abi` says of an argument: `memref<rank>`, or the type as it is."""
    memref = as_memref(type)
    return str(type) if memref is None else f"memref<{memref.get_num_dims()}>"


def result_type(types: Sequence[Attribute]) -> Attribute:
    """void, the one type, or a struct of several."""
    converted = [llvm_type(type) for type in types]
    if not converted:
        return llvm.LLVMVoidType()
    if len(converted) == 1:
        return converted[0]
    return llvm.LLVMStructType.from_type_list(converted)


def _function(op: Operation, c: Conversion) -> None:
    type, name = op.properties["function_type"], op.properties["sym_name"]
    assert isinstance(type, FunctionType) and isinstance(name, StringAttr)
    inputs = [llvm_input for input in type.inputs for llvm_input in expanded_types(input)]
    private = op.properties.get("sym_visibility") == StringAttr("private")
    is_declaration = op.regions[0].first_block is None
    body = op.regions[0]
    op.detach_region(body)
    if body.first_block is not None:  # now: an insertion asks for all that is around it
        _convert_entry(body.first_block, c)
        c.run(body)
    abi = ArrayAttr([StringAttr(abi_name(input)) for input in type.inputs])
    kept = {k: v for k, v in op.properties.items() if k not in _SIGNATURE}
    function = llvm.FuncOp(
        name,
        llvm.LLVMFunctionType(inputs, result_type(type.outputs.data)),
        llvm.LinkageAttr("internal" if private and not is_declaration else "external"),
        body=body,
        extra_attrs={**op.attributes, **kept, ABI: abi},
    )
    Rewriter.replace_op(op, function, [])


def _convert_entry(block: Block, c: Conversion) -> None:
    for argument in tuple(block.args):
        types = expanded_types(argument.type)
        if types == [argument.type]:
            continue
        first = argument.index
        values = [block.insert_arg(type, first + i) for i, type in enumerate(types)]
        c.set_argument(argument, *values)


def _return(op: Operation, c: Conversion) -> None:
    values = [c.value(operand) for operand in op.operands]
    if len(values) > 1:
        struct_type = result_type([value.type for value in values])
        struct = c.emit(llvm.UndefOp, (), struct_type)
        for index, value in enumerate(values):
            at = {"position": DenseArrayBase.from_list(i64, [index])}
            struct = c.emit(llvm.InsertValueOp, (struct, value), struct_type, at)
        values = [struct]
    made = c.emit_effect(llvm.ReturnOp, values)
    made.attributes.update(op.attributes)
    c.replace(op)


def _expanded(operand: SSAValue, c: Conversion) -> list[SSAValue]:
    if not isinstance(operand.type, MemRefType):
        return [c.value(operand)]
    d = c.descriptor(operand)
    sizes = [c.sized(size) for size in (d.offset, *d.sizes, *d.strides)]
    return [d.allocated, d.aligned, *sizes]


def call_properties(operands: int) -> dict[str, Attribute]:
    """Those of an `llvm.call` with so many operands, without the `callee`."""
    return {
        "CConv": llvm.CallingConventionAttr("ccc"),
        "TailCallKind": llvm.TailCallKindAttr(llvm.TailCallKind.NONE),
        "op_bundle_sizes": DenseArrayBase.from_list(i32, ()),
        "operandSegmentSizes": DenseArrayBase.from_list(i32, [operands, 0]),
        **STRICT,
    }


def _call(op: Operation, c: Conversion) -> None:
    operands = [value for operand in op.operands for value in _expanded(operand, c)]
    properties = call_properties(len(operands)) | {"callee": op.properties["callee"]}
    types = [result.type for result in op.results]
    if not types:
        c.emit_effect(llvm.CallOp, operands, properties)
        c.replace(op)
        return
    result = c.emit(llvm.CallOp, operands, result_type(types), properties)
    if len(types) == 1:
        c.replace(op, result)
        return
    parts: list[SSAValue] = []
    for index, type in enumerate(types):
        at = {"position": DenseArrayBase.from_list(i64, [index])}
        parts.append(c.emit(llvm.ExtractValueOp, (result,), llvm_type(type), at))
    c.replace(op, *parts)


TABLE: Table = {"func.func": _function, "func.return": _return, "func.call": _call}


class ConvertFuncToLlvmPass(ModulePass):
    """`func` to `llvm`; see the module."""

    name = "convert-func-to-llvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        convert_module(op, TABLE)
