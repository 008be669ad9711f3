"""The compiler as a function of bytes: a compile request in, a compile reply out.

The one module of the runtime that imports xDSL and llvmlite, and only when it is called.
"""

from __future__ import annotations

import time
from functools import partial
from importlib import import_module
from itertools import chain

from jitdialects.bytecode.program import Program
from jitdialects.bytecode.signature import parse
from jitdialects.config import FEATURE_LEVELS
from jitdialects.errors import CompileError, CompileTimeError, Error
from jitdialects.runtime.constants import PACKED_RANK
from jitdialects.runtime.messages import (
    LLVM_IR,
    CompileReply,
    CompileRequest,
    ConstantFact,
    encode_error,
    encode_reply,
)
from jitdialects.runtime.native import native_library
from jitdialects.runtime.native.call_stub import is_servable, stub_text

ENTRY = "jd_entry"
_IMPORTED_LATE = (
    "analysis.fusion_facts",
    "lowering.bytecode_to_vm",
    "runtime.engines.debug_info",
    "runtime.engines.elf_link",
    "runtime.engines.instruction_level",
    "runtime.engines.llvm_text",
)


def prepare(features: str) -> None:
    """Import everything that a request needs, so that none has to wait for it."""
    from jitdialects.dialects.context import make_context
    from jitdialects.lowering.pipelines import cpu_passes
    from jitdialects.runtime.engines.codegen import emit_object

    make_context()
    cpu_passes("main()", features)
    emit_object("", features)
    for name in _IMPORTED_LATE:
        import_module(f"jitdialects.{name}")


def prepare_in_turn() -> None:
    """What else a request needs; a thread of the server does it while that waits for the first."""
    from jitdialects.runtime.engines import instruction_level

    instruction_level.prepare()


def compile_request(data: bytes, accounted: float | None = None) -> bytes:
    """Serve one request. What this version cannot compile is a reply with an error.

    The reply's `cpu_seconds` are those of this thread since it had used `accounted`; None: since now.
    """
    since = time.thread_time() if accounted is None else accounted
    from xdsl.utils.exceptions import PassFailedException, VerifyException

    try:
        return _compile(CompileRequest.decode(data), since)
    except (Error, PassFailedException, VerifyException) as error:
        final = not isinstance(error, CompileTimeError | MemoryError)
        return encode_error(str(error), time.thread_time() - since, final=final)


def _compile(request: CompileRequest, since: float) -> bytes:
    if request.numerics != "strict":
        raise CompileError(f"numerics mode '{request.numerics}' is not supported; use 'strict'")
    started = time.perf_counter()
    from jitdialects.lowering.pipelines import lower_program
    from jitdialects.runtime.engines.codegen import (
        compile_llvm_object,
        compile_llvm_objects,
        kernel_text,
    )
    from jitdialects.runtime.engines.elf_link import code_sections, link
    from jitdialects.runtime.engines.instruction_level import lowest_level

    imported = time.perf_counter()
    program = Program.from_bytes(request.program)
    signature = parse(request.signature)
    module, facts = lower_program(
        program,
        signature,
        request.features,
        fuse=request.fuse,
        schedule=request.schedule,
        typical=request.typical,
        balance=request.balance,
        dump=request.dump,
        seconds=request.seconds,
    )
    lowered = time.perf_counter()
    reply = CompileReply.decode(encode_reply({"entry": ENTRY} | facts.as_json(), b""))
    texts: list[str] = []
    if not request.bare and is_servable(reply):
        words = [_words(program, constant) for constant in reply.constants]
        texts.append(stub_text(signature, reply, words))
    if request.bare:
        code, level = compile_llvm_object(module, request.features), ""
    else:
        title = partial(_title, str(signature))
        objects = compile_llvm_objects(module, request.features, texts, title, request.source)
        code = link(objects, title=title)
        level = lowest_level(chain(*map(code_sections, objects)), request.features)
    if request.dump:
        facts.stages[LLVM_IR] = kernel_text(module, request.features)
    facts.milliseconds["import"] += (imported - started) * 1e3
    facts.milliseconds["codegen"] = (time.perf_counter() - lowered) * 1e3
    facts.cpu_seconds = time.thread_time() - since
    wanted = ["thread_pool"] * facts.parallel + ["vectorcall"] * bool(texts)
    # for any CPU, as the code may be kept for others than this one
    natives = {name: native_library(name, FEATURE_LEVELS[0]) for name in wanted}
    meta = {"entry": ENTRY} | facts.as_json()
    return encode_reply(meta, code, natives, stub=bool(texts), level=level)


def _title(signature: str, function: str) -> str:
    """What profilers and debuggers call a function of the code for `signature`: that, and what it does there."""
    main = signature.partition("(")[0]
    return signature if function == main else f"{signature} {function.removeprefix(main + '.')}"


def _words(program: Program, constant: ConstantFact) -> int:
    """What a constant takes in the kernel ABI: its address, sizes and strides."""
    rank = PACKED_RANK if constant.tile else program.constants[constant.index].value.ndim
    return 1 + 2 * rank
