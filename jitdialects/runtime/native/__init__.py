"""What the runtime itself needs in machine code, as LLVM text beside this file; tensor kernels never.

`thread_pool.ll`: threads that run parts of parallel loops must not hold the GIL, so no Python can be in them.
`vectorcall.ll`, `arrays.ll` and `call_stub`: what a call of a compiled function passes through takes less than 100 ns, where Python takes 8 us.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

from jitdialects.config import config
from jitdialects.errors import Error

_TEXTS = {"thread_pool": ("thread_pool",), "vectorcall": ("vectorcall", "arrays")}
"""Library -> the texts that it is made of."""


@cache
def native_library(name: str, features: str) -> bytes:
    """The library `name` for a feature level. Making one takes 15 ms and llvmlite, so they are kept beside the
    kernel pack."""
    from jitdialects.runtime import pack_file
    from jitdialects.runtime.engines.dlopen import write_whole
    from jitdialects.runtime.identity import compiler_version

    folder = config.cache_dir
    if folder is None:
        return _make(name, features)
    origin = f"native {name} {features} {compiler_version()}"
    path = folder / f"{origin.replace(' ', '-')}.so"
    with suppress(OSError, Error):  # what cannot be used is made again
        stored = pack_file.read(path, origin)
        if stored is not None:
            return stored[1]
    made = _make(name, features)
    with suppress(OSError, Error):  # the next process makes it
        write_whole(path, pack_file.encode(origin, {}, made))
    return made


def _make(name: str, features: str) -> bytes:
    from jitdialects.runtime.engines.codegen import emit_object
    from jitdialects.runtime.engines.elf_link import link

    texts = [Path(__file__).with_name(f"{text}.ll").read_text() for text in _TEXTS[name]]
    return link([emit_object(text, features) for text in texts], needed=("libc.so.6",))
