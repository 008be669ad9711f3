"""Attributes that are computed when somebody asks first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class once(Generic[T]):
    """A property that is computed once per object; by two threads at once, twice. Unlike `functools.cached_property`,
    which has a lock per class up to Python 3.11, it never makes one object wait for another, nor a forked process
    for a thread of its parent."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> T:
        if instance is None:
            return cast(T, self)
        return cast(T, vars(instance).setdefault(self._name, self._compute(instance)))
