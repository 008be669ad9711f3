"""Command line of the benchmark suite.

python -m benchmarks --rows softmax            # one row, NumPy and jitdialects, to stdout
python -m benchmarks --quick                   # most rows in short form, to stdout
python -m benchmarks --full                    # everything, to docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks import peers, report
from benchmarks.machine import machine_facts
from benchmarks.rows import ROWS, chosen
from benchmarks.runner import RESULTS, ROOT, Settings, run


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", nargs="+", default=[], metavar="TEXT", help="parts of row names")
    parser.add_argument("--peers", help="names with semicolons between; all: every one installed")
    parser.add_argument("--threads", type=int, nargs="+", choices=(1, 2), default=[1, 2])
    parser.add_argument("--rounds", type=int, help="interleaved rounds (5; quick 3, full 15)")
    parser.add_argument(
        "--seconds", type=float, help="time of a sample (0.05; quick 0.03, full 0.1)"
    )
    parser.add_argument("--core", type=int, help="core of rows with one thread (the last one)")
    parser.add_argument("--quick", action="store_true", help="short, without large libraries")
    parser.add_argument("--full", action="store_true", help="every peer; writes docs/benchmarks.md")
    parser.add_argument("--tiny", action="store_true", help="only show that everything starts")
    parser.add_argument("--fresh", action="store_true", help="measure again what was measured")
    parser.add_argument("--report", action="store_true", help="with --full: write, measure nothing")
    parser.add_argument("--list", action="store_true", help="print the names of the rows and peers")
    return parser.parse_args()


def _settings(options: argparse.Namespace) -> Settings:
    rounds, seconds = (15, 0.1) if options.full else (3, 0.03) if options.quick else (5, 0.05)
    available = peers.installed()
    default = available if options.full else [p for p in peers.QUICK if p in available]
    wanted = options.peers.split(";") if options.peers else default
    if wanted == ["all"]:
        wanted = available
    unknown = [p for p in wanted if p not in peers.NAMES]
    if unknown:
        sys.exit(f"unknown peer {unknown[0]!r}; there are: {'; '.join(peers.NAMES)}")
    return Settings(
        peers=tuple(dict.fromkeys(["jitdialects", *wanted])),
        rounds=options.rounds or (1 if options.tiny else rounds),
        seconds=options.seconds or (0.001 if options.tiny else seconds),
        core=max(os.sched_getaffinity(0)) if options.core is None else options.core,
        tiny=options.tiny,
    )


def main() -> None:
    """Run the chosen rows and print or write the report."""
    options = _options()
    if options.list:
        print("\n".join(row.key for row in ROWS))
        print("peers:", "; ".join(peers.installed()))
        return
    settings = _settings(options)
    threads = [1] if options.quick and options.threads == [1, 2] else options.threads
    rows = chosen(options.rows, threads, options.quick)
    if not rows:
        sys.exit("no row has such a name; --list prints them")
    name = "full" if options.full else "tiny" if options.tiny else "short"
    folder = RESULTS / name

    def say(text: str) -> None:
        print(text, file=sys.stderr)

    measure = options.fresh or (options.full and not options.report)
    machine = machine_facts(settings, folder, fresh=measure)
    if options.report:
        results = report.load(rows, folder)
    else:
        # only long runs are resumed: who asks for a row wants it measured now
        results = run(rows, settings, folder, fresh=options.fresh or not options.full, say=say)
    text = report.document(rows, results, machine, complete=options.full)
    if options.full:
        page = ROOT / "docs" / "benchmarks.md"
        page.write_text(text)
        _plots(results, page.parent / "images")
    else:
        print(text)


def _plots(results: dict[str, dict[str, object]], folder: Path) -> None:
    from benchmarks.plots import draw

    draw(results, folder)


if __name__ == "__main__":
    main()
