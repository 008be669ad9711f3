"""The compile server as seen from the process that runs programs: a subprocess, started at first use.

A request is bytes, its reply is bytes (`runtime.messages`), over a socket pair; xDSL and LLVM are
imported over there only, so that compiling takes neither the GIL nor memory of the process that
computes, and an abort inside LLVM ends nobody else. What can go wrong costs a compile, never a call:

- a server that ends in the middle of a request is replaced and asked once more; a request that ended
  two servers is refused with what the server last said, now and when it comes again;
- a server that does not answer in time is killed, and its request refused in the same way;
- one that ends again and again is started later and later, and in the end no more;
- memory beyond a budget is an error in the reply, after which the server makes room for another;
- where no subprocess may be started, requests are compiled in this process, which is said once.

The other end is `compile_server_main`; each message there is preceded by its length (u64, little endian).
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import hashlib
import json
import math
import os
import struct
import sys
import threading
import time
import weakref
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from jitdialects.config import config
from jitdialects.errors import CompileError
from jitdialects.runtime.notices import notice

if TYPE_CHECKING:
    import socket
    import subprocess

LENGTH = struct.Struct("<Q")
MAIN = Path(__file__).with_name("compile_server_main.py")
SWITCH_INTERVAL = 0.05e-3
_LOWEST_FD = 10
"""Descriptors below may be closed standard streams, which `subprocess` would overwrite."""
_ATTEMPTS = 2
_PATIENCE, _TO_START = 3, 10.0
"""A reply may take so many times `config.compile_seconds`, and so many seconds for a start."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
"""Seconds before a server is started again, where the two before it ended: doubled each time."""
_MOST_DEATHS = 10
"""So many servers in a row may end without an answer."""
_MOST_REFUSED = 1000
_QUIET = 0.02
"""Seconds without a request after which background work may ask."""
_SOON = 0.3
"""Seconds that a call waits for its turn; then it is quicker to start another server."""
_AT_ONCE, _IN_TURN, _WHEN_IDLE = range(3)
_NICE = 5
START_SECONDS = 0.25
"""Processor time of a server until it is ready."""
_SAID_AT_MOST = 300


class _Ended(Exception):
    """The server is gone; the text is what is known of its end."""


class _Busy(Exception):
    """The server is at work on another request."""


class _Hopeless(Exception):
    """A request that no server shall be asked again; the text says why."""


@dataclass
class _Process:
    """A running server: its end of the socket pair, and the file that it writes complaints to."""

    popen: subprocess.Popen[bytes]
    socket: socket.socket
    log: IO[bytes]
    budget: tuple[float, int]
    """Seconds and megabytes for a request."""

    def last_words(self) -> str:
        """The exit status and the last line that it wrote."""
        status = self.popen.wait()
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().splitlines()
        said = f": {lines[-1][:_SAID_AT_MOST]}" if lines else ""
        return f"exit status {status}{said}"

    def end(self) -> None:
        """Kill it and give back what belongs to it."""
        self.socket.close()
        self.popen.kill()
        self.popen.wait()
        self.log.close()

    def forget(self) -> None:
        """In a forked child: the server belongs to the parent."""
        self.socket.close()
        self.log.close()
        self.popen.returncode = 0  # so that nobody here waits for it


class _Turns:
    """A lock that callers get in the order of their ranks; the last rank, only after some quiet."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting = [0, 0, 0]
        self._held = False
        self._freed = 0.0

    @contextlib.contextmanager
    def taken(self, rank: int, patience: float = math.inf) -> Generator[None]:
        """Hold the lock inside; raises `_Busy` where that takes longer than `patience` seconds."""
        quiet = _QUIET if rank == _WHEN_IDLE else math.inf
        end = time.monotonic() + patience
        with self._changed:
            self._waiting[rank] += 1
            try:
                while not self._is_free(rank, quiet):
                    left = end - time.monotonic()
                    if left <= 0:
                        raise _Busy
                    pause = min(left, quiet)
                    self._changed.wait(None if pause == math.inf else pause)
                self._held = True
            finally:
                self._waiting[rank] -= 1
        try:
            yield
        finally:
            self.give()

    def _is_free(self, rank: int, quiet: float) -> bool:
        quiet_since = time.monotonic() - self._freed
        is_quiet = rank != _WHEN_IDLE or quiet_since >= quiet
        return not self._held and not any(self._waiting[:rank]) and is_quiet

    def try_to_take(self) -> bool:
        """Take it if nobody has it."""
        with self._changed:
            free = not self._held
            self._held = True
            return free

    def give(self) -> None:
        """Let others have it."""
        with self._changed:
            self._held = False
            self._freed = time.monotonic()
            self._changed.notify_all()


class CompileServer:
    """A function from a compile request to its reply; one request at a time, whichever thread asks.

    Raises `CompileError` where the server ended twice over a request or did not answer in `deadline`
    seconds (None: in a multiple of `config.compile_seconds`, which ends a compile in good order).
    """

    def __init__(self, deadline: float | None = None) -> None:
        self.starts = 0
        """Servers started so far."""
        self._given = deadline
        self._process: _Process | None = None
        self._turns = _Turns()
        self._closed = threading.Event()
        self._unavailable = False
        self._refused: dict[bytes, str] = {}
        """Digests of requests that ended two servers or got no answer, and what is known of it."""
        self.deaths = 0
        """Servers that ended without an answer, or did not answer in time."""
        self._deaths_in_a_row = 0
        _servers.add(self)

    def __call__(self, request: bytes) -> bytes:
        """The reply to `request`."""
        return self._ask(request, _IN_TURN)

    def at_once(self, request: bytes) -> bytes:
        """The reply to a request that a call waits for: before all others that wait, and from another server
        where this one is at work on something long."""
        try:
            return self._ask(request, _AT_ONCE, _SOON)
        except _Busy:
            spare = CompileServer(self._given)
            try:
                return spare(request)
            finally:
                spare.close()

    def when_idle(self, request: bytes) -> bytes:
        """The reply to a request that nobody waits for: after all others, and never made in this process."""
        if not self.is_apart:
            raise CompileError("there is no compile server for what nobody waits for")
        return self._ask(request, _WHEN_IDLE)

    def prepare(self) -> None:
        """Have a server started for requests that may come soon. What goes wrong shows when they come."""
        is_needed = self.is_apart and self._process is None and not self._deaths_in_a_row
        if is_needed and self._turns.try_to_take():
            try:
                with contextlib.suppress(OSError, CompileError):
                    self._running()
            finally:
                self._turns.give()

    @property
    def pid(self) -> int | None:
        """The process id of the server, if one is running."""
        server = self._process
        return None if server is None else server.popen.pid

    @property
    def start_seconds(self) -> float:
        """What a first request takes from the calls of this process beside compiling: the start of a server that
        has to share their only CPU; 0 where one runs, or another CPU is there."""
        is_to_start = self.is_apart and self._process is None
        return START_SECONDS if is_to_start and _has_one_cpu() else 0.0

    @property
    def is_apart(self) -> bool:
        """Whether requests are served by another process."""
        return not self._unavailable and config.compiler == "server"

    def statistics(self) -> dict[str, Any]:
        """Counts, for `jd.stats()`."""
        return {
            "starts": self.starts,
            "deaths": self.deaths,
            "refused": len(self._refused),
            "in_process": not self.is_apart,
        }

    def close(self) -> None:
        """End the server and start none again; a request in flight ends with `CompileError`."""
        self._closed.set()
        server = self._process
        if server is not None:
            server.popen.kill()  # whoever waits for its reply cleans up
        if self._turns.try_to_take():
            self._end()
            self._turns.give()

    def after_fork(self) -> None:
        """In a child: the server and whoever waits for it stayed with the parent."""
        self._turns = _Turns()
        if self._process is not None:
            self._process.forget()
            self._process = None

    def _ask(self, request: bytes, rank: int, patience: float = math.inf) -> bytes:
        if not self.is_apart:
            return compile_in_process(request)
        digest = hashlib.blake2b(request, digest_size=16).digest()
        with self._turns.taken(rank, patience):
            if digest in self._refused:
                raise CompileError(self._refused[digest])
            try:
                return self._answer(request)
            except _Hopeless as hopeless:
                if len(self._refused) < _MOST_REFUSED:
                    self._refused[digest] = str(hopeless)
                raise CompileError(str(hopeless)) from None
            except OSError as error:
                self._unavailable = True
                notice(
                    f"the compile server cannot be started ({error}); "
                    "compiling in this process, which slows calls down while it happens",
                    stacklevel=3,
                )
        return compile_in_process(request)

    def _answer(self, request: bytes) -> bytes:
        """The reply of a server, or of the one after it; `OSError` where none can be started."""
        why = ""
        for _ in range(_ATTEMPTS):
            server = self._running()
            try:
                reply = _exchange(server, request)
            except TimeoutError:
                self._bury()
                raise _Hopeless(
                    f"the compiler did not answer within {server.budget[0]:g} s and was killed"
                ) from None
            except _Ended as end:
                self._bury()
                why = str(end)
            except BaseException:
                self._end()  # a reply that nobody reads would be taken for the next one
                raise
            else:
                self._deaths_in_a_row = 0
                return reply
        raise _Hopeless(f"the compiler ended over this request ({why})")

    @property
    def _budget(self) -> tuple[float, int]:
        """Seconds and megabytes that a request may take."""
        seconds = _TO_START + _PATIENCE * config.compile_seconds
        return seconds if self._given is None else self._given, config.compile_megabytes

    def _running(self) -> _Process:
        server = self._process
        if server is not None and (
            server.popen.poll() is not None or server.budget != self._budget
        ):
            self._end()  # it left between requests, as one does that has grown too large
        if self._deaths_in_a_row >= _MOST_DEATHS:
            raise CompileError(
                f"the compiler ended {self._deaths_in_a_row} times in a row; this process compiles nothing any more"
            )
        if self._process is None and self._deaths_in_a_row > 1:
            self._closed.wait(min(_FIRST_PAUSE * 2 ** (self._deaths_in_a_row - 2), _LONGEST_PAUSE))
        if not self._closed.is_set() and self._process is None:
            self._process = _start(self._budget)
            self.starts += 1
        if self._closed.is_set() or self._process is None:
            self._end()
            raise CompileError("this process compiles nothing any more")
        return self._process

    def _bury(self) -> None:
        self._end()
        self.deaths += 1
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row == _MOST_DEATHS:
            notice(
                f"the compile server ended {self._deaths_in_a_row} times in a row; "
                "nothing more is compiled, programs run interpreted",
                stacklevel=4,
            )

    def _end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


def _start(budget: tuple[float, int]) -> _Process:
    """Start a server; `OSError` where that is not possible."""
    import socket
    import subprocess
    import tempfile  # of no use to a process that finds all its code

    ours, theirs = socket.socketpair()
    # without a buffer, whose lock a forked process would wait for; closed in `end`
    log = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
    try:
        passed = fcntl.fcntl(theirs, fcntl.F_DUPFD_CLOEXEC, _LOWEST_FD)
        kept = fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, _LOWEST_FD)
        try:
            # a process group of its own, so that ^C in a terminal ends calls and not the server; no
            # session of its own: its niceness would be weighed against nobody
            popen = subprocess.Popen(
                [sys.executable, "-I", "-S", str(MAIN), *map(str, (passed, *budget, _niceness()))],
                pass_fds=(passed,),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                process_group=0,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            )
        except OSError:
            os.close(kept)
            raise
        finally:
            os.close(passed)
    except OSError:
        log.close()
        raise
    finally:
        ours.close()
        theirs.close()
    folder = None if config.cache_dir is None else str(config.cache_dir.absolute())
    process = _Process(popen, socket.socket(fileno=kept), log, budget)
    process.socket.settimeout(budget[0])
    with contextlib.suppress(
        OSError
    ):  # it has ended already: the request meets that, too, and counts it
        _send(process.socket, json.dumps({"path": sys.path, "cache": folder}).encode())
    return process


def _niceness() -> int:
    """Beside a caller on one CPU the server must not take half of it, nor starve."""
    return _NICE if _has_one_cpu() else 0


def _has_one_cpu() -> bool:
    """Whether a server and the calls of this process take turns."""
    return len(os.sched_getaffinity(0)) == 1


def _exchange(server: _Process, request: bytes) -> bytes:
    try:
        _send(server.socket, request)
        return receive(server.socket)
    except TimeoutError:
        raise
    except (EOFError, OSError):
        raise _Ended(server.last_words()) from None


def _send(to: socket.socket, message: bytes) -> None:
    to.sendall(LENGTH.pack(len(message)) + message)


def receive(source: socket.socket) -> bytes:
    """One message; `EOFError` where the other side has closed."""
    (length,) = LENGTH.unpack(_exactly(source, LENGTH.size))
    return _exactly(source, length)


def _exactly(source: socket.socket, count: int) -> bytes:
    parts: list[bytes] = []
    while count:
        part = source.recv(min(count, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


# ---- in this process ---------------------------------------------------------------------------


def compile_in_process(request: bytes) -> bytes:
    """A compile request to its reply, with the compiler imported at the first one."""
    if _undisturbed.broken:
        raise CompileError(
            "this process was forked in the middle of a compile and can compile nothing"
        )
    with _undisturbed:
        from jitdialects.runtime.compiler import compile_request

        return compile_request(request)


class _Undisturbed:
    """While this process compiles: no garbage collection, which stops every thread for tens of
    milliseconds over graphs of IR, and turns of 0.05 ms instead of 5 ms. Restores what it found.

    A child that is forked meanwhile is `broken`: the locks of the modules that were being imported, and
    of LLVM, stay held in it for ever."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self.broken = False
        self._found = (True, sys.getswitchinterval())

    def __enter__(self) -> None:
        with self._lock:
            if not self._depth:
                self._found = gc.isenabled(), sys.getswitchinterval()
                sys.setswitchinterval(min(SWITCH_INTERVAL, self._found[1]))
                gc.disable()
            self._depth += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._depth -= 1
            if not self._depth:
                self._restore()

    def _restore(self) -> None:
        collecting, interval = self._found
        sys.setswitchinterval(interval)
        if collecting:
            gc.enable()

    def after_fork(self) -> None:
        """In a child nobody compiles."""
        self._lock = threading.Lock()
        if self._depth:
            self._depth = 0
            self.broken = True
            self._restore()


_undisturbed = _Undisturbed()


def _after_fork_in_child() -> None:
    _undisturbed.after_fork()
    for server in list(_servers):
        server.after_fork()


def close_all() -> None:
    """End every server of this process, as it does when it ends."""
    for server in list(_servers):
        server.close()


_servers: weakref.WeakSet[CompileServer] = weakref.WeakSet()
default_server = CompileServer()
"""The server of the process."""
os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(close_all)
