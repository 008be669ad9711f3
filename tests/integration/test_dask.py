"""Workers of a cluster share compiled code, as the example says."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_workers_compile_each_kernel_once_between_them() -> None:
    example = ROOT / "examples" / "dask_shared_cache.py"
    done = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, timeout=180, check=True
    )
    first, second, same = done.stdout.splitlines()
    compiles = [
        [int(n) for n in re.findall(r"\d+", line.split(":")[-1])] for line in (first, second)
    ]
    assert len(compiles[0]) == 2 and sum(compiles[0]) == 6, done.stdout
    assert compiles[1] == [0, 0] and same == "same results everywhere", done.stdout
