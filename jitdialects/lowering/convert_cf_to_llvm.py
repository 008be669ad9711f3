"""`convert-cf-to-llvm`: branches, and the arguments of the blocks that they reach.

    ^bb1(%i: index):                   ->  ^bb1(%i: i64):
      cf.br ^bb1(%j : index)           ->    llvm.br ^bb1(%j : i64)

Converts the arguments of every block but a function's first, which belong to `convert-func-to-llvm`.
`cf.switch` stays: xDSL's llvm dialect has none.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from jitdialects.lowering.llvm_conversion import Conversion, Table, convert_module


def _branch(op: Operation, c: Conversion) -> None:
    c.emit_effect(llvm.BrOp, [c.value(o) for o in op.operands], successors=op.successors)
    c.replace(op)


def _conditional_branch(op: Operation, c: Conversion) -> None:
    operands = [c.value(operand) for operand in op.operands]
    sizes = {"operandSegmentSizes": op.properties["operandSegmentSizes"]}
    c.emit_effect(llvm.CondBrOp, operands, sizes, op.successors)
    c.replace(op)


TABLE: Table = {"cf.br": _branch, "cf.cond_br": _conditional_branch}


class ConvertCfToLlvmPass(ModulePass):
    """`cf` to `llvm`; see the module."""

    name = "convert-cf-to-llvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        convert_module(op, TABLE)
