"""How each library is asked to run a program: one class a peer, found by name.

A peer is imported only in its own process (`benchmarks.worker`).
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.peers.peer import Peer
from benchmarks.rows import WORKLOADS, Row

_HOMES = {
    "jitdialects": ("ours", "Ours", "jitdialects"),
    "numpy": ("array_libraries", "NumPy", "numpy"),
    "numexpr": ("loops", "NumExpr", "numexpr"),
    "numba": ("loops", "Numba", "numba"),
    "onnxruntime": ("onnx_graph", "OnnxRuntime", "onnxruntime"),
    "torch": ("array_libraries", "Torch", "torch"),
    "torch.compile": ("array_libraries", "TorchCompile", "torch"),
    "jax": ("array_libraries", "Jax", "jax"),
    "jax, padded": ("array_libraries", "JaxPadded", "jax"),
    "mindspore": ("array_libraries", "MindSpore", "mindspore"),
}
"""Peer -> module, class, and the distribution that it needs."""

NAMES = tuple(_HOMES)
WRITTEN_OUT = ("numexpr", "numba", "onnxruntime")
"""The peers that run only programs that have a text of their own for them."""
QUICK = ("jitdialects", "numpy", "numexpr", "numba")


_OWN = {"mindspore": Path(sys.prefix) / "mindspore" / "bin" / "python"}
"""Peer -> the interpreter of an environment of its own: MindSpore is built for NumPy 1."""


def interpreter(name: str) -> str:
    """The interpreter that runs the peer."""
    own = _OWN.get(name)
    return str(own) if own is not None and own.exists() else sys.executable


def installed() -> list[str]:
    """The peers that could be imported."""
    return [
        name
        for name, home in _HOMES.items()
        if importlib.util.find_spec(home[2]) or interpreter(name) != sys.executable
    ]


def versions() -> dict[str, str]:
    """Distribution -> version, of what is installed."""
    found: dict[str, str] = {}
    for _, _, distribution in _HOMES.values():
        try:
            found[distribution] = version(distribution)
        except PackageNotFoundError:
            continue
    return found


def make(name: str, threads: int) -> Peer:
    """The peer, imported and set to `threads`."""
    module, kind, _ = _HOMES[name]
    return getattr(import_module(f"benchmarks.peers.{module}"), kind)(threads)


def applies(name: str, row: Row) -> bool:
    """Whether the peer takes part in a row."""
    if name in WRITTEN_OUT:
        return name in WORKLOADS[row.workload].special
    return row.kind == "stream" or name != "jax, padded"


def environment(threads: int) -> dict[str, str]:
    """The environment of a worker: every library that asks a variable uses `threads`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    count = str(threads)
    multi = "true" if threads > 1 else "false"
    return kept | {
        "OMP_NUM_THREADS": count,
        "OPENBLAS_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "NUMBA_NUM_THREADS": count,
        "NUMEXPR_NUM_THREADS": count,
        "JITDIALECTS_THREADS": count,
        "JITDIALECTS_DISK_CAP": "0",  # every run compiles
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={multi}",
    }
