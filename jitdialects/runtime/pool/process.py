"""The pool of the process, as the options describe it: `config.pool_limit`, `pool_classes`, `pool_debug` and
`pool_trace`. They are read at its first request, and again when one of them changes."""

from __future__ import annotations

import os
from typing import Any

from jitdialects.config import config, watch
from jitdialects.errors import PoolError
from jitdialects.runtime.notices import notice
from jitdialects.runtime.pool.memory_pool import MemoryPool


class _UnusedPool(MemoryPool):
    """A pool before its first request."""

    def allocate(self, size: int) -> int:
        """Read the options, then as of `MemoryPool`. Raises `ConfigError` for an option that is not allowed."""
        options = config.pool_limit, config.pool_classes, config.pool_debug, config.pool_trace
        del options  # each has a value that is allowed
        pool: Any = self
        pool.__class__ = MemoryPool
        for apply in _OPTIONS.values():
            apply(self)
        return self.allocate(size)


def _limit(pool: MemoryPool) -> None:
    pool.limit = config.pool_limit


def _classes(pool: MemoryPool) -> None:
    pool.classes = config.pool_classes


def _debug(pool: MemoryPool) -> None:
    pool.debug = config.pool_debug


def _trace(pool: MemoryPool) -> None:
    path = config.pool_trace
    if path is None:
        pool.stop_recording()
    else:
        try:
            pool.record(str(path).replace("%p", str(os.getpid())))
        except PoolError as error:  # whoever asks for memory has nothing to do with it
            pool.state.trace_failures += 1
            notice(f"pool_trace: {error}")


_OPTIONS = {
    "pool_limit": _limit,
    "pool_classes": _classes,
    "pool_debug": _debug,
    "pool_trace": _trace,
}
default_pool: MemoryPool = _UnusedPool()
"""The pool of the process; virtual machines use it unless they are given another."""


def _follow(option: str) -> None:
    def changed() -> None:
        if not isinstance(default_pool, _UnusedPool):
            _OPTIONS[option](default_pool)

    watch(option, changed)


for _option in _OPTIONS:
    _follow(_option)
