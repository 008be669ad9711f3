"""jit-top: the four indicators, blocks, kernels and misses of a running process, in a terminal.

    JITDIALECTS_DASH=0 python serve.py &
    jit-top $!                      # or the URL of its page, or the path of its socket

The process has to serve its page (`JITDIALECTS_DASH`, `jd.dashboard.start()`). Needs rich: pip install
jitdialects[top]. Exit status: 0 when asked to end, 1 where nothing answers, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

NEEDS = "this needs rich: pip install jitdialects[top]"
PATIENCE, LONGEST = 5.0, 3600
"""Seconds: for an answer, and between two pictures."""
DIALS = {
    "compile_share": "compile share",
    "hit_rate": "hit rate",
    "fusion_rate": "fusion rate",
    "reuse_rate": "reuse rate",
}
LEVELS = "▁▂▃▄▅▆▇█"
BAR, RECENT = 16, 20
"""Widths with which the dials fit into 80 columns."""


class Unreachable(Exception):
    """There is no page where it was looked for; the text says what would help. `status` is that of the tool."""

    status = 1


class NoPlace(Unreachable):
    """What was named is no place."""

    status = 2


# ---- where the page is ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where to ask: a port of a host, or the path of a socket."""

    host: str = "127.0.0.1"
    port: int = 0
    path: str | None = None
    token: str | None = None

    def snapshot(self) -> dict[str, Any]:
        """What the process shows now; `Unreachable` where nothing answers as it should."""
        named = self.path or f"{self.host}:{self.port}"
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        try:
            if self.path is not None:
                connection.sock = socket.socket(socket.AF_UNIX)
                connection.sock.settimeout(PATIENCE)
                connection.sock.connect(self.path)
            headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
            connection.request("GET", "/snapshot.json", headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(
                f"nothing answers at {named} ({error}); is the process alive?"
            ) from None
        finally:
            connection.close()
        if answer.status != 200:
            raise Unreachable(f"{named} refuses: {text.strip()}")
        with contextlib.suppress(ValueError):
            found: object = json.loads(text)
            if isinstance(found, dict) and "indicators" in found:
                return cast(dict[str, Any], found)
        raise Unreachable(f"what answers at {named} is no page of jitdialects")


def place_of(target: str) -> Place:
    """The place that a PID, a URL or a path names; `Unreachable` where a process has no page."""
    if target.isdecimal():
        return _place_of_process(int(target))
    if target.startswith(("/", ".", "~")):
        return Place(path=os.path.expanduser(target))
    parts = urlsplit(target if "://" in target else f"http://{target}")
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme != "http" or not parts.hostname or port is None:
        raise NoPlace(f"{target!r} is no PID, no URL like http://127.0.0.1:8000/ and no path")
    token = parse_qs(parts.query).get("token", [None])[0]
    return Place(parts.hostname, port, token=token)


def _place_of_process(pid: int) -> Place:
    """The first socket on which the process listens that answers as a page does."""
    refused = ""
    for place in _listening(pid):
        try:
            place.snapshot()
        except Unreachable as error:
            refused = str(error)
            continue
        return place
    if not Path(f"/proc/{pid}").exists():
        raise Unreachable(f"there is no process {pid}")
    raise Unreachable(
        f"process {pid} serves no page that answers here; start it with JITDIALECTS_DASH=0 or call "
        f"jd.dashboard.start(){f' ({refused})' if refused else ''}"
    )


def _listening(pid: int) -> Iterator[Place]:
    """The sockets on which a process listens, from what Linux tells of it."""
    inodes: set[str] = set()
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                link = os.readlink(entry.path)
                if link.startswith("socket:["):
                    inodes.add(link[len("socket:[") : -1])
    for name, host in (("tcp", "127.0.0.1"), ("tcp6", "::1")):
        for words in _lines(f"/proc/{pid}/net/{name}"):
            if words[3] == "0A" and words[9] in inodes:
                yield Place(host, int(words[1].rpartition(":")[2], 16))
    for words in _lines(f"/proc/{pid}/net/unix"):
        if len(words) == 8 and words[3] == "00010000" and words[6] in inodes:
            yield Place(path=words[7])


def _lines(path: str) -> list[list[str]]:
    with contextlib.suppress(OSError):
        return [line.split() for line in Path(path).read_text().splitlines()[1:]]
    return []


# ---- numbers as text -----------------------------------------------------------------------------


def percent(value: float | None) -> str:
    """`97 %`; a dash for nothing."""
    if value is None:
        return "-"
    return f"{value:.1%}" if 0 < value < 0.0995 else f"{value:.0%}"


def scaled(value: float, *steps: tuple[float, str]) -> str:
    """The value in the largest unit that it has one of."""
    size, unit = next((step for step in steps if value >= step[0]), steps[-1])
    number = value / size
    return (
        f"{number:.0f}{unit}" if number >= 100 or number == int(number) else f"{number:.3g}{unit}"
    )


def count(value: float) -> str:
    """`1,234`, `131 k`."""
    return (
        f"{value:,.0f}" if value < 10_000 else scaled(value, (1e9, " G"), (1e6, " M"), (1e3, " k"))
    )


def size(value: float) -> str:
    """Bytes."""
    return scaled(value, (1 << 30, " GiB"), (1 << 20, " MiB"), (1 << 10, " KiB"), (1, " B"))


def seconds(value: float) -> str:
    """Time."""
    return scaled(value, (60, " min"), (1, " s"), (1e-3, " ms"), (1e-6, " us")) if value else "0"


def curve(values: Sequence[float | None]) -> str:
    """One character for each value from 0 to 1."""
    return "".join(" " if v is None else LEVELS[min(int(v * len(LEVELS)), 7)] for v in values)


# ---- the screen ----------------------------------------------------------------------------------


def screen(found: dict[str, Any], rows: int = 8) -> RenderableType:
    """One picture of a snapshot; at most so many rows of each table."""
    from rich.console import Group
    from rich.text import Text

    process, alarms = found["process"], found["alarms"]
    head = Text.assemble(
        ("jit-top  ", "bold"),
        f"{process['program']}, pid {process['pid']}, up {seconds(int(process['uptime']))}, ",
        f"Python {process['python']}, {process['features']}",
    )
    parts: list[RenderableType] = [head, _dials(found, {alarm["name"] for alarm in alarms})]
    for alarm in alarms:
        text = Text.assemble(("ALARM ", "bold red"), alarm["text"], (f": {alarm['advice']}", "dim"))
        parts.append(text)
    parts += [_blocks(found, rows), _entries(found, rows), _misses(found, rows), _foot(found)]
    return Group(*parts)


def _table(title: str, *columns: str) -> Table:
    """Columns whose names begin with `>` hold numbers; the first takes the room that is left."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, expand=True,
        pad_edge=False, show_edge=False, padding=(0, 1),
    )  # fmt: skip
    for number, name in enumerate(columns):
        right = name.startswith(">")
        table.add_column(
            name.lstrip(">"),
            justify="right" if right else "left",
            ratio=None if number else 1,
            no_wrap=True,
            overflow="ellipsis",
        )
    return table


def _dials(found: dict[str, Any], alarms: set[str]) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for name, words in DIALS.items():
        rates = found["indicators"][name]
        value = rates["minute"] or 0.0
        colour = "red" if name in alarms else "cyan"
        full = round(value * BAR)
        table.add_row(
            words,
            f"[{colour}]{'█' * full}[/][dim]{'░' * (BAR - full)}[/]",
            f"[bold]{percent(rates['minute'])}[/]",
            f"[dim]since start {percent(rates['start'])}[/]",
            f"[{colour}]{curve(found['history'][name][-RECENT:])}[/]",
        )
    return table


def _title(words: str, part: dict[str, Any], rows: int) -> str:
    left = max(len(part["rows"]) - rows, 0) + part["left_out"]
    return f"{words} ({left} more)" if left else words


def _blocks(found: dict[str, Any], rows: int) -> Table:
    part = found["blocks"]
    names = ("function, block", "tier", ">interpreted", ">compiled", ">time")
    table = _table(_title("Blocks by time", part, rows), *names)
    for row in part["rows"][:rows]:
        table.add_row(
            _plain(f"{row['function']}, {row['block']}  {row['place']}"),
            row["tier"],
            count(row["executions"]),
            count(row["served"]) if row["served"] else "",
            seconds(row["seconds"] + row["served_seconds"]),
        )
    return table


def _entries(found: dict[str, Any], rows: int) -> Table:
    part = found["entries"]
    names = ("signature", "sizes", ">calls", ">code", ">compile", ">fused")
    table = _table(_title("Cache entries", part, rows), *names)
    for row in part["rows"][:rows]:
        table.add_row(
            _plain(row["signature"]),
            row["strategy"],
            count(row["hits"]),
            size(row["bytes"]),
            seconds(row["compile_seconds"]),
            f"{row['fused']}/{row['operators']}",
        )
    return table


def _misses(found: dict[str, Any], rows: int) -> Table:
    part = found["misses"]
    table = _table(_title("Hot calls without code", part, rows), "reason", ">calls")
    for row in part["rows"][:rows]:
        table.add_row(_plain(f"{row['reason']}: {row['example']}"), count(row["count"]))
    return table


def _foot(found: dict[str, Any]) -> RenderableType:
    from rich.text import Text

    pool, start = found["pool"], found["start"]
    return Text(
        f"pool: {size(pool['live_bytes'])} live, {size(pool['free_bytes'])} free, "
        f"{size(pool['reserved_bytes'])} reserved   compiler: {count(start['compiles'])} done, "
        f"{found['waiting']} wait, {start['compile_failures']} failed, "
        f"{seconds(start['compile_cpu_seconds'])} CPU"
    )


def _plain(text: str) -> Any:
    """Text of the process, in which brackets mean nothing."""
    from rich.text import Text

    return Text(text)


# ---- the tool ------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """The tool; returns the exit status."""
    summary, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        "jit-top",
        description=summary,
        epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", metavar="PID|URL|SOCKET", help="the process to look at")
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="default: 1")
    parser.add_argument("--once", action="store_true", help="print one picture and end")
    try:
        options = parser.parse_args(arguments)
        if not 0 < options.interval <= LONGEST:
            parser.error(
                f"--interval needs a number of seconds over 0, at most {LONGEST}, got {options.interval:g}"
            )
    except SystemExit as stop:  # argparse has said what is wrong, or printed the help
        return int(stop.code or 0)
    try:
        from rich.console import Console
    except ImportError:
        print(f"jit-top: error: {NEEDS}", file=sys.stderr)
        return 2
    try:
        place = place_of(options.target)
        _show(place, Console(), options.interval, options.once)
    except Unreachable as error:
        print(f"jit-top: error: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        pass
    return 0


def _show(place: Place, console: Any, interval: float, once: bool) -> None:
    from rich.live import Live

    if once:
        console.print(screen(place.snapshot()))
        return
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            rows = max((console.height - 20) // 3, 3)
            live.update(screen(place.snapshot(), rows), refresh=True)
            time.sleep(interval)


if __name__ == "__main__":
    sys.exit(main())
