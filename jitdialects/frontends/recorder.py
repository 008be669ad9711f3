"""What lazy arrays and tracing share: values, recorders, and which recorder is at work.

A *recorder* turns each operator call into one bytecode instruction and answers with a *value*: a
register with the dtype and the sizes that the operator table gives it. There are two: `lazy` runs what
it recorded at the next synchronisation, `tracer` makes a function of a program. While a tracer is at
work on a thread it records everything there; else the lazy recorder of that thread does.
"""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from jitdialects.bytecode.attributes import Attributes
from jitdialects.bytecode.dims import Dim, Shape
from jitdialects.bytecode.dtypes import (
    WEAK_BOOL,
    WEAK_FLOAT,
    WEAK_INT,
    DType,
    check_supported,
)
from jitdialects.bytecode.operators import Operator
from jitdialects.bytecode.program import Location
from jitdialects.bytecode.shape_rules import ShapeFacts
from jitdialects.errors import ArgumentError, DTypeError
from jitdialects.runtime.callables import hold_calls
from jitdialects.runtime.values import STRONG

NumPyValue: TypeAlias = NDArray[np.generic] | np.generic
Scalar: TypeAlias = bool | int | float
"""A Python scalar: weak, it takes the dtype of what it meets."""


class Value(ABC):
    """One recorded value. `sizes` are numbers, or expressions while tracing."""

    __slots__ = ("__weakref__", "dtype", "sizes")

    def __init__(self, dtype: DType, sizes: Shape) -> None:
        self.dtype = dtype
        self.sizes = sizes

    @abstractmethod
    def shape(self) -> tuple[int | Value, ...]:
        """The shape as the user sees it: numbers, or rank-0 int64 values while tracing."""

    @abstractmethod
    def fetch(self, wanted: str) -> NDArray[np.generic]:
        """The elements, read-only; `wanted` names the Python operation that asks (`bool()`)."""

    @abstractmethod
    def text(self, separator: str, prefix: str) -> str:
        """The elements for `print`, lines aligned after `prefix`; while tracing, the sizes."""

    @abstractmethod
    def known_integer(self) -> Dim | None:
        """The value of a rank-0 integer that is used as a size or an index."""


class Recorder(ABC):
    """Turns operator calls into instructions."""

    @abstractmethod
    def lift(self, value: object, who: str) -> Value:
        """An operand: a value of either recorder, a NumPy array or scalar, a Python scalar."""

    @abstractmethod
    def record(
        self, operator: Operator, operands: Sequence[Value], attributes: Attributes
    ) -> Value:
        """Check dtypes and sizes, append one instruction, and give its result."""


class _ThreadState(threading.local):
    """Per thread: the tracers at work, innermost last, and the lazy recorder once there is one."""

    def __init__(self) -> None:
        self.tracers: list[Recorder] = []
        self.lazy: Recorder | None = None


_state = _ThreadState()


def current() -> Recorder:
    """The recorder at work on this thread."""
    state = _state
    return state.tracers[-1] if state.tracers else state.lazy or lazy_recorder()


def lazy_recorder() -> Recorder:
    """This thread's lazy recorder."""
    if _state.lazy is None:
        from jitdialects.frontends.lazy import LazyRecorder  # it builds on this module

        _state.lazy = LazyRecorder()
    return _state.lazy


def active_tracer() -> Recorder | None:
    """The tracer at work on this thread."""
    return _state.tracers[-1] if _state.tracers else None


@contextmanager
def tracing(tracer: Recorder) -> Generator[None]:
    """Record everything with `tracer` in the body."""
    _state.tracers.append(tracer)
    hold_calls(1)
    try:
        yield
    finally:
        hold_calls(-1)
        _state.tracers.pop()


# ---- what every recorder asks ------------------------------------------------------------------


def infer(
    operator: Operator, operands: Sequence[Value], attributes: Attributes, facts: ShapeFacts
) -> tuple[DType, Shape]:
    """Dtype and sizes of the result, checked by the operator table."""
    result = operator.infer_dtypes([v.dtype for v in operands], attributes).result
    extra = operands[operator.arity :]
    known: list[Dim | None] = [None] * operator.arity
    known.extend(v.known_integer() for v in extra)
    return result, operator.infer_shape([v.sizes for v in operands], attributes, known, facts)


def weak_dtype(value: Scalar, who: str) -> DType:
    """The dtype of a Python scalar; refuses integers outside int64."""
    if isinstance(value, bool):
        return WEAK_BOOL
    if isinstance(value, float):
        return WEAK_FLOAT
    if not -(2**63) <= value < 2**63:
        raise DTypeError(f"{who}: the integer {value} does not fit int64; use a float")
    return WEAK_INT


def plain_scalar(value: Scalar) -> Scalar:
    """`value` as exactly a bool, int or float; enumerations of integers are integers."""
    if type(value) in (bool, int, float):
        return value
    return float(value) if isinstance(value, float) else int(value)


def plain_array(value: NumPyValue, who: str) -> NDArray[np.generic]:
    """`value` as an array of NumPy's own class; refuses masks, which would be lost."""
    masks = sys.modules.get("numpy.ma")  # importing it takes 5 ms; who has one has done so
    if masks is not None and isinstance(value, masks.MaskedArray):
        raise ArgumentError(f"{who}: masked arrays are not supported; fill it first with filled()")
    return np.asarray(value)


def check_array(value: NumPyValue, who: str) -> NDArray[np.generic]:
    """`value` as a plain array of a supported dtype in native byte order."""
    array = plain_array(value, who)
    if array.dtype not in STRONG:  # supported dtypes in native byte order
        check_supported(array.dtype.name, who)
        raise DTypeError(
            f"{who}: byte order of {array.dtype.str} is not this machine's; "
            f"cast with astype('{array.dtype.name}')"
        )
    return array


def refuse(value: object, who: str) -> ArgumentError:
    """The error for an operand that is neither array nor number."""
    return ArgumentError(
        f"{who} takes arrays, NumPy arrays and numbers, got {type(value).__name__}; "
        "convert it with jitdialects.numpy.asarray"
    )


_PACKAGE = Path(__file__).parent.parent
_OWN_FILES = frozenset(str(f) for r in ("frontends", "numpy") for f in (_PACKAGE / r).glob("*.py"))


def user_frame() -> FrameType | None:
    """The innermost Python frame that is not ours: the line that the user wrote."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]  # whoever called is ours
    while frame is not None and frame.f_code.co_filename in _OWN_FILES:
        frame = frame.f_back
    return frame


def user_location() -> Location | None:
    """File and line of `user_frame`."""
    frame = user_frame()
    return None if frame is None else Location(frame.f_code.co_filename, frame.f_lineno)
