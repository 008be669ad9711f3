"""What the runtime itself needs in machine code, as LLVM text beside this file; tensor kernels never.

`thread_pool.ll`: threads that run parts of parallel loops must not hold the GIL, so no Python can be in them.
`vectorcall.ll`, `arrays.ll` and `call_stub`: what a call of a compiled function passes through takes less than 100 ns, where Python takes 8 us.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_TEXTS = {"thread_pool": ("thread_pool",), "vectorcall": ("vectorcall", "arrays")}
"""Library -> the texts that it is made of."""


@cache
def native_library(name: str, features: str) -> bytes:
    """The library `name` for a feature level: 15 ms, once. Imports llvmlite."""
    from jitdialects.runtime.engines.codegen import emit_object
    from jitdialects.runtime.engines.elf_link import link

    texts = [Path(__file__).with_name(f"{text}.ll").read_text() for text in _TEXTS[name]]
    return link([emit_object(text, features) for text in texts], needed=("libc.so.6",))
