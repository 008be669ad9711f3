"""Two small plots: latency and throughput of the perceptron at every batch size."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from benchmarks.runner import Result

SHOWN = ("jitdialects", "numpy", "torch", "onnxruntime", "jax", "mindspore")
ROW = "mlp, every batch"
COLORS = dict(
    zip(SHOWN, ("#c0392b", "#7f8c8d", "#e67e22", "#2980b9", "#27ae60", "#8e44ad"), strict=True)
)


def draw(results: dict[str, Result], folder: Path) -> None:
    """Write `mlp-latency.svg` and `mlp-throughput.svg` to `folder`."""
    if ROW not in results:
        return
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "jitdialects"  # equal data, equal file
    mpl.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    curves = {name: _curve(results[ROW]["peers"][name]) for name in _present(results[ROW])}
    _plot(pyplot, curves, folder / "mlp-latency.svg", "latency of a call, us", inverse=False)
    _plot(pyplot, curves, folder / "mlp-throughput.svg", "rows per second", inverse=True)


def _present(result: Result) -> list[str]:
    return [name for name in SHOWN if result["peers"].get(name, {}).get("figures")]


def _curve(peer: dict[str, Any]) -> list[tuple[int, float]]:
    """(batch size, median seconds)."""
    figures = peer["figures"].items()
    return [(int(name.split()[-1]), statistics.median(samples)) for name, samples in figures]


def _plot(
    pyplot: Any,
    curves: dict[str, list[tuple[int, float]]],
    path: Path,
    title: str,
    *,
    inverse: bool,
) -> None:
    figure, axes = pyplot.subplots(figsize=(4.6, 3.2), layout="constrained")
    for name, curve in curves.items():
        sizes = [size for size, _ in curve]
        values = [size / time if inverse else time * 1e6 for size, time in curve]
        axes.plot(sizes, values, marker="o", markersize=3, label=name, color=COLORS[name])
    axes.set(xscale="log", yscale="log", xlabel="batch size", title=title, xticks=sizes)
    axes.set_xticklabels(map(str, sizes))
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
