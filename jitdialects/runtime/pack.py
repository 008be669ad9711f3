"""The kernel pack: the operators whose bits NumPy does not give, one compiled kernel each.

Each kernel is a program of one operator over collapsed shapes (`KERNELS`), compiled by the same pipeline
as everything else, when an operator is first needed; so the interpreter and compiled code agree to the bit.
The kernels of one dtype at one feature level are one file in `config.cache_dir`, which later processes load
without xDSL or llvmlite. A file that is cut off, altered or made by another compiler is replaced.
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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jitdialects.bytecode.attributes import Attribute
from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.signature import parse
from jitdialects.config import config
from jitdialects.errors import CompileError, Error
from jitdialects.runtime.cache import shared_engine
from jitdialects.runtime.dispatch import Kernel
from jitdialects.runtime.engines.dlopen import private_folder
from jitdialects.runtime.identity import compiler_version, feature_level
from jitdialects.runtime.messages import CompileReply, CompileRequest
from jitdialects.runtime.pool import MemoryPool
from jitdialects.runtime.compile_server import default_server
from jitdialects.runtime.service import Compile
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


_LAST, _MIDDLE = (("axis", -1),), (("axis", 1),)
_FOLDS = ("sum", "prod", "max", "min")
_ELEMENTARY = ("exp", "tanh", "log", "erf", "sigmoid")


def _kernels(element: str) -> dict[str, KernelSpec]:
    """Name -> kernel, of floats that a signature calls `element`."""
    row, matrix, right = f"{element}[n]", f"{element}[m,n]", f"{element}[k,n]"
    return {
        **{name: KernelSpec(name, (row,)) for name in _ELEMENTARY},
        "minimum": KernelSpec("minimum", (row, row)),
        "maximum": KernelSpec("maximum", (row, row)),
        **{name: KernelSpec(name, (matrix,), _LAST) for name in _FOLDS},
        **{f"{n} inside": KernelSpec(n, (f"{element}[l,m,n]",), _MIDDLE) for n in _FOLDS},
        "matmul": KernelSpec("matmul", (f"{element}[m,k]", right)),
        "matvec": KernelSpec("matmul", (f"{element}[m,k]", f"{element}[k]")),
    }


KERNELS: Mapping[str, Mapping[str, KernelSpec]] = {
    "float32": _kernels("f32"),
    "float64": _kernels("f64"),
}
"""Dtype -> name -> kernel. The order is that of the file; there is one for each dtype, so that nobody waits
for the kernels of a dtype that he does not use."""


class KernelPack:
    """The kernels of one feature level; made or read at first use.

    `compile` maps a compile request to a reply. `compiled` counts what this process had to compile.
    """

    def __init__(self, compile: Compile = default_server) -> None:
        self.compiled = 0
        self._compile = compile
        self._lock = threading.RLock()
        self._level = ""
        self._replies: dict[str, dict[str, bytes]] = {}
        """By dtype, of the dtypes whose pack is there; then by name."""
        self._kernels: dict[tuple[str, str], Kernel] = {}
        self._failures: dict[str, str] = {}

    def after_fork(self) -> None:
        """Another thread of the parent may have held the lock."""
        self._lock = threading.RLock()

    def run(self, name: str, *operands: Array, pool: MemoryPool) -> Array:
        """Kernel `name` on operands of its ranks, all float32 or all float64. Raises `CompileError`
        where it could not be compiled."""
        dtype = operands[0].dtype.name
        kernel = self._kernels.get((dtype, name)) if self._level == feature_level() else None
        if kernel is None:
            kernel = self._load(dtype, name)
        results = kernel.invoke([_in_order(x) for x in operands], pool)
        if results is None:
            raise CompileError(f"the kernel pack refuses {name} of {[x.shape for x in operands]}")
        (result,) = results
        assert isinstance(result, np.ndarray)
        return result

    def prepare(self, *dtypes: str) -> dict[str, str]:
        """Have the code of every kernel of these dtypes (all by default); returns why those that could not
        be compiled were not, by `<name> of <dtype>`."""
        with self._lock:
            if self._level != feature_level():
                self._level = feature_level()
                self._failures.clear()
                self._kernels.clear()
                self._replies.clear()
            for dtype in dtypes or KERNELS:
                if dtype not in self._replies:
                    self._fill(self._level, dtype)
            return dict(self._failures)

    def _load(self, dtype: str, name: str) -> Kernel:
        with self._lock:
            failure = self.prepare(dtype).get(f"{name} of {dtype}")
            if failure is not None:
                raise CompileError(
                    f"{name} of {dtype} cannot be interpreted, its kernel was not compiled: {failure}"
                )
            if (dtype, name) not in self._kernels:
                reply = CompileReply.decode(self._replies[dtype][name])
                library = shared_engine().load(reply.library, f"pack-{dtype}-{name}")
                signature = parse(KERNELS[dtype][name].signature)
                self._kernels[dtype, name] = Kernel(signature, reply, library)
            return self._kernels[dtype, name]

    def _fill(self, level: str, dtype: str) -> None:
        path = pack_path(level, dtype)
        found = None if path is None else _read(path, level, dtype)
        known = len(self._failures)
        replies = self._compile_all(level, dtype) if found is None else found
        self._replies[dtype] = replies
        if path is not None and found is None and len(self._failures) == known:
            _write(path, level, dtype, replies.values())

    def _compile_all(self, level: str, dtype: str) -> dict[str, bytes]:
        replies: dict[str, bytes] = {}
        for name, spec in KERNELS[dtype].items():
            request = CompileRequest(spec.program(), "main", spec.signature, level)
            self.compiled += 1
            try:
                replies[name] = self._compile(request.encode())
                error = CompileReply.decode(replies[name]).error
            except Error as found:
                error = str(found)
            if error is not None:
                self._failures[f"{name} of {dtype}"] = error
        return replies


def _in_order(x: Array) -> Array:
    """C-contiguous and aligned, as the kernels read it; a copy if `x` is not."""
    return x if x.flags.c_contiguous and x.flags.aligned else x.copy(order="C")


def pack_path(level: str, dtype: str) -> Path | None:
    """The file of a feature level and dtype, or None if nothing is kept on disk."""
    if config.cache_dir is None:
        return None
    return config.cache_dir / f"pack-{level}-{dtype}-{compiler_version()}.jdpack"


def _digest(level: str, dtype: str, body: bytes) -> bytes:
    """Of the file's content and of all that it was made from and for: a renamed file does not fit."""
    origin = f"{level} {compiler_version()} {KERNELS[dtype]}\n".encode()
    return hashlib.blake2b(origin + body, digest_size=_DIGEST_BYTES).digest()


def _read(path: Path, level: str, dtype: str) -> dict[str, bytes] | None:
    """The replies in the file, or None if there is no file that can be used."""
    try:
        data = path.read_bytes()
        private_folder(path.parent)
        return dict(zip(KERNELS[dtype], _unpack(data, level, dtype), strict=True))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, Error) as error:
        warnings.warn(
            f"jitdialects: kernel pack {path} is not used and made again: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


def _unpack(data: bytes, level: str, dtype: str) -> list[bytes]:
    if len(data) < _HEAD.size:
        raise CompileError(f"{len(data)} bytes are too few")
    magic, version, digest = _HEAD.unpack_from(data)
    body = data[_HEAD.size :]
    if magic != MAGIC or version != VERSION:
        raise CompileError(f"magic {magic!r} version {version}, expected {MAGIC!r} {VERSION}")
    if _digest(level, dtype, body) != digest:
        raise CompileError("its digest is wrong: cut off, altered or made by another version")
    replies: list[bytes] = []
    at = 0
    while at < len(body):
        (length,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size
        replies.append(body[at : at + length])
        at += length
    if len(replies) != len(KERNELS[dtype]):
        raise CompileError(f"{len(replies)} kernels, expected {len(KERNELS[dtype])}")
    return replies


def _write(path: Path, level: str, dtype: str, replies: Iterable[bytes]) -> None:
    """Write under a temporary name and rename: a reader sees a whole file or none."""
    body = b"".join(_LENGTH.pack(len(r)) + r for r in replies)
    temporary = None
    try:
        private_folder(path.parent)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(descriptor, "wb") as file:
            file.write(_HEAD.pack(MAGIC, VERSION, _digest(level, dtype, body)) + body)
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
    files = [pack_path(feature_level(), dtype) for dtype in KERNELS]
    paths = [path for path in files if path is not None]
    if not paths:
        print("pack: error: no cache folder; set JITDIALECTS_CACHE_DIR to one", file=sys.stderr)
        return 1
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as problems:
        failures = default_pack.prepare()
    for name, why in failures.items():
        print(f"pack: error: {name} was not compiled: {why}", file=sys.stderr)
    for problem in problems:
        print(f"pack: warning: {problem.message}", file=sys.stderr)
    if not all(path.exists() for path in paths):
        return 1
    done = f"made in {time.perf_counter() - started:.1f} s" if default_pack.compiled else "is there"
    for path, kernels in zip(paths, KERNELS.values(), strict=True):
        print(f"{path}: {len(kernels)} kernels, {done}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
