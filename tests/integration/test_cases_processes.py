"""Faults around forks that users of other libraries reported. The reference in a docstring says which report."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAD = """
import os, signal, sys, time
import numpy as np
import jitdialects as jd
import jitdialects.numpy as jnp

jd.config.threads, jd.config.threshold = 2, 5
x = np.linspace(-1, 1, 300_000, dtype=np.float32)


def compiled(function, *arguments):
    jitted = jd.jit(function)
    for _ in range(40):
        before = jd.stats()["cache_hits"]
        result = jitted(*arguments)
        if jd.stats()["cache_hits"] > before:
            return jitted, result
        jitted.wait()
    raise SystemExit(jd.explain(jitted))


def children(number, check):
    pids = []
    for index in range(number):
        pid = os.fork()
        if not pid:
            signal.alarm(20)
            good = False
            try:
                good = check(index)
            finally:
                os._exit(0 if good else 1)
        pids.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    assert codes == [0] * number, codes
"""

AFTER_A_PARALLEL_RUN = """
f, expected = compiled(lambda x: x * x + x, x)


def check(index):
    good = f(x).tobytes() == expected.tobytes()
    if index >= 12:  # a server of its own
        _, result = compiled(lambda x: jnp.tanh(x) - x, np.ones(5 + index, np.float32))
        good = good and result.shape == (5 + index,)
    return good


children(14, check)
compiled(lambda x: x - 3 * x, x)
"""

IN_THE_MIDDLE_OF_A_COMPILE = """
from jitdialects.runtime.service import default_service

f, expected = compiled(lambda x: x * x + x, x)


def long(x):
    for _ in range(150):
        x = jnp.tanh(x) * 0.5 + x
    return x


slow = jd.jit(long)
for _ in range(40):
    slow(np.ones(7, np.float32))
    if default_service.waiting():
        break
assert default_service.waiting()


def check(index):
    if f(x).tobytes() != expected.tobytes() or slow(np.ones(7, np.float32)).shape != (7,):
        return False
    return bool(index) or compiled(lambda x: x - 3 * x, np.ones(9, np.float32))[1].shape == (9,)


children(3, check)
slow.wait()
compiled(long, np.ones(7, np.float32))
"""


@pytest.mark.parametrize(
    "script", [AFTER_A_PARALLEL_RUN, IN_THE_MIDDLE_OF_A_COMPILE], ids=["parallel", "compiling"]
)
def test_forked_children_work(script: str) -> None:
    """numba/numba#7872: a child hangs after a parallel run, since the pool is flagged as started;
    jobovy/galpy PR#1372: fourteen children are parked."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", HEAD + script]
    ended = subprocess.run(command, timeout=120, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
