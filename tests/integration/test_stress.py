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
