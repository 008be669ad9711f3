"""Thresholds that follow the compile share, by a clock that is turned by hand."""

from __future__ import annotations

from dataclasses import dataclass, field

from jitdialects.runtime.thresholds import FALL_AFTER, MOST_STEPS, STEP, Spent, Thresholds
from jitdialects.runtime.totals import Totals


@dataclass
class Process:
    """A clock, and what was spent in each second of it."""

    now: float = 100.0
    spent: list[tuple[float, float, float]] = field(
        default_factory=list[tuple[float, float, float]]
    )

    def live(self, seconds: int, compiling: float, running: float, thresholds: Thresholds) -> int:
        """So many seconds pass, with so much of each second spent; the factor at the end."""
        factor = thresholds.factor
        for _ in range(seconds):
            self.now += 1
            self.spent.append((self.now, compiling, running))
            factor = thresholds.factor
        return factor

    def totals(self) -> Spent:
        def total(since: float) -> Totals:
            recent = [s for s in self.spent if s[0] > since]
            return Totals(
                compile_cpu_seconds=sum(c for _, c, _ in recent),
                run_seconds=sum(r for _, _, r in recent),
            )

        return Spent(total(self.now - 60), total(0.0))


def made() -> tuple[Process, Thresholds]:
    process = Process()
    return process, Thresholds(process.totals, lambda: process.now)


def test_a_quiet_process_has_the_thresholds_of_its_policy() -> None:
    process, thresholds = made()
    assert process.live(100, compiling=0.1, running=0.9, thresholds=thresholds) == 1


def test_the_first_second_of_compiling_is_free() -> None:
    """A young process has run nothing yet: its share is 100 %, and it may compile what is hot."""
    process, thresholds = made()
    assert process.live(3, compiling=0.3, running=0.01, thresholds=thresholds) == 1


def test_thresholds_rise_by_five_while_too_much_is_compiled_and_stop() -> None:
    process, thresholds = made()
    process.live(1, 0.9, 0.1, thresholds)
    factors = [process.live(1, 0.9, 0.1, thresholds) for _ in range(12)]
    assert factors == sorted(factors)
    assert set(factors) >= {STEP, STEP**2}
    assert factors[-1] == STEP**MOST_STEPS


def test_they_do_not_rise_again_for_what_was_compiled_before() -> None:
    """The minute still has the storm in it, but since the rise nothing more was compiled."""
    process, thresholds = made()
    while process.live(1, 0.9, 0.1, thresholds) == 1:
        pass
    assert process.live(10, compiling=0.0, running=0.1, thresholds=thresholds) == STEP


def test_they_fall_step_by_step_when_the_storm_is_over() -> None:
    process, thresholds = made()
    process.live(6, 0.9, 0.1, thresholds)
    high = thresholds.steps
    assert high >= 2
    process.live(70, 0.0, 1.0, thresholds)
    assert thresholds.factor == 1
    process.live(6, 0.9, 0.1, thresholds)
    assert thresholds.steps < high + 1


def test_between_the_two_shares_nothing_changes() -> None:
    process, thresholds = made()
    process.live(4, 0.9, 0.1, thresholds)
    steps = thresholds.steps
    assert steps >= 1
    process.live(200, compiling=0.15, running=0.85, thresholds=thresholds)
    assert thresholds.steps == steps


def test_they_fall_no_faster_than_one_step_in_five_seconds() -> None:
    process, thresholds = made()
    process.live(8, 0.9, 0.1, thresholds)
    steps = thresholds.steps
    process.now += 61  # the minute is empty
    assert thresholds.factor == STEP ** (steps - 1)
    process.now += FALL_AFTER / 2
    assert thresholds.factor == STEP ** (steps - 1)
