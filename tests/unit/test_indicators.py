"""The counters behind the indicators: seconds, the minute, the history, and what is gathered late."""

from __future__ import annotations

import pytest

from jitdialects.runtime.alarms import Alarm
from jitdialects.runtime.indicators import HISTORY, Indicators
from jitdialects.runtime.totals import RATES, Totals


class Clock:
    """Stands in for the module `time`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("jitdialects.runtime.indicators.time", clock)
    return clock


def test_the_sliding_minute_forgets_and_the_start_does_not(clock: Clock) -> None:
    counters = Indicators()
    counters.now.hits = 5
    clock.now += 59
    assert counters.last_minute().hits == 5
    clock.now += 1
    counters.now.misses += 2
    assert (counters.last_minute().hits, counters.last_minute().misses) == (0, 2)
    assert (counters.since_start().hits, counters.since_start().misses) == (5, 2)


def test_seconds_that_turn_with_calls(clock: Clock) -> None:
    counters = Indicators()
    for _ in range(3 * HISTORY):
        clock.now += 1
        counters.add_run(clock.now, 0.25)
        counters.now.hits += 1
    assert counters.last_minute().hits == 60
    assert counters.last_minute().run_seconds == 15
    assert counters.since_start().hits == 3 * HISTORY
    assert len(counters._seconds) <= HISTORY + 1


def test_a_call_that_ended_in_an_earlier_second_turns_nothing_back(clock: Clock) -> None:
    counters = Indicators()
    counters.add_run(clock.now + 1, 0.5)
    counters.add_run(clock.now, 0.5)
    assert counters._second == int(clock.now) + 1
    clock.now += 1
    assert counters.since_start().run_seconds == 1


def test_what_is_gathered_late_is_spread_over_the_time_since(clock: Clock) -> None:
    """An hour of calls that only machine code counted is no minute of them."""
    counters = Indicators()
    counters.sources.append(lambda into: into.add(Totals(hits=3601, run_seconds=3601.0)))
    clock.now += 3600
    minute = counters._sum(0, 0)
    assert minute.hits == 0
    counters.collect()
    minute = counters._sum(counters._second - 60, counters._second)
    assert minute.hits == 60
    assert minute.run_seconds == pytest.approx(60)
    total = Totals()
    total.add(counters._closed)
    total.add(counters.now)
    assert total.hits == 3601
    assert total.run_seconds == pytest.approx(3601)


def test_parts_are_the_whole() -> None:
    whole = Totals(hits=17, misses=2, compile_seconds=1.5, requested_bytes=10**12 + 7)
    total = Totals()
    for part in range(7):
        total.add(whole.portion(part, part + 1, 7))
    assert (total.hits, total.misses, total.requested_bytes) == (17, 2, 10**12 + 7)
    assert total.compile_seconds == pytest.approx(1.5)


def test_the_history_has_ten_minutes_oldest_first(clock: Clock) -> None:
    counters = Indicators()
    for _ in range(HISTORY):
        clock.now += 1
        counters.add_run(clock.now, 0.0)
        counters.now.hits += 1
        counters.now.misses += clock.now > 1000 + HISTORY / 2
    history = counters.history(step=10)
    assert len(history) == HISTORY // 10
    assert [part.hits for part in history] == [10] * len(history)
    assert history[0].misses == 0 and history[-1].misses == 10


def test_clear_starts_anew(clock: Clock) -> None:
    counters = Indicators()
    counters.sources.append(lambda into: into.add(Totals(misses=1)))
    counters.now.hits = 4
    counters.add_compile(1.0, 0.5)
    counters.clear()
    found = counters.since_start()
    assert (found.hits, found.compiles, found.misses) == (0, 0, 1)


def test_failures_cost_and_are_no_compiles(clock: Clock) -> None:
    counters = Indicators()
    counters.add_compile(0.2, 0.1)
    counters.add_compile(0.2, 0.1, failed=True)
    found = counters.since_start()
    assert (found.compiles, found.compile_failures) == (1, 1)
    assert found.compile_cpu_seconds == pytest.approx(0.2)


def test_nothing_counted_is_no_rate() -> None:
    assert Totals().measured() == dict.fromkeys(RATES)
    assert Totals().rates() == dict.fromkeys(RATES, 0.0)


def test_rates_are_the_ratios_of_the_design() -> None:
    counted = Totals(
        compile_cpu_seconds=1.0,
        run_seconds=3.0,
        hits=9,
        misses=1,
        operators=10,
        operators_fused=7,
        requests=8,
        fresh_requests=2,
        requested_bytes=1000,
        fresh_bytes=900,
    )
    assert counted.rates() == pytest.approx(
        {
            "compile_share": 0.25,
            "hit_rate": 0.9,
            "fusion_rate": 0.7,
            "reuse_rate": 0.75,
            "reuse_rate_bytes": 0.1,
        }
    )


def test_alarms_that_cannot_be_looked_at_break_no_call(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    counters = Indicators()

    def broken(*arguments: object) -> list[Alarm]:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(counters, "check", broken)
    for _ in range(3):
        clock.now += 6
        counters.add_run(clock.now, 1.0)
    assert counters.since_start().run_seconds == 3
    assert caplog.text.count("alarms cannot be looked at") == 1
