"""What compiled code depends on, and the names that follow from it on every level of the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any, cast

from jitdialects.bytecode.signature import Signature, parse

SUFFIX = ".jdk"
MOST_GENERAL = 8
"""Entries for any size that are tried for one call."""


@dataclass(frozen=True)
class CacheKey:
    """Everything that compiled code depends on."""

    fingerprint: str
    """Of the bytecode of the function and of what it calls."""
    signature: str
    features: str
    """The level that the code was made for."""
    compiler: str
    numerics: str = "strict"
    fuse: bool = True
    schedule: str = ""
    typical: str = ""
    """Sizes to be expected where the signature leaves them open, coarse. With `balance`, what the judges of fusion were
    told: other code with equal results."""
    balance: float = 1.0

    def is_akin(self, other: CacheKey) -> bool:
        """Whether they differ at most in signature, level, and what judges were told."""
        return (
            replace(
                self,
                signature=other.signature,
                features=other.features,
                typical=other.typical,
                balance=other.balance,
            )
            == other
        )

    @property
    def folder(self) -> str:
        """Relative path of the folder with all code of one function by one compiler."""
        return f"{self.compiler}/{self.fingerprint}"

    @property
    def file_name(self) -> str:
        """Name of its entry in the folder: class of calls, signature, what judges were told if anything, level."""
        parts = class_prefix(self), signature_prefix(self), _advice(self), self.features[-2:]
        return f"{''.join(parts)}{SUFFIX}"

    def as_json(self) -> dict[str, str | bool | float]:
        """The fields."""
        return asdict(self)


def key_from_json(data: object) -> CacheKey:
    """The key in the fields of `as_json`; `ValueError` for anything else."""
    values = cast("dict[str, Any]", data if isinstance(data, dict) else {})
    wanted = {each.name: _TYPES.get(each.name, str) for each in fields(CacheKey)}
    if {name: type(value) for name, value in values.items()} == wanted:
        return CacheKey(**values)
    raise ValueError("the key has other fields")


_TYPES = {"fuse": bool, "balance": float}
"""Of fields that are no text."""
_OTHER = "b-"
"""Behind the advice of code for another balance, which is on trial as long as there is the code for 1, too."""


def _digest(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


@lru_cache(1024)
def _parsed(signature: str) -> Signature:
    return parse(signature)


def is_general(signature: str) -> bool:
    """Whether code for this signature is for more than one size."""
    shapes = (argument.shape for argument in _parsed(signature).arguments)
    return any(not isinstance(size, int) for shape in shapes for size in shape)


def class_prefix(key: CacheKey) -> str:
    """What file names of all signatures begin with that differ from this one in sizes only."""
    kinds = [
        (a.dtype.name, a.dtype.weak, len(a.shape), a.strided)
        for a in _parsed(key.signature).arguments
    ]
    return _digest(f"{kinds} {key.numerics} {key.fuse} {key.schedule}", 6) + "-"


def signature_prefix(key: CacheKey) -> str:
    """The part of a file name that tells signatures of a class apart: `g`eneral, or for e`x`act sizes."""
    kind = "g" if is_general(key.signature) else "x"
    return f"{kind}{_digest(key.signature, 8)}-"


def _advice(key: CacheKey) -> str:
    """The part of a file name that tells apart code for one signature."""
    if not key.typical and key.balance == 1.0:
        return ""
    return f"{_digest(f'{key.typical} {key.balance}', 4)}{_OTHER if key.balance != 1.0 else '-'}"


def candidates(names: Iterable[str], wanted: CacheKey) -> tuple[list[str], list[list[str]]]:
    """Of the files in one folder, those for exactly `wanted`, and those for all sizes of such calls, one list
    for each signature. First in each: what was made for this very level, then for the highest; of that, what judges
    were told the same for, then what is on trial nowhere."""
    of_class, own = class_prefix(wanted), wanted.features[-2:] + SUFFIX
    exact = of_class + signature_prefix(wanted)
    told = _advice(wanted)

    def rank(name: str) -> tuple[object, ...]:
        advice, level = name[len(exact) : -len(own)], name[-len(own) :]
        return level == own, level, advice == told, not advice.endswith(_OTHER), name

    groups: dict[str, list[str]] = {}
    for name in sorted(names, key=rank, reverse=True):
        if name.startswith(of_class) and name.endswith(SUFFIX):
            groups.setdefault(name[: len(exact)], []).append(name)
    general = [group for prefix, group in groups.items() if prefix.startswith(of_class + "g")]
    return groups.get(exact, []), general[:MOST_GENERAL]
