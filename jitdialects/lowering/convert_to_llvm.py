"""`convert-to-llvm`: the conversions of arith, cf, func, loop, math, memref and vector in one walk.

The same tables as the passes of each dialect, so the same code; but no value ever crosses from one pass
to the next, so there are no casts to reconcile and no descriptors to take apart again, and the IR is
visited once. `loop.parallel` stays, with its operands converted, for
`llvm-outline-parallel`. Needs `lower-scf-to-cf` and `expand-elementary` before.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from jitdialects.lowering import (
    convert_arith_to_llvm,
    convert_cf_to_llvm,
    convert_func_to_llvm,
    convert_loop_to_llvm,
    convert_math_to_llvm,
    convert_memref_to_llvm,
    convert_vector_to_llvm,
)
from jitdialects.lowering.llvm_conversion import Table, convert_module

TABLE: Table = {
    **convert_arith_to_llvm.TABLE,
    **convert_cf_to_llvm.TABLE,
    **convert_func_to_llvm.TABLE,
    **convert_loop_to_llvm.TABLE,
    **convert_math_to_llvm.TABLE,
    **convert_memref_to_llvm.TABLE,
    **convert_vector_to_llvm.TABLE,
}


class ConvertToLlvmPass(ModulePass):
    """All conversions to `llvm` together; see the module."""

    name = "convert-to-llvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        convert_module(op, TABLE)
