"""The kernel cache: `key` (what code depends on), `process` (what is loaded), `disk` and `shared` (what
processes and machines share), `entry_file` (one file per entry), `events` (counts and warnings)."""

from jitdialects.runtime.cache.key import CacheKey
from jitdialects.runtime.cache.process import (
    CacheEntry,
    KernelCache,
    User,
    default_cache,
)

__all__ = ["CacheEntry", "CacheKey", "KernelCache", "User", "default_cache"]
