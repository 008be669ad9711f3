"""The texts of a captured program on its way to machine code, for reading and for `diff`."""

from __future__ import annotations

from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import Signature
from jitdialects.errors import ArgumentError

DIALECT_STAGES = ("vm", "tssa", "loop", "scf", "llvm")
STAGES = ("bytecode", *DIALECT_STAGES, "llvm-ir", "asm")
"""Stages in the order in which a program passes through them."""


def stage_text(program: Program, signature: Signature, stage: str, schedule: str = "") -> str:
    """`program` for `signature` after `stage`; `CompileError` where it cannot be compiled."""
    if stage not in STAGES:
        raise ArgumentError(f"lower: unknown stage {stage!r}; use one of {', '.join(STAGES)}")
    if stage == "bytecode":
        return program.to_text()
    from jitdialects.dialects.loop import INTERLEAVE
    from jitdialects.lowering import pipelines  # xDSL is needed only here
    from jitdialects.runtime.engines.codegen import emit_assembly, function_attributes
    from jitdialects.runtime.engines.llvm_text import llvm_ir
    from jitdialects.runtime.identity import feature_level

    features = feature_level()
    module, facts = pipelines.lower_program(
        program, signature, features, schedule=schedule, dump=stage in DIALECT_STAGES
    )
    if stage in DIALECT_STAGES:
        return pipelines.stage_text(facts, stage)
    text = llvm_ir(module, function_attributes(features))
    interleave = INTERLEAVE in module.attributes
    return text if stage == "llvm-ir" else emit_assembly(text, features, interleave)
