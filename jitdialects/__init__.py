"""A compiler toolkit in pure Python for dynamic tensor programs.

    import jitdialects as jd
    import jitdialects.numpy as jnp

The public door. Names are found on first use, so that `import jitdialects` costs next to nothing and
brings in neither xDSL nor llvmlite.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

# read here, not on first use: the module of this name would stand in for the object otherwise
from jitdialects.config import at_first_machine
from jitdialects.config import config as config
from jitdialects.errors import (
    ArgumentError,
    BytecodeError,
    CompileError,
    ConfigError,
    DTypeError,
    Error,
    IntegerRangeError,
    MissingNameError,
    OutOfBoundsError,
    PoolError,
    ShapeError,
    TraceError,
)

if TYPE_CHECKING:
    from jitdialects.bytecode.program import Program
    from jitdialects.frontends.array import Array
    from jitdialects.frontends.branches import cond, switch
    from jitdialects.frontends.control import fori_loop, while_loop
    from jitdialects.frontends.jit import jit
    from jitdialects.frontends.lazy import sync
    from jitdialects.frontends.process import clear_cache, wait
    from jitdialects.frontends.scan import scan
    from jitdialects.runtime.cache import KernelCache
    from jitdialects.runtime.explain import explain
    from jitdialects.runtime.policy import Policy
    from jitdialects.runtime.pool import MemoryPool
    from jitdialects.runtime.profiler import profiler
    from jitdialects.runtime.shape_constraints import Dim
    from jitdialects.runtime.shape_policies import ShapePolicy
    from jitdialects.runtime.stats import stats
    from jitdialects.runtime.vm import VM
    from jitdialects.tools.dashboard import dashboard
    from jitdialects.tools.metrics import metrics

__version__ = "0.1.0"

_HOMES = {
    "Array": "frontends.array",
    "Dim": "runtime.shape_constraints",
    "KernelCache": "runtime.cache",
    "MemoryPool": "runtime.pool",
    "Policy": "runtime.policy",
    "Program": "bytecode.program",
    "ShapePolicy": "runtime.shape_policies",
    "VM": "runtime.vm",
    "clear_cache": "frontends.process",
    "cond": "frontends.branches",
    "dashboard": "tools.dashboard",
    "explain": "runtime.explain",
    "fori_loop": "frontends.control",
    "jit": "frontends.jit",
    "metrics": "tools.metrics",
    "profiler": "runtime.profiler",
    "scan": "frontends.scan",
    "stats": "runtime.stats",
    "switch": "frontends.branches",
    "sync": "frontends.lazy",
    "wait": "frontends.process",
    "while_loop": "frontends.control",
}
"""Public name -> the module that it comes from."""

__all__ = [
    "VM",
    "ArgumentError",
    "Array",
    "BytecodeError",
    "CompileError",
    "ConfigError",
    "DTypeError",
    "Dim",
    "Error",
    "IntegerRangeError",
    "KernelCache",
    "MemoryPool",
    "MissingNameError",
    "OutOfBoundsError",
    "Policy",
    "PoolError",
    "Program",
    "ShapeError",
    "ShapePolicy",
    "TraceError",
    "clear_cache",
    "cond",
    "config",
    "dashboard",
    "explain",
    "fori_loop",
    "jit",
    "metrics",
    "profiler",
    "scan",
    "stats",
    "switch",
    "sync",
    "wait",
    "while_loop",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise MissingNameError(
            f"jitdialects has no '{name}'; it has: {', '.join(__all__)}, and the operators are in "
            "jitdialects.numpy"
        )
    found = getattr(import_module(f"jitdialects.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)


def _open_views() -> None:
    """What `JITDIALECTS_DASH` asks for; a wrong value is told by who reads it."""
    with suppress(ConfigError):
        if config.dash is None:
            return
    from jitdialects.tools.dashboard import dashboard

    dashboard.start_as_configured()


at_first_machine(_open_views)
