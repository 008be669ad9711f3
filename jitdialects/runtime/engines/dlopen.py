"""Shared libraries through the dynamic linker: `dlopen`, `dlsym`, `dlclose`.

A library is written to a private folder under a temporary name and renamed, so that no process ever maps a
half-written file, and never written twice: its name holds a digest of its bytes. A file found there is
compared with the bytes before it is loaded, because a truncated library is a bus error, not an exception.
Where nothing may be executed from that folder, an anonymous memory file serves instead (`MemoryEngine`);
profilers then show no names.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import re
import stat
import tempfile
from functools import cache
from itertools import count
from pathlib import Path

from jitdialects.errors import Error
from jitdialects.runtime.engines import LibraryFile

_DIGEST_BYTES = 16
_serial = count()


class LoadError(Error):
    """Compiled code that cannot be loaded, or a symbol that it does not have."""


@cache
def _dynamic_linker() -> ctypes.CDLL:
    library = ctypes.CDLL(None)
    library.dlopen.restype = ctypes.c_void_p
    library.dlopen.argtypes = (ctypes.c_char_p, ctypes.c_int)
    library.dlsym.restype = ctypes.c_void_p
    library.dlsym.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
    library.dlclose.argtypes = (ctypes.c_void_p,)
    library.dlerror.restype = ctypes.c_char_p
    return library


_open = set[int]()


def open_libraries() -> int:
    """Libraries that are loaded in this way now."""
    return len(_open)


class DlopenLibrary:
    """A library that the dynamic linker holds."""

    def __init__(self, handle: int, name: str, file: str | None = None) -> None:
        self._handle: int | None = handle
        self._name = name
        _open.add(id(self))
        self._file = file
        """A file that nobody needs any more when this is closed."""

    def address(self, symbol: str) -> int:
        """Address of an exported symbol."""
        if self._handle is None:
            raise LoadError(f"library {self._name} is closed")
        found = _dynamic_linker().dlsym(self._handle, symbol.encode())
        if not found:
            raise LoadError(f"library {self._name} has no symbol {symbol!r}")
        return int(found)

    def close(self) -> None:
        """Unload. Addresses taken before are invalid afterwards."""
        if self._handle is not None:
            _dynamic_linker().dlclose(self._handle)
            self._handle = None
            _open.discard(id(self))
            if self._file is not None:
                with contextlib.suppress(OSError):
                    os.unlink(self._file)


class DlopenEngine:
    """Loads shared libraries from `folder`; without one, from a temporary folder of this process."""

    def __init__(self, folder: Path | None = None) -> None:
        self._given = folder
        self._temporary: list[tempfile.TemporaryDirectory[str]] = []

    @property
    def folder(self) -> Path:
        """Where libraries are written; a temporary folder is made when one is."""
        if self._given is not None:
            return self._given
        if (
            not self._temporary
        ):  # no lock, which a fork could leave held: two threads may make one each
            self._temporary.append(tempfile.TemporaryDirectory(prefix="jitdialects-"))
        return Path(self._temporary[0].name)

    def load(self, data: bytes, name: str, file: LibraryFile | None = None) -> DlopenLibrary:
        """Load the library `data`, from `file` if that is still what it was. Raises `LoadError` where the
        dynamic linker refuses it."""
        if file is not None:
            handle = _open_unchanged(file)
            if handle is not None:
                return DlopenLibrary(handle, name)
        try:
            path = str(self.store(data, name))
            return DlopenLibrary(_dlopen(path), name, path if self._temporary else None)
        except (OSError, LoadError) as error:
            raise LoadError(f"cannot load {name}: {error}") from None

    def store(self, data: bytes, name: str) -> Path:
        """Write `data` under its name and digest, unless the same bytes are there already."""
        digest = hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
        folder = self.folder
        path = folder / f"{_file_name(name)}-{digest}.so"
        private_folder(folder)
        with contextlib.suppress(FileNotFoundError):
            if path.read_bytes() == data:
                return path
        write_whole(path, data)
        return path


class MemoryEngine:
    """Loads shared libraries from anonymous memory files."""

    def load(self, data: bytes, name: str, file: LibraryFile | None = None) -> DlopenLibrary:
        """Load the library `data`. Raises `LoadError` where the dynamic linker refuses it, or there are no
        memory files."""
        try:
            descriptor = os.memfd_create(_file_name(name), os.MFD_CLOEXEC)
        except OSError as error:
            raise LoadError(f"cannot load {name}: no memory file: {error}") from None
        try:
            with os.fdopen(descriptor, "wb", closefd=False) as memory:
                memory.write(data)
            return DlopenLibrary(_dlopen(_respelled("/proc/self/fd", str(descriptor))), name)
        except (LoadError, OSError) as error:
            raise LoadError(f"cannot load {name}: {error}") from None
        finally:
            os.close(descriptor)


def write_whole(path: Path, data: bytes) -> None:
    """Write under a temporary name and rename: a reader sees a whole file or none, and what is mapped
    already stays as it is."""
    private_folder(path.parent)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def private_folder(folder: Path) -> None:
    """Make `folder`, readable by this user only. Refuses one that others may write to."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise LoadError(f"folder {folder} may be written by others; code is not loaded from it")


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:80] or "kernel"


def _respelled(folder: str, name: str) -> str:
    """The path, spelled as none before: the dynamic linker compares text, and would give what it loaded
    under a path that meanwhile leads to another file."""
    number = next(_serial)
    return folder + "/" + "".join("./" if number >> bit & 1 else "/" for bit in range(32)) + name


def _open_unchanged(file: LibraryFile) -> int | None:
    """The handle of a library in a file that was verified, or None where the file is not that one any more
    (others replace and remove it at any time), or where nothing may be executed from there."""
    try:
        handle = _dlopen(_respelled(*os.path.split(file.path)))
    except LoadError:
        return None
    with contextlib.suppress(OSError):
        if os.stat(file.path).st_ino == file.inode:
            return handle
    _dynamic_linker().dlclose(handle)
    return None


def _dlopen(path: str) -> int:
    linker = _dynamic_linker()
    handle = linker.dlopen(os.fsencode(path), os.RTLD_NOW | os.RTLD_LOCAL)
    if not handle:
        reason: bytes | None = linker.dlerror()
        raise LoadError(reason.decode(errors="replace") if reason else f"cannot open {path}")
    return int(handle)
