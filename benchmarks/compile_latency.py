"""Milliseconds from the decision to compile to the first compiled call, by stage.

    python benchmarks/compile_latency.py [mlp gelu newton] [--repeat 5]

Each repetition is a fresh process that has compiled nothing: it imports the compiler (listed apart), then
times a compile request to its reply, the library to a kernel, and the first call. Medians are printed.
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
from itertools import pairwise
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).parent.parent / "examples"
SIGNATURES = {
    "mlp": "main(f32[n,784], f32[784,512], f32[512], f32[512,256], f32[256], f32[256,10], f32[10])",
    "gelu": "main(f32[n], f32[], f32[])",
    "newton": "main(f32[n], f32[])",
}


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


def main() -> None:
    parser = argparse.ArgumentParser(description="compile latency, cold process")
    parser.add_argument("programs", nargs="*", default=["mlp", "gelu"])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--once", help=argparse.SUPPRESS)
    options = parser.parse_args()
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
