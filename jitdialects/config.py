"""One place for options. Each field has an environment variable `JITDIALECTS_<FIELD>`.

`config` is read where a decision is made, never copied at import, so that changing it takes effect at
the next call. A variable with a value that is not allowed is an error where the option is read, and at
the latest where the first machine is made; not at import: tools report it like any other.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

from jitdialects.errors import ConfigError

MAX_THREADS = 256
MAX_PORT = (1 << 16) - 1
FEATURE_LEVELS = ("x86-64-v1", "x86-64-v2", "x86-64-v3", "x86-64-v4")


def _positive(value: object) -> int:
    text = str(value).strip()
    if not text.isdecimal() or int(text) < 1:
        raise ValueError("needs a whole number of at least 1")
    return int(text)


def _threshold(value: object) -> int | None:
    return None if value is None or value == "" else _positive(value)


_UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def number_of_bytes(value: object) -> int:
    """A number of bytes, also as text with a unit; `ValueError` for anything else."""
    found = re.fullmatch(r"\s*([0-9]+)\s*([KMGT]iB)?\s*", str(value))
    if found is None or isinstance(value, bool):
        raise ValueError("needs a number of bytes, such as 1000000 or 64MiB")
    return int(found[1]) * _UNITS[found[2] or ""]


def _limit(value: object) -> int | None:
    if value is None or value == "":
        return None
    return number_of_bytes(value) or _positive(0)


def _switch(value: object) -> bool:
    text = str(value).lower()
    if text not in ("0", "1", "true", "false", ""):
        raise ValueError("needs 1 or 0")
    return text in ("1", "true")


def _seconds(value: object) -> float:
    with contextlib.suppress(ValueError):
        seconds = float(str(value))
        if 0 < seconds < float("inf"):
            return seconds
    raise ValueError("needs a positive number of seconds")


def _one_of(*allowed: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"needs one of {', '.join(allowed)}")
        return value

    return parse


def _feature_level(value: object) -> str | None:
    return None if value is None or value == "" else _one_of(*FEATURE_LEVELS)(value)


def _number_of_threads(value: object) -> int | None:
    if value is None or value == "":
        return None
    number = _positive(value)
    if number > MAX_THREADS:
        raise ValueError(f"needs a number of threads, at most {MAX_THREADS}")
    return number


def _path_of(what: str) -> Callable[[object], Path | None]:
    def parse(value: object) -> Path | None:
        if value is None or value == "":
            return None
        try:
            return Path(cast(str, value)).expanduser()
        except (TypeError, RuntimeError) as error:
            raise ValueError(f"needs the path of {what} ({error})") from None

    return parse


_folder, _file = _path_of("a folder"), _path_of("a file")


def _url(value: object) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value
    raise ValueError("needs a URL, such as s3://bucket/kernels or file:///mnt/kernels")


class Secret:
    """Text that is never shown, or the file that has it. `bytes` reads the file each time."""

    def __init__(self, text: str) -> None:
        self._text = text

    def bytes(self) -> bytes:
        """The secret; `OSError` where its file cannot be read."""
        if not self._text.startswith("@"):
            return self._text.encode()
        return Path(self._text[1:]).expanduser().read_bytes().strip()

    def __repr__(self) -> str:
        return "<secret>"


def _secret(value: object) -> Secret | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return Secret(value)
    if isinstance(value, Secret):
        return value
    raise ValueError("needs text, or @ and the path of a file that has it")


def _address(value: object) -> str | None:
    """`port`, `host:port`, or a path, which has a slash."""
    if value is None or value == "":
        return None
    text = str(value).strip()
    if "/" in text:  # which ./name has, and a Path of it no more
        return os.path.abspath(os.path.expanduser(text))
    host, colon, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > MAX_PORT or (colon and not host):
        raise ValueError("needs a port, host:port, or the path of a socket such as ./dash.socket")
    return f"{host or '127.0.0.1'}:{port}"


def default_cache_dir() -> Path | None:
    """The user's cache folder, after the XDG base directory specification; None for a user who has
    no home."""
    with contextlib.suppress(ValueError):
        base = _folder(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
        return base and base / "jitdialects"
    return None


_OPTIONS: dict[str, tuple[object, Callable[[object], object]]] = {
    "threshold": (None, _threshold),
    "cache_dir": (default_cache_dir(), _folder),
    "dump": (None, _folder),
    "policy_trace": (None, _file),
    "numerics": ("strict", _one_of("strict")),
    "shapes": ("auto", _one_of("auto", "exact", "bucketed", "symbolic")),
    "max_shapes": (100, _positive),
    "features": (None, _feature_level),
    "compiler": ("server", _one_of("server", "in-process")),
    "measure_fusion": (True, _switch),
    "engine": ("auto", _one_of("auto", "file", "memory", "mapped")),
    "compile_seconds": (20.0, _seconds),
    "compile_megabytes": (4096, _positive),
    "threads": (None, _number_of_threads),
    "code_cap": (1 << 28, number_of_bytes),
    "disk_cap": (1 << 30, number_of_bytes),
    "shared_cache": (None, _url),
    "shared_cache_secret": (None, _secret),
    "pool_limit": (None, _limit),
    "pool_classes": ("fine", _one_of("fine", "coarse")),
    "pool_debug": (False, _switch),
    "pool_trace": (None, _file),
    "dash": (None, _address),
    "dash_token": (None, _secret),
}
"""Option -> its default, and what reads text or a value (`ValueError` for what is not allowed)."""


_watchers: dict[str, list[Callable[[], None]]] = {}


def watch(option: str, told: Callable[[], None]) -> None:
    """Have `told` called after every change of `option`: for what machine code reads elsewhere."""
    _watchers.setdefault(option, []).append(told)


_first_machine: list[Callable[[], None]] = []


def at_first_machine(told: Callable[[], None]) -> None:
    """Have `told` called once, when this process begins to compute."""
    _first_machine.append(told)


def machine_made() -> None:
    """A virtual machine is made: `ConfigError` for a variable whose value is not allowed. Who would read it
    later may be a thread in the background, which can only give up."""
    config.check()
    while _first_machine:
        _first_machine.pop()()


class Config:
    """The options; see design section 9 for the variables. Raises `ConfigError` for a name or value
    that is not allowed."""

    threshold: int | None
    """Executions of a block after which its function is compiled; None (empty variable): the policy's own, and
    only where compiling is expected to pay."""
    cache_dir: Path | None
    """Folder of the kernel pack and of compiled code; None (empty variable): nothing kept on disk."""
    dump: Path | None
    """Folder for the text of every stage, one sub-folder per signature."""
    policy_trace: Path | None
    """File for a trace of what policies decide by (`jit-run --simulate-policy`): of machines made from now on."""
    numerics: str
    """Numerics mode. This version knows `strict` only."""
    shapes: str
    """Shape policy: `auto` generalises a dimension at its second distinct size."""
    max_shapes: int
    """Distinct shapes without code after which every policy has general code made."""
    features: str | None
    """Highest feature level used; None: what this CPU has."""
    compiler: str
    """Where code is compiled: a `server` process, or `in-process` (for debugging)."""
    measure_fusion: bool
    """Whether fusion that was decided by little is decided by measured times, in code that is hot enough."""
    engine: str
    """How code gets into this process: `file` and `memory` through the dynamic linker, `mapped` without it;
    `auto`: the first that works here."""
    compile_seconds: float
    """What one compile may take; a function that needs more stays interpreted."""
    compile_megabytes: int
    """Memory that one compile may take in the compile server; a function that needs more stays interpreted."""
    threads: int | None
    """Threads that a parallel loop may use, the calling one included; 1: no others; None (empty
    variable): as many as there are cores for this process."""
    code_cap: int
    """Bytes of compiled code that this process keeps; what was called least recently goes first."""
    disk_cap: int
    """Bytes of compiled code in `cache_dir`; 0: none is kept there."""
    shared_cache: str | None
    """URL of storage that machines share compiled code in, for fsspec."""
    shared_cache_secret: Secret | None
    """What entries there are signed with: text, or `@` and the path of a file. Never shown."""
    dash: str | None
    """Where the live page of a process that computes is served: a port (0: any) of the loopback interface,
    `host:port`, or the path of a socket; None (empty variable): nowhere. Read once."""
    dash_token: Secret | None
    """What requests for the page must have: text, or `@` and the path of a file. None: nothing, on the loopback
    interface only."""

    pool_limit: int | None
    """Bytes that the pool of the process may have from the system, also as text ("256MiB"); None: no limit."""
    pool_classes: str
    """Its size classes: `fine` (each double the one before) or `coarse` (four times)."""
    pool_debug: bool
    """Whether it looks for writes after release, overruns and leaks. Slow."""
    pool_trace: Path | None
    """File that its requests are recorded in for `jit-pool replay`; %p in it is the number of the process."""

    def __init__(self) -> None:
        for name, (default, _) in _OPTIONS.items():
            text = os.environ.get(_variable(name))
            with contextlib.suppress(ConfigError):
                self._set(name, default if text is None else text, _variable(name))

    def _set(self, name: str, value: object, who: str) -> None:
        try:
            super().__setattr__(name, _OPTIONS[name][1](value))
        except ValueError as error:
            shown = "..." if name.endswith("secret") else repr(value)
            raise ConfigError(f"{who}={shown}: {error}") from None

    def check(self) -> None:
        """Read what has no value yet, so that a wrong variable is told now. That of the page disturbs nobody:
        who would serve it warns."""
        for name in _OPTIONS:
            if name not in self.__dict__ and name != "dash":
                getattr(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _OPTIONS:
            raise ConfigError(f"config has no '{name}'; it has: {', '.join(_OPTIONS)}")
        self._set(name, value, f"config.{name}")
        for told in _watchers.get(name, ()):
            told()

    def __getattr__(self, name: str) -> object:
        """Asked for what has no value: an option whose variable has a wrong one."""
        if name not in _OPTIONS:
            raise AttributeError(f"config has no '{name}'; it has: {', '.join(_OPTIONS)}")
        self._set(name, os.environ.get(_variable(name), ""), _variable(name))
        return getattr(self, name)


def _variable(option: str) -> str:
    return f"JITDIALECTS_{option.upper()}"


config = Config()
