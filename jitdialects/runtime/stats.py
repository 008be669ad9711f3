"""`jd.stats()`: the state of the runtime as a plain dict."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from jitdialects.runtime.indicators import indicators
from jitdialects.runtime.pool import PoolStatistics, default_pool


def stats() -> dict[str, Any]:
    """The state of the runtime as plain data; `minute` has the indicators of the last 60 seconds."""
    from jitdialects.runtime.cache import default_cache
    from jitdialects.runtime.callables import way_of_calls
    from jitdialects.runtime.compile_server import default_server
    from jitdialects.runtime.service import default_service
    from jitdialects.runtime.shape_report import alternative_rows, shape_rows
    from jitdialects.runtime.vm import machines

    total, minute = indicators.since_start(), indicators.last_minute()
    pool: PoolStatistics = default_pool.statistics()
    return {
        "compiles": total.compiles,
        "compile_failures": total.compile_failures,
        "compile_seconds": total.compile_seconds,
        "compile_cpu_seconds": total.compile_cpu_seconds,
        "compile_requests_waiting": len(default_service.waiting()),
        "compile_requests_dropped": default_service.dropped,
        "compile_server": default_server.statistics(),
        "run_seconds": total.run_seconds,
        "cache_hits": total.hits,
        "cache_misses": total.misses,
        "calls": way_of_calls(),
        "cache": default_cache.statistics(),
        **total.rates(),
        "minute": minute.rates(),
        "alarms": [alarm.as_json() for alarm in indicators.check(pool)],
        "pool": {f.name: getattr(pool, f.name) for f in fields(PoolStatistics)}
        | {"fragmentation": pool.fragmentation},
        "shapes": [row for vm in machines() for row in shape_rows(vm)],
        "alternatives": [row for vm in machines() for row in alternative_rows(vm)],
        "blocks": [row for vm in machines() for row in vm.block_counts()],
    }
