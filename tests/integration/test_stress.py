"""The stress driver, briefly: everything at once, each result bit for bit that of the interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DRIVER = Path(__file__).parents[1] / "fuzz" / "stress_runtime.py"


def test_threads_call_everything_while_the_runtime_is_disturbed() -> None:
    command = [sys.executable, "-X", "faulthandler", str(DRIVER)]
    done = subprocess.run(
        [*command, "--seconds", "4", "--seed", "3", "--threads", "6", "--without", "wait_for_code"],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all results equal" in done.stdout


LAST = """
import atexit
import threading
import numpy as np


def last():
    assert (f(x) == 2 * x + 1).all() and (g(x[:5]) == 0).all()
    print("the handler is done")


atexit.register(last)  # before the handlers of the runtime: runs after them
import jitdialects as jd
import jitdialects.numpy as jnp

jd.config.threshold = 3
x, large = np.arange(100, dtype=np.float32), np.ones(400_000, np.float32)
f, g = jd.jit(lambda x: x * 2 + 1), jd.jit(lambda x: x - x)
for _ in range(60):
    f(x)
f.wait()
f(x)
begun = threading.Barrier(5)


def work():
    number = 0
    begun.wait()
    while True:
        number += 1
        f(x), f(large)
        fresh = jd.jit(lambda x: jnp.tanh(x) * float(number))
        for _ in range(5):
            fresh(x)


for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
begun.wait()
for _ in range(200):
    f(x)
"""


def test_a_process_ends_while_daemon_threads_call_and_a_handler_calls_last() -> None:
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", LAST],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == "the handler is done\n"
