"""The compiler as a function of bytes: a compile request in, a compile reply out.

The one module of the runtime that imports xDSL and llvmlite, and only when it is called.
"""

from __future__ import annotations

import time

from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import parse
from jitdialects.errors import CompileError, Error
from jitdialects.runtime.messages import CompileRequest, encode_error, encode_reply
from jitdialects.runtime.native import native_library

ENTRY = "jd_entry"


def prepare(features: str) -> None:
    """Import everything that a request needs, so that none has to wait for it."""
    from jitdialects.dialects.context import make_context
    from jitdialects.lowering.pipelines import cpu_passes
    from jitdialects.runtime.engines.codegen import emit_object

    make_context()
    cpu_passes("main()", features)
    emit_object("", features)


def compile_request(data: bytes, accounted: float | None = None) -> bytes:
    """Serve one request. What this version cannot compile is a reply with an error.

    The reply's `cpu_seconds` are those of this thread since it had used `accounted`; None: since now.
    """
    since = time.thread_time() if accounted is None else accounted
    from xdsl.utils.exceptions import PassFailedException, VerifyException

    try:
        return _compile(CompileRequest.decode(data), since)
    except (Error, PassFailedException, VerifyException) as error:
        return encode_error(str(error))


def _compile(request: CompileRequest, since: float) -> bytes:
    if request.numerics != "strict":
        raise CompileError(f"numerics mode '{request.numerics}' is not supported; use 'strict'")
    started = time.perf_counter()
    from jitdialects.lowering.pipelines import lower_program
    from jitdialects.runtime.engines.codegen import compile_llvm_module

    imported = time.perf_counter()
    program = Program.from_bytes(request.program)
    module, facts = lower_program(
        program,
        parse(request.signature),
        request.features,
        fuse=request.fuse,
        dump=request.dump,
        seconds=request.seconds,
    )
    lowered = time.perf_counter()
    library = compile_llvm_module(module, request.features)
    facts.milliseconds["import"] += (imported - started) * 1e3
    facts.milliseconds["codegen"] = (time.perf_counter() - lowered) * 1e3
    facts.cpu_seconds = time.thread_time() - since
    threads = native_library("thread_pool", request.features) if facts.parallel else b""
    return encode_reply({"entry": ENTRY} | facts.as_json(), library, threads)
