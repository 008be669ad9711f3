"""Everything that a view of the runtime shows, as plain data: one function for the web page, the terminal, and
whoever else looks. Views arrange it and compute nothing of their own.

Rows are capped, so that a look costs milliseconds whatever the process has grown to; what was left out is counted.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, cast

from jitdialects.config import config
from jitdialects.runtime.alarms import RULES
from jitdialects.runtime.cache import CacheEntry, CacheKey, default_cache
from jitdialects.runtime.explain import functions_in_use, misses, shape_counts, title
from jitdialects.runtime.function_code import FunctionCode
from jitdialects.runtime.identity import feature_level
from jitdialects.runtime.indicators import indicators
from jitdialects.runtime.pool import default_pool
from jitdialects.runtime.service import CompileService, default_service
from jitdialects.runtime.shape_report import staleness, strategy
from jitdialects.runtime.totals import RATES
from jitdialects.runtime.vm import VM, machines

FORMAT = 1
"""Raised when a field changes its meaning."""
MOST_ROWS = 100
HISTORY_STEP = 10
_started = time.time()


def overview() -> dict[str, Any]:
    """Counts and rates without the rows: what fits a scrape. Rates are None where nothing was counted, times are
    seconds, sizes bytes."""
    minute, total = indicators.last_minute(), indicators.since_start()
    pool = default_pool.statistics()
    return {
        "process": _process(),
        "indicators": {
            name: {"minute": minute.measured()[name], "start": total.measured()[name]}
            for name in RATES
        },
        "minute": asdict(minute),
        "start": asdict(total),
        "alarms": [alarm.as_json() for alarm in indicators.check(pool)],
        "pool": asdict(pool) | {"fragmentation": pool.fragmentation},
        "cache": default_cache.statistics(),
        "padding": _padding(),
        "waiting": sum(len(service.waiting()) for service in services()),
        "failed": sum(len(service.failures) for service in services()),
    }


def snapshot() -> dict[str, Any]:
    """The state of the runtime. Every value is a dict, list, str, int, float, bool or None."""
    found = overview()
    functions = list(functions_in_use())
    owners = {code.fingerprint: (vm, code) for vm, code in functions}
    found["pool"]["sizes"] = [asdict(size) for size in default_pool.sizes()]
    return found | {
        "format": FORMAT,
        "limits": {r.name: {"begins": r.limit, "ends": r.relief} for r in RULES},
        "history": _history(),
        "blocks": _rows(_blocks(functions), lambda row: row["seconds"] + row["served_seconds"]),
        "entries": _rows(_entries(functions, owners), lambda row: row["hits"]),
        "misses": _rows(_misses(functions), lambda row: row["count"]),
        "signatures": _rows(_signatures(functions, owners), lambda row: row["count"]),
        "queue": _rows(_queue(owners)),
        "failures": _rows(_failures(owners)),
    }


def services() -> list[CompileService]:
    """The services of machines in use, that of the process first."""
    others = {vm.service for vm in machines()} - {default_service}
    return [default_service, *others]


def missed_signatures() -> list[tuple[str, int]]:
    """The signatures of hot calls that found no code, most frequent first."""
    found: dict[str, int] = {}
    for vm, code in functions_in_use():
        for miss in shape_counts(vm, code):
            if miss.missed:
                text = str(miss.signature)
                found[text] = found.get(text, 0) + miss.missed
    return sorted(found.items(), key=lambda item: -item[1])


# ---- parts -------------------------------------------------------------------------------------

_Row = dict[str, Any]
_Functions = Sequence[tuple[VM, FunctionCode]]
_Owners = dict[str, tuple[VM, FunctionCode]]


def _rows(rows: Iterator[_Row], weight: Callable[[_Row], float] | None = None) -> dict[str, Any]:
    """The heaviest rows, heaviest first, and how many were left out. Text is made of those that are shown only."""
    found = list(rows)
    if weight is not None:
        found.sort(key=weight, reverse=True)
    for row in found[:MOST_ROWS]:
        if "signature" in row:
            row["signature"] = str(row["signature"])
    return {"rows": found[:MOST_ROWS], "left_out": max(len(found) - MOST_ROWS, 0)}


def _process() -> _Row:
    arguments = cast(list[str], getattr(sys, "argv", None) or [""])  # embedded: no argv
    return {
        "pid": os.getpid(),
        "program": os.path.basename(arguments[0]) or "python",
        "time": time.time(),
        "uptime": time.time() - _started,
        "python": ".".join(map(str, sys.version_info[:3])),
        "features": feature_level(),
        "compiler": config.compiler,
        "threshold": config.threshold,
    }


def _history() -> dict[str, Any]:
    parts = [part.measured() for part in indicators.history(HISTORY_STEP)]
    return {"step": HISTORY_STEP} | {name: [part[name] for part in parts] for name in RATES}


def _padding() -> _Row:
    """Rows that calls had, and rows that were added to fill the class of their size."""
    codes = functions_in_use()
    states = [h.policy for _, code in codes for h in list(code.profile.histories.values())]
    return {"rows": sum(s.rows for s in states), "wasted": sum(s.wasted_rows for s in states)}


def _blocks(functions: _Functions) -> Iterator[_Row]:
    """What each block took: interpreted by samples of its executions, compiled on the entry of a function."""
    for vm, code in functions:
        profile, state = code.profile, _state(vm, code)
        rows = zip(code.function.blocks, profile.counts, profile.times, strict=True)
        for number, (block, executions, times) in enumerate(rows):
            served = 0 if number else profile.counted
            if not executions and not served:
                continue
            place = next((i.location for i in block.instructions if i.location), None)
            yield {
                "function": title(vm, code.function.name),
                "block": block.name,
                "place": "" if place is None else f"{os.path.basename(place.file)}:{place.line}",
                "tier": state,
                "executions": executions,
                "seconds": times.seconds + times.typical * max(executions - times.count, 0),
                "served": served,
                "served_seconds": 0.0 if number else profile.compiled_seconds,
            }


def _state(vm: VM, code: FunctionCode) -> str:
    """The tier of a function in one word."""
    keys = list(code.keys)
    if any(vm.service.cache.find(key) for key in keys):
        return "compiled"
    if any(vm.service.is_pending(key) for key in keys):
        return "compiling"
    if not any(key in vm.service.failures for key in keys):
        return "interpreted"
    return "in parts" if any(_state(vm, part) == "compiled" for part in code.parts) else "refused"


def _titled(key: CacheKey, owners: _Owners) -> str:
    """The signature of a key by the name that people know."""
    owner = owners.get(key.fingerprint)
    function, parenthesis, rest = key.signature.partition("(")
    return (title(owner[0], function) if owner else function) + parenthesis + rest


def _entries(functions: _Functions, owners: _Owners) -> Iterator[_Row]:
    asked = {
        entry.key: code
        for vm, code in functions
        for entry in vm.service.cache.find_all(list(code.keys))
    }
    for service in services():
        for entry in service.cache:
            key, kernel = entry.key, entry.kernel
            if kernel is None:
                continue  # evicted meanwhile
            reply, code = kernel.reply, asked.get(key)
            sizes = "exact" if kernel.signature.is_exact else "symbolic"
            yield {
                "key": key.fingerprint[:8],
                "signature": _titled(key, owners),
                "features": key.features,
                "version": entry.version,
                "hits": entry.hits,
                "strategy": sizes if code is None else strategy(code, entry),
                "stale": "" if code is None else staleness(code, entry),
                "bytes": entry.bytes,
                "source": entry.source,
                "compile_seconds": sum(reply.milliseconds.values()) / 1e3,
                "operators": reply.operators,
                "fused": reply.operators_fused,
                "why": _why(entry, code),
            }


def _why(entry: CacheEntry, code: FunctionCode | None) -> str:
    """Why the code was asked for, in the words of the tiers."""
    if code is None:
        return "for a program that is gone"
    return code.tiers.reasons.get(entry.key.signature, "found where another program had left it")


def _misses(functions: _Functions) -> Iterator[_Row]:
    for vm, code in functions:
        for group in misses(vm, code):
            yield {
                "function": title(vm, code.function.name),
                "count": group.count,
                "reason": group.reason,
                "example": str(group.example),
                "signatures": group.signatures,
            }


def _signatures(functions: _Functions, owners: _Owners) -> Iterator[_Row]:
    for vm, code in functions:
        for seen in shape_counts(vm, code):
            if seen.count:  # the others were served from their first call on
                yield {
                    "signature": seen.signature,
                    "tier": "interpreted",
                    "count": seen.count,
                    "missed": seen.missed,
                }
    for service in services():
        for entry in service.cache:
            if entry.hits:
                text = _titled(entry.key, owners)
                yield {"signature": text, "tier": "compiled", "count": entry.hits, "missed": 0}


def _queue(owners: _Owners) -> Iterator[_Row]:
    for service in services():
        for key in service.waiting():
            yield {"signature": _titled(key, owners)}


def _failures(owners: _Owners) -> Iterator[_Row]:
    for service in services():
        for key, sentence in list(service.failures.items()):
            yield {"signature": _titled(key, owners), "reason": sentence}
