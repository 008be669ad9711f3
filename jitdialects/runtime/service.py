"""The compile service: requests wait in a queue, one background thread compiles them.

A call never waits for it. The thread starts with the first request and mostly waits for the compile
server; each key is compiled once however many threads ask, those first that are said to save most; what
nobody wants any more when its turn comes is dropped; what cannot be compiled is recorded with its
sentence and never raised into a call.
"""

from __future__ import annotations

import atexit
import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from jitdialects.bytecode.program import Constant
from jitdialects.config import config
from jitdialects.errors import CompileError, Error
from jitdialects.runtime import compile_server, dump, float_environment
from jitdialects.runtime.cache import CacheKey, KernelCache, default_cache
from jitdialects.runtime.compile_server import CompileServer, default_server
from jitdialects.runtime.indicators import indicators
from jitdialects.runtime.messages import CompileReply
from jitdialects.runtime.profiler import profiler

Compile = Callable[[bytes], bytes]
Request = Callable[[], bytes]
"""Makes the bytes of a request; a program with weights has megabytes."""
Saving = Callable[[], float]
"""What having the code is expected to save, in whatever unit; asked each time a compile ends."""


def _nothing() -> float:
    return 0.0


def _first() -> float:
    return math.inf


def _no_request() -> bytes:
    return b""


@dataclass(eq=False)
class _Job:
    """A key that waits, and for whom."""

    key: CacheKey
    request: Request
    constants: Sequence[Constant]
    order: Sequence[int]
    saving: Saving
    owners: weakref.WeakSet[object] = field(default_factory=weakref.WeakSet[object])
    look_up: Callable[[], object] | None = None
    """What is to be done before, or without a request, instead."""
    for_anyone: bool = False
    """Somebody asked for it who may be gone when it is ready."""

    @property
    def only_looks(self) -> bool:
        """Whether nobody has asked to compile."""
        return self.request is _no_request

    def is_wanted(self) -> bool:
        """Whether anybody waits for it."""
        return self.for_anyone or len(self.owners) > 0

    def add(self, owner: object | None) -> None:
        """Remember one more who asked."""
        if owner is None:
            self.for_anyone = True
        else:
            self.owners.add(owner)


class CompileService:
    """Compiles into `cache`. `compile` maps a request to a reply, both as bytes."""

    def __init__(self, cache: KernelCache, compile: Compile = default_server) -> None:
        self.cache = cache
        self.failures: dict[CacheKey, str] = {}
        """Keys that could not be compiled, each with one sentence."""
        self.compiles = 0
        self.dropped = 0
        """Requests that nobody wanted any more when their turn came, or that were cancelled."""
        self._compile = compile
        self._stopped = False
        self._reset()
        _services.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[CacheKey, _Job] = {}
        self._current: CacheKey | None = None
        self._looking = False
        """Whether what is done for that is looking only."""
        self._thread: threading.Thread | None = None

    def is_pending(self, key: CacheKey) -> bool:
        """Whether `key` waits or is being compiled."""
        return key in self._waiting or key == self._current

    def waiting(self) -> list[CacheKey]:
        """Keys that wait or are being compiled."""
        with self._changed:
            current = () if self._current is None else (self._current,)
            return [*self._waiting, *current]

    def submit(
        self,
        key: CacheKey,
        request: Request,
        constants: Sequence[Constant] = (),
        saving: Saving = _nothing,
        owner: object | None = None,
        order: Sequence[int] = (),
    ) -> None:
        """Have `key` compiled, unless it is there, on its way, or known to fail.

        `request` is called by the thread that compiles. `constants` is the pool of the program in the
        request: the code reads them where they are; `order` is their `identity.constant_order`, without
        which code with constants is not kept on disk. Of those that wait, the one with the largest
        `saving` is next; among equals, the first. When every `owner` is gone (None: that never
        happens), the request is dropped."""
        with self._changed:
            job = self._waiting.get(key)
            if job is not None:
                job.add(owner)
            if key in self.failures or self.cache.find(key) or self._stopped:
                return
            if job is not None and job.only_looks:
                job.request, job.constants, job.order = request, constants, order
                return
            if self.is_pending(key) and not (key == self._current and self._looking):
                return
            self._add(_Job(key, request, constants, order, saving), owner)

    def look_up(self, key: CacheKey, job: Callable[[], object], owner: object) -> None:
        """Have `job` done by the thread that compiles, before what is to be compiled: it looks for code for
        `key` where that takes time. Until then `key` is pending."""
        with self._changed:
            if not self._stopped and not self.is_pending(key):
                self._add(_Job(key, _no_request, (), (), _first, look_up=job), owner)

    def _add(self, job: _Job, owner: object | None) -> None:
        with self._changed:
            self._waiting[job.key] = job
            job.add(owner)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._work, name="jitdialects-compile", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def prepare(self) -> None:
        """A request may come soon: the compiler may get ready."""
        if isinstance(self._compile, CompileServer) and not self._stopped:
            self._compile.prepare()

    @property
    def start_seconds(self) -> float:
        """What the next request takes from calls beside compiling: the start of a compiler on their only CPU."""
        compiler = self._compile
        return compiler.start_seconds if isinstance(compiler, CompileServer) else 0.0

    def cancel(self, key: CacheKey, owner: object | None = None) -> bool:
        """Let `owner` no longer want `key`, or nobody (None); whether that ended its waiting. What is being
        compiled already is finished."""
        with self._changed:
            job = self._waiting.get(key)
            if job is None:
                return False
            if owner is not None:
                job.owners.discard(owner)
                if job.is_wanted():
                    return False
            self._drop(key)
            return True

    def wait(self, keys: Callable[[CacheKey], bool] = lambda key: True) -> None:
        """Return when no key for which `keys` is true is pending."""
        with self._changed:
            self._changed.wait_for(lambda: not any(map(keys, self.waiting())))

    def _work(self) -> None:
        float_environment.enter()  # a thread begins with that of whoever started it
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
            self._serve_next()

    def _serve_next(self) -> None:
        """A function of its own: a program must not stay alive while the thread waits for the next."""
        with self._changed:
            job = self._take()
        if job is None:
            return
        try:
            self._serve(job)
        finally:
            with self._changed:
                self._current = None
                self._changed.notify_all()

    def _take(self) -> _Job | None:
        """The job whose turn it is; drops those that nobody wants."""
        for key in [key for key, job in self._waiting.items() if not job.is_wanted()]:
            self._drop(key)
        savings: dict[CacheKey, float] = {}
        for key, job in list(self._waiting.items()):
            with _Recording(self.failures, key):
                savings[key] = float(job.saving())
            if key not in savings:
                self._drop(key)
        if not savings:
            return None
        key = max(savings, key=savings.__getitem__)
        self._current, job = key, self._waiting.pop(key)
        self._looking = job.only_looks
        return job

    def _drop(self, key: CacheKey) -> None:
        del self._waiting[key]
        self.dropped += 1
        self._changed.notify_all()

    def _serve(self, job: _Job) -> None:
        if job.look_up is not None:
            with _Recording({}, job.key):
                job.look_up()
            if job.only_looks or self.cache.find(job.key):
                return
        started = time.perf_counter()
        cpu_seconds, data, reply, asked = None, b"", None, False
        stages: Mapping[str, float] = {}
        with _Recording(self.failures, job.key), self.cache.compiling(job.key):
            if self.cache.fetch(job.key, job.constants, job.order):
                return  # another process has made it
            asked = True
            data = self._compile(job.request())
            reply = CompileReply.decode(data)
            cpu_seconds, stages = reply.cpu_seconds, reply.milliseconds
            self.cache.keep(job.key, data, reply, job.constants, job.order)
            if reply.error is not None:
                raise CompileError(reply.error)
            if reply.stages and config.dump is not None:
                dump.write(config.dump, job.key, reply)
        if not asked:
            return  # others have found that it cannot be compiled
        seconds = time.perf_counter() - started
        # of a compiler that gave no answer only this is known
        cpu_seconds = seconds if cpu_seconds is None else cpu_seconds
        indicators.add_compile(seconds, cpu_seconds, failed=job.key in self.failures)
        profiler.compile(job.key.signature, started, stages, self.failures.get(job.key))
        self.compiles += 1
        if reply is not None:
            self.cache.share(job.key, data, reply, job.order)

    def forget(self) -> None:
        """Drop what waits and what is known to fail."""
        with self._changed:
            for key in list(self._waiting):
                self._drop(key)
            self.failures.clear()

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
        self._stopped = self._stopped or (self._current is not None and not is_remote)
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
