"""Two pieces of code for the same calls: which is faster? `trial` runs them, here is what counts."""

from __future__ import annotations

from dataclasses import dataclass

ROUNDS = 8
"""Runs of either code before a verdict."""
TRIAL_SECONDS = 1e-3
"""What one call may lose to a trial, beyond one round of it."""
GAIN = 0.95
"""Code is faster that takes less than this share of the time."""


@dataclass(kw_only=True)
class Contest:
    """What was measured so far."""

    rounds: int = 0
    general: float = float("inf")
    """Seconds of the fastest run of the code that calls enter now."""
    own: float = float("inf")
    """Seconds of the fastest run of the code on trial."""

    @property
    def is_over(self) -> bool:
        """Whether there is a verdict."""
        return self.rounds >= ROUNDS

    @property
    def is_faster(self) -> bool:
        """Whether the code on trial is, as far as is known."""
        return self.own < GAIN * self.general
