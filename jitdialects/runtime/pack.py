"""The kernel pack: the operators whose bits NumPy does not give, one compiled kernel each.

Each kernel is a program of one operator over collapsed shapes (`KERNELS`), compiled by the same pipeline
as everything else; so the interpreter and compiled code agree to the bit. The kernels of a feature level are
one shared library in `config.cache_dir`, which a process opens without xDSL, llvmlite or a compile server.

Where there is none yet, a kernel that a call needs is compiled first, and a thread asks the compile server
for the others when nobody else wants it. Each is kept as a file of its own, a *piece*, so that nothing is
lost when the process ends; whoever has all of them links the library. A file that is cut off, altered or
made by another compiler is replaced. `python -m jitdialects.runtime.pack` makes the library ahead of time.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from jitdialects.bytecode.attributes import Attribute
from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.operators import ELEMENTARY
from jitdialects.bytecode.signature import parse
from jitdialects.config import FEATURE_LEVELS, config
from jitdialects.errors import CompileError, Error
from jitdialects.runtime import pack_file
from jitdialects.runtime.compile_server import default_server
from jitdialects.runtime.dispatch import Kernel
from jitdialects.runtime.engines import LibraryFile, LoadedLibrary
from jitdialects.runtime.engines.choice import shared_engine
from jitdialects.runtime.engines.dlopen import write_whole
from jitdialects.runtime.identity import compiler_version, feature_level
from jitdialects.runtime.messages import CompileReply, CompileRequest, facts_and_code
from jitdialects.runtime.notices import notice
from jitdialects.runtime.pool import MemoryPool
from jitdialects.runtime.service import Compile
from jitdialects.runtime.values import Array

Name: TypeAlias = tuple[str, str]
"""Dtype and name of a kernel."""


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


def _kernels(element: str) -> dict[str, KernelSpec]:
    """Name -> kernel, of floats that a signature calls `element`."""
    row, matrix, right = f"{element}[n]", f"{element}[m,n]", f"{element}[k,n]"
    return {
        **{name: KernelSpec(name, (row,)) for name in ELEMENTARY},
        "minimum": KernelSpec("minimum", (row, row)),
        "maximum": KernelSpec("maximum", (row, row)),
        **{name: KernelSpec(name, (matrix,), _LAST) for name in _FOLDS},
        **{f"{n} inside": KernelSpec(n, (f"{element}[l,m,n]",), _MIDDLE) for n in _FOLDS},
        "matmul": KernelSpec("matmul", (f"{element}[m,k]", right)),
        "matvec": KernelSpec("matmul", (f"{element}[m,k]", f"{element}[k]")),
    }


KERNELS: Mapping[Name, KernelSpec] = {
    (dtype, name): spec
    for dtype, element in (("float32", "f32"), ("float64", "f64"))
    for name, spec in _kernels(element).items()
}
"""Everything in the pack."""


@dataclass(frozen=True)
class _Made:
    """A compiled kernel: its object, to be linked, and the facts of its reply."""

    facts: dict[str, Any]
    code: bytes

    def reply(self) -> CompileReply:
        """What to load; the library has this kernel alone."""
        from jitdialects.runtime.engines.elf_link import link  # most processes find a library

        return CompileReply.of(self.facts, link([self.code]))


_UNUSED: dict[str, Any] = {"schedules": [], "remarks": [], "milliseconds": {}, "stages": {}}
"""Facts of a reply that nobody asks a pack for."""


class _Part:
    """A kernel's part of the library of the pack, which stays as long as one of its kernels does."""

    def __init__(self, library: LoadedLibrary, prefix: str) -> None:
        self._library, self._prefix = library, prefix

    def address(self, symbol: str) -> int:
        """Address of a symbol of the kernel."""
        return self._library.address(self._prefix + symbol)

    def close(self) -> None:
        """Others may use the library."""


class _Level:
    """The kernels of one feature level, as far as they are there."""

    def __init__(self, level: str) -> None:
        self.level = level
        self.failures: dict[Name, str] = {}
        self.kernels: dict[Name, Kernel] = {}
        """Those that are ready to run."""
        self.made: dict[Name, _Made] = {}
        """Those that were compiled or read as pieces, until there is a library."""
        self.library: tuple[dict[str, Any], LoadedLibrary] | None = None
        """The facts of all kernels, and their code."""
        self.wanted: set[Name] = set()
        """Kernels that a call waits for."""
        self.is_filled = False
        """A thread makes what is missing, or did."""
        self.is_damaged = False
        """The file of the library is there, and cannot be used."""
        self.is_kept = True
        """Files can be written, as far as is known."""

    def knows(self, name: Name) -> bool:
        """Whether nothing need be compiled for this kernel."""
        known = name in self.kernels or name in self.made or name in self.failures
        return known or self.library is not None


class KernelPack:
    """The kernels of every feature level in use; made or read at first use.

    `compile` maps a compile request that a call waits for to a reply; `fill`, in the same way, requests that
    nobody waits for (None: others than those that are needed are not made). `compiled` counts what this
    process had compiled.
    """

    def __init__(self, compile: Compile, fill: Compile | None = None) -> None:
        self.compiled = 0
        self._compile = compile
        self._fill = fill
        self._levels: dict[str, _Level] = {}
        self._changed = threading.Condition()

    def after_fork(self) -> None:
        """In a child: another thread of the parent may have held the lock, and none makes anything."""
        self._changed = threading.Condition()
        for level in self._levels.values():
            level.wanted.clear()
            level.is_filled = False

    def run(self, name: str, *operands: Array, pool: MemoryPool) -> Array:
        """Kernel `name` on operands of its ranks, all float32 or all float64. Raises `CompileError`
        where it could not be compiled."""
        key = operands[0].dtype.name, name
        level = self._levels.get(feature_level())
        kernel = None if level is None else level.kernels.get(key)
        if kernel is None:
            kernel = self._load(key)
        results = kernel.invoke([_in_order(x) for x in operands], pool)
        if results is None:
            raise CompileError(f"the kernel pack refuses {name} of {[x.shape for x in operands]}")
        (result,) = results
        assert isinstance(result, np.ndarray)
        return result

    def prepare(self, level: str) -> dict[Name, str]:
        """Make the library of a feature level, unless it is there; why kernels could not be compiled."""
        found = self._level(level)
        for name in KERNELS:
            if not found.knows(name):
                self._make(found, name, self._compile)
        self._link(found)
        return dict(found.failures)

    # ---- finding and making --------------------------------------------------------------------

    def _level(self, level: str) -> _Level:
        """What there is of a level."""
        with self._changed:
            found = self._levels.setdefault(level, _Level(level))
            self._open(found)
            return found

    def _open(self, level: _Level) -> bool:
        """Open the library, where there is one by now; whether there is one."""
        path = pack_path(level.level)
        with self._changed:
            if level.library is None and path is not None and not level.is_damaged:
                stored = _read(path, _origin(level.level))
                if stored is not None:
                    facts, code, file = stored
                    engine = shared_engine()
                    level.library = facts, engine.load(code, f"pack-{level.level}", file)
                level.is_damaged = stored is None and path.exists()
            return level.library is not None

    def _load(self, name: Name) -> Kernel:
        """The kernel, made now if it has to be."""
        level = self._level(feature_level())
        with self._changed:
            self._changed.wait_for(lambda: name not in level.wanted)
            level.wanted.add(name)
        try:
            if not level.knows(name):
                self._make(level, name, self._compile)
            return self._ready(level, name)
        finally:
            with self._changed:
                level.wanted.discard(name)
                self._changed.notify_all()
                self._start_to_fill(level)

    def _ready(self, level: _Level, name: Name) -> Kernel:
        failure = level.failures.get(name)
        if failure is not None:
            raise CompileError(
                f"{_spoken(name)} cannot be interpreted, its kernel was not compiled: {failure}"
            )
        if name not in level.kernels:
            signature = parse(KERNELS[name].signature)
            library, made = level.library, level.made.get(name)
            if library is not None:
                facts = library[0][_prefix(name)]
                if facts["parallel"]:
                    facts |= _natives(library[0])
                reply = CompileReply.of(facts, b"")
                part = _Part(library[1], _prefix(name))
                level.kernels[name] = Kernel(signature, reply, part)
            else:
                assert made is not None
                reply = made.reply()
                loaded = shared_engine().load(reply.library, f"pack-{_spoken(name)}")
                level.kernels[name] = Kernel(signature, reply, loaded)
        return level.kernels[name]

    def _make(self, level: _Level, name: Name, compile: Compile) -> None:
        """Have the kernel's code, or why there is none. Raises `CompileError` where no compiler answers."""
        path, origin = _piece_path(level.level, name), _origin(level.level, name)
        stored = _read(path, origin)
        if stored is None:
            self.compiled += 1
            spec = KERNELS[name]
            request = CompileRequest(spec.program(), "main", spec.signature, level.level, bare=True)
            facts, code = facts_and_code(compile(request.encode()))
            if "error" in facts:
                level.failures[name] = str(facts["error"])
                return
            made = _Made(facts | _UNUSED, code)
            self._keep(level, path, pack_file.encode(origin, made.facts, made.code))
        else:
            made = _Made(stored[0], stored[1])
        level.made[name] = made

    def _start_to_fill(self, level: _Level) -> None:
        is_open = level.library is None and not level.is_filled and config.cache_dir is not None
        if is_open and self._fill is not None and default_server.is_apart:
            level.is_filled = True
            fill = threading.Thread(
                target=self._fill_up, args=(level, self._fill), name="jitdialects-pack", daemon=True
            )
            fill.start()

    def _fill_up(self, level: _Level, compile: Compile) -> None:
        with contextlib.suppress(CompileError):  # no compiler answers any more: the process ends
            for name in KERNELS:
                if self._open(level):
                    return  # another process was quicker
                if not level.knows(name) and name not in level.wanted:
                    self._make(level, name, compile)
            self._link(level)

    def _link(self, level: _Level) -> None:
        """Make one library of all pieces, if they are there and files are kept."""
        made, path = dict(level.made), pack_path(level.level)
        if len(made) < len(KERNELS) or path is None or not level.is_kept:
            return
        from jitdialects.runtime.engines.elf_link import link

        names = list(KERNELS)
        code = link([made[name].code for name in names], prefixes=list(map(_prefix, names)))
        facts: dict[str, Any] = {}
        for name in names:
            facts |= _natives(made[name].facts)
            facts[_prefix(name)] = made[name].facts | {"natives": {}}
        self._keep(level, path, pack_file.encode(_origin(level.level), facts, code))
        if level.is_kept:
            for name in names:
                with contextlib.suppress(OSError):  # another process did
                    _piece(level.level, name, path.parent).unlink()

    def _keep(self, level: _Level, path: Path | None, data: bytes) -> None:
        if path is None or not level.is_kept:
            return
        try:
            write_whole(path, data)
        except (OSError, Error) as error:
            level.is_kept = False
            notice(
                f"the kernel pack is kept in memory only: {error}; "
                "set JITDIALECTS_CACHE_DIR to a folder that may be written, or to nothing",
            )


def _natives(facts: dict[str, Any]) -> dict[str, Any]:
    """Libraries that come with a kernel; in a pack, once for all."""
    return {"natives": facts["natives"]} if facts.get("natives") else {}


def _spoken(name: Name) -> str:
    return f"{name[1]} of {name[0]}"


def _prefix(name: Name) -> str:
    """What the symbols of a kernel begin with in the library of all."""
    return f"{name[1].replace(' ', '_')}_{name[0]}_"


def _in_order(x: Array) -> Array:
    """C-contiguous and aligned, as the kernels read it; a copy if `x` is not."""
    return x if x.flags.c_contiguous and x.flags.aligned else x.copy(order="C")


def pack_path(level: str) -> Path | None:
    """The file of a feature level, or None if nothing is kept on disk."""
    folder = config.cache_dir
    return None if folder is None else folder / f"pack-{level}-{compiler_version()}.so"


def _piece_path(level: str, name: Name) -> Path | None:
    folder = config.cache_dir
    return None if folder is None else _piece(level, name, folder)


def _piece(level: str, name: Name, folder: Path) -> Path:
    return folder / f"pack-{level}-{compiler_version()}-{_prefix(name)[:-1]}.piece"


def _origin(level: str, name: Name | None = None) -> str:
    """From what, for what and by what code is made."""
    return f"{level} {compiler_version()} {KERNELS if name is None else KERNELS[name]}"


def _read(path: Path | None, origin: str) -> tuple[dict[str, Any], bytes, LibraryFile] | None:
    """Facts and code in the file, or None if there is no file that can be used."""
    if path is None:
        return None
    try:
        return pack_file.read(path, origin)
    except (OSError, Error) as error:
        notice(
            f"kernel pack {path} is not used and made again: {error}",
        )
        return None


default_pack = KernelPack(default_server.at_once, default_server.when_idle)
"""The pack of the process."""
run = default_pack.run
os.register_at_fork(after_in_child=default_pack.after_fork)


def main(args: Sequence[str] | None = None) -> int:
    """Make the pack for this CPU if it is not there; the exit code (1: there is none, 2: usage)."""
    import argparse

    parser = argparse.ArgumentParser(
        "python -m jitdialects.runtime.pack",
        description="Compile the kernel pack for this CPU into the cache folder "
        "(JITDIALECTS_CACHE_DIR), so that first calls need not. Does nothing if it is there.",
    )
    parser.add_argument(
        "--every-level",
        action="store_true",
        help="make it for every feature level that this CPU has, for processes that JITDIALECTS_FEATURES limits",
    )
    options = parser.parse_args(args)
    last = FEATURE_LEVELS.index(feature_level())
    levels = FEATURE_LEVELS[0 if options.every_level else last : last + 1]
    return max(map(_make, levels))


def _make(level: str) -> int:
    path = pack_path(level)
    if path is None:
        print("pack: error: no cache folder; set JITDIALECTS_CACHE_DIR to one", file=sys.stderr)
        return 1
    started, before = time.perf_counter(), default_pack.compiled
    with warnings.catch_warnings(record=True) as problems:
        try:
            failures = default_pack.prepare(level)
        except CompileError as error:
            print(f"pack: error: {error}", file=sys.stderr)
            return 1
    for name, why in failures.items():
        print(f"pack: error: {_spoken(name)} was not compiled: {why}", file=sys.stderr)
    for problem in problems:
        print(f"pack: warning: {problem.message}", file=sys.stderr)
    if not path.exists():
        return 1
    is_new = default_pack.compiled > before
    done = f"made in {time.perf_counter() - started:.1f} s" if is_new else "is there"
    print(f"{path}: {len(KERNELS)} kernels, {path.stat().st_size} bytes, {done}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
