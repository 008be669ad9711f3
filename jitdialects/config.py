"""One place for options. Each field has an environment variable `JITDIALECTS_<FIELD>`.

`config` is read where a decision is made, never copied at import, so that changing it takes effect at
the next call.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from jitdialects.errors import ConfigError

FEATURE_LEVELS = ("x86-64-v1", "x86-64-v2", "x86-64-v3", "x86-64-v4")
T = TypeVar("T")

_parsers: dict[str, Callable[[object], object]] = {}
"""Field -> what reads text or a value and raises `ValueError` for what is not allowed."""


def _option(name: str, default: T, parse: Callable[[object], T]) -> T:
    """A field that starts from its environment variable."""
    _parsers[name] = parse
    variable = f"JITDIALECTS_{name.upper()}"

    def read() -> T:
        text = os.environ.get(variable)
        return default if text is None else _checked(f"{variable}={text!r}", text, parse)

    return field(default_factory=read)


def _checked(what: str, value: object, parse: Callable[[object], T]) -> T:
    try:
        return parse(value)
    except ValueError as error:
        raise ConfigError(f"{what}: {error}") from None


def _positive(value: object) -> int:
    text = str(value).strip()
    if not text.isdecimal() or int(text) < 1:
        raise ValueError("needs a whole number of at least 1")
    return int(text)


def _one_of(*allowed: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"needs one of {', '.join(allowed)}")
        return value

    return parse


def _feature_level(value: object) -> str | None:
    return None if value is None else _one_of(*FEATURE_LEVELS)(value)


def _folder(value: object) -> Path | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str | Path):
        raise ValueError("needs a path, or nothing")
    return Path(value).expanduser()


def default_cache_dir() -> Path:
    """The user's cache folder, after the XDG base directory specification."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "jitdialects"


@dataclass
class Config:
    """Options with their defaults; see design section 9 for the variables.

    Raises `ConfigError` for a name or value that is not allowed.
    """

    threshold: int = _option("threshold", 10, _positive)
    """Executions of a block before its function may be compiled."""
    cache_dir: Path | None = _option("cache_dir", default_cache_dir(), _folder)
    """Folder of the kernel pack and linked kernels; None (empty variable): nothing kept on disk."""
    dump: Path | None = _option("dump", None, _folder)
    """Folder for the text of every stage, one sub-folder per signature."""
    numerics: str = _option("numerics", "strict", _one_of("strict"))
    """Numerics mode. This version knows `strict` only."""
    shapes: str = _option("shapes", "auto", _one_of("auto", "exact", "symbolic"))
    """Shape policy: `auto` generalises a dimension at its second distinct size."""
    features: str | None = _option("features", None, _feature_level)
    """Highest feature level used; None: what this CPU has."""

    def __setattr__(self, name: str, value: object) -> None:
        parse = _parsers.get(name)
        if parse is None:
            raise ConfigError(f"config has no '{name}'; it has: {', '.join(_parsers)}")
        super().__setattr__(name, _checked(f"config.{name} = {value!r}", value, parse))


config = Config()
