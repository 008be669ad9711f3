"""`make_context()`: a `Context` that knows xDSL's dialects and ours, each imported at its first use."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.ir import Dialect

_HERE = {
    "arith": ("upstream", "COMPLETED_ARITH"),
    "llvm": ("upstream", "COMPLETED_LLVM"),
    "loop": ("loop", "LOOP"),
    "memref": ("upstream_memref", "COMPLETED_MEMREF"),
    "tssa": ("tssa", "TSSA"),
    "vm": ("vm", "VM"),
}


def _lazily(module: str, name: str) -> Callable[[], Dialect]:
    return lambda: getattr(import_module(f"jitdialects.dialects.{module}"), name)


def dialect_factories() -> dict[str, Callable[[], Dialect]]:
    """Factories by dialect name: xDSL's, ours, and the completed ones in place of xDSL's."""
    ours = {dialect: _lazily(module, name) for dialect, (module, name) in _HERE.items()}
    return {**get_all_dialects(), **ours}


def make_context(allow_unregistered: bool = False) -> Context:
    """A fresh context with everything of `dialect_factories()` registered, nothing imported yet."""
    context = Context(allow_unregistered=allow_unregistered)
    for name, factory in dialect_factories().items():
        context.register_dialect(name, factory)
    return context
