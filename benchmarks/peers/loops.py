"""Peers for which each program is written out: Numba's loops, NumExpr's text."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.peer import Peer


class Numba(Peer):
    """Numba, explicit loops, `fastmath` where it helps; `parallel=True` with several threads."""

    name = "numba"

    def library(self) -> Any:
        """The module."""
        import numba

        return numba


class NumExpr(Peer):
    """NumExpr."""

    name = "numexpr"
    compiles = False

    def library(self) -> Any:
        """The module, set to the number of threads."""
        import numexpr

        numexpr.set_num_threads(self.threads)
        return numexpr
