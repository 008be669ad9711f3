"""Measure how far exp and tanh are from the exact value, over bit patterns of float32.

    python benchmarks/ulp_table.py --step 1021

Every `step`-th pattern of all 2**32 is taken (an odd step visits all significands), plus every pattern near
the places where a branch or a clamp changes. The reference is NumPy's float64 function: its own
error is below 2**-27 units in the last place of float32. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import oracle

CHUNK = 1 << 18
EDGES = {
    "exp": (-104.5, -103.97208, -87.33655, -0.3465736, 0.3465736, 88.72284, 89.0),
    "tanh": (0.17328679, 0.625, 8.6643397, 9.010914, 10.0),
}


def patterns(name: str, step: int) -> Iterator[np.ndarray]:
    """Chunks of float32 arguments."""
    for start in range(0, 2**32, step * CHUNK):
        stop = min(2**32, start + step * CHUNK)
        yield np.arange(start, stop, step, dtype=np.uint64).astype(np.uint32).view(np.float32)
    for edge in EDGES[name]:
        middle = int(np.float32(edge).view(np.uint32))
        yield np.arange(middle - 4096, middle + 4096, dtype=np.uint32).view(np.float32)


def errors(name: str, x: np.ndarray) -> np.ndarray:
    """Distance from the exact value in units of the last place of the correctly rounded one."""
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(x.astype(np.float64))
        rounded = exact.astype(np.float32)
        got = oracle.elementary(name, x)
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        unit = np.maximum(np.spacing(np.abs(rounded)).astype(np.float64), 2.0**-149)
        distance = np.abs(got.astype(np.float64) - exact) / unit
    return np.where(same & ~np.isfinite(rounded), 0.0, distance)


def main() -> None:
    """Print one row per function."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--step", type=int, default=1021, help="take every step-th bit pattern")
    step = parser.parse_args().step
    print("| function | patterns | largest error, ulp | at x | not correctly rounded |")
    print("| --- | --- | --- | --- | --- |")
    for name in EDGES:
        count, worst, where, wrong = 0, 0.0, 0.0, 0
        for x in patterns(name, step):
            found = errors(name, x)
            at = int(np.argmax(found))
            if found[at] > worst or np.isnan(found[at]):
                worst, where = float(found[at]), float(x[at])
            count, wrong = count + x.size, wrong + int(np.count_nonzero(found > 0.5))
        print(f"| {name} | {count:,} | {worst:.3f} | {where!r} | {100 * wrong / count:.2f} % |")


if __name__ == "__main__":
    main()
