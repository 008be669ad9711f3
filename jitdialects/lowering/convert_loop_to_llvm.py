"""`convert-loop-to-llvm`: `loop.parallel` gets the types of the llvm dialect.

    loop.parallel (%b, %e) = (%lower) to (%upper) chunk (%c) : index { B }
    ->
    loop.parallel (%b, %e) = (%lower) to (%upper) chunk (%c) : i64 { B }

It stays a region, which `llvm-outline-parallel` makes a function. Nests are long gone: `convert-loop-to-scf`.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from jitdialects.lowering.llvm_conversion import Conversion, Table, convert_module


def _parallel(op: Operation, c: Conversion) -> None:
    op.operands = [c.value(operand) for operand in op.operands]
    block = op.regions[0].first_block
    assert block is not None
    for argument in tuple(block.args):
        c.set_argument(argument, block.insert_arg(i64, argument.index))


TABLE: Table = {"loop.parallel": _parallel}


class ConvertLoopToLlvmPass(ModulePass):
    """`loop.parallel` in llvm types; see the module."""

    name = "convert-loop-to-llvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        convert_module(op, TABLE)
