"""The machine that was measured: what it is, and its limits as found in the same run."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.runner import Settings

ROOT = Path(__file__).parent.parent


def machine_facts(settings: Settings, folder: Path, *, fresh: bool) -> dict[str, Any]:
    """Facts of this machine, measured on `settings.core` in a process of their own; with `fresh` false
    those that `folder` has."""
    path = folder / "machine" / "facts.json"
    if fresh or not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        cpus = settings.cpus(2)
        command = [sys.executable, "-m", "benchmarks.limits", *map(str, cpus)]
        if settings.tiny:
            command.append("--tiny")
        limits = subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
        facts = describe() | {"limits": json.loads(limits.stdout)}
        path.write_text(json.dumps(facts, indent=1))
    return json.loads(path.read_text())


def describe() -> dict[str, Any]:
    """What can be read: names, caches, versions, load."""
    from benchmarks import peers

    cpu = _cpu()
    return {
        "cpu": cpu["model name"],
        "features": [f for f in _FEATURES if f in cpu["flags"].split()],
        "cores": os.cpu_count(),
        "caches": _caches(),
        "python": platform.python_version(),
        "versions": peers.versions(),
        "blas": _blas(),
        "load": os.getloadavg()[0],
        "date": time.strftime("%Y-%m-%d"),
    }


_FEATURES = ("sse4_2", "avx", "fma", "avx2", "avx512f", "avx512vl", "avx512_bf16", "amx_tile")


def _cpu() -> dict[str, str]:
    found = {"model name": platform.machine(), "flags": ""}
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return found
    for line in reversed(lines):
        key, _, value = line.partition(":")
        if key.strip() in found:
            found[key.strip()] = value.strip()
    return found


def _caches() -> dict[str, str]:
    """Level -> size, as the kernel tells."""
    found: dict[str, str] = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind = (folder / "type").read_text().strip()
        if kind != "Instruction":
            level = (folder / "level").read_text().strip()
            found[f"L{level}"] = (folder / "size").read_text().strip()
    return found


def _blas() -> str:
    """NumPy's BLAS, with the kernels that it chose where it tells."""
    import numpy as np

    config: Any = np.show_config(mode="dicts")
    blas = config["Build Dependencies"]["blas"]
    return f"{blas.get('name')} {blas.get('version')}"
