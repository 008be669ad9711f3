"""Shared libraries without the dynamic linker: our own linker's output, mapped and relocated here.

For machines where no file of ours may be executed and there are no anonymous memory files: what
`elf_link` writes needs one piece of memory and three kinds of relocation. No file, no descriptor and
no LLVM take part, unloading gives everything back, and the cost does not grow with what is loaded already.
Debuggers and profilers show no names.

Reference: System V ABI, x86-64 supplement 1.0, chapters 4 and 5.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Iterator
from functools import cache
from typing import Any

from jitdialects.runtime.engines import LibraryFile
from jitdialects.runtime.engines.dlopen import LoadError

_PAGE = mmap.PAGESIZE
_LARGEST = 1 << 30
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELA = struct.Struct("<QQq")
_DYNAMIC = struct.Struct("<QQ")
_WORD = struct.Struct("<Q")
_LOAD, _DYNAMIC_SEGMENT, _EXECUTE = 1, 2, 1
_NEEDED, _HASH, _STRINGS, _SYMBOLS, _RELOCATIONS, _RELOCATIONS_SIZE = 1, 4, 5, 6, 7, 8
_R_64, _R_GLOB_DAT, _R_RELATIVE = 1, 6, 8


@cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    )
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return library


def _refuse(name: str, what: str) -> LoadError:
    number = ctypes.get_errno()
    return LoadError(f"cannot load {name}: {what}: {os.strerror(number)}")


class MappedLibrary:
    """A library in memory of its own."""

    def __init__(self, base: int, size: int, symbols: dict[str, int], name: str) -> None:
        self._base, self._size, self._name = base, size, name
        self._symbols: dict[str, int] | None = symbols

    def address(self, symbol: str) -> int:
        """Address of an exported symbol."""
        if self._symbols is None:
            raise LoadError(f"library {self._name} is closed")
        if symbol not in self._symbols:
            raise LoadError(f"library {self._name} has no symbol {symbol!r}")
        return self._base + self._symbols[symbol]

    def close(self) -> None:
        """Unload. Addresses taken before are invalid afterwards."""
        if self._symbols is not None:
            self._symbols = None
            _libc().munmap(self._base, self._size)


class MappedEngine:
    """Loads libraries that `elf_link` wrote."""

    def load(self, data: bytes, name: str, file: LibraryFile | None = None) -> MappedLibrary:
        """Load the library `data`. Raises `LoadError` where it is none, and where no memory may be executed."""
        try:
            image = _Image(data)
            symbols = image.symbols()
            image.relocate(symbols)
        except (struct.error, LookupError, ValueError) as error:
            raise LoadError(f"cannot load {name}: no library of ours ({error})") from None
        read_write = mmap.PROT_READ | mmap.PROT_WRITE
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        size = len(image.memory)
        base: int | None = _libc().mmap(None, size, read_write, private, -1, 0)
        if base is None or base == ctypes.c_void_p(-1).value:
            raise _refuse(name, "no memory")
        library = MappedLibrary(base, size, image.defined, name)
        for at, target in image.absolute:
            _WORD.pack_into(image.memory, at, base + target & 2**64 - 1)
        ctypes.memmove(base, bytes(image.memory), size)
        for start, end in image.executable:
            if _libc().mprotect(base + start, end - start, mmap.PROT_READ | mmap.PROT_EXEC):
                refusal = _refuse(name, "memory may not be executed")
                library.close()
                raise refusal
        return library


class _Image:
    """A library as it will be in memory, but for its place."""

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF file")
        header: tuple[Any, ...] = _HEADER.unpack_from(data, 0)
        start, count = header[5], header[10]
        segments: list[tuple[int, ...]] = [
            _SEGMENT.unpack_from(data, start + i * _SEGMENT.size) for i in range(count)
        ]
        loaded = [segment for segment in segments if segment[0] == _LOAD]
        end = max(address + size for _, _, _, address, _, _, size, _ in loaded)
        if end > _LARGEST:
            raise ValueError(f"{end} bytes of memory")
        self.memory = bytearray(-(-end // _PAGE) * _PAGE)
        self.executable: list[tuple[int, int]] = []
        self.absolute: list[tuple[int, int]] = []
        """(place, target): words that get the address of a place in this library."""
        self.defined: dict[str, int] = {}
        for _, flags, offset, address, _, size, _, _ in loaded:
            if offset + size > len(data):
                raise ValueError("cut off")
            self.memory[address : address + size] = data[offset : offset + size]
            if flags & _EXECUTE:
                self.executable.append((address & -_PAGE, -(-(address + size) // _PAGE) * _PAGE))
        (at,) = (segment[3] for segment in segments if segment[0] == _DYNAMIC_SEGMENT)
        self.entries = list(self._dynamic(at))
        self.table = dict(self.entries)

    def _dynamic(self, at: int) -> Iterator[tuple[int, int]]:
        while True:
            tag, value = _DYNAMIC.unpack_from(self.memory, at)
            if not tag:
                return
            yield tag, value
            at += _DYNAMIC.size

    def _string(self, at: int) -> str:
        start = self.table[_STRINGS] + at
        return self.memory[start : self.memory.index(0, start)].decode()

    def symbols(self) -> list[tuple[int | None, int]]:
        """Of every symbol, its place in this library, or None and its address elsewhere."""
        libraries: list[ctypes.CDLL] | None = None
        _, count = struct.unpack_from("<II", self.memory, self.table[_HASH])
        found: list[tuple[int | None, int]] = [(None, 0)]
        for index in range(1, count):
            at = self.table[_SYMBOLS] + index * _SYMBOL.size
            name_at, _, _, section, value, _ = _SYMBOL.unpack_from(self.memory, at)
            name = self._string(name_at)
            if section:
                self.defined[name] = value
                found.append((value, 0))
                continue
            if libraries is None:
                needed = [self._string(value) for tag, value in self.entries if tag == _NEEDED]
                libraries = [ctypes.CDLL(None), *map(ctypes.CDLL, needed)]
            found.append((None, _address_of(name, libraries)))
        return found

    def relocate(self, symbols: list[tuple[int | None, int]]) -> None:
        """Write what is known without the place of the library, and note the rest."""
        if _RELOCATIONS not in self.table:
            return
        for index in range(self.table[_RELOCATIONS_SIZE] // _RELA.size):
            at = self.table[_RELOCATIONS] + index * _RELA.size
            entry: tuple[int, int, int] = _RELA.unpack_from(self.memory, at)
            place, info, addend = entry
            kind, (inside, elsewhere) = info & 0xFFFFFFFF, symbols[info >> 32]
            if kind == _R_RELATIVE:
                self.absolute.append((place, addend))
            elif kind not in (_R_64, _R_GLOB_DAT):
                raise ValueError(f"relocation of kind {kind}")
            elif inside is not None:
                self.absolute.append((place, inside + addend))
            else:
                _WORD.pack_into(self.memory, place, elsewhere + addend & 2**64 - 1)


def _address_of(name: str, libraries: list[ctypes.CDLL]) -> int:
    for library in libraries:
        try:
            return ctypes.cast(library[name], ctypes.c_void_p).value or 0
        except AttributeError:
            continue
    raise LookupError(f"no library has {name!r}")
