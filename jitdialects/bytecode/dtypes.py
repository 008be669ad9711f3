"""Element types and the promotion rule of NumPy 2 (NEP 50).

A *kind* in the inference lattice is a dtype and a flag `weak`: Python scalars are weak, they take the
dtype of what they meet. Supported element types of tensors: bool, int64, float32. A weak float is
carried as float64 until it meets a tensor; an operator never computes in float64 in this version.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jitdialects.errors import DTypeError

SUPPORTED = ("bool", "int64", "float32")
_ORDER = {"bool": 0, "int64": 1, "float32": 2, "float64": 2}


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


BOOL, INT64, FLOAT32 = DType("bool"), DType("int64"), DType("float32")
WEAK_BOOL, WEAK_INT, WEAK_FLOAT = DType("bool", True), DType("int64", True), DType("float64", True)


def check_supported(name: str, who: str) -> None:
    """Refuse a dtype that tensors of this version cannot have."""
    if name not in SUPPORTED:
        raise DTypeError(
            f"{who}: dtype {name} is not supported (supported: {', '.join(SUPPORTED)}); "
            "cast with astype"
        )


def promote(x: DType, y: DType, who: str) -> DType:
    """The common dtype of two operands after NumPy 2; refuses results outside `SUPPORTED`.

    int64 with float32 is float64 in NumPy, hence refused here rather than silently rounded.
    """
    if x.weak and y.weak:
        return x if _ORDER[x.name] >= _ORDER[y.name] else y
    if x.weak or y.weak:
        weak, strong = (x, y) if x.weak else (y, x)
        if _ORDER[weak.name] <= _ORDER[strong.name]:
            return strong
        # NEP 50: a Python int with a bool array gives the default integer, a float the default float
        result = DType("int64" if weak.name == "int64" else "float64")
    elif x.name == y.name:
        return x
    elif {x.name, y.name} == {"bool", "int64"}:
        return INT64
    elif {x.name, y.name} == {"bool", "float32"}:
        return FLOAT32
    else:
        result = DType("float64")
    if result.name == "float64":
        raise DTypeError(
            f"{who}: {x} with {y} gives float64 in NumPy, which is not supported; "
            "cast one operand, for example with astype('float32')"
        )
    return result


def concrete(x: DType) -> DType:
    """The dtype that a weak value gets when it becomes a tensor of its own."""
    return DType(x.name) if x.weak else x
