"""`jd.metrics`: the counters for Prometheus, with `pip install jitdialects[metrics]` (prometheus-client).

    jd.metrics.start(port=9464)          # http://127.0.0.1:9464/metrics
    jd.metrics.register(registry)        # or: beside the metrics of an application that has an endpoint

Nothing is counted for it: a scrape reads what the runtime counts anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from jitdialects.errors import MissingNameError
from jitdialects.runtime.alarms import RULES
from jitdialects.runtime.snapshot import overview
from jitdialects.tools.view_server import Refusal, Source, Views

if TYPE_CHECKING:
    from prometheus_client.core import CollectorRegistry, Metric

NEEDS = "metrics need prometheus-client: pip install jitdialects[metrics]"
CONTENT_TYPE = "text/plain; version=0.0.4"
COUNTERS = {
    "compiles": "Compiles that gave code",
    "compile_failures": "Compiles that gave none",
    "compile_seconds": "Wall time of compiles",
    "compile_cpu_seconds": "CPU time of compiles",
    "run_seconds": "Time in functions, interpreted or compiled",
    "hits": "Hot calls that compiled code served",
    "misses": "Hot calls that found no code",
    "operators": "Operators executed in compiled code",
    "operators_fused": "Those inside a group of two or more",
    "requests": "Requests to the memory pool",
    "fresh_requests": "Those that got memory new to the process",
    "requested_bytes": "Bytes asked from the memory pool",
    "fresh_bytes": "Those that were new to the process",
}
"""Counts since start -> help. A rate over any window is a ratio of their increases."""
POOL_GAUGES = ("live_bytes", "free_bytes", "reserved_bytes", "waste_bytes", "largest_free_bytes")


class Collector:
    """What a `CollectorRegistry` asks at every scrape."""

    def collect(self) -> Iterator[Metric]:
        """The counters and gauges of this moment."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        found = overview()
        for name, text in COUNTERS.items():
            yield CounterMetricFamily(f"jitdialects_{name}", text, found["start"][name])
        rates = GaugeMetricFamily(
            "jitdialects_indicator_ratio",
            "The indicators over the last minute and since start; absent while nothing is counted",
            labels=("indicator", "window"),
        )
        for name, windows in found["indicators"].items():
            for window, value in windows.items():
                if value is not None:
                    rates.add_metric((name, window), value)
        yield rates
        on = {alarm["name"] for alarm in found["alarms"]}
        alarms = GaugeMetricFamily(
            "jitdialects_alarm", "1 while the alarm is on", labels=("alarm",)
        )
        for rule in RULES:
            alarms.add_metric((rule.name,), rule.name in on)
        yield alarms
        for name in POOL_GAUGES:
            yield GaugeMetricFamily(
                f"jitdialects_pool_{name}", name.replace("_", " "), found["pool"][name]
            )
        evictions = found["cache"]["evictions"]
        yield CounterMetricFamily("jitdialects_evictions", "Kernels that made room", evictions)
        gauges = {
            "cache_entries": ("Compiled kernels in use", found["cache"]["entries"]),
            "cache_bytes": ("Bytes of their code", found["cache"]["bytes"]),
            "compiles_waiting": ("Signatures that wait for the compiler", found["waiting"]),
            "signatures_refused": ("Signatures that cannot be compiled", found["failed"]),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(f"jitdialects_{name}", text, value)


def exposition() -> str:
    """The text of a scrape."""
    try:
        from prometheus_client import CollectorRegistry, generate_latest
    except ImportError:
        raise Refusal(HTTPStatus.NOT_IMPLEMENTED, NEEDS) from None
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector())
    return generate_latest(registry).decode()


class Metrics(Views):
    """The endpoint `/metrics`."""

    name = "metrics"

    def sources(self) -> dict[str, tuple[str, Source]]:
        """What is served."""
        return {"/metrics": (CONTENT_TYPE, exposition)}

    def start(self, *args: Any, **options: Any) -> str:
        """As `Views.start`; the page asked for is `/metrics` of the URL. Raises `MissingNameError` without
        prometheus-client."""
        _required()
        return super().start(*args, **options)

    def register(self, registry: CollectorRegistry | None = None) -> None:
        """Add the metrics to a registry of prometheus-client (None: its default one)."""
        prometheus = _required()
        (registry or prometheus.REGISTRY).register(Collector())


def _required() -> Any:
    try:
        import prometheus_client
    except ImportError:
        raise MissingNameError(NEEDS) from None
    return prometheus_client


metrics = Metrics()
"""The endpoint of the process."""
