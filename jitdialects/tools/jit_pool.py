"""`jit-pool`: what a memory pool would have done with the requests of a recorded run, under another policy."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from jitdialects.config import number_of_bytes
from jitdialects.errors import PoolError
from jitdialects.runtime.pool import MemoryPool
from jitdialects.runtime.pool.system import SYSTEM, CountedMemory
from jitdialects.runtime.pool.trace import Replay, read, replay

_DESCRIPTION = "Replay a trace of a memory pool (JITDIALECTS_POOL_TRACE=run.trace records one)."
_EPILOG = """\
example:
  jit-pool replay run.trace --classes coarse --limit 4GiB --no-map

exit code: 0 all requests were served, 1 some failed or the trace is damaged, 2 wrong usage or an unreadable file
"""
MOST_FAILURES = 5
"""Failures that are printed."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool with `args` (the command line's by default); the exit code."""
    parser = argparse.ArgumentParser(
        prog="jit-pool",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    command = commands.add_parser("replay", help="run the requests of a trace through a pool")
    command.add_argument("trace", type=Path, help="file that a pool recorded")
    command.add_argument("--classes", choices=("fine", "coarse"), default="fine")
    command.add_argument(
        "--limit", type=bytes_of, metavar="BYTES", help="most bytes from the system, such as 4GiB"
    )
    command.add_argument(
        "--no-map", action="store_true", help="only count memory: for traces of larger machines"
    )
    try:
        options = parser.parse_args(args)
    except SystemExit as stop:  # argparse has said what is wrong, or printed the help
        return int(stop.code or 0)
    memory = CountedMemory() if options.no_map else SYSTEM
    pool = MemoryPool(options.limit, options.classes, memory=memory)
    try:
        found = replay(read(options.trace), pool)
    except PoolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{options.trace}: error: {error.strerror}", file=sys.stderr)
        return 2
    print("\n".join(_report(found, pool)))
    return int(bool(found.failures))


def bytes_of(text: str) -> int:
    """What an option of a command line that takes a number of bytes says."""
    try:
        return number_of_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _report(found: Replay, pool: MemoryPool) -> list[str]:
    end = pool.statistics()
    lines = [
        f"requests          {found.requests}"
        + f", of which {found.failed_when_recorded} failed when recorded"
        * bool(found.failed_when_recorded),
        f"served from pool  {end.reuse_rate:.2%} of requests, {end.reused_bytes} of {end.requested_bytes} bytes",
        f"peak live         {found.peak_live} bytes",
        f"peak reserved     {found.peak_reserved} bytes, {found.overhead:.2f} of peak live",
        f"peak waste        {found.peak_waste} bytes in live blocks",
        f"fragmentation     {found.least_fragmentation:.2f} at its worst (largest free block / all free)",
        f"at the end        {end.reserved_bytes} bytes reserved, {end.live_bytes} live, {end.trims} trim(s)",
        f"failures          {len(found.failures) or 'none'}",
    ]
    lines += [f"  request {f.request}: {f.message}" for f in found.failures[:MOST_FAILURES]]
    if len(found.failures) > MOST_FAILURES:
        lines.append(f"  and {len(found.failures) - MOST_FAILURES} more")
    return lines


if __name__ == "__main__":
    sys.exit(main())
