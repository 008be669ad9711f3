"""Alarms: when they begin and end, what they say, and that they say it once."""

from __future__ import annotations

import logging
from dataclasses import fields, replace

import numpy as np
import pytest

import jitdialects as jd
from jitdialects.config import config
from jitdialects.runtime.alarms import MIB, RULES, Alarms
from jitdialects.runtime.indicators import indicators
from jitdialects.runtime.pool import PoolStatistics, default_pool
from jitdialects.runtime.totals import Totals

GOOD = Totals(compile_cpu_seconds=5.0, run_seconds=95.0, hits=900, misses=100)
POOL = PoolStatistics(*[0] * len(fields(PoolStatistics)))
FREE = replace(POOL, free_bytes=128 * MIB, reserved_bytes=256 * MIB)


def sharing(percent: float, seconds: float = 10.0) -> Totals:
    return Totals(compile_cpu_seconds=seconds, run_seconds=seconds * (100 - percent) / percent)


def hitting(percent: int, calls: int = 1000) -> Totals:
    hits = calls * percent // 100
    return Totals(hits=hits, misses=calls - hits)


def names(alarms: Alarms, minute: Totals = GOOD, pool: PoolStatistics = POOL) -> list[str]:
    return [alarm.name for alarm in alarms.check(minute, pool)]


def test_no_alarm_where_all_is_well() -> None:
    assert names(Alarms()) == []
    assert names(Alarms(), Totals()) == []


@pytest.mark.parametrize(
    ("minute", "pool", "name"),
    [
        (sharing(21), POOL, "compile_share"),
        (hitting(49), POOL, "hit_rate"),
        (GOOD, replace(FREE, largest_free_bytes=60 * MIB), "fragmentation"),
    ],
)
def test_each_alarm_begins_beyond_its_limit(
    minute: Totals, pool: PoolStatistics, name: str
) -> None:
    (alarm,) = Alarms().check(minute, pool)
    assert alarm.name == name
    assert f"limit {alarm.limit:.0%}" in alarm.text and alarm.advice


@pytest.mark.parametrize(
    ("minute", "pool"),
    [
        (sharing(19), POOL),
        (sharing(90, seconds=0.5), POOL),  # the first functions of a young process
        (hitting(51), POOL),
        (hitting(0, calls=99), POOL),
        (GOOD, replace(FREE, largest_free_bytes=70 * MIB)),
        (GOOD, replace(FREE, free_bytes=60 * MIB, largest_free_bytes=1)),
        (GOOD, replace(FREE, reserved_bytes=2048 * MIB, largest_free_bytes=1)),
    ],
)
def test_no_alarm_within_the_limit_or_without_evidence(
    minute: Totals, pool: PoolStatistics
) -> None:
    assert Alarms().check(minute, pool) == []


@pytest.mark.parametrize(
    ("begin", "between", "end"),
    [(sharing(25), sharing(17), sharing(14)), (hitting(40), hitting(55), hitting(61))],
)
def test_an_alarm_ends_only_at_a_better_value(begin: Totals, between: Totals, end: Totals) -> None:
    alarms = Alarms()
    assert names(alarms, between) == []
    assert len(names(alarms, begin)) == 1
    assert len(names(alarms, between)) == 1
    assert names(alarms, end) == []
    assert names(alarms, between) == []


class Clock:
    """Stands in for the module `time`."""

    now = 1000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("jitdialects.runtime.alarms.time", clock)
    return clock


def test_an_alarm_that_stays_is_one_warning(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    alarms = Alarms()
    with caplog.at_level(logging.WARNING, "jitdialects"):
        for percent in (30, 40, 35, 30):
            (found,) = alarms.check(sharing(percent), POOL)
            assert (found.since, found.value) == (1000.0, pytest.approx(percent / 100))
            clock.now += 5
        assert [r.name for r in caplog.records] == ["jitdialects"]
        assert "compiling took 35% of the CPU time" in caplog.text and "threshold" in caplog.text
        alarms.check(GOOD, POOL)
        alarms.check(sharing(30), POOL)
        assert len(caplog.records) == 1
        clock.now += 10
        alarms.check(sharing(30), POOL)
        assert len(caplog.records) == 2


def test_an_alarm_that_passes_is_not_logged(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """The calls of the first seconds, while their code is on its way."""
    alarms = Alarms()
    assert names(alarms, hitting(0)) == ["hit_rate"]
    clock.now += 6
    assert names(alarms, hitting(90)) == []
    assert caplog.text == ""


def test_rules_end_at_better_values_than_they_begin() -> None:
    for rule in RULES:
        assert rule.relief != rule.limit
        middle = (rule.limit + rule.relief) / 2
        assert rule.holds(middle, was_on=True) and not rule.holds(middle, was_on=False)
        assert not rule.holds(None, was_on=True)


def test_a_storm_of_shapes_is_an_alarm_with_its_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    """cases.md 115: whoever asks why calls run slowly is told which signatures had no code."""

    monkeypatch.setattr(config, "max_shapes", 10_000)  # no code for all sizes ends it

    @jd.jit(shapes="exact")
    def storm(x: object) -> object:
        return x + x  # pyright: ignore

    for _ in range(10):
        storm(np.zeros(3, np.float32))
    jd.wait()
    indicators.clear()
    for n in range(500, 700):
        storm(np.zeros(n, np.float32))
    found = {alarm["name"]: alarm for alarm in jd.stats()["alarms"]}
    assert found["hit_rate"]["value"] < 0.5
    assert any(text.startswith("storm(f32[") for text, _ in found["hit_rate"]["signatures"])
    assert "symbolic" in found["hit_rate"]["advice"]
    jd.clear_cache()
    indicators.clear()
    assert jd.stats()["alarms"] == []


def test_alarms_are_looked_at_while_nobody_looks(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    indicators.clear()
    with caplog.at_level(logging.WARNING, "jitdialects"):
        for _ in range(3):
            indicators.now.misses += 200
            indicators.add_run(indicators._second + 6, 0.0)
            clock.now += 10
    assert caplog.text.count("code was ready for 0% of the hot calls") == 1
    indicators.clear()
    indicators.check(default_pool.statistics())
