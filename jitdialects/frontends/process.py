"""What concerns everything that this process has compiled."""

from __future__ import annotations

from jitdialects.frontends.control import clear_loops
from jitdialects.frontends.lazy import clear_blocks
from jitdialects.runtime.cache import default_cache
from jitdialects.runtime.service import default_service
from jitdialects.runtime.vm import machines


def wait() -> None:
    """Have compiled now what ran often enough, whether that pays or not; return when nothing is being
    compiled."""
    for vm in machines():
        vm.compile_postponed()
    default_service.wait()


def clear_cache() -> None:
    """Forget all compiled code, what could not be compiled, and the programs of lazy blocks. Code that
    is running is unloaded when it returns. What is on disk stays there, and serves later calls; `jit-cache clear`
    removes it."""
    default_service.forget()
    default_cache.clear()
    clear_blocks()
    clear_loops()
