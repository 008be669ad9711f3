"""A caller's thread in flush-to-zero mode or another rounding: the same bits, and its mode is left alone."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import jitdialects as jd

FLUSH, UPWARD = 0x8040, 0x4000  # FTZ and DAZ; rounding control
libm = ctypes.CDLL("libm.so.6")
TINY = np.array([1e-39, -1e-42, 1.5, 1e-45, 1 / 3], np.float32)

PROGRAM = """
#0 = float 0.5
#1 = float 3.0
func @main(%0) -> 2 {
^entry:
  %1 = const #0
  %2 = const #1
  %3 = multiply %0, %1
  %4 = divide %3, %2
  %5 = add %4, %0
  %6 = sum %5
  return %5, %6
}
"""


@contextmanager
def control_bits(bits: int) -> Iterator[None]:
    """Set bits in the control word of this thread's vector unit."""
    saved = ctypes.create_string_buffer(32)
    libm.fegetenv(saved)
    word = struct.unpack_from("<I", saved.raw, 28)[0] | bits
    libm.fesetenv(saved.raw[:28] + struct.pack("<I", word))
    try:
        yield
    finally:
        libm.fesetenv(saved)


def control_word() -> int:
    """The control bits of this thread."""
    now = ctypes.create_string_buffer(32)
    libm.fegetenv(now)
    return struct.unpack_from("<I", now.raw, 28)[0] & 0xFFC0


def bits_of(results: tuple[np.ndarray, ...]) -> list[bytes]:
    return [r.tobytes() for r in results]


@pytest.mark.parametrize("bits", [FLUSH, UPWARD], ids=["flush", "upward"])
@pytest.mark.parametrize("threshold", [1, 10**6], ids=["compiled", "interpreted"])
def test_the_callers_mode_changes_no_bit(bits: int, threshold: int) -> None:
    vm = jd.VM(jd.Program.from_text(PROGRAM), policy=jd.Policy(threshold=threshold))
    expected = bits_of(vm.run("main", TINY))
    with control_bits(bits):
        assert control_word() == 0x1F80 | bits
        vm.run("main", TINY)
        vm.wait()  # what is compiled now is compiled for a thread in this mode
        found = bits_of(vm.run("main", TINY))
        assert control_word() == 0x1F80 | bits
    assert found == expected
    assert bits_of(vm.run("main", TINY)) == expected
    assert (vm.functions["main"].profile.served > 0) == (threshold == 1)


def test_the_compiler_folds_in_the_default_mode() -> None:
    """The thread that compiles inherits the mode of the thread that starts it."""
    seen: list[int] = []
    with control_bits(FLUSH):
        thread = threading.Thread(target=lambda: seen.append(control_word()))
        thread.start()
        thread.join()
    assert seen == [0x1F80 | FLUSH]  # so it has something to undo
    text = PROGRAM.replace(
        "func @main(%0) -> 2 {", "#2 = f32[2] [1e-39, 3e-42]\nfunc @main() -> 2 {"
    )
    text = text.replace("^entry:", "^entry:\n  %0 = const #2")
    expected = bits_of(jd.VM(jd.Program.from_text(text)).run("main"))
    vm = jd.VM(jd.Program.from_text(text), policy=jd.Policy(threshold=1))
    with control_bits(FLUSH):
        for _ in range(3):
            vm.run("main")
            vm.wait()
        assert bits_of(vm.run("main")) == expected
    assert vm.functions["main"].profile.served
