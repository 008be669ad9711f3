"""What a policy would have done: a trace is replayed with a virtual clock through the objects that decide.

`Tiers`, `Policy`, `CostModel` and `Thresholds` are those of the runtime; only the calls and the compiler are
played. A call takes what it took where it was recorded in the same tier, otherwise the median of such calls of its
sizes in that tier. What was never seen there is estimated from the other tier by the speedup of that function, or by
the prior of the cost model. Between two calls the program waits as long as it did when it was recorded. One compile runs at a time, beside the program; one that
the trace does not know takes what the cost model, fitted to all compiles of the trace, says. Guards other than sizes
are not played.
"""

from __future__ import annotations

import statistics
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from jitdialects.bytecode.signature import Signature
from jitdialects.runtime.cost_model import CostModel, Work
from jitdialects.runtime.indicators import MINUTE
from jitdialects.runtime.policy import Experience, Policy
from jitdialects.runtime.policy_trace import CallEvent, CompileEvent, Event, FunctionEvent
from jitdialects.runtime.profile import Profile, ShapeHistory, Shapes
from jitdialects.runtime.thresholds import Spent, Thresholds
from jitdialects.runtime.tiers import Standing, Tiers
from jitdialects.runtime.totals import Totals

SERVER_START = 0.35
"""Seconds before the compile server answers its first request."""


@dataclass
class Outcome:
    """What came out; times in seconds."""

    calls: int = 0
    compiled_calls: int = 0
    compiles: int = 0
    left: int = 0
    """Times that code was left for some shapes."""
    recorded_seconds: float = 0.0
    """That the calls took when they were recorded."""
    totals: Totals = field(default_factory=Totals)
    signatures: list[str] = field(default_factory=list[str])
    """What was compiled, in this order."""

    @property
    def seconds(self) -> float:
        """That the calls take now."""
        return self.totals.run_seconds

    def lines(self) -> list[str]:
        """The outcome as text."""
        rates = self.totals.rates()
        return [
            f"calls            {self.calls}, {self.compiled_calls} of them compiled",
            f"compiles         {self.compiles}, {self.totals.compile_cpu_seconds:.3f} s",
            *(f"  {signature}" for signature in self.signatures[:20]),
            *([f"  and {len(self.signatures) - 20} more"] if len(self.signatures) > 20 else []),
            f"slower code left {self.left} time(s)",
            f"time of calls    {self.seconds:.4f} s (recorded: {self.recorded_seconds:.4f} s)",
            f"compile_share    {rates['compile_share']:.1%}",
            f"hit_rate         {rates['hit_rate']:.1%}",
            f"fusion_rate      {rates['fusion_rate']:.1%}",
            "reuse_rate       not simulated: no policy of tiers changes it",
        ]


def simulate(events: Sequence[Event], policy: Policy) -> Outcome:
    """Replay a trace under `policy`."""
    return _World(events, policy).run(events)


# ---- what the trace knows ------------------------------------------------------------------------


class _Truth:
    """How long things take."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.model = CostModel()
        self.works: dict[str, Work] = {}
        self.compiles: dict[tuple[str, str], CompileEvent] = {}
        times: dict[tuple[object, ...], list[float]] = defaultdict(list)
        for event in events:
            if isinstance(event, FunctionEvent):
                self.works[event.id] = sum(event.works, Work())
            elif isinstance(event, CompileEvent):
                self.compiles[event.function, event.signature] = event
                if event.seconds is not None:
                    self.model.learn_compile(self.works[event.function], event.seconds)
            elif event.code is None:
                times[event.function, event.signature].append(event.seconds)
            else:
                times[event.function, event.signature, event.code].append(event.seconds)
                times[event.function, event.signature, None].append(event.seconds)
        self._times = {key: statistics.median(values) for key, values in times.items()}
        ratios: dict[str, list[float]] = defaultdict(list)
        for key, seconds in self._times.items():
            if len(key) == 2 and self._times.get((*key, None)):
                ratios[str(key[0])].append(seconds / self._times[*key, None])
        self._speedups = {name: statistics.median(found) for name, found in ratios.items()}

    def interpreted(self, function: str, signature: Signature) -> float:
        known = self._times.get((function, signature))
        if known is not None:
            return known
        compiled = self._times[function, signature, None]
        return compiled * self._speedup(function, compiled)

    def compiled(self, function: str, signature: Signature, code: str) -> float:
        for name in (code, None):
            known = self._times.get((function, signature, name))
            if known is not None:
                return known
        interpreted = self._times[function, signature]
        return interpreted / self._speedup(function, interpreted)

    def _speedup(self, function: str, seconds: float) -> float:
        known = self._speedups.get(function)
        return known or self.model.speedup(seconds, self.works[function].operators)

    def compile(self, function: str, signature: str) -> CompileEvent:
        """What becomes of a request."""
        known = self.compiles.get((function, signature))
        if known is not None:
            return known
        other = next((e for (f, _), e in self.compiles.items() if f == function), None)
        operators, fused = (other.operators, other.fused) if other is not None else (0, 0)
        seconds = self.model.compile_seconds(self.works[function])
        return CompileEvent(0.0, function, signature, seconds, operators, fused)


# ---- what is played ------------------------------------------------------------------------------


@dataclass
class _Code:
    """Compiled code, from `ready` on."""

    signature: Signature
    event: CompileEvent
    ready: float
    seen: bool = False


class _Function:
    """A function of one machine; what its tiers ask of a compiler."""

    def __init__(self, world: _World, event: FunctionEvent, policy: Policy) -> None:
        self.world = world
        self.id = event.id
        self.profile = Profile([0] * len(event.works))
        self.tiers = Tiers(
            event.name, self.profile, event.works, event.products, policy, world.experience
        )
        self.codes: dict[str, _Code] = {}

    def standing(self, signature: Signature, history: ShapeHistory) -> Standing:
        code = self.codes.get(str(signature))
        if code is None:
            return Standing.ABSENT
        if self.world.now < code.ready:
            return Standing.PENDING
        if code.event.seconds is None:
            return Standing.FAILED
        return Standing.REFUSES if code.seen else Standing.READY

    def prepare(self) -> None:
        self.world.start_compiler()

    @property
    def start_seconds(self) -> float:
        return 0.0  # the compiler of a simulation has a CPU of its own

    def submit(self, signature: Signature, history: ShapeHistory) -> None:
        event = self.world.truth.compile(self.id, str(signature))
        self.codes[str(signature)] = _Code(signature, event, self.world.compile(event))

    def fitting(self, call: Signature, shapes: Shapes) -> _Code | None:
        """The code that serves a call, if any does."""
        for code in list(self.codes.values()):
            if self.world.now < code.ready or code.event.seconds is None:
                continue
            if not code.seen:
                code.seen = True
                self.tiers.arrived(code.signature, code.event.seconds)
            avoided = self.tiers.left and self.tiers.avoids(str(code.signature), shapes)
            if not avoided and code.signature.covers(call):
                return code
        return None

    def history(self, call: Signature) -> ShapeHistory:
        key = tuple((a.dtype, len(a.shape), a.strided) for a in call.arguments)
        return self.profile.histories.setdefault(key, ShapeHistory(call.arguments))


class _World:
    """The clock, the compiler and the counters."""

    def __init__(self, events: Sequence[Event], policy: Policy) -> None:
        self.now = 0.0
        self.truth = _Truth(events)
        self.policy = policy
        self.outcome = Outcome()
        self._recent: deque[tuple[float, float, float]] = deque()
        """(time, compile seconds, run seconds) of the last minute."""
        self._minute = Totals()
        self._compiler_free = -1.0
        thresholds = Thresholds(self._spent, lambda: self.now)
        self.experience = Experience(CostModel(), thresholds, lambda: self.now)

    def run(self, events: Sequence[Event]) -> Outcome:
        functions: dict[str, _Function] = {}
        end = 0.0
        for event in events:
            if isinstance(event, FunctionEvent):
                functions[event.id] = _Function(self, event, self.policy)
            elif isinstance(event, CallEvent):
                self.now += max(0.0, event.at - end)
                end = event.at + event.seconds
                self.outcome.recorded_seconds += event.seconds
                self._call(functions[event.function], event)
        self.outcome.left = sum(len(f.tiers.backoffs) for f in functions.values())
        return self.outcome

    def _call(self, function: _Function, event: CallEvent) -> None:
        """As `VM._call` does it."""
        tiers, call = function.tiers, event.signature
        shapes: Shapes = tuple(
            tuple(s for s in a.shape if isinstance(s, int)) for a in call.arguments
        )
        history, totals = function.history(call), self.outcome.totals
        self.outcome.calls += 1
        code = function.fitting(call, shapes)
        if code is not None:
            same = event.code == str(code.signature)
            seconds = (
                event.seconds
                if same
                else self.truth.compiled(function.id, call, str(code.signature))
            )
            self._spend(seconds)
            tiers.measured(str(code.signature), history, shapes, seconds)
            function.profile.counted += 1
            self.outcome.compiled_calls += 1
            totals.hits += 1
            totals.operators += code.event.operators
            totals.operators_fused += code.event.fused
            return
        was_hot = function.profile.hot
        if was_hot:
            function.profile.missed += 1
            totals.misses += 1
            if tiers.is_time(history, shapes):
                tiers.ask(history, shapes, function)
        seconds = event.seconds if event.code is None else self.truth.interpreted(function.id, call)
        self._spend(seconds)
        counts = event.blocks if event.code is None else (1,) * len(function.profile.counts)
        for block, count in enumerate(counts):
            function.profile.counts[block] += count
        history.add(shapes, seconds)
        if not was_hot and tiers.is_time(history, shapes):
            tiers.ask(history, shapes, function)

    def compile(self, event: CompileEvent) -> float:
        """When the result of a request that is made now is there."""
        seconds = event.seconds or 0.0
        self.start_compiler()
        self._compiler_free = max(self.now, self._compiler_free) + seconds
        if event.seconds is not None:
            self.outcome.compiles += 1
            self.outcome.signatures.append(event.signature)
            self.outcome.totals.compiles += 1
        self._count(seconds, 0.0)
        return self._compiler_free

    def start_compiler(self) -> None:
        """It takes a while until it serves its first request."""
        if self._compiler_free < 0:
            self._compiler_free = self.now + SERVER_START

    def _spend(self, seconds: float) -> None:
        self.now += seconds
        self._count(0.0, seconds)

    def _count(self, compiling: float, running: float) -> None:
        for totals in (self.outcome.totals, self._minute):
            totals.compile_cpu_seconds += compiling
            totals.run_seconds += running
        self._recent.append((self.now, compiling, running))

    def _spent(self) -> Spent:
        while self._recent and self._recent[0][0] <= self.now - MINUTE:
            _, compiling, running = self._recent.popleft()
            self._minute.compile_cpu_seconds -= compiling
            self._minute.run_seconds -= running
        return Spent(self._minute, self.outcome.totals)
