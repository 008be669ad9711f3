"""Element types and the promotion rule of NumPy 2 (NEP 50).

A *kind* in the inference lattice is a dtype and a flag `weak`: Python scalars are weak, they take the
dtype of what they meet. Element types of tensors: `SUPPORTED`. A Python integer is carried as int64, a
float as float64, until it meets a tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from jitdialects.errors import DTypeError

SUPPORTED = ("bool", "int32", "int64", "float32", "float64")
_PYTHON_ORDER = {"b": 0, "i": 1, "f": 2}
"""bool, int, float: by the kind of the dtype. A scalar never changes the dtype of a kind above its own."""


@dataclass(frozen=True)
class DType:
    """An element type. `weak` marks a Python scalar (`float64`, `int64` or `bool`, rank 0)."""

    name: str
    weak: bool = False

    def __str__(self) -> str:
        return (
            {"float64": "float", "int64": "int", "bool": "bool"}[self.name] + "*"
            if self.weak
            else self.name
        )

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy dtype, native byte order."""
        return np.dtype(self.name)

    @property
    def is_integer(self) -> bool:
        """int32 or int64."""
        return self.name in ("int32", "int64")

    @property
    def is_float(self) -> bool:
        """float32 or float64."""
        return self.name in ("float32", "float64")


BOOL, INT32, INT64 = DType("bool"), DType("int32"), DType("int64")
FLOAT32, FLOAT64 = DType("float32"), DType("float64")
WEAK_BOOL, WEAK_INT, WEAK_FLOAT = DType("bool", True), DType("int64", True), DType("float64", True)


def check_supported(name: str, who: str) -> None:
    """Refuse a dtype that tensors of this version cannot have."""
    if name not in SUPPORTED:
        raise DTypeError(
            f"{who}: dtype {name} is not supported (supported: {', '.join(SUPPORTED)}); "
            "cast with astype"
        )


@cache  # 64 pairs, asked for at every operator
def promote(x: DType, y: DType) -> DType:
    """The common dtype of two operands after NumPy 2; `SUPPORTED` is closed under it."""
    if x.weak == y.weak:
        return DType(np.promote_types(x.numpy, y.numpy).name, x.weak)
    weak, strong = (x, y) if x.weak else (y, x)
    if _PYTHON_ORDER[weak.numpy.kind] <= _PYTHON_ORDER[strong.numpy.kind]:
        return strong
    # NEP 50: an int with a bool array gives the default integer, a float with integers the default float
    return concrete(weak)


def concrete(x: DType) -> DType:
    """The dtype that a weak value gets when it becomes a tensor of its own."""
    return DType(x.name) if x.weak else x


def integer_range(name: str) -> tuple[int, int]:
    """The smallest and the largest number of an integer dtype."""
    info = np.iinfo(name)
    return int(info.min), int(info.max)


def must_fit(operand: DType, used: DType) -> bool:
    """Whether the operand is a Python integer that `used`, the dtype it takes, may be too small for."""
    return operand.weak and operand.name == "int64" and used.name == "int32"
