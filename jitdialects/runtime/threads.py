"""The context that compiled code with parallel loops is called with, and the threads behind it.

A context is two words: the number of threads that a loop may use, and the address of `jd_parallel_for`
(`native/thread_pool.ll`); code runs its loops in the calling thread where the first is 1. The pool comes with the
reply that brings the first code with such a loop, and is never unloaded. Its threads start when a
loop first needs them. Which thread runs what never changes a result.
"""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache

from jitdialects.config import config, watch
from jitdialects.runtime.engines import LoadedLibrary
from jitdialects.runtime.engines.choice import shared_engine

CONTEXT_WORDS = 2


@cache
def available() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0))


class ThreadPool:
    """The native pool of the process."""

    def __init__(self) -> None:
        self._words = (ctypes.c_int64 * CONTEXT_WORDS)(1, 0)
        self._address = ctypes.addressof(self._words)
        self._library: LoadedLibrary | None = None
        self._lock = threading.Lock()

    def context(self) -> int:
        """Address of the context; it stays the same, also where `config.threads` changes."""
        return self._address

    def update(self) -> None:
        """Let the context say how many threads there are, from the next loop on."""
        if self._library is not None:
            self._words[0] = config.threads or available()

    def load(self, library: bytes) -> None:
        """Make the pool available, from the bytes of its shared library, unless it is there."""
        with self._lock:
            if self._library is None:
                loaded = shared_engine().load(library, "thread-pool")
                self._words[1] = loaded.address("jd_parallel_for")
                self._library = loaded
                self.update()

    @property
    def helpers(self) -> int:
        """Threads that were started, without those that call."""
        return int(self._call("jd_helpers")) if self._library is not None else 0

    def _call(self, symbol: str) -> int:
        assert self._library is not None
        function = ctypes.PYFUNCTYPE(ctypes.c_int64)(self._library.address(symbol))
        return int(function())

    def after_fork(self) -> None:
        """In a child: the threads stayed in the parent, and another thread may have held the lock."""
        self._lock = threading.Lock()
        available.cache_clear()
        if self._library is not None:
            self._call("jd_after_fork")
            self.update()


default_threads = ThreadPool()
"""The pool of the process."""
context = default_threads.context
watch("threads", default_threads.update)
os.register_at_fork(after_in_child=default_threads.after_fork)
