"""python -m benchmarks.runtime [TOPIC ...]: run topics; all of them, without names, and write the page."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import benchmarks.runtime
from benchmarks.machine import ROOT, describe
from benchmarks.runtime.row import Row

PAGE = ROOT / "docs" / "runtime-measurements.md"
HEAD = ("measured", "value", "aim", "how, and what limits it")


def topics() -> dict[str, str]:
    """Topic -> first line of its module's docstring."""
    names = [m.name for m in pkgutil.iter_modules(benchmarks.runtime.__path__)]
    found: dict[str, str] = {}
    for name in names:
        if name.startswith("_") or name == "row":
            continue
        module = importlib.import_module(f"benchmarks.runtime.{name}")
        found[name] = (module.__doc__ or name).splitlines()[0]
    return found


def measured(topic: str) -> list[Row]:
    """The rows of one topic, measured in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.runtime", "--rows-of", topic]
    environment = os.environ | {
        "JITDIALECTS_DISK_CAP": "0"
    }  # nothing is found that an earlier run made
    result = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment
    )
    return [Row(**row) for row in json.loads(result.stdout.splitlines()[-1])]


def table(rows: list[Row]) -> str:
    """Rows as a table of Markdown."""
    lines = [HEAD, tuple("---" for _ in HEAD), *(row.cells() for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def page(sections: dict[str, str]) -> str:
    """The whole page, the machine at its head."""
    facts = describe()
    machine = f"{facts['cpu']}, {facts['cores']} cores, Python {facts['python']}, load {facts['load']:.1f}"
    parts = [
        "# Measurements of the runtime",
        f"Written by `python -m benchmarks.runtime` on {facts['date']}: {machine}.\n"
        + "Medians; what is compared was measured in the same run.",
        *(f"## {title}\n\n{text}" for title, text in sections.items()),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure the chosen topics."""
    known = topics()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.runtime", description=__doc__)
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=", ".join(known))
    parser.add_argument("--rows-of", choices=tuple(known), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rows_of:
        rows: list[Row] = importlib.import_module(f"benchmarks.runtime.{options.rows_of}").measure()
        print(json.dumps([asdict(row) for row in rows]))
        return
    unknown = [t for t in options.topics if t not in known]
    if unknown:
        sys.exit(f"unknown topic {unknown[0]!r}; there are: {', '.join(known)}")
    sections: dict[str, str] = {}
    for topic in options.topics or known:
        sections[known[topic]] = table(measured(topic))
        print(f"## {known[topic]}\n\n{sections[known[topic]]}\n")
    if not options.topics:
        Path(PAGE).write_text(page(sections))


if __name__ == "__main__":
    main()
