"""What views show: plain data, capped, with the names that people know; and what Prometheus reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

import numpy as np
import pytest

import jitdialects as jd
from jitdialects.errors import MissingNameError
from jitdialects.runtime import snapshot as module
from jitdialects.runtime.pool import MemoryPool
from jitdialects.runtime.snapshot import overview, snapshot
from jitdialects.runtime.totals import RATES
from jitdialects.tools.metrics import COUNTERS, Metrics, exposition


@pytest.fixture(scope="module")
def busy():
    """A process with a compiled function, misses, and one that cannot be compiled; what earlier tests left in
    this process takes no rows from them."""

    @jd.jit(shapes="exact")
    def scaled(x, factor):
        return x * factor + x

    for _ in range(12):
        scaled(np.ones(7, np.float32), 2.0)
    scaled.wait()
    for n in (7, 7, 8, 9):
        scaled(np.ones(n, np.float32), 2.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_ROWS", 1 << 20)
        return scaled, snapshot()


def rows(found, part: str, text: str) -> list[dict]:
    return [row for row in found[part]["rows"] if text in json.dumps(row)]


def test_a_snapshot_is_plain_data(busy) -> None:
    _, found = busy
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert set(found["indicators"]) == set(RATES)
    assert all(set(windows) == {"minute", "start"} for windows in found["indicators"].values())
    assert all(len(found["history"][name]) == 60 for name in RATES)
    assert found["start"]["hits"] >= found["minute"]["hits"] > 0
    assert found["process"]["pid"] > 0


def test_functions_have_the_names_that_people_know(busy) -> None:
    _, found = busy
    (block,) = [r for r in rows(found, "blocks", "scaled") if r["block"] == "entry"]
    assert block["tier"] == "compiled" and block["served"] >= 2 and block["executions"] >= 12
    assert block["seconds"] > 0 and block["served_seconds"] > 0
    assert block["place"].startswith("test_snapshot.py:")
    (entry,) = [r for r in rows(found, "entries", "scaled(f32[7]") if r["hits"]]
    assert entry["strategy"] == "exact" and entry["bytes"] > 1000 and entry["why"]
    assert entry["fused"] == entry["operators"] == 2


def test_misses_have_reasons(busy) -> None:
    scaled, found = busy
    missed = rows(found, "misses", "scaled")
    assert sum(row["count"] for row in missed) == sum(
        vm.functions["main"].profile.missed for vm in scaled.machines()
    )
    assert all(row["reason"] and row["example"].startswith("scaled(f32[") for row in missed)
    signatures = rows(found, "signatures", "scaled(f32[9]")
    assert [row["tier"] for row in signatures] == ["interpreted"]


def test_rows_are_capped_and_the_rest_is_counted(monkeypatch: pytest.MonkeyPatch, busy) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 2)
    part = snapshot()["signatures"]
    assert len(part["rows"]) == 2 and part["left_out"] > 0
    assert part["rows"][0]["count"] >= part["rows"][1]["count"]


def test_an_overview_has_no_rows(busy) -> None:
    found = overview()
    assert not {"blocks", "entries", "signatures"} & set(found)
    assert found["cache"]["entries"] >= 1 and found["cache"]["bytes"] > 1000


@pytest.mark.parametrize(
    ("shapes", "word"), [("exact", "exact"), ("symbolic", "symbolic"), ("bucketed", "bucketed")]
)
def test_strategies(shapes: str, word: str) -> None:
    f = jd.jit(lambda x: x * 2 + 1, shapes=shapes)
    for n in (33, 50) * 12:
        f(np.ones(n, np.float32))
    f.wait()
    words = {row["strategy"] for row in rows(snapshot(), "entries", "<lambda>(f32[")}
    assert word in words
    assert shapes != "exact" or words == {"exact"}
    assert f.machines()  # alive up to here


def test_a_map_of_the_pool() -> None:
    pool = MemoryPool()
    assert pool.sizes() == []
    held = [pool.empty((size,), np.float32) for size in (10, 10, 3_000_000)]
    pool.empty((3_000_000,), np.float32)
    pool.safe_point()
    small, large = pool.sizes()
    assert (small.capacity, small.exact, small.live, small.free) == (64, False, 2, 0)
    assert (large.exact, large.live, large.free) == (True, 1, 1)
    found = pool.statistics()
    assert found.free_bytes == sum(s.capacity * s.free for s in pool.sizes())
    assert found.live_blocks == len(held)


# ---- Prometheus ----------------------------------------------------------------------------------


def test_metrics_are_what_prometheus_parses(busy) -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    families = {f.name: f for f in parser.text_string_to_metric_families(exposition())}
    assert {f"jitdialects_{name}" for name in COUNTERS} <= set(families)
    hits = families["jitdialects_hits"]
    assert hits.type == "counter" and hits.samples[0].value >= 2
    rates = {
        (s.labels["indicator"], s.labels["window"]): s.value
        for s in families["jitdialects_indicator_ratio"].samples
    }
    assert 0 < rates["hit_rate", "start"] <= 1
    alarms = {s.labels["alarm"]: s.value for s in families["jitdialects_alarm"].samples}
    assert set(alarms) == {"compile_share", "hit_rate", "fragmentation"}
    assert families["jitdialects_cache_bytes"].samples[0].value > 1000


def test_an_endpoint_for_prometheus_and_nothing_else(busy) -> None:
    pytest.importorskip("prometheus_client")
    endpoint = Metrics()
    url = endpoint.start()
    try:
        with urllib.request.urlopen(f"{url}metrics") as answer:
            assert b"jitdialects_hits_total" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(url)
    finally:
        endpoint.stop()


def test_metrics_join_a_registry() -> None:
    prometheus = pytest.importorskip("prometheus_client")
    registry = prometheus.CollectorRegistry()
    Metrics().register(registry)
    assert registry.get_sample_value("jitdialects_compiles_total") is not None


def test_without_prometheus_client_the_door_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [n for n in sys.modules if n.startswith("prometheus_client")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingNameError, match=r"pip install jitdialects\[metrics\]"):
        Metrics().start()
    with pytest.raises(Exception, match=r"pip install jitdialects\[metrics\]"):
        exposition()


# ---- a whole process -----------------------------------------------------------------------------

SCRIPT = """
import sys
import jitdialects as jd
assert "jitdialects.tools.dashboard" not in sys.modules  # nothing computes yet
import numpy as np, urllib.request, json
f = jd.jit(lambda x: x + x)
f(np.zeros(3, np.float32))
assert "jitdialects.tools.dashboard" in sys.modules
found = json.load(urllib.request.urlopen(jd.dashboard.url + "snapshot.json"))
assert found["blocks"]["rows"][0]["executions"] == 1, found["blocks"]
bad = {m.partition(".")[0] for m in sys.modules} & {"xdsl", "llvmlite", "rich", "prometheus_client"}
assert not bad, bad
"""


def test_the_variable_opens_the_page_of_a_process_that_computes() -> None:
    environment = {**os.environ, "JITDIALECTS_DASH": "0"}
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, env=environment, timeout=120)


def test_a_wrong_variable_is_told_and_the_process_computes() -> None:
    script = "import jitdialects as jd, numpy as np; print(jd.jit(lambda x: x + x)(np.ones(1)))"
    environment = {**os.environ, "JITDIALECTS_DASH": "nowhere"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, check=False, env=environment, timeout=120, capture_output=True, text=True
    )
    assert done.stdout == "[2.]\n"
    assert done.stderr.count("JITDIALECTS_DASH='nowhere': needs a port") == 1
    assert "Traceback" not in done.stderr
