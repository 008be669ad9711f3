"""The floating-point environment that a run computes in: rounding to nearest, subnormals kept.

A library may have switched the caller's thread to flush-to-zero (`-ffast-math` start-up code does) or to
another rounding; the numerics contract holds all the same. `enter` looks at the control word of the thread,
sets the default environment only if need be, and gives what `leave` restores. Uses C99's `fenv.h` from libm with
the layout that glibc documents for x86-64 (the control word of the vector unit is the last of 32 bytes);
elsewhere both do nothing.
"""

from __future__ import annotations

import ctypes
import platform
import threading
from typing import TypeAlias

Saved: TypeAlias = bytes
_BYTES, _CONTROL_AT = 32, 28
_CONTROL, _DEFAULT = 0xFFC0, 0x1F80
"""Control bits of the word (the others are flags), and their default: all exceptions masked."""
_DEFAULT_ENVIRONMENT = ctypes.c_void_p(-1)
"""glibc's FE_DFL_ENV."""


class _Thread(threading.local):
    """A buffer per thread, so that `enter` allocates nothing."""

    def __init__(self) -> None:
        self.buffer = ctypes.create_string_buffer(_BYTES)
        self.words = memoryview(self.buffer).cast("B").cast("I")


_thread = _Thread()
_known = platform.machine() == "x86_64" and platform.libc_ver()[0] == "glibc"
_libm = ctypes.CDLL("libm.so.6") if _known else None


def enter() -> Saved | None:
    """Make the environment the default one. What to give to `leave`, or None if it was that already."""
    if _libm is None:
        return None
    here = _thread
    _libm.fegetenv(here.buffer)
    if here.words[_CONTROL_AT // 4] & _CONTROL == _DEFAULT:
        return None
    saved = here.buffer.raw
    _libm.fesetenv(_DEFAULT_ENVIRONMENT)
    return saved


def leave(saved: Saved) -> None:
    """Restore what `enter` found."""
    if _libm is not None:
        _libm.fesetenv(saved)
