"""Counts of a stretch of time, and the four indicators as ratios of them (design section 5).

- *compile share*: CPU time of compiling / (that + time of running functions). A compile that fails costs, too.
- *hit rate*: executions served by compiled code / executions past their function's threshold. (A call counts
  as one execution of the function's entry block; the function is the unit of compilation.)
- *fusion rate*: operators executed inside a group of two or more / all operators executed in compiled code.
- *reuse rate*: requests, and bytes, that recycled blocks of the process's pool served / all.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

RATES = ("compile_share", "hit_rate", "fusion_rate", "reuse_rate", "reuse_rate_bytes")
"""Names of the indicators."""


@dataclass(slots=True)
class Totals:
    """What the indicators are computed from; times in seconds."""

    compiles: int = 0
    compile_failures: int = 0
    compile_seconds: float = 0.0
    compile_cpu_seconds: float = 0.0
    run_seconds: float = 0.0
    hits: int = 0
    misses: int = 0
    operators: int = 0
    operators_fused: int = 0
    requests: int = 0
    fresh_requests: int = 0
    requested_bytes: int = 0
    fresh_bytes: int = 0

    def add(self, other: Totals) -> None:
        """Add every count of `other`."""
        self.compiles += other.compiles  # written out: it is done for sixty seconds at every look
        self.compile_failures += other.compile_failures
        self.compile_seconds += other.compile_seconds
        self.compile_cpu_seconds += other.compile_cpu_seconds
        self.run_seconds += other.run_seconds
        self.hits += other.hits
        self.misses += other.misses
        self.operators += other.operators
        self.operators_fused += other.operators_fused
        self.requests += other.requests
        self.fresh_requests += other.fresh_requests
        self.requested_bytes += other.requested_bytes
        self.fresh_bytes += other.fresh_bytes

    def portion(self, begin: int, end: int, parts: int) -> Totals:
        """The parts from `begin` to `end` of `parts` near-equal ones, which together are the whole."""
        found = Totals()
        for name in _COUNTS:
            whole = getattr(self, name)
            if isinstance(whole, int):
                setattr(found, name, whole * end // parts - whole * begin // parts)
            else:
                setattr(found, name, whole * (end - begin) / parts)
        return found

    def measured(self) -> dict[str, float | None]:
        """The indicators; None where nothing was counted."""
        fresh, fresh_bytes = self.fresh_requests, self.fresh_bytes
        pairs = (
            (self.compile_cpu_seconds, self.compile_cpu_seconds + self.run_seconds),
            (self.hits, self.hits + self.misses),
            (self.operators_fused, self.operators),
            (self.requests - fresh, self.requests),
            (self.requested_bytes - fresh_bytes, self.requested_bytes),
        )
        return {
            name: part / whole if whole else None
            for name, (part, whole) in zip(RATES, pairs, strict=True)
        }

    def rates(self) -> dict[str, float]:
        """The indicators; 0 where nothing was counted."""
        return {name: value or 0.0 for name, value in self.measured().items()}


_COUNTS = tuple(field.name for field in fields(Totals))
