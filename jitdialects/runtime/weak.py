"""Lists of what weak collections hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def listed(items: Callable[[], Iterable[T]]) -> list[T]:
    """The items as a list, while other threads add some. A weak collection is walked in Python, and refuses to
    go on when it has grown meanwhile; `items` then begins anew."""
    while True:
        try:
            return list(items())
        except RuntimeError:  # changed size during iteration
            continue
