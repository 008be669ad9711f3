"""Runs a row: every peer in its own process, rounds interleaved, one file of samples a row.

A row whose file was written by the same sources and settings is not run again, so that a run that was
stopped goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, cast

from benchmarks import peers
from benchmarks.rows import Row

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "build" / "bench"
PATIENCE = 300
"""Seconds within which a peer must answer."""
ONE_SHOT_ROUNDS = 3
"""Most processes a peer for rows in which each sample is one."""
Result = dict[str, Any]
"""A row's samples: `peers` -> name -> `figures` (name -> seconds per round), `error`, `remarks`,
`facts`, or `unsupported` with a sentence."""


@dataclass(frozen=True)
class Settings:
    """How a run measures."""

    peers: tuple[str, ...]
    rounds: int = 9
    seconds: float = 0.1
    """Time of one sample."""
    core: int = 0
    """The core of rows with one thread."""
    tiny: bool = False
    """Sizes and counts that only show that everything starts."""

    def cpus(self, threads: int) -> list[int]:
        """The cores of a row."""
        others = [c for c in sorted(os.sched_getaffinity(0)) if c != self.core]
        return [self.core, *others][:threads]


class WorkerFailed(Exception):
    """A worker died or does not answer; the text is one sentence."""


class Process:
    """The process of one peer."""

    def __init__(self, peer: str, row: Row, settings: Settings) -> None:
        cpus = settings.cpus(row.threads)
        if len(cpus) < row.threads:
            raise WorkerFailed(f"not supported: {row.threads} threads need as many cores")
        environment = peers.environment(row.threads)
        if row.kind in ("steady", "sweep"):  # what counts is not how to get there
            environment["JITDIALECTS_THRESHOLD"] = "2"
        else:  # torch.compile, too, finds nothing on the disk that an earlier run compiled
            environment["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
        self.process = subprocess.Popen(
            [
                *(peers.interpreter(peer), "-m", "benchmarks.worker"),
                *(peer, str(row.threads), ",".join(map(str, cpus))),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if not os.environ.get("BENCH_DEBUG") else None,
            cwd=ROOT,
            env=environment,
            text=True,
        )
        self._answer()

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to a request."""
        try:
            cast(IO[str], self.process.stdin).write(json.dumps(request) + "\n")
            cast(IO[str], self.process.stdin).flush()
        except BrokenPipeError:
            raise WorkerFailed(self._last_words()) from None
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        stdout = cast(IO[str], self.process.stdout)
        if not select.select([stdout], [], [], PATIENCE)[0]:
            self.process.kill()
            raise WorkerFailed(f"no answer within {PATIENCE} s")
        line = stdout.readline()
        if not line:
            raise WorkerFailed(self._last_words())
        reply = json.loads(line)
        if "unsupported" in reply:
            raise WorkerFailed(reply["unsupported"])
        return reply

    def _last_words(self) -> str:
        code = self.process.wait()
        words = (self.process.stderr.read() if self.process.stderr else "").strip().splitlines()
        return f"the process ended with {code}: {words[-1][:200] if words else 'without a word'}"

    def close(self) -> None:
        """End the process."""
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def fingerprint() -> str:
    """Changes with the sources that results depend on."""
    digest = hashlib.blake2b(digest_size=8)
    ours = (ROOT / "benchmarks").rglob("*.py")
    files = [*(ROOT / "jitdialects").rglob("*.py"), *ours]
    for file in sorted(files):
        if file.name not in ("report.py", "plots.py", "__main__.py"):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def path_of(row: Row, folder: Path) -> Path:
    """The file of a row's samples."""
    safe = "".join(c if c.isalnum() else "-" for c in row.key)
    return folder / f"{safe}.json"


def run(
    rows: Iterable[Row],
    settings: Settings,
    folder: Path,
    *,
    fresh: bool,
    say: Callable[[str], None],
) -> dict[str, Result]:
    """Measure the rows that `folder` has no equal result of; all results by key."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = {"sources": fingerprint(), "settings": json.loads(json.dumps(asdict(settings)))}
    results: dict[str, Result] = {}
    for row in rows:
        path = path_of(row, folder)
        found = json.loads(path.read_text()) if path.exists() and not fresh else {}
        if {k: found.get(k) for k in stamp} != stamp:
            started = time.perf_counter()
            found = {**stamp, "row": row.key, "load": os.getloadavg()[0], **_measure(row, settings)}
            found["seconds"] = time.perf_counter() - started
            temporary = path.with_suffix(".part")
            temporary.write_text(json.dumps(found, indent=1))
            temporary.rename(path)
        results[row.key] = found
        say(f"{row.key}: {found['seconds']:.1f} s")
    return results


def _measure(row: Row, settings: Settings) -> Result:
    names = [n for n in settings.peers if peers.applies(n, row)]
    found = {n: {"figures": {}, "remarks": [], "facts": {}} for n in names}
    measure = _steady if row.kind in ("steady", "sweep") else _one_shot
    measure(row, settings, found)
    return {"peers": found}


def _steady(row: Row, settings: Settings, found: dict[str, Result]) -> None:
    """All peers prepared, then their rounds in turn."""
    running: dict[str, Process] = {}
    for name, result in found.items():
        try:
            running[name] = Process(name, row, settings)
            result.update(running[name].ask(do="prepare", row=row.key, tiny=settings.tiny))
        except WorkerFailed as error:
            result["unsupported"] = str(error)
            if name in running:
                running.pop(name).close()
    order = list(running)
    for _ in range(settings.rounds):
        for name in list(order):
            try:
                samples = running[name].ask(do="round", seconds=settings.seconds)
                _add(found[name]["figures"], samples)
            except WorkerFailed as error:
                found[name]["unsupported"] = str(error)
                order.remove(name)
        order = order[1:] + order[:1]  # nobody always runs after the same neighbour
    for name in order:
        found[name]["facts"] = running[name].ask(do="facts")
    for process in running.values():
        process.close()


def _one_shot(row: Row, settings: Settings, found: dict[str, Result]) -> None:
    """Each sample is a process."""
    for _ in range(min(settings.rounds, ONE_SHOT_ROUNDS)):
        for name, result in found.items():
            if "unsupported" in result:
                continue
            process = None
            try:
                process = Process(name, row, settings)
                reply = process.ask(do="prepare", row=row.key, tiny=settings.tiny)
                _add(result["figures"], reply.pop("figures"))
                result.update(reply)
            except WorkerFailed as error:
                result["unsupported"] = str(error)
            finally:
                if process is not None:
                    process.close()


def _add(figures: dict[str, list[float]], samples: dict[str, float]) -> None:
    for name, sample in samples.items():
        figures.setdefault(name, []).append(sample)
