"""Which feature level a piece of x86-64 machine code needs: what it uses, not what it was compiled for.

Code is read instruction by instruction, by a regular expression that knows the lengths of what LLVM emits for
kernels. Code that matches `_V2` or `_V3` from its first to its last byte runs on every CPU of that level. Anything
unknown is no match: the code then counts as needing the level it was compiled for, so that what is said
is never too low.

Reference: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2 and appendix A.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from jitdialects.config import FEATURE_LEVELS

_V2, _V3 = FEATURE_LEVELS[1], FEATURE_LEVELS[2]


def lowest_level(codes: Iterable[bytes], features: str) -> str:
    """The lowest level from x86-64-v2 on whose CPUs can run all of `codes`, at most `features`, for which they
    were compiled."""
    codes = tuple(codes)
    for level in (_V2, _V3):
        if level >= features:
            break
        if all(_instructions(level).fullmatch(code) for code in codes):
            return level
    return features


def prepare() -> None:
    """Compile the patterns, which takes some 20 ms each."""
    for level in (_V2, _V3):
        _instructions(level)


def _bytes(*ranges: int | tuple[int, int]) -> bytes:
    """A class of bytes."""
    parts = (each if isinstance(each, tuple) else (each, each) for each in ranges)
    return b"[%s]" % b"".join(b"\\x%02x-\\x%02x" % (low, high) for low, high in parts)


def _every_eighth(*numbers: int) -> list[int]:
    """Bytes with these low three bits, below 0x40."""
    return [high * 8 + low for high in range(8) for low in numbers]


def _operand() -> bytes:
    """ModR/M, SIB and displacement."""
    plain = _every_eighth(0, 1, 2, 3, 6, 7)
    with_sib, with_offset = _every_eighth(4), _every_eighth(5)
    no_base = [x * 8 + 5 for x in range(32)]
    based = [x for x in range(256) if x % 8 != 5]
    return _any(
        (
            _bytes((0xC0, 0xFF)),
            _bytes(*plain),
            _bytes(*with_sib) + b"(?:" + _bytes(*no_base) + b".{4}|" + _bytes(*based) + b")",
            _bytes(*with_offset) + b".{4}",
            _bytes(*(0x40 + x for x in (*plain, *with_offset))) + b".",
            _bytes(*(0x40 + x for x in with_sib)) + b"..",
            _bytes(*(0x80 + x for x in (*plain, *with_offset))) + b".{4}",
            _bytes(*(0x80 + x for x in with_sib)) + b".{5}",
        )
    )


@dataclass
class _Opcodes:
    """Instructions up to their operand, by what comes behind: nothing, or a number of so many bytes. The operand
    is the longest part of the pattern, so it is there once for each kind."""

    operand: list[bytes] = field(default_factory=list[bytes])
    byte: list[bytes] = field(default_factory=list[bytes])
    two: list[bytes] = field(default_factory=list[bytes])
    four: list[bytes] = field(default_factory=list[bytes])
    complete: list[bytes] = field(default_factory=list[bytes])
    """Instructions without an operand, whole."""

    def add(self, prefix: bytes, other: _Opcodes) -> None:
        """Those of `other` behind `prefix`."""
        for mine, theirs in zip(self._lists(), other._lists(), strict=True):
            if theirs:
                mine.append(prefix + _any(theirs))

    def pattern(self) -> bytes:
        """Any of them."""
        tails = b"", b".", b"..", b".{4}"
        *lists, complete = self._lists()
        pairs = zip(lists, tails, strict=True)
        return _any([*(_any(o) + _operand() + tail for o, tail in pairs if o), *complete])

    def _lists(self) -> tuple[list[bytes], ...]:
        return self.operand, self.byte, self.two, self.four, self.complete


def _any(parts: Iterable[bytes]) -> bytes:
    return b"(?:" + b"|".join(parts) + b")"


@cache
def _instructions(level: str) -> re.Pattern[bytes]:
    rex = b"[\\x40-\\x4f]?"
    plain = [low + high for high in range(0, 0x40, 8) for low in range(4)]
    to_al, to_eax = (_every_eighth(4), _every_eighth(5))
    # of an instruction with /0 or /1 in its ModR/M (test), and of all others
    first_two = b"[\\x00-\\x0f\\x40-\\x4f\\x80-\\x8f\\xc0-\\xcf]"
    one_byte = _Opcodes(
        operand=[
            _bytes(*plain, 0x63, (0x84, 0x8B), 0x8D, (0xD0, 0xD3), 0xFE, 0xFF),
            b"[\\xf6\\xf7](?!" + first_two + b")",
        ],
        byte=[_bytes(0x6B, 0x80, 0x83, 0xC0, 0xC1, 0xC6), b"\\xf6(?=" + first_two + b")"],
        complete=[
            _bytes(*to_al, 0xA8, 0x6A, (0x70, 0x7F), 0xEB, (0xB0, 0xB7)) + b".",
            _bytes((0x50, 0x5F), (0x90, 0x99), 0xC3, 0xC9, 0xCC),
        ],
    )
    wide, wide_to_eax = (
        [_bytes(0x69, 0x81, 0xC7), b"\\xf7(?=" + first_two + b")"],
        _bytes(*to_eax, 0xA9),
    )
    two_bytes = _Opcodes(
        operand=[
            _bytes(
                (0x10, 0x1F), (0x28, 0x2F), (0x40, 0x6F), (0x74, 0x76), (0x7C, 0x7F), (0x90, 0x9F)
            ),
            _bytes(0xA3, 0xAB, (0xAE, 0xB1), 0xB3, 0xB6, 0xB7, 0xBB, 0xBE, 0xBF, 0xC0, 0xC1, 0xC3),
            _bytes((0xD0, 0xFE)),
        ],
        byte=[_bytes((0x70, 0x73), 0xA4, 0xAC, 0xBA, 0xC2, (0xC4, 0xC6))],
        complete=[_bytes(0x0B, 0x31, (0xC8, 0xCF))],
    )
    three_bytes = _Opcodes(
        operand=[b"\\x38" + _bytes((0x00, 0x0B), (0x10, 0x41))],
        byte=[b"\\x3a" + _bytes((0x08, 0x22), (0x40, 0x42), (0x60, 0x63))],
    )
    found = _Opcodes(
        operand=[
            b"(?!\\xf3)" + rex + b"\\x0f[\\xbc\\xbd]",  # with F3: tzcnt, lzcnt
            b"\\xf3" + rex + b"\\x0f\\xb8",
        ],
        complete=[
            b"[\\x40-\\x47]?[\\xb8-\\xbf].{4}",
            b"[\\x48-\\x4f][\\xb8-\\xbf].{8}",
            b"[\\xe8\\xe9\\x68].{4}",
            b"\\x0f[\\x80-\\x8f].{4}",
        ],
    )
    found.add(b"\\x66*+[\\xf0\\xf2\\xf3\\x2e]?" + rex, one_byte)
    found.add(b"\\x66" + rex, _Opcodes(two=wide, complete=[wide_to_eax + b".."]))
    found.add(rex, _Opcodes(four=wide, complete=[wide_to_eax + b".{4}"]))
    found.add(b"\\x66*+\\x2e?[\\xf0\\xf2\\xf3]?" + rex + b"\\x0f", two_bytes)
    found.add(b"\\x66?[\\xf2\\xf3]?" + rex + b"\\x0f", three_bytes)
    if level == _V3:
        _add_vex(found)
        found.operand.append(b"\\xf3" + rex + b"\\x0f[\\xbc\\xbd]")
        found.operand.append(b"\\x66?" + rex + b"\\x0f\\x38[\\xf0\\xf1]")
    return re.compile(b"(?>" + found.pattern() + b")*+", re.DOTALL)


def _add_vex(found: _Opcodes) -> None:
    """AVX, AVX2, FMA, F16C, BMI; neither masks of AVX-512 (0x41 to 0x4B, 0x90 to 0x99 of the first map) nor what
    no level has."""
    first = _Opcodes(
        operand=[
            _bytes(
                (0x10, 0x17),
                (0x28, 0x2F),
                (0x50, 0x6F),
                (0x74, 0x76),
                (0x7C, 0x7F),
                0xAE,
                (0xD0, 0xFE),
            )
        ],
        byte=[_bytes((0x70, 0x73), 0xC2, (0xC4, 0xC6))],
        complete=[b"\\x77"],
    )
    second = _bytes((0x00, 0x13), (0x16, 0x47), (0x58, 0x5A), 0x78, 0x79, 0x8C, 0x8E)
    fused = _bytes((0x90, 0x93), (0x96, 0x9F), (0xA6, 0xAF), (0xB6, 0xBF), 0xF2, 0xF3, (0xF5, 0xF7))
    third = _bytes(
        (0x00, 0x06), (0x08, 0x0F), (0x14, 0x1D), (0x20, 0x22), (0x38, 0x42), (0x46, 0x4C)
    )
    more = _bytes((0x60, 0x63), 0xF0)
    found.add(b"(?:\\xc5|\\xc4[\\x01\\x21\\x41\\x61\\x81\\xa1\\xc1\\xe1]).", first)
    found.add(
        b"\\xc4[\\x02\\x22\\x42\\x62\\x82\\xa2\\xc2\\xe2].", _Opcodes(operand=[second, fused])
    )
    found.add(b"\\xc4[\\x03\\x23\\x43\\x63\\x83\\xa3\\xc3\\xe3].", _Opcodes(byte=[third, more]))
