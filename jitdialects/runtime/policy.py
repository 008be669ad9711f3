"""When to compile a function, and for which shapes. A policy is a small object that may be replaced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from jitdialects.config import config
from jitdialects.dialects.schedules import parse_overrides
from jitdialects.errors import ConfigError
from jitdialects.runtime.profile import Profile
from jitdialects.runtime.shape_policies import POLICIES, ShapePolicy, check_shapes


@dataclass(frozen=True)
class Policy:
    """The default policy.

    `threshold`: executions of a block before its function may be compiled (None: `config.threshold`).
    `shapes`: which sizes code is made for, one of `shape_policies.POLICIES` by name or an object of your own
    (None: `config.shapes`).
    `fuse`: whether operators are fused.
    `schedule`: what some loop nests shall do instead of what the compiler would choose, as
    `dialects.schedules` says; code that cannot be made so is not made, and `explain` says why.
    """

    threshold: int | None = None
    shapes: str | ShapePolicy | None = None
    fuse: bool = True
    schedule: str = ""

    def __post_init__(self) -> None:
        threshold = cast(object, self.threshold)
        if threshold is not None and not (isinstance(threshold, int) and threshold >= 1):
            raise ConfigError(f"Policy: threshold must be an int of at least 1, got {threshold!r}")
        check_shapes("Policy", self.shapes)
        schedule = cast(object, self.schedule)
        if not isinstance(schedule, str):
            raise ConfigError(f"schedule: needs text such as 'elementwise: vector = 8', got {schedule!r}")
        try:
            parse_overrides(schedule)
        except ValueError as error:
            raise ConfigError(f"schedule: {error}") from None

    def is_hot(self, profile: Profile) -> bool:
        """Whether the function may be compiled."""
        return profile.hottest >= (self.threshold or config.threshold)

    def saving(self, profile: Profile) -> float:
        """What code for the function would save, compared with others that wait: the calls that missed it."""
        return profile.missed

    @property
    def shape_policy(self) -> ShapePolicy:
        """Which signatures are compiled."""
        shapes = self.shapes or config.shapes
        return POLICIES[shapes] if isinstance(shapes, str) else shapes
