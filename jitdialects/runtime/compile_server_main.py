"""The compile server, started by `compile_server`: `python -I -S compile_server_main.py FD SECONDS MEGABYTES NICENESS`.

Serves compile requests from the socket FD one by one: first a JSON message with the parent's import path and the
folder where it keeps code, then requests, each answered. Ends with its parent, when the socket closes, when one
request takes SECONDS (by the kernel's timer: also where a thread holds the GIL), and, after a reply, when it has
grown beyond `RESIDENT_LIMIT` or the request met the limit of MEGABYTES more than the server itself needs.

Run by path, so that nothing of the package is imported before the parent's import path is known; without `site`,
whose work the parent has done, unless packages are found by its hooks only (editable installs).
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import site
import socket
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

RESIDENT_LIMIT = 1 << 30
"""Bytes of resident memory beyond which a server leaves after its reply; the parent starts another."""


def main() -> None:
    """Serve until the parent is gone."""
    descriptor, seconds, megabytes, niceness = sys.argv[1:]
    gc.disable()  # importing makes much and drops nothing; a request is collected behind its reply
    connection = socket.socket(fileno=int(descriptor))
    os.nice(int(niceness))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    threading.Thread(target=_leave_with_parent, args=(connection.fileno(),), daemon=True).start()
    folder = _hello(connection)
    from jitdialects.config import FEATURE_LEVELS, config
    from jitdialects.runtime import float_environment
    from jitdialects.runtime.compile_server import LENGTH, receive
    from jitdialects.runtime.messages import encode_error
    from jitdialects.runtime.quick_definitions import quick_definitions

    config.cache_dir = folder
    float_environment.enter()
    with quick_definitions(folder):
        from jitdialects.runtime.compiler import compile_request, prepare, prepare_in_turn

        prepare(FEATURE_LEVELS[0])
    gc.freeze()
    threading.Thread(target=prepare_in_turn, daemon=True).start()
    limit = _data_memory() + (int(megabytes) << 20)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.RLIM_INFINITY))
    accounted, is_spent = 0.0, False
    while not is_spent:
        try:
            request = receive(connection)
        except (EOFError, OSError):
            return
        signal.setitimer(signal.ITIMER_REAL, float(seconds))
        try:
            reply = compile_request(request, accounted)
        except MemoryError:
            is_spent = True
            reply = encode_error(
                f"compiling this takes more than {megabytes} MB; config.compile_megabytes or "
                "JITDIALECTS_COMPILE_MEGABYTES allows more"
            )
        except Exception as error:  # noqa: BLE001 (any failure is a reply)
            reply = encode_error(f"{type(error).__name__}: {error}")
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        accounted = time.thread_time()
        try:
            connection.sendall(LENGTH.pack(len(reply)) + reply)
        except OSError:
            return
        is_spent = is_spent or _resident() > RESIDENT_LIMIT
        gc.collect()


def _hello(connection: socket.socket) -> Path | None:
    """Search where the parent searches, in its order; not in its current folder, which may change. The folder in
    which it keeps code."""
    length = int.from_bytes(connection.recv(8, socket.MSG_WAITALL), "little")
    hello = json.loads(connection.recv(length, socket.MSG_WAITALL))
    sys.path[:] = [entry for entry in hello["path"] if entry]
    sys.path.append(str(Path(__file__).parents[2]))  # where this package is, if no entry says so
    if not all(map(find_spec, ("xdsl", "llvmlite", "numpy"))):
        site.main()
    return None if hello["cache"] is None else Path(hello["cache"])


def _leave_with_parent(descriptor: int) -> None:
    """End when the other side closes, even in the middle of a compile."""
    poll = select.poll()
    poll.register(descriptor, select.POLLRDHUP)
    poll.poll()
    os._exit(0)


def _resident() -> int:
    return _memory(1)


def _data_memory() -> int:
    """Bytes that the limit on data counts."""
    return _memory(5)


def _memory(field: int) -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[field]) * resource.getpagesize()


if __name__ == "__main__":
    main()
