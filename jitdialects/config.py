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


def _env(name: str, default: T, parse: Callable[[str], T]) -> Callable[[], T]:
    def read() -> T:
        text = os.environ.get(f"JITDIALECTS_{name}")
        if text is None:
            return default
        try:
            return parse(text)
        except ValueError as error:
            raise ConfigError(f"JITDIALECTS_{name}={text!r}: {error}") from None

    return read


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError("needs a number of at least 1")
    return value


def _one_of(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"needs one of {', '.join(allowed)}")
        return text

    return parse


def _folder(text: str) -> Path | None:
    return Path(text).expanduser() if text else None


def default_cache_dir() -> Path:
    """The user's cache folder, after the XDG base directory specification."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "jitdialects"


@dataclass
class Config:
    """Options with their defaults; see design section 9 for the variables."""

    threshold: int = field(default_factory=_env("THRESHOLD", 10, _positive))
    """Executions of a block before its function may be compiled."""
    cache_dir: Path | None = field(default_factory=_env("CACHE_DIR", default_cache_dir(), _folder))
    """Folder of the kernel pack and linked kernels; None (empty variable): nothing kept on disk."""
    dump: Path | None = field(default_factory=_env("DUMP", None, _folder))
    """Folder for the text of every stage, one sub-folder per signature."""
    numerics: str = field(default_factory=_env("NUMERICS", "strict", _one_of("strict")))
    """Numerics mode. This version knows `strict` only."""
    shapes: str = field(
        default_factory=_env("SHAPES", "auto", _one_of("auto", "exact", "symbolic"))
    )
    """Shape policy: `auto` generalises a dimension at its second distinct size."""
    features: str | None = field(default_factory=_env("FEATURES", None, _one_of(*FEATURE_LEVELS)))
    """Highest feature level used; None: what this CPU has."""


config = Config()
