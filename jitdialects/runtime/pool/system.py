"""Memory from the operating system, and memory that is only counted."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any, Protocol


class Memory(Protocol):
    """Where a pool gets pages from."""

    def map(self, size: int) -> int | None:
        """Address of `size` fresh zeroed bytes, or None if there are no more."""
        ...

    def unmap(self, address: int, size: int) -> None:
        """Give back what `map` gave."""
        ...

    def remap(self, address: int, before: int, size: int) -> int | None:
        """The address of what `map` gave once it has another size, perhaps a new one; None if that cannot be."""
        ...

    def forget(self, address: int, size: int) -> None:
        """Give back these pages but keep their addresses; they are zero when they are used again."""
        ...


def _library() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.mremap.restype = ctypes.c_void_p
    library.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
    library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return library


_system = _library()
_MAP_FAILED = ctypes.c_void_p(-1).value
MAP_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_MAY_MOVE = 1
MAP_NORESERVE = 0x4000  # Linux; a hint elsewhere


class SystemMemory:
    """Pages of the operating system."""

    def map(self, size: int) -> int | None:
        """`mmap`."""
        if size >= 1 << 63:  # ctypes would cut it off
            return None
        access = mmap.PROT_READ | mmap.PROT_WRITE
        address = _system.mmap(None, size, access, MAP_FLAGS, -1, 0)
        return None if address == _MAP_FAILED else address

    def unmap(self, address: int, size: int) -> None:
        """`munmap`; where that would leave too many mappings, the pages go and the addresses stay."""
        if _system.munmap(address, size):
            self.forget(address, size)

    def remap(self, address: int, before: int, size: int) -> int | None:
        """`mremap`."""
        moved = _system.mremap(address, before, size, _MAY_MOVE)
        return None if moved == _MAP_FAILED else moved

    def forget(self, address: int, size: int) -> None:
        """`madvise`."""
        _system.madvise(address, size, mmap.MADV_DONTNEED)


class CountedMemory:
    """Addresses without memory behind them, for replaying what another machine had room for."""

    def __init__(self) -> None:
        self._next = 1 << 20

    def map(self, size: int) -> int | None:
        """The next addresses."""
        address = self._next
        self._next += size
        return address if self._next < 1 << 63 else None

    def unmap(self, address: int, size: int) -> None:
        """Nothing to do."""

    def remap(self, address: int, before: int, size: int) -> int | None:
        """Other addresses, unless it shrinks."""
        return address if size <= before else self.map(size)

    def forget(self, address: int, size: int) -> None:
        """Nothing to do."""


SYSTEM = SystemMemory()
