"""`convert-math-to-llvm`: the exactly rounded part of `math` becomes intrinsics of the llvm dialect.

    %0 = math.fma %a, %b, %c : vector<8xf32>  ->  %0 = llvm.intr.fma(%a, %b, %c) : (...) -> vector<8xf32>
    %1 = math.ctpop %x : i64                  ->  %1 = llvm.intr.ctpop(%x) : (i64) -> i64

`math.exp`, `rsqrt`, `tanh`, `log`, `erf` and `loop.elementary` are refused: code generation would call libm for each lane,
whose bits differ between machines; run `expand-elementary` before. Other operations of `math` stay.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import BoolAttr, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from jitdialects.dialects import upstream_llvm
from jitdialects.lowering.convert_arith_to_llvm import STRICT, one_to_one
from jitdialects.lowering.llvm_conversion import Conversion, Table, convert_module

_ZERO_IS_DEFINED = {"is_zero_poison": BoolAttr.from_bool(False)}
_MINIMUM_IS_DEFINED = {"is_int_min_poison": BoolAttr.from_bool(False)}


def _refuse(op: Operation, c: Conversion) -> None:
    raise PassFailedException(
        f"convert-math-to-llvm has no exact form of {op.name}: run expand-elementary before it"
    )


TABLE: Table = {
    "math.fma": one_to_one(llvm.FMAOp, STRICT),
    "math.sqrt": one_to_one(llvm.FSqrtOp, STRICT),
    "math.absf": one_to_one(llvm.FAbsOp, STRICT),
    "math.copysign": one_to_one(llvm.FCopySignOp, STRICT),
    "math.floor": one_to_one(llvm.FFloorOp, STRICT),
    "math.ceil": one_to_one(llvm.FCeilOp, STRICT),
    "math.trunc": one_to_one(upstream_llvm.FTruncOp, STRICT),
    "math.roundeven": one_to_one(upstream_llvm.RoundEvenOp, STRICT),
    "math.absi": one_to_one(upstream_llvm.AbsOp, _MINIMUM_IS_DEFINED),
    "math.ctpop": one_to_one(upstream_llvm.CtPopOp),
    "math.cttz": one_to_one(upstream_llvm.CountTrailingZerosOp, _ZERO_IS_DEFINED),
    "math.ctlz": one_to_one(upstream_llvm.CountLeadingZerosOp, _ZERO_IS_DEFINED),
    "math.exp": _refuse,
    "math.rsqrt": _refuse,
    "math.tanh": _refuse,
    "math.log": _refuse,
    "math.erf": _refuse,
    "loop.elementary": _refuse,
}


class ConvertMathToLlvmPass(ModulePass):
    """`math` to `llvm`; see the module."""

    name = "convert-math-to-llvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        convert_module(op, TABLE)
