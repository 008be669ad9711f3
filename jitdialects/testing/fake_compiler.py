"""A compiler and an engine without a compiler: kernels are Python callbacks behind the kernel ABI.

`FakeCompiler(program)` is what `CompileService` takes as `compile`. Its code runs the interpreter on the
arrays that the slots describe, so that results are right for any program and signature.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitdialects.bytecode import signature as signatures
from jitdialects.bytecode.dtypes import DType
from jitdialects.bytecode.program import Program
from jitdialects.runtime.cache import KernelCache
from jitdialects.runtime.engines import LibraryFile
from jitdialects.runtime.messages import CompileRequest, encode_error, encode_reply
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.service import CompileService
from jitdialects.runtime.values import Array
from jitdialects.runtime.vm import VM

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
_callbacks: list[object] = []


@dataclass
class FakeLibrary:
    """The address of a callback as text."""

    data: bytes
    closed: bool = False

    def address(self, symbol: str) -> int:
        """The address of the one entry."""
        assert symbol == "jd_entry"
        return int(self.data)

    def close(self) -> None:
        """Note that it was closed."""
        self.closed = True


class FakeEngine:
    """Loads what `FakeCompiler` makes."""

    def load(self, data: bytes, name: str, file: LibraryFile | None = None) -> FakeLibrary:
        """The library in `data`."""
        return FakeLibrary(data)


@dataclass
class FakeCompiler:
    """`results`: dtype and sizes of the results, as dims text over the names that the policy gives."""

    results: Callable[[signatures.Signature], list[tuple[DType, list[str]]]]
    guards: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    arena: str = "0"
    status: int = 0
    error: str | None = None
    alternative: float = 0.0
    weighed: bool = False
    """What replies say of fusion."""
    requests: list[str] = field(default_factory=list[str])
    gate: threading.Event | None = None
    """Compiling waits for it."""

    def __call__(self, data: bytes) -> bytes:
        request = CompileRequest.decode(data)
        self.requests.append(request.signature)
        if self.gate is not None:
            self.gate.wait()
        if self.error is not None:
            return encode_error(self.error)
        signature = signatures.parse(request.signature)
        results = self.results(signature)
        program = Program.from_bytes(request.program)

        def entry(slots: int) -> int:
            return self.status or _run(program, signature, results, slots)

        callback = CALLBACK(entry)
        _callbacks.append(callback)
        address = ctypes.cast(callback, ctypes.c_void_p).value
        facts = {
            "entry": "jd_entry",
            "arguments": [],
            "constants": [],
            "results": [{"dtype": d.name, "weak": d.weak, "sizes": sizes} for d, sizes in results],
            "guards": self.guards,
            "arena": self.arena,
            "parallel": False,
            "operators": 3,
            "operators_fused": 2,
            "schedules": [],
            "remarks": ["a remark"],
            "alternative": self.alternative,
            "weighed": self.weighed,
            "milliseconds": {"codegen": 1.5},
            "cpu_seconds": 0.001,
            "stages": {"00-vm": "builtin.module {}"} if request.dump else {},
        }
        return encode_reply(facts, str(address).encode())


def _run(
    program: Program,
    signature: signatures.Signature,
    results: list[tuple[DType, list[str]]],
    slots: int,
) -> int:
    """Decode the slots as docs/architecture.md defines them, and interpret."""
    at = slots

    def word() -> int:
        nonlocal at
        at += 8
        return ctypes.c_int64.from_address(at - 8).value

    def array(dtype: np.dtype[Any], rank: int) -> Array:
        address = word()
        shape = [word() for _ in range(rank)]
        strides = [word() * dtype.itemsize for _ in range(rank)]
        # negative strides reach below the address: let the buffer begin at the lowest element
        low = sum(min(0, s * (n - 1)) for n, s in zip(shape, strides, strict=True))
        high = sum(max(0, s * (n - 1)) for n, s in zip(shape, strides, strict=True))
        buffer: Any = (ctypes.c_char * (high - low + dtype.itemsize)).from_address(address + low)
        return np.ndarray(shape, dtype, buffer, -low, strides)

    arguments: list[object] = []
    for argument in signature.arguments:
        if argument.dtype.weak:
            value = np.int64(word()).view(
                np.float64 if argument.dtype.name == "float64" else np.int64
            )
            arguments.append(bool(value) if argument.dtype.name == "bool" else value.item())
        else:
            arguments.append(array(argument.dtype.numpy, len(argument.shape)))
    computed = VM(program, Policy(threshold=10**9)).run(signature.function, *arguments)
    for (dtype, sizes), value in zip(results, computed, strict=True):
        array(dtype.numpy, len(sizes))[...] = value
    word()  # the arena
    return 0


def fake_service(compiler: FakeCompiler) -> CompileService:
    """A compile service of its own that uses `compiler`."""
    return CompileService(KernelCache(FakeEngine()), compiler)
