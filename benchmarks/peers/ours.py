"""jitdialects through its public door: `jd.jit`, NumPy in and out, measured after `wait`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jitdialects as jd
import jitdialects.numpy as jnp
from benchmarks.peers.peer import Namespace, Peer, bound
from benchmarks.workload import Case, Unsupported

CALLS = 40
"""Calls until code must have been found; more than the default threshold."""


class _Door:
    """`jitdialects.numpy` with the control flow of `jitdialects`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(jd if name in ("while_loop", "scan") else jnp, name)


class Ours(Peer):
    """jitdialects."""

    name = "jitdialects"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        for public in ("jit", "stats", "explain"):  # found on first use: that is import, not call
            getattr(jd, public)

    def program(self, case: Case) -> Callable[..., Any]:
        """`jd.jit`, weights as constants."""
        return jd.jit(bound(case.workload.program, Namespace(_Door()), case.weights))

    def settle(self, function: Any, call: Callable[[], object]) -> str | None:
        """Call until compiled code serves; else the reason why not."""
        try:
            for _ in range(CALLS):
                before = jd.stats()["cache_hits"]
                call()
                if jd.stats()["cache_hits"] > before:
                    return None
                function.wait()
        except jd.Error as error:
            raise Unsupported(f"not supported: {error.message}") from error
        reasons = [x.strip() for x in jd.explain(function).splitlines() if "not compiled" in x]
        return "interpreted: " + (reasons[-1] if reasons else "no compiled code fits the call")

    def rest(self, function: Any) -> None:
        """Wait for the compiler."""
        function.wait()

    def compile_time(self, function: Any, call: Callable[[], object]) -> float | None:
        """From the call that decides to compile until the code is ready."""
        for _ in range(CALLS):
            before = jd.stats()["compiles"]
            started = time.perf_counter()
            call()
            function.wait()
            if jd.stats()["compiles"] > before:
                return time.perf_counter() - started
        return float("nan")

    def facts(self, function: Any) -> dict[str, Any]:
        """Operators, how many of them fused, milliseconds by stage: sums over what was compiled."""
        replies = [entry.kernel.reply for entry in _entries(function) if entry.kernel]
        stages: dict[str, float] = {}
        for reply in replies:
            for stage, spent in reply.milliseconds.items():
                stages[stage] = stages.get(stage, 0.0) + spent
        return {
            "compiles": len(replies),
            "operators": sum(r.operators for r in replies),
            "fused": sum(r.operators_fused for r in replies),
            "milliseconds": stages,
        }


def _entries(function: Any) -> list[Any]:
    """The compiled entries of a jitted function."""
    found: list[Any] = []
    for vm in function.machines():
        for code in vm.functions.values():
            found += filter(None, map(vm.service.cache.find, list(code.keys)))
    return found
