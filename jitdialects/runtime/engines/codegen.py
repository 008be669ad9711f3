"""LLVM IR text to machine code, through llvmlite. Nothing here changes what a program computes.

No mid-level pass runs: vectors, unrolling and order are explicit in the IR, and code generation alone costs
a quarter of what -O2 does. Targets are the x86-64 feature levels, so that code can be kept for machines of
the same level. fp-contract stays at its default, under which LLVM fuses only what is flagged for it: a
product and a sum stay two roundings.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from jitdialects.config import FEATURE_LEVELS
from jitdialects.dialects.loop import INTERLEAVE
from jitdialects.errors import CompileError

_TRIPLE = "x86_64-unknown-linux-gnu"


@cache
def _binding() -> Any:
    """llvmlite.binding, set up once for this process."""
    llvm: Any = import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # Loop strength reduction rewrites addresses that the lowering has already shared: it costs a
    # fifth of code generation and gains nothing. The option holds for all of the process, which is
    # the compile server's.
    llvm.set_option("jitdialects", "-disable-lsr")
    return llvm


def _check_host() -> None:
    if platform.machine() not in ("x86_64", "AMD64"):
        raise CompileError(
            f"code generation needs an x86-64 CPU, this is {platform.machine()}: programs run "
            "interpreted here"
        )


@cache
def _target_machine(features: str, opt: int) -> Any:
    if features not in FEATURE_LEVELS:
        raise CompileError(
            f"unknown feature level '{features}'; known: {', '.join(FEATURE_LEVELS)}"
        )
    cpu = "x86-64" if features == FEATURE_LEVELS[0] else features
    target = _binding().Target.from_triple(_TRIPLE)
    # reloc and codemodel must be named: llvmlite's defaults are static and large.
    return target.create_target_machine(cpu=cpu, opt=opt, reloc="pic", codemodel="small")


def function_attributes(features: str) -> tuple[str, ...]:
    """LLVM attributes that every function gets on `features`."""
    if features == "x86-64-v4":
        # Else LLVM splits 16 lanes in two, for fear of lower clocks.
        return ("nounwind", '"prefer-vector-width"="512"')
    return ("nounwind",)


def _parse(llvm_ir: str, machine: Any) -> Any:
    try:
        module = _binding().parse_assembly(llvm_ir)
        module.verify()  # code generation crashes on IR that it would refuse
    except RuntimeError as error:
        raise CompileError(f"LLVM refuses the IR text: {error}") from error
    module.triple = _TRIPLE
    module.data_layout = str(machine.target_data)
    return module


class _Pressure:
    """Whether LLVM's scheduler looks at register pressure: an option of the process, not of a module."""

    ignored = False

    @classmethod
    def set(cls, ignored: bool) -> None:
        if ignored != cls.ignored:
            value = "false" if ignored else "true"
            _binding().set_option("jitdialects", f"-misched-regpressure={value}")
            cls.ignored = ignored


def emit_object(llvm_ir: str, features: str, opt: int = 2, interleave: bool = False) -> bytes:
    """A relocatable ELF object for `features`. Raises `CompileError` for text that LLVM refuses.

    `interleave`: the parts of a vector that takes several registers stay side by side, though it takes more
    registers; else LLVM does them one after the other, and each step waits for the one before it.
    """
    machine = _target_machine(features, opt)
    _Pressure.set(interleave)
    return machine.emit_object(_parse(llvm_ir, machine))


def emit_assembly(llvm_ir: str, features: str, interleave: bool = False) -> str:
    """The same code as assembly text."""
    machine = _target_machine(features, 2)
    _Pressure.set(interleave)
    return machine.emit_assembly(_parse(llvm_ir, machine))


def compile_llvm_module(
    module: ModuleOp,
    features: str,
    texts: Sequence[str] = (),
    title: Callable[[str], str] | None = None,
    source: str = "",
) -> bytes:
    """An llvm dialect module as a shared library, whose dynamic symbols are its external functions; `texts` is
    LLVM IR that becomes part of it, translated the fast way: it runs once per call.

    `title` gives its other functions names for debuggers and profilers. `source`: the file in which people have
    `kernel_text(module, features)`, for line tables; "" for none. Raises `CompileError` on other architectures.
    """
    from jitdialects.runtime.engines.elf_link import link

    return link(compile_llvm_objects(module, features, texts, title, source), title=title)


def compile_llvm_objects(
    module: ModuleOp,
    features: str,
    texts: Sequence[str] = (),
    title: Callable[[str], str] | None = None,
    source: str = "",
) -> list[bytes]:
    """The same as the objects that make up the library."""
    from jitdialects.runtime.engines.debug_info import with_lines

    _check_host()
    text = kernel_text(module, features)
    if source:
        text = with_lines(text, source, lambda name: (title and title(name)) or name)
    kernel = emit_object(text, features, interleave=INTERLEAVE in module.attributes)
    more = [emit_object(text, features, opt=0) for text in texts]
    return [kernel, *more]


def kernel_text(module: ModuleOp, features: str) -> str:
    """An llvm dialect module as LLVM IR."""
    from jitdialects.runtime.engines.llvm_text import llvm_ir

    return llvm_ir(module, function_attributes(features))


def compile_llvm_object(module: ModuleOp, features: str) -> bytes:
    """An llvm dialect module as a relocatable object. Raises `CompileError` on other architectures."""
    _check_host()
    text = kernel_text(module, features)
    return emit_object(text, features, interleave=INTERLEAVE in module.attributes)
