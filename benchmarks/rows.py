"""The rows of the tables: which program, at which size, with which aim."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from benchmarks.programs import control, elementwise, products, reductions
from benchmarks.workload import Workload

WORKLOADS: dict[str, Workload] = {
    **elementwise.WORKLOADS,
    **reductions.WORKLOADS,
    **products.WORKLOADS,
    **control.WORKLOADS,
}
GROUPS = (
    "calls",
    "elementwise",
    "reductions",
    "products",
    "control flow",
    "batches",
    "stream",
    "first call",
)
TINY = 16
"""The largest size of the smoke test."""


@dataclass(frozen=True)
class Row:
    """One row. `kind`: "steady" (calls of one size), "sweep" (one program, many batch sizes), "stream"
    (1,000 calls of random batch size in a fresh process), "first" (the first call in a fresh process).
    """

    name: str
    group: str
    workload: str
    sizes: tuple[int, ...] = ()
    kind: str = "steady"
    dtype: str = "float32"
    threads: int = 1
    aim: float | None = None
    """Wanted time as a multiple of the best peer's."""
    aims: dict[str, str] = field(default_factory=dict)
    """The aims of a row of several figures, in words."""
    flops: float = 0
    """Floating-point operations of a call, where the table shows GFLOP/s."""
    bytes: float = 0
    """Bytes that a call must move, where the table shows a share of the copy bandwidth."""
    numpy_door: bool = False
    """Whether every peer takes and returns NumPy arrays, conversions included."""
    quick: bool = True
    """Whether `--quick` runs it."""

    @property
    def key(self) -> str:
        """Name, unique in the suite."""
        return self.name if self.threads == 1 else f"{self.name} ({self.threads} threads)"

    def tiny(self) -> Row:
        """The row at sizes that only show that it runs."""
        sizes = tuple(min(s, TINY) for s in self.sizes)
        return Row(**{**self.__dict__, "sizes": sizes})


def _elementwise() -> Iterable[Row]:
    """Sizes, bytes an element, aims at one thread."""
    for name, traffic, aims in (
        ("gelu", 8, (0.15, 0.5, 0.2)),
        ("black-scholes", 16, (0.2, 0.7, 0.5)),
        ("chain", 8, (0.3, 0.9, 0.2)),
    ):
        for power, aim in zip((3, 5, 7), aims, strict=True):
            group = "calls" if power == 3 else "elementwise"
            size = 10**power
            moved = traffic * size if power == 7 else 0
            yield Row(f"{name} 1e{power}", group, name, (size,), aim=aim, bytes=moved)
    yield Row(
        "black-scholes f64 1e5", "elementwise", "black-scholes", (10**5,), dtype="float64", aim=0.5
    )
    yield Row("x*y+x of 8", "calls", "multiply-add", (8,), aim=0.1, numpy_door=True)


def _reductions() -> Iterable[Row]:
    rows, columns = 4096, 1024
    yield Row("softmax 64x1000", "reductions", "softmax", (64, 1000), aim=0.5)
    yield Row("softmax 4096x1024", "reductions", "softmax", (rows, columns), aim=0.6)
    yield Row("layer norm 4096x1024", "reductions", "layer-norm", (rows, columns), aim=0.8)
    for name, axis, aim in (("sum", 0, 0.95), ("sum", 1, 1.0), ("max", 0, 0.9), ("max", 1, 1.0)):
        workload = f"{name}-axis-{axis}"
        yield Row(f"{name} axis {axis} of 4096x4096", "reductions", workload, (4096, 4096), aim=aim)


def _product(
    m: int, k: int, n: int, workload: str, aim: float, dtype: str = "float32", quick: bool = True
) -> Row:
    name = f"{'s' if dtype == 'float32' else 'd'}gemm {m}x{k}x{n}"
    if workload == "dense":
        name += " bias relu"
    return Row(
        name,
        "products",
        workload,
        (m, k, n),
        dtype=dtype,
        aim=aim,
        flops=2.0 * m * k * n,
        quick=quick,
    )


def _products() -> Iterable[Row]:
    layers = products.LAYERS
    work = 2.0 * sum(k * n for k, n in pairwise(layers))
    for batch, aim in ((1, 0.9), (8, 0.75), (32, 0.9), (64, 0.95)):
        yield Row(f"mlp, batch {batch}", "products", "mlp", (batch,), aim=aim, flops=work * batch)
    yield _product(8, 784, 512, "product-weights", 1 / 1.4)
    yield _product(64, 784, 512, "product-weights", 1.0)
    yield _product(64, 784, 512, "dense", 1.0)
    yield _product(512, 512, 512, "product", 1.0)
    yield _product(2048, 2048, 2048, "product", 1.0, quick=False)
    yield _product(512, 512, 512, "product", 1.0, dtype="float64")


def _control() -> Iterable[Row]:
    yield Row("newton square root 1e5", "control flow", "newton", (10**5,), aim=0.7)
    yield Row("recurrence 1000x256", "control flow", "recurrence", (1000, 256), aim=0.7)


def _processes() -> Iterable[Row]:
    """Rows whose every round is a process of its own."""
    aims = {"cold total": "0.25 s", "second pass": "0.14 s or 0.9 x best"}
    yield Row("mlp stream, batch 1-64", "stream", "mlp", (64,), "stream", aims=aims, quick=False)
    for name, sizes, cold, warm in (
        ("mlp", (32,), "100 ms", "40 ms"),
        ("gelu", (10**5,), "20 ms", "8 ms"),
        ("black-scholes", (10**5,), "20 ms", "8 ms"),
    ):
        aims = {
            "first result, cold": "5 ms above NumPy's",
            "compiled, cold": cold,
            "compiled, warm": warm,
        }
        yield Row(f"first call of {name}", "first call", name, sizes, "first", aims=aims)


_TWO_THREADS = (
    "mlp, batch 64",
    "gelu 1e7",
    "black-scholes 1e7",
    "black-scholes f64 1e5",
    "chain 1e7",
    "softmax 4096x1024",
    "layer norm 4096x1024",
    "sum axis 0 of 4096x4096",
    "max axis 0 of 4096x4096",
    "newton square root 1e5",
    "sgemm 512x512x512",
    "sgemm 2048x2048x2048",
)


def _all() -> Iterable[Row]:
    one = [*_elementwise(), *_reductions(), *_products(), *_control()]
    one.append(Row("mlp, every batch", "batches", "mlp", (64,), kind="sweep"))
    yield from one
    yield from _processes()
    for row in one:
        if row.name in _TWO_THREADS:
            yield Row(**{**row.__dict__, "threads": 2, "aim": 1.0, "quick": False})


ROWS = tuple(_all())


def chosen(patterns: list[str], threads: list[int], quick: bool) -> list[Row]:
    """The rows whose name contains one of `patterns` (all, if there is none)."""
    return [
        row
        for row in ROWS
        if row.threads in threads
        and (row.quick or not quick or bool(patterns))
        and (not patterns or any(p in row.key for p in patterns))
    ]


def row_named(key: str) -> Row:
    """The row with this key."""
    return next(row for row in ROWS if row.key == key)
