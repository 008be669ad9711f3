"""When to compile something, and when to leave code again. A policy is a small object that may be replaced.

The default policy asks two questions of a unit (a function, so far): has a block of it run often enough, and will
code save more than making it costs? How often it will run from now on nobody knows; the guess is *as often as it has
run so far*. Whoever guesses so never loses more than twice the least possible: code comes when interpreting has
already cost as much as compiling would have.

A threshold that somebody gives means exactly that number, without the second question.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from jitdialects.config import config
from jitdialects.dialects.schedules import parse_overrides
from jitdialects.errors import ConfigError
from jitdialects.runtime.cost_model import CostModel, Work
from jitdialects.runtime.profile import Profile, Times
from jitdialects.runtime.shape_policies import POLICIES, ShapePolicy, check_shapes
from jitdialects.runtime.thresholds import Thresholds

LOOP_SECONDS = 0.02
"""How long loops are interpreted, unless a policy says otherwise."""
HOPED, LEAST_SHARE = 0.1, 0.05
"""What other code for the same calls is hoped to save; and what share of all time its calls must have."""
NEVER = 10**9
"""A threshold that is meant never to be met."""


@dataclass(frozen=True)
class Tuning:
    """The numbers of a policy for one kind of machine; those of the kinds there are: `TUNINGS`."""

    threshold: int
    """Executions of a block below which nothing is predicted."""
    margin: float = 1.2
    """Code that takes this many times as long as the interpreter is left."""
    samples: int = 8
    """Timed runs of code before it is judged; of the interpreter, half as many."""
    backoff: float = 1.0
    """Seconds before code that was left is tried again; doubled each time it is left."""
    most_backoff: float = 300.0


TUNINGS = {
    "cpu": Tuning(threshold=10),
    # arguments travel, and the driver compiles a second time: worth it later
    "gpu": Tuning(threshold=50),
}


@dataclass
class Experience:
    """What a process has learnt, shared by its machines. A simulator has one of its own, with its own clock."""

    model: CostModel = field(default_factory=CostModel)
    thresholds: Thresholds = field(default_factory=Thresholds)
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True)
class Evidence:
    """What is known of a unit that might be compiled for some signature."""

    executions: int
    """Of its hottest block."""
    runs: int
    """Interpreted runs that the code would have served."""
    interpreted: float
    """Seconds that one of them typically takes."""
    operators: float
    """Operators that one of them executes."""
    work: Work
    """What there is to compile."""
    start: float = 0.0
    """Seconds that the start of the compiler would take from the calls themselves."""


@dataclass(frozen=True)
class Decision:
    """Whether to compile, and the numbers behind it as a sentence."""

    compile: bool
    why: str
    progress: float = 0.0
    """How near it is to pay: expected saving / expected compile time."""


@dataclass(frozen=True)
class Policy:
    """The default policy.

    `threshold`: executions of a block after which its function is compiled, whatever that costs (None:
    `config.threshold`; where that is None too, those of `tuning`, and compiling must be expected to pay).
    `shapes`: which sizes code is made for, one of `shape_policies.POLICIES` by name or an object of your own
    (None: `config.shapes`).
    `fuse`: whether operators are fused.
    `schedule`: what some loop nests shall do instead of what the compiler would choose, as
    `dialects.schedules` says; code that cannot be made so is not made, and `explain` says why.
    `tuning`: the numbers of the kind of machine; `Policy.profile("gpu")` chooses them by name.
    `loop_seconds`: how long a call is interpreted before its loops are compiled by themselves, whatever that costs
    (None: about as long as a compile takes, and the start of the compiler where that needs the CPU of the call).
    `measure_fusion`: whether fusion that was decided by little is decided by measured times in the end (None:
    `config.measure_fusion`).
    """

    threshold: int | None = None
    shapes: str | ShapePolicy | None = None
    fuse: bool = True
    schedule: str = ""
    tuning: Tuning = TUNINGS["cpu"]
    loop_seconds: float | None = None
    measure_fusion: bool | None = None

    def __post_init__(self) -> None:
        threshold = cast(object, self.threshold)
        if threshold is not None and not (isinstance(threshold, int) and threshold >= 1):
            raise ConfigError(f"Policy: threshold must be an int of at least 1, got {threshold!r}")
        check_shapes("Policy", self.shapes)
        if self.loop_seconds is not None and not self.loop_seconds >= 0:
            raise ConfigError(
                f"Policy: loop_seconds must be 0 or more seconds, got {self.loop_seconds!r}"
            )
        schedule = cast(object, self.schedule)
        if not isinstance(schedule, str):
            raise ConfigError(
                f"schedule: needs text such as 'elementwise: vector = 8', got {schedule!r}"
            )
        try:
            parse_overrides(schedule)
        except ValueError as error:
            raise ConfigError(f"schedule: {error}") from None

    @staticmethod
    def profile(name: str) -> Policy:
        """The default policy for a kind of machine: "cpu" (a threshold of 10) or "gpu" (50)."""
        if name not in TUNINGS:
            raise ConfigError(
                f"Policy.profile: no profile {name!r}; there are {', '.join(map(repr, TUNINGS))}"
            )
        return Policy(tuning=TUNINGS[name])

    @property
    def least_executions(self) -> int:
        """Executions of a block below which `decide` need not be asked."""
        return self.threshold or config.threshold or self.tuning.threshold

    def decide(self, evidence: Evidence, experience: Experience) -> Decision:
        """Whether to compile now."""
        demanded = self.threshold or config.threshold
        threshold = demanded or self.tuning.threshold * experience.thresholds.factor
        runs, many = evidence.runs, evidence.executions
        if many < threshold:
            raised = (
                ""
                if demanded or threshold == self.tuning.threshold
                else " (raised: too much compiling)"
            )
            return Decision(False, f"{many} execution(s), the threshold is {threshold}{raised}")
        if demanded:
            return Decision(True, f"{many} execution(s), the threshold is {threshold}")
        compiling = experience.model.compile_seconds(evidence.work)
        starting = evidence.start * _share(evidence, experience) if evidence.start else 0.0
        cost = compiling + starting
        compiled = experience.model.compiled_seconds(evidence.interpreted, evidence.operators)
        saving = evidence.interpreted - compiled
        why = (
            f"{runs} run(s) of {evidence.interpreted * 1e6:.0f} us, which code should take "
            f"{compiled * 1e6:.0f} us for: as many again save {saving * runs * 1e3:.1f} ms, "
            f"compiling takes about {compiling * 1e3:.0f} ms"
        )
        if starting:
            why += f", its part in the start of the compiler on this CPU {starting * 1e3:.0f} ms"
        return Decision(saving * runs > cost, why, saving * runs / cost if cost > 0 else 1.0)

    def tries_alternative(self, spent: float, of: float, cost: float) -> bool:
        """Whether to have other code made, and compared, for calls that have spent so many seconds in code that took
        `cost` to make, `of` those of all calls. How much faster it will be, if at all, nobody knows; the guess is
        `HOPED` of as much time again."""
        measures = config.measure_fusion if self.measure_fusion is None else self.measure_fusion
        return measures and spent * HOPED > cost and spent >= LEAST_SHARE * of

    def is_slower(self, compiled: Times, interpreted: Times) -> bool:
        """Whether code has turned out slower than the interpreter for the same shapes."""
        tuning = self.tuning
        if compiled.count < tuning.samples or 2 * interpreted.count < tuning.samples:
            return False
        return compiled.typical > tuning.margin * interpreted.typical

    @property
    def takes_found_code(self) -> bool:
        """Whether code that earlier processes have left may serve calls before they are hot. A threshold of
        `NEVER` or more asks for the interpreter."""
        return self.least_executions < NEVER

    @property
    def is_general(self) -> bool:
        """Whether code for any sizes may serve a call."""
        return self.shape_policy is not POLICIES["exact"]

    def saving(self, profile: Profile) -> float:
        """What code for the function would save, compared with others that wait: the seconds of the calls that
        missed it."""
        return profile.missed * profile.seconds / max(1, profile.runs)

    @property
    def shape_policy(self) -> ShapePolicy:
        """Which signatures are compiled."""
        shapes = self.shapes or config.shapes
        return POLICIES[shapes] if isinstance(shapes, str) else shapes


def _share(evidence: Evidence, experience: Experience) -> float:
    """A unit's part in what all units pay together: that of the time that the process has run functions for."""
    own, all_units = evidence.runs * evidence.interpreted, experience.thresholds.run_seconds
    return own / all_units if own < all_units else 1.0


default_experience = Experience()
"""What this process has learnt."""
