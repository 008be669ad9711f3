"""The memory pool: recycled, 64-byte aligned blocks for arrays, arenas and kernels.

A block has a reference count. At zero it waits in the deferred list until the next `safe_point`, when
nobody can still be computing with it, and only then becomes free.

`layout` is the native state, `store` where blocks come from and go to, `memory_pool` what users call,
`arrays` NumPy arrays in blocks, `report` what a pool says about itself.
"""

from jitdialects.runtime.pool.arrays import is_pool_array
from jitdialects.runtime.pool.layout import CLASSES, PAGE, is_exact, size_class
from jitdialects.runtime.pool.memory_pool import MemoryPool
from jitdialects.runtime.pool.process import default_pool
from jitdialects.runtime.pool.report import PoolStatistics

__all__ = [
    "CLASSES",
    "PAGE",
    "MemoryPool",
    "PoolStatistics",
    "default_pool",
    "is_exact",
    "is_pool_array",
    "size_class",
]
