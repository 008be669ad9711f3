"""What code is compiled from, by and for: fingerprints, the compiler's version, the CPU's level."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from jitdialects.bytecode.program import Function, Instruction, Program
from jitdialects.config import FEATURE_LEVELS, config

_FLAGS = {
    "x86-64-v2": {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"},
    "x86-64-v3": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"},
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}
"""What each level of the x86-64 psABI adds, in the words of /proc/cpuinfo."""


_FILES = ("runtime/compiler.py", "runtime/messages.py")
_ROOMS = ("analysis", "bytecode", "dialects", "lowering", "passes", "runtime/engines", "runtime/native")


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
    """Changes whenever the compiler may make other code.

    Made of names, sizes and times of the files that code depends on and of xDSL's and llvmlite's first
    one, which takes about a millisecond and is right for an editable checkout too.
    """
    package = Path(__file__).parent.parent
    files = [package / name for name in _FILES]
    for room in _ROOMS:
        files += (f for f in (package / room).iterdir() if f.suffix in (".py", ".json", ".ll"))
    for name in ("xdsl", "llvmlite"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            files.append(Path(spec.origin))
    digest = hashlib.blake2b(digest_size=8)
    for file in sorted(files):
        found = file.stat()
        digest.update(f"{file}\0{found.st_size}\0{found.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def fingerprint(program: Program, function: str) -> str:
    """A digest of `function` and all that it calls: equal for equal code wherever it was written."""
    digest = hashlib.blake2b(digest_size=16)
    for found in _reached(program, function):
        digest.update(f"{found.name} {found.parameters} {found.results}\n".encode())
        for block in found.blocks:
            for instruction in block.instructions:
                digest.update(_text(program, instruction))
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


def _text(program: Program, instruction: Instruction) -> bytes:
    """An instruction without its location, a constant by its value."""
    attributes = sorted((n, repr(v)) for n, v in instruction.attributes.items())
    constant = b""
    if instruction.opcode == "const":
        number = instruction.attributes["constant"]
        assert isinstance(number, int)
        entry = program.constants[number]
        constant = f"{entry.dtype} {entry.value.shape} ".encode() + entry.value.tobytes()
        attributes = []
    parts = (instruction.opcode, instruction.results, instruction.operands, instruction.targets)
    return f"{parts} {attributes}\n".encode() + constant
