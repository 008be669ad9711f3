"""`jd.profiler`: what ran when, on which tier, as a trace that Perfetto and chrome://tracing read.

    jd.profiler.start()
    ...
    jd.profiler.stop("trace.json")        # open it at ui.perfetto.dev, or in chrome://tracing

Tracks: each thread with its calls, and inside interpreted ones the operators, with their places in the program; the
compiler with each compile and its stages; the memory of the pool over time. While it is on, calls go through Python, so
that each is seen: what a call costs then is some microseconds more. While it is off, nothing is done but to look whether
it is on.

Format: JSON objects of the Trace Event Format (Google, "Trace Event Format", 2016), complete events `X`, counters
`C` and metadata `M`, times in microseconds.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jitdialects.errors import ArgumentError
from jitdialects.runtime.callables import hold_calls
from jitdialects.runtime.pool import MemoryPool, default_pool

MOST_EVENTS = 1_000_000
"""Kept, about 200 MB in a file; older ones are dropped, and counted."""
COMPILER = 0
"""The track of compiles; those of threads have the numbers of the system."""
POOL_SECONDS = 1e-3
"""Between two looks at the pool."""


@dataclass(frozen=True)
class _Event:
    name: str
    category: str
    started: float
    seconds: float
    track: int
    details: Mapping[str, object]


@dataclass
class _Session:
    """What one `start` has recorded so far."""

    began: float
    events: deque[_Event] = field(default_factory=lambda: deque[_Event](maxlen=MOST_EVENTS))
    recorded: int = 0
    threads: dict[int, str] = field(default_factory=dict[int, str])
    pool: deque[tuple[float, int, int]] = field(
        default_factory=lambda: deque[tuple[float, int, int]](maxlen=MOST_EVENTS)
    )
    """Time, bytes in use, bytes from the system."""


class Profiler:
    """Records between `start` and `stop`; one for the process."""

    def __init__(self) -> None:
        self._session: _Session | None = None
        self._lock = threading.Lock()

    @property
    def is_on(self) -> bool:
        """Whether something is being recorded."""
        return self._session is not None

    def start(self) -> None:
        """Begin to record. Raises `ArgumentError` if that has begun already."""
        with self._lock:
            if self._session is not None:
                raise ArgumentError("profiler.start: it is on already; stop it first")
            self._session = _Session(time.perf_counter())
        hold_calls(1)

    def stop(self, path: str | os.PathLike[str] | None = None) -> int:
        """End recording, write the trace to `path`, and return how many events there were.

        Raises `ArgumentError` if nothing was being recorded, or the file cannot be written: the events are
        kept in that case, for a `stop` with another path.
        """
        with self._lock:
            session = self._session
            if session is None:
                raise ArgumentError("profiler.stop: it is not on; start it first")
            if path is not None:
                try:
                    with Path(path).open("w") as file:
                        file.writelines(_lines(session))
                except OSError as error:
                    raise ArgumentError(
                        f"profiler.stop: cannot write {os.fspath(path)}: {error.strerror}; the trace is "
                        "kept, name another file"
                    ) from None
            self._session = None
        hold_calls(-1)
        return session.recorded

    def after_fork(self) -> None:
        """Another thread of the parent may have held the lock."""
        self._lock = threading.Lock()

    # ---- told by the runtime

    def span(
        self, name: str, category: str, started: float, ended: float, **details: object
    ) -> None:
        """The thread that asks did something between two times of `time.perf_counter`."""
        session = self._session
        if session is not None:
            track = threading.get_native_id()
            if track not in session.threads:
                session.threads[track] = threading.current_thread().name
            event = _Event(name, category, started, ended - started, track, details)
            session.events.append(event)
            session.recorded += 1

    def call(
        self,
        name: str,
        arguments: Sequence[object],
        is_compiled: bool,
        started: float,
        pool: MemoryPool = default_pool,
    ) -> None:
        """A call that ends now."""
        session, now = self._session, time.perf_counter()
        if session is None:
            return
        shapes = [list(getattr(a, "shape", ())) for a in arguments]
        tier = "compiled" if is_compiled else "interpreted"
        self.span(f"@{name}", tier, started, now, shapes=shapes, tier=tier)
        if not session.pool or now - session.pool[-1][0] > POOL_SECONDS:
            seen = pool.statistics()
            session.pool.append((now, seen.live_bytes, seen.reserved_bytes))

    def compile(
        self, signature: str, started: float, stages: Mapping[str, float], failure: str | None
    ) -> None:
        """A compile that ends now; `stages` in milliseconds, in the order in which they ran."""
        session, now = self._session, time.perf_counter()
        if session is None:
            return
        details: dict[str, object] = {} if failure is None else {"failed": failure}
        found = [_Event(signature, "compile", started, now - started, COMPILER, details)]
        at = max(started, now - sum(stages.values()) / 1e3)  # waiting and sending came before
        for stage, milliseconds in stages.items():
            seconds = min(milliseconds / 1e3, now - at)
            found.append(_Event(stage, "stage", at, seconds, COMPILER, {}))
            at += seconds
        session.events.extend(found)
        session.recorded += len(found)


def _lines(session: _Session) -> Iterator[str]:
    """The file, piece by piece; of what has happened until now, since other threads go on recording."""
    events, pool, threads = session.events.copy(), session.pool.copy(), session.threads.copy()
    dropped = max(session.recorded - len(events), 0)
    yield '{"displayTimeUnit": "ns", "otherData": {"producer": "jitdialects", '
    yield f'"dropped_events": {dropped}}},\n"traceEvents": [\n'
    names = {COMPILER: "compiler", **threads}
    yield json.dumps(_metadata("process_name", "jitdialects", 0))
    for track, name in names.items():
        yield ",\n" + json.dumps(_metadata("thread_name", name, track))
    for event in events:
        yield ",\n" + json.dumps(
            {
                "ph": "X",
                "name": event.name,
                "cat": event.category,
                "ts": _microseconds(session, event.started),
                "dur": round(event.seconds * 1e6, 3),
                "pid": os.getpid(),
                "tid": event.track,
                "args": dict(event.details),
            }
        )
    for at, live, reserved in pool:
        yield ",\n" + json.dumps(
            {
                "ph": "C",
                "name": "pool bytes",
                "ts": _microseconds(session, at),
                "pid": os.getpid(),
                "args": {"in use": live, "idle": reserved - live},
            }
        )
    yield "\n]}\n"


def _metadata(kind: str, name: str, track: int) -> dict[str, object]:
    return {"ph": "M", "name": kind, "pid": os.getpid(), "tid": track, "args": {"name": name}}


def _microseconds(session: _Session, at: float) -> float:
    return round((at - session.began) * 1e6, 3)


profiler = Profiler()
"""The profiler of the process."""
os.register_at_fork(after_in_child=profiler.after_fork)
