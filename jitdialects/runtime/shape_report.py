"""What became of the shapes of a function's calls: versions of its code, their strategy, which of them are stale."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from jitdialects.bytecode.dims import Dim, Expr, Symbol
from jitdialects.runtime.cache import CacheEntry
from jitdialects.runtime.function_code import FunctionCode
from jitdialects.runtime.hot_shapes import Stage
from jitdialects.runtime.messages import CompileReply
from jitdialects.runtime.vm import VM

Guards = list[tuple[str, Dim, Dim]]


@dataclass(frozen=True)
class Version:
    """One piece of code."""

    signature: str
    version: int
    """Of the cache when it came."""
    strategy: str
    """exact, bucketed, symbolic, or specialised: exact, for a hot shape."""
    hits: int
    stale: str
    """Why calls do not enter it any more; empty if they do."""


def versions(vm: VM, code: FunctionCode) -> list[Version]:
    """The code that a function has, oldest first."""
    entries = sorted(vm.service.cache.find_all(list(code.keys)), key=lambda e: e.version)
    return [
        Version(e.key.signature, e.version, strategy(code, e), e.hits, staleness(code, e))
        for e in entries
    ]


def strategy(code: FunctionCode, entry: CacheEntry) -> str:
    """Why the code has the sizes that it has."""
    kernel = entry.kernel
    if entry.key.signature in code.hot.special:
        return "specialised"
    if kernel is None or not kernel.signature.is_exact:
        return "symbolic"
    shapes = tuple(argument.shape for argument in kernel.signature.arguments)
    is_own = any(shapes in history.seen for history in list(code.profile.histories.values()))
    return "exact" if is_own else "bucketed"


def staleness(code: FunctionCode, entry: CacheEntry) -> str:
    """Why calls do not enter code any more; empty if they do, as far as is known."""
    special = code.hot.special.get(entry.key.signature)
    if special is not None and special.stage in (Stage.SLOWER, Stage.RETIRED, Stage.FAILED):
        return special.stage.value
    since = code.superseded.get(entry.key)
    if since is not None and entry.hits == since[1] and special is None:
        return f"superseded by version {since[0]}, no call since"
    return ""


def forgotten(vm: VM, code: FunctionCode) -> list[str]:
    """Signatures of which the code is gone."""
    service = vm.service
    return [
        key.signature
        for key in list(code.keys)
        if service.cache.find(key) is None
        and key not in service.failures
        and not service.is_pending(key)
    ]


def shape_rows(vm: VM) -> Iterator[dict[str, Any]]:
    """One row per function of a machine that was called: for `jd.stats()`."""
    for name, code in vm.functions.items():
        histories = list(code.profile.histories.values())
        if not histories:
            continue
        found = versions(vm, code)
        states = [history.policy for history in histories]
        yield {
            "function": f"{vm.name} @{name}" if vm.name else f"@{name}",
            "distinct_shapes": sum(len(h.seen) + h.others for h in histories),
            "compiles": dict(Counter(v.strategy for v in found)),
            "rows": sum(s.rows for s in states),
            "wasted_rows": sum(s.wasted_rows for s in states),
            "specialised": [
                v.signature for v in found if v.strategy == "specialised" and not v.stale
            ],
            "versions": [asdict(v) for v in found],
        }


def alternative_rows(vm: VM) -> Iterator[dict[str, Any]]:
    """One row per alternative whose fusion was, or is to be, measured: for `jd.stats()`."""
    for name, code in vm.functions.items():
        for each in (code, *code.parts):
            for alternative in list(each.alternatives.tried.values()):
                yield {
                    "function": f"{vm.name} @{name}" if vm.name else f"@{name}"
                } | alternative.as_row()


# ---- guards that leave one shape -----------------------------------------------------------------


def only_shape(reply: CompileReply, names: set[str]) -> dict[str, int] | None:
    """The sizes of these names, if the guards admit no others. Found by intervals of one size each."""
    low, high = dict.fromkeys(names, 0.0), dict.fromkeys(names, math.inf)
    for relation, left, right in reply.guards:
        for small, large in ((left, right), (right, left))[: 2 if relation == "==" else 1]:
            if isinstance(small, int) and (name := _name(large)) in low:
                low[name] = max(low[name], small)
            if isinstance(large, int) and (name := _name(small)) in high:
                high[name] = min(high[name], large)
    if not names or any(low[n] != high[n] for n in names):
        return None
    return {n: int(low[n]) for n in sorted(names)}


def _name(size: Dim) -> str:
    """The name of a size that is nothing but a name, or ""."""
    if isinstance(size, Expr) and not size.constant and len(size.terms) == 1:
        ((atom, coefficient),) = size.terms
        if isinstance(atom, Symbol) and coefficient == 1:
            return atom.name
    return ""
