"""Which tier the calls of one function take: when code is asked for, when it is left, when it is tried again.

`Tiers` belongs to one function of one machine. It asks a `Policy` and tells what it has measured to an `Experience`;
what compiles stands behind the small interface `Compiler`, so that the simulator of policies (`policy_trace`)
runs this very code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from typing import Protocol

from jitdialects.analysis.padding import Padding
from jitdialects.bytecode.signature import ArgumentType, Signature
from jitdialects.runtime import shape_policies
from jitdialects.runtime.cost_model import Work
from jitdialects.runtime.hot_shapes import Special
from jitdialects.runtime.padded_calls import PaddedCall
from jitdialects.runtime.policy import Evidence, Experience, Policy
from jitdialects.runtime.profile import Profile, ShapeHistory, Shapes, Times
from jitdialects.runtime.shape_constraints import ArgumentConstraints
from jitdialects.runtime.shape_policies import ShapeCase, unknown_padding

MOST_POSTPONED = 64
MOST_MEASURED = 1024
"""Pairs of code and shapes whose times are remembered."""
TIMED_FIRST, TIMED_EVERY = 32, 16
"""The first calls of code through Python are timed, then one in so many (a power of two)."""
PREPARE = 0.1
"""Share of the compile time that is to be saved before the compiler gets ready."""
LEARNT_AFTER = 3
"""Runs on either tier before they say something about speedups."""
LOOK_AGAIN = 1.25
"""What was postponed is looked at again after so many times the runs."""


class Standing(Enum):
    """What is known of code for a signature."""

    ABSENT = "nobody asked for it"
    PENDING = "on its way"
    READY = "there"
    REFUSES = "there, but its guards refuse this call"
    FAILED = "cannot be made"


class Compiler(Protocol):
    """What tiers ask of those who have code made for one function."""

    def standing(self, signature: Signature, history: ShapeHistory) -> Standing:
        """What there is for `signature`, wanted by calls like those of `history`. That it was asked for is remembered, unless nothing is there."""
        ...

    def prepare(self) -> None:
        """Code may be asked for soon: a compiler that has to be started may start."""
        ...

    @property
    def start_seconds(self) -> float:
        """What the start of the compiler would take from the calls themselves; 0 where it runs or takes another
        CPU."""
        ...

    def submit(self, signature: Signature, history: ShapeHistory) -> None:
        """Have it compiled for calls like those of `history`."""
        ...


@dataclass(frozen=True)
class Postponed:
    """Code that does not pay yet."""

    signature: Signature
    why: str
    history: ShapeHistory


@dataclass
class Left:
    """Code that is not used for some shapes until `until`, because it was slower there."""

    history: ShapeHistory
    compiled: float
    interpreted: float
    until: float
    backoff: float


@dataclass
class Tiers:
    """The tiers of a function. `works`: what there is to compile in each of its blocks."""

    function: str
    profile: Profile
    works: Sequence[Work]
    products: bool
    policy: Policy
    experience: Experience
    padding_of: Callable[[Signature], Padding] = unknown_padding
    constraints: ArgumentConstraints | None = None
    """What the user knows of sizes."""
    postponed: dict[tuple[int, Shapes], Postponed] = field(
        default_factory=dict[tuple[int, Shapes], Postponed]
    )
    left: dict[tuple[str, Shapes], Left] = field(default_factory=dict[tuple[str, Shapes], Left])
    """By signature of the code and shapes of the call."""
    compiled: dict[tuple[str, Shapes], Times] = field(
        default_factory=dict[tuple[str, Shapes], Times]
    )
    """Seconds of compiled runs, likewise."""
    is_hopeless: bool = False
    """There were calls for which everything that the policy names was tried in vain, and could not be made."""
    reasons: dict[str, str] = field(default_factory=dict[str, str])
    """Why code was asked for, by signature."""
    _look_at: dict[tuple[int, Shapes], int] = field(default_factory=dict[tuple[int, Shapes], int])
    _general_at: dict[int, int] = field(default_factory=dict[int, int])
    """Runs of a class of arguments before which nothing is looked at, because general code does not pay yet."""
    backoffs: dict[tuple[str, Shapes], float] = field(
        default_factory=dict[tuple[str, Shapes], float]
    )
    """Seconds for which code will be left the next time; of all that was left before."""

    # ---- asking for code

    def is_time(self, history: ShapeHistory, shapes: Shapes) -> bool:
        """Whether to ask for code for calls of these shapes; to be asked at every interpreted run."""
        if max(self.profile.counts) < self.policy.least_executions:
            return False
        general = self._general_at.get(id(history))
        if general is not None and history.runs < general:
            return False
        wanted = self._look_at.get((id(history), shapes))
        return wanted is None or _runs(history, shapes) >= wanted

    def ask(self, history: ShapeHistory, shapes: Shapes, compiler: Compiler) -> None:
        """Ask for code, unless it does not pay yet."""
        at = id(history), shapes
        if self._request(history, shapes, compiler) or len(self._look_at) >= MOST_MEASURED:
            self._look_at.pop(at, None)
        else:
            self._look_at[at] = int(_runs(history, shapes) * LOOK_AGAIN) + 1

    def _request(self, history: ShapeHistory, shapes: Shapes, compiler: Compiler) -> bool:
        """Ask for the first signature that was not tried in vain; whether any code is to come."""
        failed = False
        for signature in self._candidates(history, shapes, compiler):
            standing = compiler.standing(signature, history)
            if standing in (Standing.REFUSES, Standing.FAILED):
                failed |= standing is Standing.FAILED
                continue
            if standing is Standing.ABSENT:
                evidence = self._evidence(history, shapes, signature)
                start = compiler.start_seconds
                if start:
                    evidence = replace(evidence, start=start)
                decision = self.policy.decide(evidence, self.experience)
                if not decision.compile:
                    if decision.progress >= PREPARE and not start:
                        compiler.prepare()
                    self._postpone(Postponed(signature, decision.why, history), shapes)
                    return False
                self._submit(signature, history, decision.why, compiler)
            self._settle(signature)
            self._general_at.pop(id(history), None)
            self.profile.hot = True
            return True
        self.is_hopeless |= failed and not self._is_left(shapes)
        return False

    def _is_left(self, shapes: Shapes) -> bool:
        return any(key[1] == shapes for key in list(self.left))

    def _submit(
        self, signature: Signature, history: ShapeHistory, why: str, compiler: Compiler
    ) -> None:
        self.reasons[str(signature)] = why
        compiler.submit(signature, history)

    def specialise(
        self, signature: Signature, history: ShapeHistory, special: Special, compiler: Compiler
    ) -> None:
        """Ask for code for a hot shape."""
        if compiler.standing(signature, history) is Standing.ABSENT:
            self._submit(
                signature, history, f"{special.share:.0%} of the calls of general code", compiler
            )

    def _candidates(
        self, history: ShapeHistory, shapes: Shapes, compiler: Compiler
    ) -> Iterator[Signature]:
        if self._is_left(shapes) and len(self.reasons) < shape_policies.FEW:
            yield exact(self.function, history, shapes)
            return

        def has_failed(signature: Signature) -> bool:
            return compiler.standing(signature, history) is Standing.FAILED

        case = replace(
            self._case(history, shapes), has_failed=has_failed, versions=len(self.reasons)
        )
        yield from shape_policies.signatures(self.policy.shape_policy, case)

    def _case(self, history: ShapeHistory, shapes: Shapes) -> ShapeCase:
        case = ShapeCase(self.function, history, shapes, self.products, self.padding_of)
        known = self.constraints
        if known is None:
            return case
        return replace(case, named=known.named(), fixed=frozenset(known.fixed()))

    def padded(self, history: ShapeHistory, shapes: Shapes) -> PaddedCall | None:
        """How a call is bound to code for larger sizes."""
        return shape_policies.padded(self.policy.shape_policy, self._case(history, shapes))

    def _evidence(self, history: ShapeHistory, shapes: Shapes, signature: Signature) -> Evidence:
        """Code for these shapes alone would have served their runs, other code those of all shapes."""
        alone = signature == exact(self.function, history, shapes)
        times = history.seen.get(shapes, Times()) if alone else history.all()
        typical = times.typical or history.all().typical
        work = sum(self.works, Work())
        return Evidence(self.profile.hottest, times.count, typical, self.operators(), work)

    def operators(self) -> float:
        """Operators that a run executes, on average."""
        counts = zip(self.profile.counts, self.works, strict=True)
        return sum(c * w.operators for c, w in counts) / max(1, self.profile.runs)

    def _postpone(self, postponed: Postponed, shapes: Shapes) -> None:
        if not postponed.signature.is_exact:  # it is for the calls of all that was postponed before
            self._general_at[id(postponed.history)] = int(postponed.history.runs * LOOK_AGAIN) + 1
            for key, other in list(self.postponed.items()):
                if other.history is postponed.history:
                    self.postponed.pop(key, None)
        self.postponed[id(postponed.history), shapes] = postponed
        for key in list(islice(self.postponed, max(0, len(self.postponed) - MOST_POSTPONED))):
            self.postponed.pop(key, None)

    def demand(self, compiler: Compiler) -> None:
        """Somebody waits: what was postponed is compiled now."""
        for key, waiting in list(self.postponed.items()):
            self.postponed.pop(key, None)
            self._look_at.pop(key, None)
            self._general_at.pop(key[0], None)
            if compiler.standing(waiting.signature, waiting.history) is Standing.ABSENT:
                why = f"somebody waits for it; {waiting.why}"
                self._submit(waiting.signature, waiting.history, why, compiler)
            self.profile.hot = True

    # ---- code that is there

    def arrived(self, signature: Signature, seconds: float) -> None:
        """Code that was asked for came; making it took so long."""
        if self.reasons.get(str(signature)) is not None:
            self.experience.model.learn_compile(sum(self.works, Work()), seconds)
        self._settle(signature)

    def _settle(self, signature: Signature) -> None:
        """Nothing is put off any more that waited for this code."""
        for key, waiting in list(self.postponed.items()):
            if waiting.signature == signature:
                self.postponed.pop(key, None)

    def avoids(self, signature: str, shapes: Shapes) -> bool:
        """Whether the code for `signature` is left for calls of these shapes."""
        left = self.left.get((signature, shapes))
        if left is None:
            return False
        if self.experience.clock() < left.until:
            return True
        del self.left[signature, shapes]  # another try
        return False

    def measured(
        self, signature: str, history: ShapeHistory | None, shapes: Shapes, seconds: float
    ) -> bool:
        """A compiled run took so long; whether the code is left for these shapes now."""
        key = signature, shapes
        times = self.compiled.get(key)
        if times is None:
            if len(self.compiled) >= MOST_MEASURED:
                return False
            times = self.compiled[key] = Times()
        times.add(seconds)
        interpreted = None if history is None else history.seen.get(shapes)
        if history is None or interpreted is None:
            return False
        if interpreted.count >= LEARNT_AFTER and times.count == LEARNT_AFTER:
            model = self.experience.model
            model.learn_run(interpreted.typical, times.typical, self.operators())
        # judged at 8, 16, 32, ... runs
        if times.count & (times.count - 1) or times.count < self.policy.tuning.samples:
            return False
        if not self.policy.is_slower(times, interpreted):
            return False
        self._leave(key, history, times.typical, interpreted.typical)
        return True

    def _leave(
        self, key: tuple[str, Shapes], history: ShapeHistory, compiled: float, interpreted: float
    ) -> None:
        tuning = self.policy.tuning
        backoff = self.backoffs.get(key, tuning.backoff)
        self.backoffs[key] = min(2 * backoff, tuning.most_backoff)
        until = self.experience.clock() + backoff
        self.left[key] = Left(history, compiled, interpreted, until, backoff)
        self.compiled[key] = Times()  # a later try is judged by its own runs

    def has_left(self, signature: str, others: Collection[str] = ()) -> bool:
        """Whether the code for `signature` is left for some shapes that none of the `others` is made for."""
        found = [(key, left) for key, left in list(self.left.items()) if key[0] == signature]
        return any(
            (own := str(exact(self.function, left.history, shapes))) == signature
            or own not in others
            for (_, shapes), left in found
        )


def _runs(history: ShapeHistory, shapes: Shapes) -> int:
    times = history.seen.get(shapes)
    return 0 if times is None else times.count


def exact(function: str, history: ShapeHistory, shapes: Shapes) -> Signature:
    """The signature of exactly these shapes."""
    pairs = zip(history.types, shapes, strict=True)
    return Signature(function, tuple(ArgumentType(t.dtype, s, t.strided) for t, s in pairs))
