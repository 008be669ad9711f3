"""The named pipelines, and the one function that takes a program down to the `llvm` dialect.

`jit-default` is a pass that runs each pass below in order; `lower_program` runs the same list, times
every stage and collects the facts that a caller of the compiled code needs (docs/architecture.md,
"Compile request and reply"). Both see IR only: no code generation happens here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import Signature
from jitdialects.dialects.constants import CONSTANT
from jitdialects.dialects.loop import PACKED, REMARK
from jitdialects.dialects.tssa_types import DimsAttr, dtype_of, guards_of, shape_of
from jitdialects.errors import CompileTimeError

TARGETS = ("cpu",)
STAGES = {
    "vm": "vm",
    "tssa": "tssa-fuse",
    "loop": "convert-tssa-to-loop",
    "scf": "loop-prefetch",
    "llvm": "llvm-emit-packed-entry",
}
"""Stage names that users ask for -> the pass after which the text is taken."""


def tensor_passes(
    signature: str, features: str, fuse: bool = True, typical: str = "", balance: float = 1.0
) -> tuple[ModulePass, ...]:
    """From `vm` to `tssa` over buffers."""
    from jitdialects.lowering.convert_vm_to_tssa import ConvertVmToTssaPass
    from jitdialects.lowering.tssa_bufferize import TssaBufferizePass
    from jitdialects.passes.tssa_align import TssaAlignPass
    from jitdialects.passes.tssa_cse import TssaCsePass
    from jitdialects.passes.tssa_dce import TssaDcePass
    from jitdialects.passes.tssa_fold_constants import TssaFoldConstantsPass
    from jitdialects.passes.tssa_fuse import TssaFusePass
    from jitdialects.passes.tssa_hoist import TssaHoistPass
    from jitdialects.passes.tssa_if_convert import TssaIfConvertPass
    from jitdialects.passes.tssa_simplify import TssaSimplifyPass
    from jitdialects.passes.tssa_sink_constants import TssaSinkConstantsPass

    return (
        ConvertVmToTssaPass(signature=signature),
        TssaFoldConstantsPass(),
        TssaSimplifyPass(),
        TssaIfConvertPass(features=features),
        TssaCsePass(),
        TssaDcePass(),
        TssaHoistPass(),
        TssaAlignPass(features=features, typical=typical),
        TssaSinkConstantsPass(),
        TssaFusePass(merge=fuse, features=features, typical=typical, balance=balance),
        TssaBufferizePass(),
    )


def loop_passes(features: str, schedule: str = "") -> tuple[ModulePass, ...]:
    """From `tssa` over buffers to `scf` with explicit vectors."""
    from jitdialects.lowering.convert_loop_to_scf import ConvertLoopToScfPass
    from jitdialects.lowering.convert_tssa_to_loop import ConvertTssaToLoopPass
    from jitdialects.passes.loop_distribute import LoopDistributePass
    from jitdialects.passes.loop_divide_by_invariant import LoopDivideByInvariantPass
    from jitdialects.passes.loop_hoist_accumulators import LoopHoistAccumulatorsPass
    from jitdialects.passes.loop_interchange import LoopInterchangePass
    from jitdialects.passes.loop_pack import LoopPackPass
    from jitdialects.passes.loop_pack_constants import LoopPackConstantsPass
    from jitdialects.passes.loop_parallelize import LoopParallelizePass
    from jitdialects.passes.loop_prefetch import LoopPrefetchPass
    from jitdialects.passes.loop_schedule import LoopSchedulePass
    from jitdialects.passes.loop_stream import LoopStreamPass
    from jitdialects.passes.loop_tile import LoopTilePass
    from jitdialects.passes.loop_unroll import LoopUnrollPass
    from jitdialects.passes.loop_unroll_and_jam import LoopUnrollAndJamPass
    from jitdialects.passes.loop_vectorize import LoopVectorizePass

    return (
        ConvertTssaToLoopPass(),
        LoopSchedulePass(features=features, override=schedule),
        LoopTilePass(),
        LoopDistributePass(),
        LoopInterchangePass(),
        ConvertLoopToScfPass(),
        LoopPackConstantsPass(),
        LoopPackPass(),
        LoopHoistAccumulatorsPass(),  # while scalar: vectors of accumulators then need no memory
        LoopVectorizePass(),
        LoopHoistAccumulatorsPass(),  # the lanes of sums, which are vectors in memory until here
        LoopUnrollPass(),
        LoopUnrollAndJamPass(),
        LoopParallelizePass(),
        LoopDivideByInvariantPass(features=features),
        LoopStreamPass(),
        LoopPrefetchPass(),  # last: the copy of a loop whose results stay in the cache needs none
    )


def llvm_passes(features: str) -> tuple[ModulePass, ...]:
    """From `scf`, `vector` and `memref` to the `llvm` dialect with the packed entry, for a machine of `features`."""
    from jitdialects.lowering.convert_to_llvm import ConvertToLlvmPass
    from jitdialects.lowering.expand_elementary import ExpandElementaryPass
    from jitdialects.lowering.llvm_emit_packed_entry import LlvmEmitPackedEntryPass
    from jitdialects.lowering.llvm_outline_parallel import LlvmOutlineParallelPass
    from jitdialects.lowering.lower_scf_to_cf import LowerScfToCfPass

    return (
        ExpandElementaryPass(features=features),
        LowerScfToCfPass(),
        ConvertToLlvmPass(),
        LlvmOutlineParallelPass(),
        LlvmEmitPackedEntryPass(),
    )


def cpu_passes(
    signature: str,
    features: str,
    fuse: bool = True,
    schedule: str = "",
    typical: str = "",
    balance: float = 1.0,
    machine: str = "",
) -> tuple[ModulePass, ...]:
    """Everything from `vm` to `llvm`, for a machine of `features`; or scheduled for one and run by another."""
    return (
        *tensor_passes(signature, features, fuse, typical, balance),
        *loop_passes(features, schedule),
        *llvm_passes(machine or features),
    )


@dataclass(frozen=True)
class JitDefaultPass(ModulePass):
    """`jit-default{target=cpu signature="main(f32[n])"}`: the whole pipeline from `vm` to `llvm`."""

    name = "jit-default"

    signature: str
    target: str = "cpu"
    features: str = "x86-64-v3"
    fuse: bool = True
    schedule: str = ""
    typical: str = ""
    balance: float | int = 1.0

    def passes(self) -> tuple[ModulePass, ...]:
        """The passes, in order; `jit-opt --verify-each` runs them one by one."""
        if self.target not in TARGETS:
            raise PassFailedException(
                f"jit-default: unknown target '{self.target}'; known: {', '.join(TARGETS)}"
            )
        return cpu_passes(
            self.signature, self.features, self.fuse, self.schedule, self.typical, self.balance
        )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in self.passes():
            each.apply(ctx, op)


@dataclass(frozen=True)
class TensorFacts:
    """One argument or result: dtype name, weakness, sizes as dims text."""

    dtype: str
    weak: bool
    sizes: tuple[str, ...]


@dataclass(frozen=True)
class ConstantFacts:
    """A constant that the code takes as an argument: its number in the pool; 0, or the columns of the
    panels it must be packed in."""

    index: int
    tile: int


@dataclass
class Facts:
    """What a caller must know to use the code; every field is plain JSON data after `as_json`."""

    arguments: list[TensorFacts] = field(default_factory=list[TensorFacts])
    constants: list[ConstantFacts] = field(default_factory=list[ConstantFacts])
    """Arguments after the ordinary ones."""
    results: list[TensorFacts] = field(default_factory=list[TensorFacts])
    guards: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """(relation, left, right), relation `==` or `<=`, both sides dims text."""
    arena: str = "0"
    """Bytes of temporaries, dims text."""
    parallel: bool = False
    """Some loop may run on several threads."""
    operators: int = 0
    operators_fused: int = 0
    schedules: list[str] = field(default_factory=list[str])
    """What each loop nest is told to do, in the form of an override."""
    remarks: list[str] = field(default_factory=list[str])
    alternative: float = 0.0
    """The `balance` of a judge of fusion that would decide otherwise what was decided by little; 0: nothing was."""
    weighed: bool = False
    """Fusion was decided by bytes against computing, so by sizes."""
    milliseconds: dict[str, float] = field(default_factory=dict[str, float])
    cpu_seconds: float = 0.0
    stages: dict[str, str] = field(default_factory=dict[str, str])

    def as_json(self) -> dict[str, Any]:
        """A dictionary for `json.dumps`."""
        return asdict(self)


Observer = Callable[[str, ModuleOp], None]
"""Called with the name of each stage and the module after it."""


def lower_program(
    program: Program,
    signature: Signature,
    features: str,
    *,
    fuse: bool = True,
    schedule: str = "",
    typical: str = "",
    balance: float = 1.0,
    machine: str = "",
    dump: bool = False,
    observe: Observer | None = None,
    seconds: float | None = None,
) -> tuple[ModuleOp, Facts]:
    """Lower `signature.function` of a verified program to the `llvm` dialect, for `features`; `machine` is what runs
    it, if that is another level.

    With `dump`, `facts.stages` holds the text after every pass, keyed `00-vm`, `01-<pass>`, ...
    Raises `CompileError` where this version cannot compile the region, and a `CompileTimeError`, between two passes, where
    it has taken more than `seconds`.
    """
    facts = Facts()
    started = time.perf_counter()
    from jitdialects.dialects.context import make_context
    from jitdialects.lowering.bytecode_to_vm import program_to_module

    passes = cpu_passes(str(signature), features, fuse, schedule, typical, balance, machine)
    ctx = make_context()
    facts.milliseconds["import"] = (time.perf_counter() - started) * 1e3
    started = time.perf_counter()
    module = program_to_module(program)
    for index, name in enumerate(("vm", *(p.name for p in passes))):
        if index:
            passes[index - 1].apply(ctx, module)
        spent = (time.perf_counter() - started) * 1e3
        facts.milliseconds[name] = facts.milliseconds.get(name, 0.0) + spent
        _collect(facts, name, passes[index - 1] if index else None, module)
        if dump:
            facts.stages[f"{index:02}-{name}"] = str(module)
        if observe is not None:
            observe(name, module)
        started = time.perf_counter()
        if seconds is not None and sum(facts.milliseconds.values()) > seconds * 1e3:
            raise CompileTimeError(
                f"compiling takes longer than {seconds:g} s (given up after {name}); raise "
                "compile_seconds, or split the function"
            )
    return module, facts


def stage_text(facts: Facts, stage: str) -> str:
    """The dumped text of a stage of `STAGES`; the program was lowered with `dump`."""
    return next(t for name, t in facts.stages.items() if name[3:] == STAGES[stage])


def _collect(facts: Facts, name: str, done: ModulePass | None, module: ModuleOp) -> None:
    """Read from the module what is visible at this stage only."""
    from jitdialects.analysis.fusion_facts import count_operators
    from jitdialects.passes.judging_pass import JudgingPass
    from jitdialects.passes.loop_schedule import LoopSchedulePass
    from jitdialects.passes.tssa_fuse import TssaFusePass

    if name == "convert-vm-to-tssa":
        function = _function(module)
        inputs, outputs = function.function_type.inputs.data, function.function_type.outputs.data
        ordinary = len(inputs) - len(_constants(function))
        facts.arguments = _tensors(inputs[:ordinary], function.arg_attrs)
        facts.results = _tensors(outputs, function.res_attrs)
        for relation, left, right in (g.data for g in guards_of(function)):
            facts.guards.append((relation, str(left), str(right)))
    elif isinstance(done, JudgingPass):
        facts.remarks += done.remarks
        if isinstance(done, TssaFusePass):
            facts.operators, facts.operators_fused = count_operators(module)
            facts.alternative = next(iter(done.alternatives), 0.0)
            facts.weighed = bool(done.judgements)
    elif isinstance(done, LoopSchedulePass):
        facts.schedules = list(done.chosen)
    elif name == "tssa-bufferize":
        arena = _function(module).attributes.get("tssa.arena")
        if isinstance(arena, DimsAttr):
            facts.arena = str(arena.data[0])
    elif name == STAGES["scf"]:
        facts.constants = _constants(_function(module))
        facts.parallel = any(op.name == "loop.parallel" for op in module.walk())
        remarks = (op.attributes.get(REMARK) for op in module.walk())
        facts.remarks += [remark.data for remark in remarks if isinstance(remark, StringAttr)]


def _function(module: ModuleOp) -> FuncOp:
    return next(op for op in module.ops if isinstance(op, FuncOp))


def _tensors(
    types: Sequence[Attribute], marks: ArrayAttr[DictionaryAttr] | None
) -> list[TensorFacts]:
    weak = [False] * len(types) if marks is None else ["tssa.weak" in m.data for m in marks]
    return [
        TensorFacts(dtype_of(t).name, w, tuple(map(str, shape_of(t))))
        for t, w in zip(types, weak, strict=False)
    ]


def _constants(function: FuncOp) -> list[ConstantFacts]:
    """The arguments that are constants, in their order."""
    return [
        ConstantFacts(_number(marks, CONSTANT), _number(marks, PACKED))
        for marks in function.arg_attrs or ()
        if CONSTANT in marks.data
    ]


def _number(marks: DictionaryAttr, name: str) -> int:
    value = marks.data.get(name)
    return value.value.data if isinstance(value, IntegerAttr) else 0
