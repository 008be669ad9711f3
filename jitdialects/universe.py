"""The `xdsl.universe` entry point: what `xdsl-opt` and `jit-opt` find after an install.

Names map to factories that import when called, since a universe that fails to import breaks `xdsl-opt`
for everyone, whatever pass they run. So nothing but xDSL's types is imported at module level.
A pass is one row in `_PASSES`; its name, its file and its class must agree, which a test checks.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from xdsl.universe import Universe


def _factory(where: str) -> Callable[[], Any]:
    """A function that imports `module:Name` (below `jitdialects`) when it is called."""
    module, name = where.split(":")

    def load() -> Any:
        return getattr(import_module(f"jitdialects.{module}"), name)

    return load


_DIALECTS: dict[str, str] = {}

_PASSES: dict[str, str] = {}

_TARGETS: dict[str, str] = {}

JITDIALECTS_UNIVERSE = Universe(
    all_dialects={name: _factory(where) for name, where in _DIALECTS.items()},
    all_passes={name: _factory(where) for name, where in _PASSES.items()},
    all_targets={name: _factory(where) for name, where in _TARGETS.items()},
)
