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
    return (
        b"(?:"
        + b"|".join(
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
        + b")"
    )


@cache
def _instructions(level: str) -> re.Pattern[bytes]:
    operand, rex = _operand(), b"[\\x40-\\x4f]?"
    plain = [low + high for high in range(0, 0x40, 8) for low in range(4)]
    to_al, to_eax = (_every_eighth(4), _every_eighth(5))
    # of an instruction with /0 or /1 in its ModR/M (test), and of all others
    first_two = b"(?=[\\x00-\\x0f\\x40-\\x4f\\x80-\\x8f\\xc0-\\xcf])"
    one_byte = (
        (_bytes(*plain, 0x63, (0x84, 0x8B), 0x8D, (0xD0, 0xD3), 0xFE, 0xFF) + operand),
        (_bytes(0x6B, 0x80, 0x83, 0xC0, 0xC1, 0xC6) + operand + b"."),
        (b"\\xf6(?:" + first_two + operand + b".|" + operand + b")"),
        (b"\\xf7" + b"(?!" + first_two + b")" + operand),
        _bytes(*to_al, 0xA8, 0x6A, (0x70, 0x7F), 0xEB, (0xB0, 0xB7)) + b".",
        _bytes((0x50, 0x5F), (0x90, 0x99), 0xC3, 0xC9, 0xCC),
    )
    wide = _bytes(0x69, 0x81, 0xC7) + operand, b"\\xf7" + first_two + operand, _bytes(*to_eax, 0xA9)
    two_bytes = (
        _bytes((0x10, 0x1F), (0x28, 0x2F), (0x40, 0x6F), (0x74, 0x76), (0x7C, 0x7F), (0x90, 0x9F))
        + operand,
        _bytes(0xA3, 0xAB, (0xAE, 0xB1), 0xB3, 0xB6, 0xB7, 0xBB, 0xBE, 0xBF, 0xC0, 0xC1, 0xC3)
        + operand,
        _bytes((0xD0, 0xFE)) + operand,
        _bytes((0x70, 0x73), 0xA4, 0xAC, 0xBA, 0xC2, (0xC4, 0xC6)) + operand + b".",
        _bytes(0x0B, 0x31, (0xC8, 0xCF)),
    )
    three_bytes = (
        b"\\x38" + _bytes((0x00, 0x0B), (0x10, 0x41)) + operand,
        b"\\x3a" + _bytes((0x08, 0x22), (0x40, 0x42), (0x60, 0x63)) + operand + b".",
    )
    found = [
        b"\\x66*+[\\xf0\\xf2\\xf3\\x2e]?" + rex + b"(?:" + b"|".join(one_byte) + b")",
        b"\\x66" + rex + b"(?:" + b"|".join(wide) + b")..",
        rex + b"(?:" + b"|".join(wide) + b").{4}",
        b"[\\x40-\\x47]?[\\xb8-\\xbf].{4}",
        b"[\\x48-\\x4f][\\xb8-\\xbf].{8}",
        b"[\\xe8\\xe9\\x68].{4}",
        b"\\x66*+\\x2e?[\\xf0\\xf2\\xf3]?" + rex + b"\\x0f(?:" + b"|".join(two_bytes) + b")",
        b"\\x66?[\\xf2\\xf3]?" + rex + b"\\x0f(?:" + b"|".join(three_bytes) + b")",
        b"(?!\\xf3)" + rex + b"\\x0f[\\xbc\\xbd]" + operand,  # with F3: tzcnt, lzcnt
        b"\\xf3" + rex + b"\\x0f\\xb8" + operand,
        b"\\x0f[\\x80-\\x8f].{4}",
    ]
    if level == _V3:
        found += _vex(operand)
        found.append(b"\\xf3" + rex + b"\\x0f[\\xbc\\xbd]" + operand)
        found.append(b"\\x66?" + rex + b"\\x0f\\x38[\\xf0\\xf1]" + operand)
    return re.compile(b"(?>" + b"|".join(found) + b")*+", re.DOTALL)


def _vex(operand: bytes) -> list[bytes]:
    """AVX, AVX2, FMA, F16C, BMI; neither masks of AVX-512 (0x41 to 0x4B, 0x90 to 0x99 of the first map) nor what
    no level has."""
    first = (
        _bytes(
            (0x10, 0x17), (0x28, 0x2F), (0x50, 0x6F), (0x74, 0x76), (0x7C, 0x7F), 0xAE, (0xD0, 0xFE)
        )
        + operand,
        _bytes((0x70, 0x73), 0xC2, (0xC4, 0xC6)) + operand + b".",
        b"\\x77",
    )
    second = _bytes((0x00, 0x13), (0x16, 0x47), (0x58, 0x5A), 0x78, 0x79, 0x8C, 0x8E)
    fused = _bytes((0x90, 0x93), (0x96, 0x9F), (0xA6, 0xAF), (0xB6, 0xBF), 0xF2, 0xF3, (0xF5, 0xF7))
    third = _bytes(
        (0x00, 0x06), (0x08, 0x0F), (0x14, 0x1D), (0x20, 0x22), (0x38, 0x42), (0x46, 0x4C)
    )
    more = _bytes((0x60, 0x63), 0xF0)
    maps = b"|".join(first)
    return [
        b"\\xc5.(?:" + maps + b")",
        b"\\xc4[\\x01\\x21\\x41\\x61\\x81\\xa1\\xc1\\xe1].(?:" + maps + b")",
        b"\\xc4[\\x02\\x22\\x42\\x62\\x82\\xa2\\xc2\\xe2].(?:"
        + second
        + b"|"
        + fused
        + b")"
        + operand,
        b"\\xc4[\\x03\\x23\\x43\\x63\\x83\\xa3\\xc3\\xe3].(?:"
        + third
        + b"|"
        + more
        + b")"
        + operand
        + b".",
    ]
