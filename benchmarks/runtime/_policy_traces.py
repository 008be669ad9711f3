"""Programs whose policy traces are kept in `tests/data`: `python -m benchmarks.runtime._policy_traces` records them.

Each runs in a process of its own under the default policy: a stream of batches through a classifier, 1,000 shapes, a
script that does everything once or twice, a server that is asked for one row at a time and now and then for many.
Requests of streams come a millisecond after the reply to the one before.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import jitdialects as jd
import jitdialects.numpy as jnp
from benchmarks.machine import ROOT
from jitdialects.runtime.policy_trace import recorder

DATA = ROOT / "tests" / "data"
BETWEEN = 1e-3
"""Seconds between two requests."""


def _floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def mlp_stream() -> None:
    """1,000 requests of 1 to 64 rows."""
    vm = jd.VM(jd.Program.load(ROOT / "examples" / "mlp.jbc"))
    rows, rng = _floats(64, 784), np.random.default_rng(2)
    for _ in range(1000):
        vm.run("main", rows[: rng.integers(1, 65)])
        time.sleep(BETWEEN)


def shape_storm() -> None:
    """1,000 calls, no two of one shape."""

    @jd.jit
    def gelu(x: Any) -> Any:
        return 0.5 * x * (1 + jnp.tanh(0.7978846 * (x + 0.044715 * x * x * x)))

    for n in np.random.default_rng(3).permutation(1000):
        gelu(_floats(8, int(n) + 1))
        time.sleep(BETWEEN)


def one_shot() -> None:
    """Forty functions, each called twice, and a loop of twelve steps."""

    def work(number: int, x: Any) -> Any:
        return jnp.tanh(x * (number + 1)) @ x + number

    @jd.jit
    def step(x: Any) -> Any:
        return x - 0.1 * (x * x - 2)

    x = _floats(64, 64)
    for number in range(40):
        f = jd.jit(partial(work, number))
        f(x)
        f(x)
    y: Any = x
    for _ in range(12):
        y = step(y)


def one_row_server() -> None:
    """1,500 requests, nine in ten of one row, the others of 2 to 32."""

    @jd.jit
    def layer(x: Any, w: Any, v: Any) -> Any:
        return jnp.maximum(x @ w, 0) @ v

    w, v = _floats(784, 512), _floats(512, 10)
    rng = np.random.default_rng(5)
    for _ in range(1500):
        layer(_floats(1 if rng.random() < 0.9 else int(rng.integers(2, 33)), 784), w, v)
        time.sleep(BETWEEN)


PROGRAMS: dict[str, Callable[[], None]] = {
    "mlp_stream": mlp_stream,
    "shape_storm": shape_storm,
    "one_shot": one_shot,
    "one_row_server": one_row_server,
}


def main() -> None:
    """Record all of them, or run the one that is named."""
    if len(sys.argv) > 1:
        PROGRAMS[sys.argv[1]]()
        found = recorder()
        if found is not None:
            found.close()
        return
    for name in PROGRAMS:
        path = DATA / f"{name}.trace"
        command = [sys.executable, "-m", "benchmarks.runtime._policy_traces", name]
        # without code of earlier runs
        options = {"JITDIALECTS_POLICY_TRACE": str(path), "JITDIALECTS_DISK_CAP": "0"}
        subprocess.run(command, check=True, cwd=ROOT, env=os.environ | options)
        print(path)


if __name__ == "__main__":
    main()
