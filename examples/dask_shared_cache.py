"""Workers of a Dask cluster compile each kernel once between them: `pip install jitdialects[dask]`, then

    python examples/dask_shared_cache.py --workers 2

The workers of one machine share a cache folder: while one of them compiles a function, the others wait for its
code. Machines share any storage that fsspec knows, here a folder that stands for it: workers with another, empty
cache folder find everything there and compile nothing.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

KERNELS = 6


def work(kernels: int = KERNELS) -> tuple[int, float]:
    """What every worker does: call `kernels` different functions. How many it had to compile; a checksum."""
    import numpy as np

    import jitdialects as jd

    jd.config.threshold = 1  # compile at the first call
    x, total = np.linspace(-1, 1, 1000), 0.0
    for number in range(kernels):
        factor = number + 0.5

        @jd.jit
        def polynomial(x: Any, factor: float = factor) -> Any:
            return (x * factor + 1) * x - factor

        polynomial(x)
        polynomial.wait()
        total += float(polynomial(x).sum())
    return int(jd.stats()["compiles"]), total


def on_a_machine(workers: int, folder: Path) -> list[tuple[int, float]]:
    """Run `work` on every worker at the same time; `folder` is their cache folder."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise SystemExit("this needs Dask: pip install jitdialects[dask]") from None
    os.environ["JITDIALECTS_CACHE_DIR"] = str(folder)
    with (
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(workers)
        return list(client.run(work).values())


def main() -> None:
    """Two machines of as many workers each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=2, help="on each machine (default: 2)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ["JITDIALECTS_DISK_CAP"] = "1GiB"
        os.environ["JITDIALECTS_SHARED_CACHE"] = f"file://{name}/shared"
        os.environ["JITDIALECTS_SHARED_CACHE_SECRET"] = os.urandom(16).hex()  # the same on all
        sums: set[float] = set()
        for machine in ("first", "second"):
            found = on_a_machine(options.workers, Path(name) / machine)
            sums |= {total for _, total in found}
            print(
                f"{machine} machine: {KERNELS} kernels, compiles by worker: {[c for c, _ in found]}"
            )
        print("same results everywhere" if len(sums) == 1 else f"different results: {sums}")


if __name__ == "__main__":
    main()
