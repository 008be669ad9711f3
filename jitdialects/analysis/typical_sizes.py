"""Sizes that are not known when code is made, as those who judge take them to be: a hint, never meaning.

As text, `n=65536, m=16`: the option `typical` of `tssa-fuse` and of a compile request. What is not named is `TYPICAL`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

TYPICAL = 256
"""A size of which nothing is said, and the value of an argument."""
_SIZE = re.compile(r"\s*(\w+)\s*=\s*([0-9]{1,18})\s*")


def parse_typical(text: str) -> dict[str, int]:
    """The sizes by their names; `ValueError` that says what is wrong."""
    sizes: dict[str, int] = {}
    for part in text.split(",") if text.strip() else ():
        found = _SIZE.fullmatch(part)
        if found is None:
            raise ValueError(f"'{part.strip()}' is no size; write 'n=65536, m=16'")
        sizes[found[1]] = int(found[2])
    return sizes


def coarse(size: int) -> int:
    """The nearest power of 4, by ratio: levels of a memory differ by more, and few texts are met for one function."""
    return 4 ** round(math.log(max(size, 1), 4))


def typical_text(sizes: Mapping[str, int]) -> str:
    """The sizes made coarse, without those that would be taken anyway."""
    rounded = {name: coarse(size) for name, size in sizes.items()}
    return ", ".join(f"{name}={size}" for name, size in rounded.items() if size != TYPICAL)
