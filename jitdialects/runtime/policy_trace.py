"""Traces for the simulator of policies: what ran when, for how long, in which tier; and what was compiled.

A trace is a file of JSON lines. The first one is `{"jitdialects_policy_trace": 1}`; the others, times in seconds:

    {"function": "main@41259bc0.0", "name": "main", "works": [[13, 174.0]], "products": true}
    {"t": 0.0012, "f": "main@41259bc0.0", "call": "main(f32[64,784])", "interpreted": 0.0011}
    {"t": 0.9020, "f": "main@41259bc0.0", "call": "main(f32[64,784])", "compiled": 0.0002, "code": "main(f32[n0,784])"}
    {"t": 0.9010, "f": "main@41259bc0.0", "compile": "main(f32[n0,784])", "seconds": 0.067, "operators": 13, "fused": 12}
    {"t": 0.9010, "f": "main@41259bc0.0", "failed": "main(f32[1,784])"}

A function is one of one machine; `works` has operators and their weight for each block, `blocks` in a call the
executions of each block, where there are several. `t` is when a call began. Calls of a machine that records go through
Python, so that each is seen. A trace that cannot be written any more is warned of once, and ends there.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TextIO, cast

from jitdialects.bytecode.signature import Signature, parse
from jitdialects.config import config
from jitdialects.errors import Error
from jitdialects.runtime.cost_model import Work
from jitdialects.runtime.notices import notice

VERSION = 1
_HEAD = "jitdialects_policy_trace"


class PolicyTraceError(Error):
    """A file that is no trace of this version."""


@dataclass(frozen=True)
class FunctionEvent:
    """A function that is called later."""

    id: str
    name: str
    works: tuple[Work, ...]
    products: bool


@dataclass(frozen=True)
class CallEvent:
    """A call that began at `at` and took `seconds`; `code`: the signature of the code that ran, if any did."""

    at: float
    function: str
    signature: Signature
    seconds: float
    code: str | None
    blocks: tuple[int, ...]


@dataclass(frozen=True)
class CompileEvent:
    """Code that came; `seconds` None: it could not be made."""

    at: float
    function: str
    signature: str
    seconds: float | None
    operators: int = 0
    fused: int = 0


Event = FunctionEvent | CallEvent | CompileEvent


# ---- writing -----------------------------------------------------------------------------------


class Recorder:
    """Writes a trace to `path`; several machines may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._start = time.perf_counter()
        self._known: weakref.WeakKeyDictionary[object, str] = weakref.WeakKeyDictionary()
        self._failed: set[tuple[str, str]] = set()
        self._count = 0
        self._file: TextIO | None = None
        try:
            self._file = path.open("w", buffering=1 << 16)
        except OSError as error:
            self._give_up(error)
        self._write({_HEAD: VERSION})

    def name(self, owner: object, id: str, name: str, works: Sequence[Work], products: bool) -> str:
        """The name in the trace of a function; `owner` is an object that lives as long as that, `id` how the
        name begins."""
        with self._lock:
            known = self._known.get(owner)
            if known is None:
                known = self._known[owner] = f"{id}.{self._count}"
                self._count += 1
                weights = [[w.operators, w.weight] for w in works]
                self._put({"function": known, "name": name, "works": weights, "products": products})
            return known

    def call(
        self,
        function: str,
        signature: Signature,
        started: float,
        seconds: float,
        blocks: Sequence[int] = (),
        code: str | None = None,
    ) -> None:
        """A call of `function` that began at `started` (`time.perf_counter`)."""
        event: dict[str, object] = {
            "t": round(started - self._start, 7),
            "f": function,
            "call": str(signature),
            "interpreted" if code is None else "compiled": round(seconds, 8),
        }
        if code is not None:
            event["code"] = code
        elif len(blocks) > 1:
            event["blocks"] = list(blocks)
        self._write(event)

    def compile(
        self, function: str, signature: str, seconds: float, operators: int, fused: int
    ) -> None:
        """Code came."""
        self._write(
            {"t": self._now(), "f": function, "compile": signature}
            | {"seconds": round(seconds, 6), "operators": operators, "fused": fused}
        )

    def failed(self, function: str, signature: str) -> None:
        """Code could not be made; said once."""
        if (function, signature) in self._failed:
            return
        self._failed.add((function, signature))
        self._write({"t": self._now(), "f": function, "failed": signature})

    def _now(self) -> float:
        return round(time.perf_counter() - self._start, 7)

    def close(self) -> None:
        """Write what is buffered; nothing is recorded any more."""
        if _recorders.get(self.path) is self:
            del _recorders[self.path]
        with self._lock:
            file, self._file = self._file, None
            if file is not None:
                try:
                    file.close()
                except OSError as error:
                    self._give_up(error)

    def flush(self) -> None:
        """Write what is buffered."""
        with self._lock:
            if self._file is not None:
                try:
                    self._file.flush()
                except OSError as error:
                    self._give_up(error)

    def after_fork(self) -> None:
        """The trace belongs to the parent."""
        self._lock = threading.Lock()
        self._file = None

    def _write(self, event: Mapping[str, object]) -> None:
        with self._lock:
            self._put(event)

    def _put(self, event: Mapping[str, object]) -> None:
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(event, separators=(",", ":")) + "\n")
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # what is buffered cannot be written either
                file.close()
        notice(
            f"the policy trace '{self.path}' cannot be written ({error.strerror}); it ends here",
            stacklevel=4,
        )


_recorders: dict[Path, Recorder] = {}


def _before_fork() -> None:
    for each in list(_recorders.values()):
        each.flush()  # a child must not write what is buffered once more


def _after_fork_in_child() -> None:
    for each in _recorders.values():
        each.after_fork()
    _recorders.clear()


os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)


def recorder() -> Recorder | None:
    """What `config.policy_trace` asks for."""
    path = config.policy_trace
    if path is None:
        return None
    found = _recorders.get(path)
    if found is None:
        found = _recorders[path] = Recorder(path)
        atexit.register(found.close)
    return found


# ---- reading -----------------------------------------------------------------------------------


def read(path: Path) -> list[Event]:
    """The events of a trace, in the order of the file. `PolicyTraceError` names the line that is wrong,
    `OSError` if there is no such file."""
    events: list[Event] = []
    functions: set[str] = set()
    try:
        lines = path.read_text().splitlines()
    except UnicodeDecodeError:
        raise PolicyTraceError(f"'{path}' is no policy trace: it is not UTF-8 text") from None
    for number, event in _objects(path, lines):
        try:
            events += _event(event, functions)
        except (KeyError, TypeError, ValueError, Error) as error:
            what = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise PolicyTraceError(
                f"'{path}' line {number}: {what}; record the trace anew"
            ) from None
    return events


def _objects(path: Path, lines: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, 1):
        try:
            found: object = json.loads(line)
        except ValueError:
            if number == len(lines) > 1:
                return  # the process ended in the middle of it
            found = None
        event = cast(dict[str, Any], found) if isinstance(found, dict) else {}
        if number == 1 and event.get(_HEAD) != VERSION:
            break
        if not event:
            raise PolicyTraceError(
                f"'{path}' line {number} is no JSON object; record the trace anew"
            )
        if number > 1:
            yield number, event
    else:
        if lines:
            return
    raise PolicyTraceError(
        f"'{path}' is no policy trace of version {VERSION}; record one with jit-run --record-trace or "
        "JITDIALECTS_POLICY_TRACE"
    )


def _event(event: dict[str, Any], functions: set[str]) -> Iterator[Event]:
    if "function" in event:
        works = tuple(Work(int(operators), float(weight)) for operators, weight in event["works"])
        functions.add(event["function"])
        yield FunctionEvent(event["function"], event["name"], works, bool(event["products"]))
        return
    at, function = float(event["t"]), event["f"]
    if function not in functions:
        raise ValueError(f"function {function!r} is not described before")
    if "call" in event:
        code = event.get("code")
        seconds = _seconds(event["interpreted" if code is None else "compiled"])
        blocks = tuple(map(int, event.get("blocks", (1,))))
        yield CallEvent(at, function, _parsed(event["call"]), seconds, code, blocks)
    elif "compile" in event:
        counts = int(event["operators"]), int(event["fused"])
        seconds = _seconds(event["seconds"])
        yield CompileEvent(at, function, str(_parsed(event["compile"])), seconds, *counts)
    elif "failed" in event:
        yield CompileEvent(at, function, str(_parsed(event["failed"])), None)


def _seconds(value: object) -> float:
    seconds = float(cast(float, value))
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"{value!r} is no number of seconds")
    return seconds


_parsed = cache(parse)
