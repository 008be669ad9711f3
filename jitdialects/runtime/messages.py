"""Compile requests and replies: bytes in, bytes out, so that no Python object crosses to the compiler.

Both are one frame, little endian: `magic(4) version(u32) length(u32) json length(u32) blob`. The blob of
a request is the program as `.jbc`, that of a reply the shared library. A reply with an `error` has no
blob. See docs/architecture.md, "Compile request and reply".
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Dim, Shape
from jitdialects.bytecode.dtypes import DType
from jitdialects.errors import Error

VERSION = 6
LLVM_IR = "llvm-ir.ll"
"""Among the stages of a reply, the text that LLVM reads; the others are called after passes."""
_REQUEST, _REPLY = b"JDRQ", b"JDRP"
_HEAD = struct.Struct("<4sII")
_LENGTH = struct.Struct("<I")


class MessageError(Error):
    """Bytes that are no message of this version."""


def _frame(magic: bytes, meta: dict[str, Any], blob: bytes) -> bytes:
    text = json.dumps(meta, separators=(",", ":")).encode()
    return b"".join((_HEAD.pack(magic, VERSION, len(text)), text, _LENGTH.pack(len(blob)), blob))


def _unframe(magic: bytes, what: str, data: bytes) -> tuple[dict[str, Any], bytes]:
    def refuse(why: str) -> MessageError:
        return MessageError(f"{what}: {why}; it was cut off or made by another version")

    if len(data) < _HEAD.size + _LENGTH.size:
        raise refuse(f"{len(data)} bytes are too few")
    found, version, length = _HEAD.unpack_from(data)
    if found != magic or version != VERSION:
        raise refuse(f"magic {found!r} version {version}, expected {magic!r} version {VERSION}")
    end = _HEAD.size + length
    if len(data) < end + _LENGTH.size:
        raise refuse("the JSON part is longer than the message")
    (size,) = _LENGTH.unpack_from(data, end)
    blob = data[end + _LENGTH.size :]
    if len(blob) != size:
        raise refuse(f"{len(blob)} bytes of blob instead of {size}")
    try:
        meta: Any = json.loads(data[_HEAD.size : end])
    except ValueError:
        raise refuse("the JSON part does not parse") from None
    if not isinstance(meta, dict):
        raise refuse("the JSON part is not an object")
    return cast(dict[str, Any], meta), blob


@dataclass(frozen=True)
class CompileRequest:
    """What to compile: `signature` of `function` in `program` (`.jbc` bytes) for a feature level."""

    program: bytes
    function: str
    signature: str
    features: str
    numerics: str = "strict"
    fuse: bool = True
    schedule: str = ""
    """Overrides of the schedules of loop nests."""
    typical: str = ""
    """Sizes to be expected where the signature leaves them open."""
    balance: float = 1.0
    """How many times as dear as usual the judges of fusion shall take computing to be."""
    dump: bool = False
    seconds: float | None = None
    """What lowering may take."""
    source: str = ""
    """The file that will have the dumped LLVM IR: line tables speak of it. None are made without one."""
    bare: bool = False
    """The reply shall have a relocatable object, without a call stub, instead of a library."""

    def encode(self) -> bytes:
        """The request as a frame."""
        meta = {
            "function": self.function,
            "signature": self.signature,
            "features": self.features,
            "numerics": self.numerics,
            "fuse": self.fuse,
            "schedule": self.schedule,
            "typical": self.typical,
            "balance": self.balance,
            "dump": self.dump,
            "seconds": self.seconds,
            "source": self.source,
            "bare": self.bare,
        }
        return _frame(_REQUEST, meta, self.program)

    @staticmethod
    def decode(data: bytes) -> CompileRequest:
        """The request in `data`; `MessageError` if there is none."""
        meta, blob = _unframe(_REQUEST, "compile request", data)
        try:
            return CompileRequest(blob, **meta)
        except TypeError as error:
            raise MessageError(f"compile request: {error}") from None


@dataclass(frozen=True)
class TensorFact:
    """An argument or result of compiled code."""

    dtype: DType
    shape: Shape

    @staticmethod
    def from_json(data: dict[str, Any]) -> TensorFact:
        """Read what `lowering.pipelines.TensorFacts` writes."""
        sizes = tuple(dims.parse(s) for s in data["sizes"])
        return TensorFact(DType(data["dtype"], data["weak"]), sizes)


@dataclass(frozen=True)
class ConstantFact:
    """A constant that compiled code takes as an argument."""

    index: int
    """In the constant pool of the program that was compiled."""
    tile: int
    """0: as it is. T: packed as `runtime.constants` says, in panels of T columns."""


@dataclass(frozen=True)
class CompileReply:
    """The library and the facts of a compile, or `error`, one sentence."""

    library: bytes = b""
    error: str | None = None
    entry: str = ""
    arguments: tuple[TensorFact, ...] = ()
    constants: tuple[ConstantFact, ...] = ()
    """Arguments after the ordinary ones."""
    results: tuple[TensorFact, ...] = ()
    arena: Dim = 0
    """Bytes of temporaries."""
    guards: tuple[tuple[str, Dim, Dim], ...] = ()
    """(`==` or `<=`, left, right): the code is right only where they hold."""
    parallel: bool = False
    """Some loop may run on several threads: the code wants a context."""
    stub: bool = False
    """The library has a call stub too."""
    natives: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Shared libraries of the runtime that the code or its stub wants, for a process that has none yet:
    `thread_pool`, `vectorcall`."""
    operators: int = 0
    operators_fused: int = 0
    schedules: tuple[str, ...] = ()
    """What each loop nest does."""
    remarks: tuple[str, ...] = ()
    milliseconds: dict[str, float] = field(default_factory=dict[str, float])
    """Wall time by stage."""
    cpu_seconds: float = 0.0
    """Of the compiler, imports included where they were for this request."""
    stages: dict[str, str] = field(default_factory=dict[str, str])
    """Texts by stage, if asked for."""
    level: str = ""
    """The lowest feature level that has every instruction of the code; empty: not known."""
    alternative: float = 0.0
    """The `balance` of a request whose code may turn out faster: fusion was decided by little. 0: nothing was."""
    weighed: bool = False
    """Whether fusion was decided by sizes, known or typical."""
    measured: str = ""
    """Of code that is kept: what was measured against other code for the same calls."""
    final: bool = False
    """Whether every attempt would end in this `error`."""

    @property
    def seconds(self) -> float:
        """What making the code took: CPU time, of which the first request has the compiler's start, too, or wall
        time of the stages, in which others may have had the core; the lesser."""
        stages = sum(ms for stage, ms in self.milliseconds.items() if stage != "import") / 1e3
        return min(stages, self.cpu_seconds or stages)

    @staticmethod
    def decode(data: bytes) -> CompileReply:
        """The reply in `data`; `MessageError` if there is none."""
        return CompileReply.of(*facts_and_code(data))

    @staticmethod
    def of(meta: dict[str, Any], blob: bytes) -> CompileReply:
        """The reply with these facts and this code; `MessageError` if they are none of a reply."""
        if "error" in meta:
            spent = meta.get("cpu_seconds")
            seconds = spent if isinstance(spent, float) else 0.0
            final = meta.get("final") is True
            return CompileReply(error=str(meta["error"]), cpu_seconds=seconds, final=final)
        try:
            return CompileReply(
                blob,
                None,
                meta["entry"],
                tuple(map(TensorFact.from_json, meta["arguments"])),
                tuple(ConstantFact(**c) for c in meta["constants"]),
                tuple(map(TensorFact.from_json, meta["results"])),
                dims.parse(meta["arena"]),
                tuple((r, dims.parse(x), dims.parse(y)) for r, x, y in meta["guards"]),
                meta["parallel"],
                meta["stub"],
                {name: base64.b64decode(text) for name, text in meta["natives"].items()},
                meta["operators"],
                meta["operators_fused"],
                tuple(meta["schedules"]),
                tuple(meta["remarks"]),
                meta["milliseconds"],
                meta["cpu_seconds"],
                meta["stages"],
                meta["level"],
                meta["alternative"],
                meta["weighed"],
                meta.get("measured", ""),
            )
        except (KeyError, TypeError, ValueError, Error) as error:
            raise MessageError(f"compile reply: {error!r}") from None


def facts_and_code(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The two parts of a reply, as they came; `MessageError` if it is none."""
    return _unframe(_REPLY, "compile reply", data)


def encode_reply(
    facts: dict[str, Any],
    library: bytes,
    natives: dict[str, bytes] | None = None,
    *,
    stub: bool = False,
    level: str = "",
) -> bytes:
    """A reply of `lowering.pipelines.Facts.as_json()` with the name of the `entry`. `natives` are libraries of
    the runtime that go with `library`, `stub` says whether that has a call stub, `level` what a CPU must have."""
    texts = {name: base64.b64encode(data).decode() for name, data in (natives or {}).items()}
    return _frame(_REPLY, facts | {"natives": texts, "stub": stub, "level": level}, library)


def encode_error(sentence: str, cpu_seconds: float = 0.0, *, final: bool = False) -> bytes:
    """The reply to a request that cannot be served, `final`: whenever it is asked; trying took
    `cpu_seconds`."""
    meta = {"error": sentence, "cpu_seconds": cpu_seconds, "final": final}
    return _frame(_REPLY, meta, b"")


def with_measures(frame: bytes, measured: str) -> bytes:
    """A reply without its library, of code that was compared: there is no alternative to it any more."""
    meta, blob = _unframe(_REPLY, "compile reply", frame)
    return _frame(_REPLY, meta | {"alternative": 0.0, "weighed": False, "measured": measured}, blob)


def without_library(data: bytes, number: Callable[[int], int]) -> bytes:
    """The reply in `data` as it is kept: without its library and texts of stages, its constants counted
    as `number` maps their numbers."""
    meta, _ = _unframe(_REPLY, "compile reply", data)
    for constant in meta.get("constants", ()):
        constant["index"] = number(constant["index"])
    return _frame(_REPLY, meta if "error" in meta else meta | {"stages": {}}, b"")
