"""Memory from the operating system."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any


def _system() -> tuple[Any, Any]:
    library = ctypes.CDLL(None, use_errno=True)
    map_, unmap = library.mmap, library.munmap
    map_.restype, unmap.restype = ctypes.c_void_p, ctypes.c_int
    map_.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
    unmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return map_, unmap


_mmap, unmap = _system()
_MAP_FAILED = ctypes.c_void_p(-1).value
MAP_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
MAP_NORESERVE = 0x4000  # Linux; a hint elsewhere


def map_memory(size: int) -> int | None:
    """Address of `size` fresh zeroed bytes, or None if the system has no more."""
    if size >= 1 << 63:  # ctypes would cut it off
        return None
    address = _mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, MAP_FLAGS, -1, 0)
    return None if address == _MAP_FAILED else address
