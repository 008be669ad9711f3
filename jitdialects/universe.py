"""The `xdsl.universe` entry point: what `xdsl-opt` and `jit-opt` find after an install.

Names map to factories that import when called, since a universe that fails to import breaks
`xdsl-opt` for everyone, whatever pass they run. So nothing but xDSL's types is imported at module
level. A pass is one row in `_PASSES`; its name, its file and its class must agree, which a test
checks.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from xdsl.universe import Universe


def _factory(where: str) -> Callable[[], Any]:
    """A function that imports `module:Name` (below `jitdialects`) when it is called."""
    module, name = where.split(":")

    def load() -> Any:
        return getattr(import_module(f"jitdialects.{module}"), name)

    return load


_DIALECTS: dict[str, str] = {
    "loop": "dialects.loop:LOOP",
    "tssa": "dialects.tssa:TSSA",
    "vm": "dialects.vm:VM",
}

_PASSES: dict[str, str] = {
    "convert-arith-to-llvm": "lowering.convert_arith_to_llvm:ConvertArithToLlvmPass",
    "convert-cf-to-llvm": "lowering.convert_cf_to_llvm:ConvertCfToLlvmPass",
    "convert-func-to-llvm": "lowering.convert_func_to_llvm:ConvertFuncToLlvmPass",
    "convert-loop-to-llvm": "lowering.convert_loop_to_llvm:ConvertLoopToLlvmPass",
    "convert-loop-to-scf": "lowering.convert_loop_to_scf:ConvertLoopToScfPass",
    "convert-math-to-llvm": "lowering.convert_math_to_llvm:ConvertMathToLlvmPass",
    "convert-memref-to-llvm": "lowering.convert_memref_to_llvm:ConvertMemrefToLlvmPass",
    "convert-to-llvm": "lowering.convert_to_llvm:ConvertToLlvmPass",
    "convert-tssa-to-loop": "lowering.convert_tssa_to_loop:ConvertTssaToLoopPass",
    "convert-vector-to-llvm": "lowering.convert_vector_to_llvm:ConvertVectorToLlvmPass",
    "convert-vm-to-tssa": "lowering.convert_vm_to_tssa:ConvertVmToTssaPass",
    "expand-elementary": "lowering.expand_elementary:ExpandElementaryPass",
    "jit-default": "lowering.pipelines:JitDefaultPass",
    "llvm-emit-packed-entry": "lowering.llvm_emit_packed_entry:LlvmEmitPackedEntryPass",
    "llvm-outline-parallel": "lowering.llvm_outline_parallel:LlvmOutlineParallelPass",
    "loop-hoist-accumulators": "passes.loop_hoist_accumulators:LoopHoistAccumulatorsPass",
    "loop-interchange": "passes.loop_interchange:LoopInterchangePass",
    "loop-parallelize": "passes.loop_parallelize:LoopParallelizePass",
    "loop-pack": "passes.loop_pack:LoopPackPass",
    "loop-pack-constants": "passes.loop_pack_constants:LoopPackConstantsPass",
    "loop-prefetch": "passes.loop_prefetch:LoopPrefetchPass",
    "loop-schedule": "passes.loop_schedule:LoopSchedulePass",
    "loop-stream": "passes.loop_stream:LoopStreamPass",
    "loop-distribute": "passes.loop_distribute:LoopDistributePass",
    "loop-divide-by-invariant": "passes.loop_divide_by_invariant:LoopDivideByInvariantPass",
    "loop-tile": "passes.loop_tile:LoopTilePass",
    "loop-unroll": "passes.loop_unroll:LoopUnrollPass",
    "loop-unroll-and-jam": "passes.loop_unroll_and_jam:LoopUnrollAndJamPass",
    "loop-vectorize": "passes.loop_vectorize:LoopVectorizePass",
    "lower-scf-to-cf": "lowering.lower_scf_to_cf:LowerScfToCfPass",
    "tssa-align": "passes.tssa_align:TssaAlignPass",
    "tssa-bufferize": "lowering.tssa_bufferize:TssaBufferizePass",
    "tssa-cse": "passes.tssa_cse:TssaCsePass",
    "tssa-dce": "passes.tssa_dce:TssaDcePass",
    "tssa-fold-constants": "passes.tssa_fold_constants:TssaFoldConstantsPass",
    "tssa-fuse": "passes.tssa_fuse:TssaFusePass",
    "tssa-hoist": "passes.tssa_hoist:TssaHoistPass",
    "tssa-if-convert": "passes.tssa_if_convert:TssaIfConvertPass",
    "tssa-simplify": "passes.tssa_simplify:TssaSimplifyPass",
    "tssa-sink-constants": "passes.tssa_sink_constants:TssaSinkConstantsPass",
}

_FRONTENDS: dict[str, str] = {
    "jasm": "lowering.bytecode_frontends:JasmFrontend",
    "jbc": "lowering.bytecode_frontends:JbcFrontend",
}
"""The name of a frontend is also the extension of its files."""

_TARGETS: dict[str, str] = {"c": "lowering.c_view:CTarget"}

JITDIALECTS_UNIVERSE = Universe(
    all_dialects={name: _factory(where) for name, where in _DIALECTS.items()},
    all_passes={name: _factory(where) for name, where in _PASSES.items()},
    all_frontends={name: _factory(where) for name, where in _FRONTENDS.items()},
    all_targets={name: _factory(where) for name, where in _TARGETS.items()},
)
