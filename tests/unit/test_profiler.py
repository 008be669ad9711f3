"""Traces for Perfetto: every call with its tier, operators inside interpreted ones, compiles with their stages."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitdialects as jd
import jitdialects.numpy as jnp
from jitdialects.errors import ArgumentError
from jitdialects.runtime import profiler as module

X = np.ones(100, np.float32)


@pytest.fixture(autouse=True)
def off_afterwards() -> Iterator[None]:
    yield
    if jd.profiler.is_on:
        jd.profiler.stop()


def formula(x: Any, y: Any) -> Any:
    return jnp.maximum(x * y, y) + x


def events(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text())["traceEvents"]


def spans(path: Path, category: str) -> list[dict[str, Any]]:
    return [e for e in events(path) if e["ph"] == "X" and e["cat"] == category]


def test_a_trace_has_calls_operators_compiles_and_the_pool(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    f = jd.jit(formula)
    jd.profiler.start()
    for _ in range(12):
        f(X, X)
    f.wait()
    for _ in range(40):
        f(X, X)
    recorded = jd.profiler.stop(path)
    interpreted, compiled = spans(path, "interpreted"), spans(path, "compiled")
    assert len(interpreted) + len(compiled) == 52
    assert len(compiled) >= 40
    operators = spans(path, "operator")
    assert [e["name"] for e in operators[:3]] == ["multiply", "maximum", "add"]
    assert operators[0]["args"]["shapes"] == [[100]]
    assert "test_profiler.py:" in operators[0]["args"]["location"]
    assert len(events(path)) > recorded
    assert any(e["ph"] == "C" and e["args"]["in use"] >= 0 for e in events(path))


def test_operators_lie_inside_their_call_and_stages_inside_their_compile(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    jd.clear_cache()
    f = jd.jit(lambda x, y: formula(x, y) - 0.25)
    jd.profiler.start()
    for _ in range(12):
        f(X, X)
    f.wait()
    jd.profiler.stop(path)
    for inner, outer in (("operator", "interpreted"), ("stage", "compile")):
        around = [(e["ts"], e["ts"] + e["dur"], e["tid"]) for e in spans(path, outer)]
        for event in spans(path, inner):
            begin, end = event["ts"], event["ts"] + event["dur"]
            assert any(a <= begin + 1 and end <= b + 1 and t == event["tid"] for a, b, t in around)


def test_threads_have_tracks_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    f = jd.jit(formula)
    f(X, X)
    jd.profiler.start()
    threads = [threading.Thread(target=f, args=(X, X), name=f"worker {n}") for n in range(2)]
    for thread in threads:
        thread.start()
        thread.join()
    jd.profiler.stop(path)
    names = {e["args"]["name"] for e in events(path) if e["name"] == "thread_name"}
    assert {"compiler", "worker 0", "worker 1"} <= names


def test_results_are_those_of_calls_that_nobody_watches() -> None:
    f = jd.jit(formula)
    for _ in range(40):
        want = f(X, 2 * X)
    f.wait()
    jd.profiler.start()
    got = f(X, 2 * X)
    jd.profiler.stop()
    assert got.tobytes() == want.tobytes() == f(X, 2 * X).tobytes()


def test_old_events_are_dropped_and_counted(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "MOST_EVENTS", 5)
    path = tmp_path / "trace.json"
    f = jd.jit(formula)
    f(X, X)
    jd.profiler.start()
    for _ in range(3):
        f(X, X)
    recorded = jd.profiler.stop(path)
    assert recorded == 12
    assert json.loads(path.read_text())["otherData"]["dropped_events"] == 7
    assert len([e for e in events(path) if e["ph"] == "X"]) == 5


def test_misuse_is_told_and_loses_nothing(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="profiler.stop: it is not on; start it first"):
        jd.profiler.stop()
    jd.profiler.start()
    with pytest.raises(ArgumentError, match="profiler.start: it is on already; stop it first"):
        jd.profiler.start()
    jd.jit(formula)(X, X)
    with pytest.raises(ArgumentError, match="cannot write .*: No such file.*the trace is kept"):
        jd.profiler.stop(tmp_path / "nowhere" / "trace.json")
    path = tmp_path / "trace.json"
    assert jd.profiler.stop(path) >= 4
    assert spans(path, "interpreted")


def test_off_again_calls_enter_stubs(tmp_path: Path) -> None:
    f = jd.jit(formula)
    jd.profiler.start()
    for _ in range(40):
        f(X, X)
    f.wait()
    jd.profiler.stop()
    for _ in range(80):
        f(X, X)
    (vm,) = f.machines()
    assert vm.functions["main"].profile.served >= 80


def test_a_trace_is_written_while_other_threads_record(tmp_path: Path) -> None:
    """The file has what happened until then."""
    jd.profiler.start()
    for number in range(10):
        jd.profiler.span(f"before {number}", "test", 0.0, 1.0)
    session = jd.profiler._session
    assert session is not None
    lines = module._lines(session)
    text = [next(lines), next(lines)]
    jd.profiler.span("meanwhile", "test", 0.0, 1.0)
    text += lines
    found = json.loads("".join(text))["traceEvents"]
    assert [e["name"] for e in found if e["ph"] == "X"] == [f"before {n}" for n in range(10)]
