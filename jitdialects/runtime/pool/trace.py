"""Recording what a pool is asked for, and replaying it under another policy.

A trace is text, one event a line, after a first line that is `HEAD`:

    +7 4096 matmul at model.jasm:3:1    block 7, of 4096 bytes, is given out (the owner is known in debug mode)
    -7                                  block 7 becomes free
    !268435456                          a request failed

Block numbers are used again. The first events stand for the blocks that were live when recording began. Lines
that begin with # are comments.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from jitdialects.errors import PoolError
from jitdialects.runtime.notices import notice
from jitdialects.runtime.pool.memory_pool import MemoryPool
from jitdialects.runtime.pool.report import PoolStatistics

HEAD = "jitdialects pool trace 1"
_BUFFERED = 1 << 12
"""Events that wait for being written."""
Event: TypeAlias = tuple[Literal["+", "-", "!"], int, int]
"""Kind, block (0 for "!"), bytes (0 for "-")."""


class Recorder:
    """Writes events to a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._events: deque[str] = deque()
        self._lock = threading.Lock()
        self._failed = False
        try:
            self._file = open(path, "wb", buffering=0)  # noqa: SIM115 (closed in `close`)
        except OSError as error:
            raise PoolError(f"MemoryPool: cannot record to {path}: {error.strerror}") from None
        self._events.append(HEAD)

    def add(self, event: str) -> None:
        """Record one event; callable from any thread."""
        self._events.append(event)

    @property
    def is_full(self) -> bool:
        """Whether it is time to `flush`."""
        return len(self._events) >= _BUFFERED

    def flush(self) -> bool:
        """Write what waits; False, with a warning, if that is not possible for the first time."""
        with self._lock:
            if self._failed:
                return True
            lines: list[str] = []
            while self._events:
                lines.append(self._events.popleft())
            try:
                data = "".join(f"{line}\n" for line in lines).encode()
                while data:
                    data = data[self._file.write(data) :]
            except OSError as error:
                text = f"the pool's trace {self.path} ends early: {error.strerror}"
                notice(text)
                self._failed = True
                return False
            return True

    def close(self) -> None:
        """End, without what waits."""
        self._file.close()


# ---- reading and replaying ---------------------------------------------------------------------


def read(path: Path) -> Iterator[Event]:
    """The events of a trace; `PoolError` names the first line that is none."""
    with open(path, encoding="utf-8", errors="replace") as file:
        if file.readline().rstrip("\n") != HEAD:
            raise PoolError(f"{path}: not a trace of a pool; its first line must be '{HEAD}'")
        for number, line in enumerate(file, 2):
            if line.strip() and not line.startswith("#"):
                event = _event(line.split(maxsplit=2))
                if event is None:
                    raise PoolError(f"{path}:{number}: no event of a pool: {line.strip()[:60]!r}")
                yield event


def _event(words: list[str]) -> Event | None:
    kind, first = words[0][:1], words[0][1:]
    if not first.isdecimal():
        return None
    if kind == "+" and len(words) > 1 and words[1].isdecimal():
        return "+", int(first), int(words[1])
    if kind == "-" and len(words) == 1:
        return "-", int(first), 0
    return ("!", 0, int(first)) if kind == "!" and len(words) == 1 else None


def write(path: Path, events: Iterable[Event]) -> None:
    """Write a trace that was made up."""
    recorder = Recorder(path)
    for kind, block, size in events:
        recorder.add({"+": f"+{block} {size}", "-": f"-{block}", "!": f"!{size}"}[kind])
    recorder.flush()
    recorder.close()


@dataclass(frozen=True)
class Failure:
    """A request that the pool did not serve."""

    request: int
    """Its number, from 1."""
    size: int
    message: str


@dataclass
class Replay:
    """What a pool did with a trace; bytes unless the name says otherwise."""

    requests: int = 0
    failed_when_recorded: int = 0
    peak_live: int = 0
    """Most requested bytes that were live at once."""
    peak_reserved: int = 0
    peak_waste: int = 0
    """Most that live blocks were larger than what was requested."""
    least_fragmentation: float = 1.0
    """Largest free block / total free, at its worst while more was free than a quarter of what was reserved."""
    failures: list[Failure] = field(default_factory=list[Failure])
    end: PoolStatistics | None = None

    @property
    def overhead(self) -> float:
        """Reserved / live, each at its peak."""
        return self.peak_reserved / self.peak_live if self.peak_live else 0.0


SAMPLE = 256
"""Events between two looks at waste and fragmentation."""


def replay(events: Iterable[Event], pool: MemoryPool) -> Replay:
    """Ask `pool` for what a trace asked for. What fails is counted, and the rest goes on."""
    found = Replay()
    blocks: dict[int, tuple[int, int]] = {}
    live = 0
    for number, (kind, name, size) in enumerate(events):
        if number % SAMPLE == 0 or kind == "!":
            _sample(found, pool)
        if kind == "-":
            block, size = blocks.pop(name, (0, 0))
            if block:
                pool.recycle(block)
                live -= size
            continue
        found.requests += 1
        found.failed_when_recorded += kind == "!"
        try:
            block = pool.allocate(size)
        except PoolError as error:
            found.failures.append(Failure(found.requests, size, error.message))
            continue
        found.peak_live = max(found.peak_live, live + size)
        found.peak_reserved = max(found.peak_reserved, pool.state.reserved_bytes)
        if kind == "!":  # nobody knows when it would have been released
            pool.recycle(block)
            continue
        live += size
        blocks[name] = block, size
    _sample(found, pool)
    return found


def _sample(found: Replay, pool: MemoryPool) -> None:
    now = found.end = pool.statistics()
    found.peak_waste = max(found.peak_waste, now.waste_bytes)
    if 4 * now.free_bytes > now.reserved_bytes:
        found.least_fragmentation = min(found.least_fragmentation, now.fragmentation)
