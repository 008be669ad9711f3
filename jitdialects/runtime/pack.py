"""The kernel pack: the operators whose bits NumPy does not give, as compiled kernels.

Each kernel is a program of one operator over collapsed shapes; see `KERNELS`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jitdialects.runtime.pool import MemoryPool
from jitdialects.runtime.values import Array

_STAND_INS: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "tanh": np.tanh,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "sum": partial(np.sum, axis=-1),
    "max": partial(np.max, axis=-1),
    "matmul": np.matmul,
    "matvec": np.matmul,
}


def run(name: str, *operands: Array, pool: MemoryPool) -> Array:
    """Kernel `name` on float32 operands of its ranks."""
    return _STAND_INS[name](*operands)
