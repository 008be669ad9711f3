"""What code is compiled from, by and for: fingerprints, the compiler's version, the CPU's level."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from jitdialects.bytecode.program import Constant, Function, Instruction, Program
from jitdialects.config import FEATURE_LEVELS, config

_FLAGS = {
    "x86-64-v2": {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"},
    "x86-64-v3": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"},
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}
"""What each level of the x86-64 psABI adds, in the words of /proc/cpuinfo."""


_FILES = tuple(f"runtime/{name}.py" for name in ("compiler", "constants", "dispatch", "messages"))
_ENDINGS = (".py", ".json", ".ll")
_ROOMS = (
    "analysis",
    "bytecode",
    "dialects",
    "lowering",
    "passes",
    "runtime/engines",
    "runtime/native",
)


@cache
def _host_level() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return FEATURE_LEVELS[0]
    line = next((x for x in text.splitlines() if x.startswith("flags")), "")
    flags = set(line.split())
    level = FEATURE_LEVELS[0]
    for name, needed in _FLAGS.items():
        if not needed <= flags:
            break
        level = name
    return level


def feature_level() -> str:
    """The level to compile for: what this CPU has, capped by `config.features`."""
    host = _host_level()
    return host if config.features is None else min(host, config.features)


@cache
def compiler_version() -> str:
    """Changes whenever the compiler may make other code, and is the same wherever the same compiler is
    installed: a digest of the files that code depends on, of the versions of xDSL, llvmlite, NumPy and Python
    (stubs read their objects), and of the kind of machine.

    Reading the files takes some milliseconds, so a file in the cache folder remembers the answer by their
    names, sizes and times.
    """
    stamp = hashlib.blake2b(_INSTALLED.encode(), digest_size=_VERSION_BYTES)
    files = list(_compiler_files())
    for path, status in files:
        stamp.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    for name in _LIBRARIES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            status = os.stat(spec.origin)
            stamp.update(f"{spec.origin}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    memo = config.cache_dir and config.cache_dir / f"compiler-{stamp.hexdigest()}"
    known = _remembered(memo)
    if known is None:
        known = _digest_of_compiler([path for path, _ in files])
        _remember(memo, known)
    return known


_INSTALLED = f"{sys.implementation.cache_tag} {np.__version__} {os.uname().machine}\n"
_LIBRARIES = ("xdsl", "llvmlite")
_VERSION_BYTES = 8


def _compiler_files() -> Iterator[tuple[str, os.stat_result]]:
    package = Path(__file__).parent.parent
    for name in _FILES:
        yield f"{package}/{name}", os.stat(package / name)
    for room in _ROOMS:
        with os.scandir(package / room) as found:
            kept = sorted((e for e in found if e.name.endswith(_ENDINGS)), key=lambda e: e.name)
        yield from ((each.path, each.stat()) for each in kept)


def _digest_of_compiler(paths: Sequence[str]) -> str:
    digest = hashlib.blake2b(_INSTALLED.encode(), digest_size=_VERSION_BYTES)
    for name in _LIBRARIES:
        digest.update(f"{_release_of(name)}\n".encode())
    package = f"{Path(__file__).parent.parent}/"
    for path in paths:
        content = Path(path).read_bytes()
        digest.update(f"{path.removeprefix(package)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _release_of(library: str) -> list[str]:
    """What its installer has written down: a folder with the version in its name."""
    spec = importlib.util.find_spec(library)
    if spec is None or spec.origin is None:
        return []
    names = os.listdir(Path(spec.origin).parents[1])  # `importlib.metadata` takes 100 ms
    return sorted(n for n in names if n.startswith(f"{library}-") and n.endswith(".dist-info"))


def _remembered(memo: Path | None) -> str | None:
    if memo is not None:
        with contextlib.suppress(OSError, ValueError):
            found = memo.read_text("utf-8")
            if len(bytes.fromhex(found)) == _VERSION_BYTES:
                return found
    return None


def _remember(memo: Path | None, version: str) -> None:
    if memo is not None:
        temporary = memo.with_name(f".{memo.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            memo.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.write_text(version, "utf-8")
            os.replace(temporary, memo)


def fingerprint(program: Program, function: str) -> str:
    """A digest of `function` and all that it calls: equal for equal code wherever it was written."""
    digest = hashlib.blake2b(digest_size=16)
    for found in _reached(program, function):
        digest.update(f"{found.name} {found.parameters} {found.results}\n".encode())
        for block in found.blocks:
            for instruction in block.instructions:
                constant = _constant(program, instruction)
                digest.update(_text(instruction, constant))
                if constant is not None:
                    digest.update(constant.value.data)
    return digest.hexdigest()


def constant_order(program: Program, function: str) -> tuple[int, ...]:
    """Numbers of the constants in the order in which `fingerprint` meets them: programs of equal fingerprint
    have equal constants there, whatever their numbers."""
    found: list[int] = []
    for reached in _reached(program, function):
        for block in reached.blocks:
            for instruction in block.instructions:
                if instruction.opcode == "const":
                    number = instruction.attributes["constant"]
                    assert isinstance(number, int)
                    found.append(number)
    return tuple(found)


def _reached(program: Program, function: str) -> Iterator[Function]:
    """The function and all that it calls, each once."""
    waiting, done = [function], set[str]()
    while waiting:
        found = program.function(waiting.pop())
        if found is not None and found.name not in done:
            done.add(found.name)
            yield found
            waiting += _callees(found)


def _callees(function: Function) -> list[str]:
    calls = (i for b in function.blocks for i in b.instructions if i.opcode == "call")
    return [str(i.attributes["callee"]) for i in calls]


def _constant(program: Program, instruction: Instruction) -> Constant | None:
    """What an instruction loads."""
    if instruction.opcode != "const":
        return None
    number = instruction.attributes["constant"]
    assert isinstance(number, int)
    return program.constants[number]


def _text(instruction: Instruction, constant: Constant | None) -> bytes:
    """An instruction without its location; instead of a constant's number, its type."""
    parts = (instruction.opcode, instruction.results, instruction.operands, instruction.targets)
    if constant is not None:
        return f"{parts} []\n{constant.dtype} {constant.value.shape} ".encode()
    attributes = sorted((n, repr(v)) for n, v in instruction.attributes.items())
    return f"{parts} {attributes}\n".encode()
