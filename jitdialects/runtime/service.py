"""The compile service: requests wait in a queue, one background thread compiles them.

A call never waits for it. The thread starts with the first request and mostly waits for the compile
server; each key is compiled once however many threads ask; what cannot be compiled is recorded with its
sentence and never raised into a call.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence

from jitdialects.bytecode.program import Constant
from jitdialects.config import config
from jitdialects.errors import CompileError, Error
from jitdialects.runtime import compile_server, dump, float_environment
from jitdialects.runtime.cache import CacheKey, KernelCache, default_cache
from jitdialects.runtime.compile_server import CompileServer, default_server
from jitdialects.runtime.messages import CompileReply
from jitdialects.runtime.indicators import indicators

Compile = Callable[[bytes], bytes]
Request = Callable[[], bytes]
"""Makes the bytes of a request; a program with weights has megabytes."""


class CompileService:
    """Compiles into `cache`. `compile` maps a request to a reply, both as bytes. Uncounted services
    do not appear in the indicators."""

    def __init__(
        self, cache: KernelCache, compile: Compile = default_server, counted: bool = True
    ) -> None:
        self.cache = cache
        self.failures: dict[CacheKey, str] = {}
        """Keys that could not be compiled, each with one sentence."""
        self.compiles = 0
        self._compile = compile
        self._counted = counted
        self._stopped = False
        self._reset()
        _services.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[tuple[CacheKey, Request, Sequence[Constant]]] = deque()
        self._pending: set[CacheKey] = set()
        self._thread: threading.Thread | None = None
        self._compiling = threading.Lock()

    def is_pending(self, key: CacheKey) -> bool:
        """Whether `key` waits or is being compiled."""
        return key in self._pending

    def waiting(self) -> list[CacheKey]:
        """Keys that wait or are being compiled."""
        with self._changed:
            return list(self._pending)

    def submit(self, key: CacheKey, request: Request, constants: Sequence[Constant] = ()) -> None:
        """Have `key` compiled, unless it is there, on its way, or known to fail. `request` is called by
        the thread that compiles. `constants` is the pool of the program in the request: the code reads
        them where they are."""
        with self._changed:
            known = key in self._pending or key in self.failures or self.cache.find(key)
            if known or self._stopped:
                return
            self._pending.add(key)
            self._waiting.append((key, request, constants))
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._work, name="jitdialects-compile", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def compile_now(self, key: CacheKey, request: bytes) -> bytes:
        """Compile a program without constants in the calling thread; the reply, empty if there is none.
        The outcome is in `cache` or `failures`."""
        if self._stopped:
            self.failures[key] = "this process compiles nothing any more"
            return b""
        with self._compiling:
            return self._serve(key, lambda: request, ())

    def wait(self, keys: Callable[[CacheKey], bool] = lambda key: True) -> None:
        """Return when no key for which `keys` is true is pending."""
        with self._changed:
            self._changed.wait_for(lambda: not any(map(keys, self._pending)))

    def _work(self) -> None:
        float_environment.enter()  # a thread begins with that of whoever started it
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
            self._serve_first()

    def _serve_first(self) -> None:
        """A function of its own: a program must not stay alive while the thread waits for the next."""
        with self._changed:
            if not self._waiting:
                return  # forgotten in the meantime
            key, request, constants = self._waiting.popleft()
        try:
            with self._compiling:
                self._serve(key, request, constants)
        finally:
            with self._changed:
                self._pending.discard(key)
                self._changed.notify_all()

    def _serve(self, key: CacheKey, request: Request, constants: Sequence[Constant]) -> bytes:
        started = time.perf_counter()
        data, cpu_seconds = b"", None
        with _Recording(self.failures, key):
            data = self._compile(request())
            reply = CompileReply.decode(data)
            cpu_seconds = reply.cpu_seconds
            if reply.error is not None:
                raise CompileError(reply.error)
            self.cache.store(key, reply, constants)
            if reply.stages and config.dump is not None:
                dump.write(config.dump, key, reply)
        if self._counted:
            seconds = time.perf_counter() - started
            # of a compiler that gave no answer only this is known
            cpu_seconds = seconds if cpu_seconds is None else cpu_seconds
            indicators.add_compile(seconds, cpu_seconds, failed=key in self.failures)
        self.compiles += 1
        return data

    def forget(self) -> None:
        """Drop what waits and what is known to fail."""
        with self._changed:
            self._pending.difference_update(k for k, _, _ in self._waiting)
            self._waiting.clear()
            self.failures.clear()
            self._changed.notify_all()

    def stop(self) -> None:
        """Drop what waits, take nothing more and return when the compiler is at rest."""
        self._stopped = True
        self.forget()
        self.wait()

    def after_fork(self) -> None:
        """In a child: the thread stayed in the parent, start over, keep what is known.

        A child of a parent whose compiler was at work in this process takes no requests: what that held
        stays held. It uses what was compiled and interprets. A server stays with the parent whole."""
        is_remote = isinstance(self._compile, CompileServer)
        self._stopped = self._stopped or (self._compiling.locked() and not is_remote)
        self._reset()
        self.cache.after_fork()


class _Recording:
    """Writes any exception of its body down as the failure of a key: it must neither reach a call nor
    end the thread, not even a `SystemExit`."""

    def __init__(self, failures: dict[CacheKey, str], key: CacheKey) -> None:
        self._failures, self._key = failures, key

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> bool:
        if error is None or isinstance(error, KeyboardInterrupt):
            return False
        known = isinstance(error, Error)
        self._failures[self._key] = str(error) if known else f"{type(error).__name__}: {error}"
        return True


_services: weakref.WeakSet[CompileService] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for service in list(_services):
        service.after_fork()


def _at_exit() -> None:
    # nobody waits for a server; a thread inside LLVM while the process ends would meet destroyed globals
    compile_server.close_all()
    for service in list(_services):
        service.stop()


os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)

default_service = CompileService(default_cache)
"""The service of the process; it fills the default cache."""
