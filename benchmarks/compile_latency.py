"""Milliseconds from the decision to compile to the first compiled call, by stage.

    python benchmarks/compile_latency.py [mlp gelu newton] [--repeat 5] [--passes]

Each repetition is a fresh process that has compiled nothing: it imports the compiler (listed apart), then
times a compile request to its reply, the library to a kernel, and the first call. Medians are printed.
`--passes` asks what each pass costs: processor time (the least of several runs), operations created, and the
calls of functions, which do not depend on how busy the machine is. It knows `softmax` and `layernorm` too.
Pin a core and keep the machine quiet: `taskset -c 1 python benchmarks/compile_latency.py`.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jitdialects.bytecode.program import Program

EXAMPLES = Path(__file__).parent.parent / "examples"
SIGNATURES = {
    "mlp": "main(f32[n,784], f32[784,512], f32[512], f32[512,256], f32[256], f32[256,10], f32[10])",
    "gelu": "main(f32[n], f32[], f32[])",
    "newton": "main(f32[n], f32[])",
}
MORE_SIGNATURES = {"softmax": "main(f32[m,n])", "layernorm": "main(f32[m,n], f32[n], f32[n])"}
"""Programs for `--passes`, traced."""


def measure(name: str) -> dict[str, float]:
    """One cold compile in this process; milliseconds by stage, in order."""
    from jitdialects.bytecode.program import Program
    from jitdialects.bytecode.signature import parse
    from jitdialects.runtime.cache import CacheKey, KernelCache
    from jitdialects.runtime.identity import compiler_version, feature_level, fingerprint
    from jitdialects.runtime.messages import CompileReply, CompileRequest
    from jitdialects.runtime.pool import default_pool

    program = Program.from_text((EXAMPLES / f"{name}.jasm").read_text())
    signature = parse(SIGNATURES[name])
    rng = np.random.default_rng(0)
    arguments = [
        rng.random([s if isinstance(s, int) else 32 for s in a.shape], dtype=np.float32)
        for a in signature.arguments
    ]
    key = CacheKey(
        fingerprint(program, "main"), str(signature), feature_level(), compiler_version(), "strict"
    )
    marks = [("", time.perf_counter())]
    from jitdialects.dialects import context
    from jitdialects.lowering import pipelines
    from jitdialects.runtime.compiler import compile_request
    from jitdialects.runtime.engines import codegen

    gc.disable()  # as the compile service does while it compiles
    context.make_context()
    pipelines.cpu_passes(str(signature), feature_level())
    codegen.emit_object("", feature_level())
    marks.append(("imports and LLVM's start, apart", time.perf_counter()))
    request = CompileRequest(program.to_bytes(), "main", str(signature), feature_level(), "strict")
    reply = CompileReply.decode(compile_request(request.encode()))
    marks.append(("request to reply", time.perf_counter()))
    entry = KernelCache().store(key, reply, ())
    marks.append(("library to kernel", time.perf_counter()))
    assert entry.kernel.invoke(arguments, default_pool) is not None
    marks.append(("first call", time.perf_counter()))
    spans = {b[0]: (b[1] - a[1]) * 1e3 for a, b in pairwise(marks)}
    total = sum(spans.values()) - spans["imports and LLVM's start, apart"]
    return spans | {f"  {k}": v for k, v in reply.milliseconds.items()} | {"total": total}


def load(name: str) -> tuple[Program, str]:
    """The program of that name and its signature."""
    import jitdialects as jd
    import jitdialects.numpy as jnp
    from jitdialects.bytecode.program import Program
    from jitdialects.bytecode.signature import parse

    if name in SIGNATURES:
        return Program.from_text((EXAMPLES / f"{name}.jasm").read_text()), SIGNATURES[name]

    def softmax(x: Any) -> Any:
        e = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
        return e / jnp.sum(e, axis=-1, keepdims=True)

    def layernorm(x: Any, gain: Any, bias: Any) -> Any:
        mean, var = (f(x, axis=-1, keepdims=True) for f in (jnp.mean, jnp.var))
        return (x - mean) / jnp.sqrt(var + 1e-5) * gain + bias

    function = jd.jit({"softmax": softmax, "layernorm": layernorm}[name])
    signature = parse(MORE_SIGNATURES[name])
    function(*(np.ones([3] * len(a.shape), np.float32) for a in signature.arguments))
    return function.program, MORE_SIGNATURES[name].replace(
        "main", function.program.functions[0].name
    )


def count(work: Callable[[], object]) -> tuple[int, int]:
    """Operations that `work` makes, and calls of functions. What runs later is slow: CPython does not
    forget that a class had a `__new__` of its own."""
    from xdsl.ir import Operation

    made = calls = 0

    def make(kind: type[Any], *_: Any, **__: Any) -> Any:
        nonlocal made
        made += 1
        return object.__new__(kind)

    def called(_: FrameType, event: str, __: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    type.__setattr__(Operation, "__new__", make)
    sys.setprofile(called)
    work()
    sys.setprofile(None)
    return made, calls


def run_passes(
    program: Program, signature: str, cost: Callable[[Callable[[], object]], Any]
) -> list[tuple[str, Any]]:
    """The import of the bytecode and each pass, with what `cost` says of it, which has to run it."""
    from jitdialects.dialects.context import make_context
    from jitdialects.lowering.bytecode_to_vm import program_to_module
    from jitdialects.lowering.pipelines import cpu_passes
    from jitdialects.runtime.identity import feature_level

    modules: list[Any] = []
    rows = [("vm", cost(lambda: modules.append(program_to_module(program))))]
    context = make_context()
    for each in cpu_passes(signature, feature_level()):
        rows.append((each.name, cost(partial(each.apply, context, modules[0]))))
    return rows


def processor_time(work: Callable[[], object]) -> float:
    """Milliseconds of this process."""
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1e3


def print_passes(names: Sequence[str], repeat: int) -> None:
    """For each program a table of all passes, the dearest first."""
    programs = {name: load(name) for name in names}
    gc.disable()
    times = {
        name: [run_passes(*program, processor_time) for _ in range(repeat + 1)]
        for name, program in programs.items()
    }
    for name, program in programs.items():
        table = [
            (min(run[i][1] for run in times[name]), *counts, each)
            for i, (each, counts) in enumerate(run_passes(*program, count))
        ]
        print(f"{name}: {program[1]}\n        ms  created    calls")
        for row in sorted(table, reverse=True):
            print("  {:8.2f} {:8} {:8}  {}".format(*row))
        print("  {:8.2f} {:8} {:8}  all".format(*(sum(row[i] for row in table) for i in range(3))))


def main() -> None:
    parser = argparse.ArgumentParser(description="compile latency, cold process")
    parser.add_argument("programs", nargs="*", default=["mlp", "gelu"])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--passes", action="store_true", help="what each pass costs")
    parser.add_argument("--once", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.passes:
        print_passes(options.programs, options.repeat)
        return
    if options.once:
        print(json.dumps(measure(options.once)))
        return
    for name in options.programs:
        command = [sys.executable, __file__, "--once", name]
        runs = [
            json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            for _ in range(options.repeat)
        ]
        print(f"{name}: {SIGNATURES[name]}")
        for stage in runs[0]:
            print(f"  {statistics.median(r[stage] for r in runs):8.2f} ms  {stage}")


if __name__ == "__main__":
    main()
