"""The page: tables of medians and spreads, ratios to the best peer, geometric means, limits, remarks."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers import NAMES
from benchmarks.rows import GROUPS, Row
from benchmarks.runner import Result, path_of

OURS = "jitdialects"
TITLES = {
    "calls": "Small arrays: what a call costs",
    "elementwise": "Elementwise",
    "reductions": "Reductions and row-wise programs",
    "products": "Products and the perceptron",
    "control flow": "Control flow",
}

INTRODUCTION = """\
Measured on {date} by `python -m benchmarks`; do not edit. Each library runs in its own process, in turn with
the others, {rounds} rounds of {seconds} s; cells are the median over the rounds, ± half the distance of the
quartiles; one pinned core and one thread unless a heading says two. Every result is compared with float64.
*x best*: time of jitdialects as a multiple of the fastest other library's, below 1 is faster; *aim*: what we
want there.
"""


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of samples, seconds."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(samples: list[float]) -> Spread:
        """Of at least one sample."""
        if len(samples) == 1:
            return Spread(samples[0], samples[0], samples[0])
        low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
        return Spread(middle, low, high)


def load(rows: Iterable[Row], folder: Path) -> dict[str, Result]:
    """The results that were written before."""
    paths = {row.key: path_of(row, folder) for row in rows}
    return {key: json.loads(p.read_text()) for key, p in paths.items() if p.exists()}


def document(
    rows: list[Row], results: dict[str, Result], machine: dict[str, Any], *, complete: bool
) -> str:
    """Everything as Markdown."""
    rows = [row for row in rows if row.key in results]
    table = Table(results, machine["limits"])
    parts = [_head(machine, results, complete)]
    for threads in (1, 2):
        steady = [r for r in rows if r.kind == "steady" and r.threads == threads]
        if steady and threads == 2:
            parts.append("## Two threads")
        for group in GROUPS if threads == 1 else ():
            inside = [r for r in steady if r.group == group]
            if inside:
                parts.append(f"## {TITLES[group]}\n\n" + table.steady(inside))
        if steady and threads == 2:
            parts.append(table.steady(steady))
    parts += table.others(rows)
    parts += [table.means(rows), table.compilation(rows), table.remarks(rows)]
    if complete:
        parts.append("![latency](images/mlp-latency.svg) ![throughput](images/mlp-throughput.svg)")
    return "\n\n".join(p for p in parts if p) + "\n"


def _head(machine: dict[str, Any], results: dict[str, Result], complete: bool) -> str:
    some = next(iter(results.values()))["settings"]
    caches = ", ".join(f"{level} {size}" for level, size in machine["caches"].items())
    versions = ", ".join(f"{k} {v}" for k, v in machine["versions"].items())
    loads = [r["load"] for r in results.values()]
    lines = [
        "# Benchmarks\n" if complete else "# Benchmarks, in short form\n",
        INTRODUCTION.format(date=machine["date"], **some),
        "| machine | |\n| --- | --- |",
        f"| CPU | {machine['cpu']}, {machine['cores']} cores; {' '.join(machine['features'])} |",
        f"| caches of core 0 | {caches} |",
        f"| libraries | Python {machine['python']}, {versions}; BLAS of NumPy: {machine['blas']} |",
        f"| load when a row began | {min(loads):.1f} to {max(loads):.1f} |",
        *(f"| {name.rsplit(',', 1)[0]} | {value:.1f}{name.rsplit(',', 1)[1]} |"
          for name, value in machine["limits"].items()),
    ]  # fmt: skip
    return "\n".join(lines)


class Table:
    """Makes tables of the results."""

    def __init__(self, results: dict[str, Result], limits: dict[str, float]) -> None:
        self.results = results
        self.limits = limits

    def spread(self, key: str, peer: str, figure: str) -> Spread | None:
        """A figure of a peer; None where there is none, or a wrong one."""
        found = self.results[key]["peers"].get(peer)
        if found is None or "unsupported" in found or not found["figures"].get(figure):
            return None
        return Spread.of(found["figures"][figure])

    def is_right(self, key: str, peer: str) -> bool:
        """Whether what the peer computed was right."""
        remarks = self.results[key]["peers"].get(peer, {}).get("remarks", [])
        return not any(r.startswith("WRONG") for r in remarks)

    def best(self, key: str, figure: str) -> tuple[float, str] | None:
        """The fastest other library."""
        found = [
            (s.median, peer)
            for peer in NAMES
            if peer != OURS and self.is_right(key, peer)
            if (s := self.spread(key, peer, figure)) is not None
        ]
        return min(found, default=None)

    def ratio(self, key: str, figure: str) -> float | None:
        """Our time as a multiple of the fastest other library's."""
        ours, best = self.spread(key, OURS, figure), self.best(key, figure)
        if ours is None or best is None or not self.is_right(key, OURS):
            return None
        return ours.median / best[0]

    def columns(self, rows: Iterable[Row]) -> list[str]:
        """The peers that have a figure in any of the rows."""
        rows = list(rows)
        return [
            peer
            for peer in NAMES
            if any(self.results[r.key]["peers"].get(peer, {}).get("figures") for r in rows)
        ]

    def steady(self, rows: list[Row]) -> str:
        """One line a row: times, ratio, aim, and the share of a limit."""
        names = self.columns(rows)
        lines = [_line(["", *names, "x best", "aim", "limit"]), _line(["---"] * (len(names) + 4))]
        for row in rows:
            cells = [self.cell(row.key, peer, "call") for peer in names]
            ratio = self.ratio(row.key, "call")
            aim = "" if row.aim is None else f"{row.aim:.2f}"
            lines.append(_line([row.name, *cells, _ratio(ratio), aim, self.share(row)]))
        return "\n".join(lines)

    def cell(self, key: str, peer: str, figure: str) -> str:
        """Median and spread, with units."""
        found = self.spread(key, peer, figure)
        if found is None:
            return "-"
        if not self.is_right(key, peer):
            return "wrong"
        half = (found.high - found.low) / 2 / found.median
        best = self.best(key, figure)
        text = f"{duration(found.median)} ±{100 * half:.0f} %"
        return f"**{text}**" if best is not None and best[1] == peer else text

    def share(self, row: Row) -> str:
        """How much of what the machine can do our time is."""
        ours = self.spread(row.key, OURS, "call")
        if ours is None:
            return ""
        cores = ", two cores" if row.threads == 2 else ""
        if row.flops:
            speed = row.flops / ours.median / 1e9
            kind = "FMA f64" if row.dtype == "float64" else "FMA f32"
            limit = self.limits.get(f"{kind}{cores}, GFLOP/s")
            return f"{speed:.0f} GFLOP/s" + (f", {speed / limit:.0%} of peak" if limit else "")
        if row.bytes:
            speed = row.bytes / ours.median / 1e9
            limit = self.limits.get(f"streaming copy{cores}, GB/s")
            return f"{speed:.1f} GB/s" + (f", {speed / limit:.0%} of copy" if limit else "")
        return ""

    def others(self, rows: list[Row]) -> Iterator[str]:
        """Rows of several figures: a table of peers by figures each."""
        for row in rows:
            if row.kind == "steady":
                continue
            figures = self.figures(row.key)
            names = self.columns([row])
            lines = [
                f"## {row.name[0].upper()}{row.name[1:]}\n",
                _line(["", *names, "x best", "aim"]),
                _line(["---"] * (len(names) + 3)),
            ]
            for figure in figures:
                cells = [self.cell(row.key, peer, figure) for peer in names]
                ratio = _ratio(self.ratio(row.key, figure))
                lines.append(_line([figure, *cells, ratio, row.aims.get(figure, "")]))
            yield "\n".join(lines)

    def figures(self, key: str) -> list[str]:
        """The figures of a row."""
        found: dict[str, None] = {}
        for peer in self.results[key]["peers"].values():
            found |= dict.fromkeys(peer["figures"])
        return list(found)

    def means(self, rows: list[Row]) -> str:
        """Geometric means of the ratios by group."""
        lines = [
            "## Geometric means of *x best*\n",
            "| group | one thread | two threads |",
            "| --- | --- | --- |",
        ]
        for group in GROUPS:
            cells: list[str] = []
            for threads in (1, 2):
                inside = [r for r in rows if r.group == group and r.threads == threads]
                ratios = [
                    self.ratio(r.key, f)
                    for r in inside
                    for f in self.figures(r.key)
                    if not f.startswith("first result")  # of which NumPy's is the least possible
                ]
                cells.append(_mean([r for r in ratios if r is not None], len(ratios)))
            if any(cells):
                lines.append(_line([group, *cells]))
        return "\n".join(lines)

    def compilation(self, rows: list[Row]) -> str:
        """What was fused, and what each stage of the compiler took."""
        lines = [
            "## Compilation\n",
            "The import of the compiler, once a process, is left out.\n",
            "| row | compiles | operators | fused | passes, ms | text and code, ms | slowest stages, ms |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        for row in rows:
            facts = self.results[row.key]["peers"].get(OURS, {}).get("facts", {})
            if row.threads > 1 or not facts.get("compiles"):
                continue
            stages = {k: v for k, v in facts["milliseconds"].items() if k != "import"}
            behind = sum(stages.get(name, 0.0) for name in BACK_END)
            slowest = sorted(stages.items(), key=lambda item: -item[1])[:3]
            rate = facts["fused"] / facts["operators"] if facts["operators"] else 0.0
            cells = (
                row.name,
                str(facts["compiles"]),
                str(facts["operators"]),
                f"{rate:.0%}",
                f"{sum(stages.values()) - behind:.1f}",
                f"{behind:.1f}",
                ", ".join(f"{name} {time:.1f}" for name, time in slowest),
            )
            lines.append(_line(cells))
        return "\n".join(lines) if len(lines) > 4 else ""

    def remarks(self, rows: list[Row]) -> str:
        """What is missing, interpreted or wrong, and why."""
        found: dict[tuple[str, str], list[str]] = {}
        for row in rows:
            for peer, result in self.results[row.key]["peers"].items():
                sentences = (
                    [result["unsupported"]] if "unsupported" in result else result["remarks"]
                )
                for sentence in sentences:
                    found.setdefault((peer, sentence), []).append(row.key)
        lines = [f"- {p}: {', '.join(keys)}: {text}" for (p, text), keys in found.items()]
        return "\n".join(["## Remarks\n", *lines]) if lines else ""


BACK_END = ("codegen",)
"""Stages behind the passes."""


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    for factor, unit in ((1e9, "ns"), (1e6, "us"), (1e3, "ms")):
        if seconds * factor < 999.5:
            return f"{_three(seconds * factor)} {unit}"
    return f"{_three(seconds)} s"


def _three(value: float) -> str:
    if value <= 0:
        return "0"
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _mean(ratios: list[float], of: int) -> str:
    if not of:
        return ""
    if not ratios:
        return f"- (0 of {of})"
    return f"{math.exp(statistics.fmean(map(math.log, ratios))):.2f} ({len(ratios)} of {of})"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
