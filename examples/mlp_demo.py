"""Serve 1,000 requests of 1 to 64 digits with a classifier that arrives as bytecode without shapes.

No code for the program exists at the start and nothing is waited for: the first requests are interpreted,
operator by operator, the compiler works beside them, and later requests run what it made. Then every batch
size is timed interpreted, compiled and in NumPy, one thread each, interleaved in this one process.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import jitdialects as jd

try:
    import digits
    from rich import box
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table
except ImportError as error:
    raise SystemExit(f"{error}: pip install jitdialects[demo]") from None

HERE = Path(__file__).parent
WORK = HERE.parent / "build" / "demo"
REQUESTS, LARGEST_BATCH = 1000, 64
TIMED_BATCHES = (1, 2, 4, 8, 16, 32, 48, 64)
REPEATS = 41
Array = NDArray[np.float32]


def numpy_forward(
    x: Array, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array, b3: Array
) -> Array:
    """The same classifier in NumPy."""
    x = np.maximum(x @ w1 + b1, 0)
    x = np.maximum(x @ w2 + b2, 0)
    x = x @ w3 + b3
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def serve(vm: jd.VM, images: Array, labels: NDArray[np.int64], weights: list[Array]) -> list[str]:
    """Run the requests; returns the lines to print: when each tier began, latencies, accuracy."""
    rng = np.random.default_rng(2)
    events = ["request 1: interpreted (kernels of single operators, from the kernel pack)"]
    right = agree = total = 0
    seconds: list[float] = []
    served = 0
    for number in track(range(1, REQUESTS + 1), description="serving"):
        rows = rng.integers(0, len(images), rng.integers(1, LARGEST_BATCH + 1))
        started = time.perf_counter()
        (probabilities,) = vm.run("main", images[rows])
        seconds.append(time.perf_counter() - started)
        now_served = jd.stats()["cache_hits"]
        if now_served and not served:
            events.append(f"request {number}: compiled")
        served = now_served
        predicted = probabilities.argmax(axis=1)
        reference = numpy_forward(images[rows], *weights).argmax(axis=1)
        right += int((predicted == labels[rows]).sum())
        agree += int((predicted == reference).sum())
        total += len(rows)
    events.append(f"{served} of {REQUESTS} requests ran compiled code")
    cuts = np.percentile(np.array(seconds) * 1e6, (50, 99, 100))
    events.append("request latency p50 {:.0f} us, p99 {:.0f} us, worst {:.0f} us".format(*cuts))
    events.append(
        f"accuracy {right / total:.4f} on {total} held-out digits; "
        f"{agree} of {total} predictions equal NumPy's on the same weights"
    )
    return events


def median_us(functions: list[Callable[[], object]]) -> list[float]:
    """Median microseconds of each function, called in turn."""
    samples: list[list[float]] = [[] for _ in functions]
    for _ in range(REPEATS):
        for sample, function in zip(samples, functions, strict=True):
            started = time.perf_counter()
            function()
            sample.append((time.perf_counter() - started) * 1e6)
    return [statistics.median(s) for s in samples]


def timing_table(program: jd.Program, vm: jd.VM, images: Array, weights: list[Array]) -> Table:
    """Latency and throughput per batch size for the three ways to run."""
    interpreter = jd.VM(program, policy=jd.Policy(threshold=10**9))
    title = "median latency in us, throughput in digits per second; one thread"
    table = Table(title=title, box=box.SIMPLE, padding=0)
    ways = ("interpr.", "compiled", "NumPy")
    for heading in ("batch", *ways, *(f"{w}/s" for w in ways), "compiled / NumPy"):
        table.add_column(heading, justify="right")
    for batch in TIMED_BATCHES:
        x = images[:batch]
        times = median_us(
            [
                lambda x=x: interpreter.run("main", x),
                lambda x=x: vm.run("main", x),
                lambda x=x: numpy_forward(x, *weights),
            ]
        )
        rates = [batch / t * 1e6 for t in times]
        cells = (f"{n:,.0f}" for n in (*times, *rates))
        table.add_row(str(batch), *cells, f"{times[1] / times[2]:.2f}")
    return table


def main() -> None:
    console = Console()
    shutil.rmtree(WORK, ignore_errors=True)
    jd.config.dump = WORK / "ir"
    program = jd.Program.load(HERE / "mlp.jbc")
    weights = [np.asarray(constant.value, np.float32) for constant in program.constants[:6]]
    _, (images, labels) = digits.load()
    vm = jd.VM(program)
    for line in serve(vm, images, labels, weights):
        console.print(line, highlight=False)
    vm.wait()
    console.print(timing_table(program, vm, images, weights))
    stats = jd.stats()
    console.print(
        f"compiles {stats['compiles']} ({stats['compile_cpu_seconds']:.2f} s CPU)   "
        f"compile share {stats['compile_share']:.1%}   hit rate {stats['hit_rate']:.1%}   "
        f"fusion rate {stats['fusion_rate']:.1%}   reuse rate {stats['reuse_rate']:.1%}",
        highlight=False,
    )
    console.print(jd.explain(vm), highlight=False, markup=False, soft_wrap=True)
    console.print(f"IR of every stage: {(WORK / 'ir').relative_to(HERE.parent)}", highlight=False)


if __name__ == "__main__":
    main()
