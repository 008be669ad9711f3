"""The kernel pack: the operators whose bits NumPy does not give, one compiled kernel each.

Each kernel is a program of one operator over collapsed shapes (`KERNELS`), compiled by the same pipeline
as everything else, when an operator is first needed; so the interpreter and compiled code agree to the bit.
The pack of a feature level is one file in `config.cache_dir`, which later processes load without xDSL or
llvmlite. A file that is cut off, altered or made by another compiler is replaced.
`python -m jitdialects.runtime.pack` makes the file ahead of time.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import struct
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jitdialects.bytecode.attributes import Attribute
from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.signature import parse
from jitdialects.config import config
from jitdialects.errors import CompileError, Error
from jitdialects.runtime.cache import CacheKey, KernelCache, shared_engine
from jitdialects.runtime.dispatch import Kernel
from jitdialects.runtime.engines.dlopen import private_folder
from jitdialects.runtime.identity import compiler_version, feature_level
from jitdialects.runtime.messages import CompileReply, CompileRequest
from jitdialects.runtime.pool import MemoryPool
from jitdialects.runtime.compile_server import default_server
from jitdialects.runtime.service import Compile, CompileService
from jitdialects.runtime.values import Array

MAGIC, VERSION = b"JDPK", 1
_HEAD = struct.Struct("<4sI32s")
_LENGTH = struct.Struct("<I")
_DIGEST_BYTES = 32


@dataclass(frozen=True)
class KernelSpec:
    """An operator and the collapsed shapes that it is compiled for."""

    operator: str
    arguments: tuple[str, ...]
    attributes: tuple[tuple[str, Attribute], ...] = ()

    @property
    def signature(self) -> str:
        """What is compiled."""
        return f"main({', '.join(self.arguments)})"

    def program(self) -> bytes:
        """The program of this one operator."""
        builder = ProgramBuilder()
        main = builder.function("main", len(self.arguments))
        main.returns(
            main.apply(self.operator, *main.parameters, into=None, **dict(self.attributes))
        )
        return builder.finish().to_bytes()


_LAST = (("axis", -1),)
KERNELS = {
    "exp": KernelSpec("exp", ("f32[n]",)),
    "tanh": KernelSpec("tanh", ("f32[n]",)),
    "minimum": KernelSpec("minimum", ("f32[n]", "f32[n]")),
    "maximum": KernelSpec("maximum", ("f32[n]", "f32[n]")),
    "sum": KernelSpec("sum", ("f32[m,n]",), _LAST),
    "max": KernelSpec("max", ("f32[m,n]",), _LAST),
    "matmul": KernelSpec("matmul", ("f32[m,k]", "f32[k,n]")),
    "matvec": KernelSpec("matmul", ("f32[m,k]", "f32[k]")),
}
"""Name -> kernel. The order is that of the file."""


class KernelPack:
    """The kernels of one feature level; made or read at first use.

    `compile` maps a compile request to a reply. `compiled` counts what this process had to compile.
    """

    def __init__(self, compile: Compile = default_server) -> None:
        self.compiled = 0
        self._compile = compile
        self._lock = threading.RLock()
        self._level = ""
        self._replies: dict[str, bytes] = {}
        self._kernels: dict[str, Kernel] = {}
        self._failures: dict[str, str] = {}

    def after_fork(self) -> None:
        """Another thread of the parent may have held the lock."""
        self._lock = threading.RLock()

    def run(self, name: str, *operands: Array, pool: MemoryPool) -> Array:
        """Kernel `name` on float32 operands of its ranks. Raises `CompileError` where it could not
        be compiled."""
        kernel = self._kernels.get(name) if self._level == feature_level() else None
        if kernel is None:
            kernel = self._load(name)
        results = kernel.invoke([_in_order(x) for x in operands], pool)
        if results is None:
            raise CompileError(f"the kernel pack refuses {name} of {[x.shape for x in operands]}")
        (result,) = results
        assert isinstance(result, np.ndarray)
        return result

    def prepare(self) -> dict[str, str]:
        """Have the code of every kernel; returns why those that could not be compiled were not."""
        with self._lock:
            if self._level != feature_level():
                self._fill(feature_level())
            return dict(self._failures)

    def _load(self, name: str) -> Kernel:
        with self._lock:
            failures = self.prepare()
            if name in failures:
                raise CompileError(
                    f"{name} cannot be interpreted, its kernel was not compiled: {failures[name]}"
                )
            if name not in self._kernels:
                reply = CompileReply.decode(self._replies[name])
                library = shared_engine().load(reply.library, f"pack-{name}")
                signature = parse(KERNELS[name].signature)
                self._kernels[name] = Kernel(signature, reply, library)
            return self._kernels[name]

    def _fill(self, level: str) -> None:
        path = pack_path(level)
        found = None if path is None else _read(path, level)
        self._failures.clear()
        self._replies = self._compile_all(level) if found is None else found
        self._kernels.clear()
        self._level = level
        if path is not None and found is None and not self._failures:
            _write(path, level, self._replies.values())

    def _compile_all(self, level: str) -> dict[str, bytes]:
        service = CompileService(KernelCache(), self._compile, counted=False)
        replies: dict[str, bytes] = {}
        for name, spec in KERNELS.items():
            key = CacheKey(name, spec.signature, level, compiler_version())
            request = CompileRequest(spec.program(), "main", spec.signature, level)
            replies[name] = service.compile_now(key, request.encode())
            self.compiled += 1
            if key in service.failures:
                self._failures[name] = service.failures[key]
        return replies


def _in_order(x: Array) -> Array:
    """C-contiguous and aligned, as the kernels read it; a copy if `x` is not."""
    return x if x.flags.c_contiguous and x.flags.aligned else x.copy(order="C")


def pack_path(level: str) -> Path | None:
    """The file of a feature level, or None if nothing is kept on disk."""
    if config.cache_dir is None:
        return None
    return config.cache_dir / f"pack-{level}-{compiler_version()}.jdpack"


def _digest(level: str, body: bytes) -> bytes:
    """Of the file's content and of all that it was made from and for: a renamed file does not fit."""
    origin = f"{level} {compiler_version()} {KERNELS}\n".encode()
    return hashlib.blake2b(origin + body, digest_size=_DIGEST_BYTES).digest()


def _read(path: Path, level: str) -> dict[str, bytes] | None:
    """The replies in the file, or None if there is no file that can be used."""
    try:
        data = path.read_bytes()
        private_folder(path.parent)
        return dict(zip(KERNELS, _unpack(data, level), strict=True))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, Error) as error:
        warnings.warn(
            f"jitdialects: kernel pack {path} is not used and made again: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


def _unpack(data: bytes, level: str) -> list[bytes]:
    if len(data) < _HEAD.size:
        raise CompileError(f"{len(data)} bytes are too few")
    magic, version, digest = _HEAD.unpack_from(data)
    body = data[_HEAD.size :]
    if magic != MAGIC or version != VERSION:
        raise CompileError(f"magic {magic!r} version {version}, expected {MAGIC!r} {VERSION}")
    if _digest(level, body) != digest:
        raise CompileError("its digest is wrong: cut off, altered or made by another version")
    replies: list[bytes] = []
    at = 0
    while at < len(body):
        (length,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size
        replies.append(body[at : at + length])
        at += length
    if len(replies) != len(KERNELS):
        raise CompileError(f"{len(replies)} kernels, expected {len(KERNELS)}")
    return replies


def _write(path: Path, level: str, replies: Iterable[bytes]) -> None:
    """Write under a temporary name and rename: a reader sees a whole file or none."""
    body = b"".join(_LENGTH.pack(len(r)) + r for r in replies)
    temporary = None
    try:
        private_folder(path.parent)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(descriptor, "wb") as file:
            file.write(_HEAD.pack(MAGIC, VERSION, _digest(level, body)) + body)
        os.replace(temporary, path)
    except (OSError, Error) as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        warnings.warn(
            f"jitdialects: the kernel pack is kept in memory only: {error}; "
            "set JITDIALECTS_CACHE_DIR to a folder that may be written, or to nothing",
            RuntimeWarning,
            stacklevel=2,
        )


default_pack = KernelPack()
"""The pack of the process."""
run = default_pack.run
os.register_at_fork(after_in_child=default_pack.after_fork)


def main(args: Sequence[str] | None = None) -> int:
    """Make the pack for this CPU if it is not there; the exit code (1: there is none, 2: usage)."""
    parser = argparse.ArgumentParser(
        "python -m jitdialects.runtime.pack",
        description="Compile the kernel pack for this CPU into the cache folder "
        "(JITDIALECTS_CACHE_DIR), so that first calls need not. Does nothing if it is there.",
    )
    parser.parse_args(args)
    path = pack_path(feature_level())
    if path is None:
        print("pack: error: no cache folder; set JITDIALECTS_CACHE_DIR to one", file=sys.stderr)
        return 1
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as problems:
        failures = default_pack.prepare()
    for name, why in failures.items():
        print(f"pack: error: {name} was not compiled: {why}", file=sys.stderr)
    for problem in problems:
        print(f"pack: warning: {problem.message}", file=sys.stderr)
    if not path.exists():
        return 1
    done = f"made in {time.perf_counter() - started:.1f} s" if default_pack.compiled else "is there"
    print(f"{path}: {len(KERNELS)} kernels, {done}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
