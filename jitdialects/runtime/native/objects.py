"""Where CPython and NumPy keep what the call stub reads of their objects, checked before anyone relies on it.

NumPy's inline accessors in its own headers read the same fields of `PyArrayObject` and of the head of
`PyArray_Descr`; CPython's macros read those of its objects. `unknown_layout` compares every offset with what
the public interface says of live objects. On a build where one differs, free-threaded ones included, there
are no stubs and calls take the way through Python, which `callables` announces.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from functools import cache
from importlib import import_module
from typing import Any, cast

import numpy as np

HEAD = object.__basicsize__
"""Bytes of an object's head: reference count, then type."""
TYPE = HEAD - 8
DATA, RANK, SIZES, STRIDES, BASE, DESCRIPTOR, FLAGS, WEAK = (HEAD + 8 * i for i in range(8))
"""Fields of an array. Rank and flags are 32 bits wide, sizes and strides point to 64-bit words."""
BYTE_ORDER, TYPE_NUMBER = HEAD + 10, HEAD + 12
"""Fields of a dtype: a character, 32 bits."""
VALUE = HEAD
"""The double of a float."""
TYPE_FLAGS = HEAD + 152
"""Flags of a type object, 64 bits."""
VECTORCALL_OFFSET = HEAD + 40
"""Where instances of a type have their vectorcall function."""

_NEW_FROM_DESCRIPTOR = 94
"""Its place in NumPy's table for extensions, which never changes."""
C_CONTIGUOUS, F_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x2, 0x100, 0x400


def _word(address: int, kind: Any = ctypes.c_int64) -> int:
    return int(kind.from_address(address).value)


def _array_fits(array: np.ndarray[Any, Any]) -> bool:
    at, rank = id(array), array.ndim
    words = ctypes.c_int64 * rank
    return (
        _word(at + TYPE) == id(np.ndarray)
        and _word(at + DATA) == array.__array_interface__["data"][0]
        and _word(at + RANK, ctypes.c_int32) == rank
        and tuple(words.from_address(_word(at + SIZES))) == array.shape
        and tuple(words.from_address(_word(at + STRIDES))) == array.strides
        and _word(at + BASE) == (0 if array.base is None else id(array.base))
        and _word(at + DESCRIPTOR) == id(array.dtype)
        and _word(at + FLAGS, ctypes.c_int32) & 0xFFF == array.flags.num & 0xFFF
        and _word(id(array.dtype) + TYPE_NUMBER, ctypes.c_int32) == array.dtype.num
        and chr(_word(id(array.dtype) + BYTE_ORDER, ctypes.c_int8)) == array.dtype.byteorder
    )


def _weak_references_fit() -> bool:
    array = np.zeros(3)
    before = _word(id(array) + WEAK)
    reference = weakref.ref(array)
    fits = _word(id(array) + WEAK) == id(reference) and _word(id(reference) + HEAD) == id(array)
    del array
    return before == 0 and fits and _word(id(reference) + HEAD) == id(None)


def _counts_fit() -> bool:
    array = np.zeros(3)
    count = _word(id(array))
    other = array
    return _word(id(other)) == count + 1 == sys.getrefcount(array) - 1


def _types_fit() -> bool:
    kinds = cast("tuple[type, ...]", (type(len), type(_word)))
    return _word(id(int) + TYPE_FLAGS) == int.__flags__ and all(
        0 < _word(id(kind) + VECTORCALL_OFFSET) < kind.__basicsize__ for kind in kinds
    )


@cache
def array_maker() -> int:
    """Address of NumPy's `PyArray_NewFromDescr`, from the table that it has for extensions; 0 if what it makes is
    not what it should be."""
    try:
        capsule: object = import_module("numpy._core._multiarray_umath")._ARRAY_API
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        table = pointer(capsule, None)
    except (ImportError, AttributeError, ValueError):
        return 0
    new = _word(table + 8 * _NEW_FROM_DESCRIPTOR)
    return new if _makes_arrays(new) else 0


def _makes_arrays(new: int) -> bool:
    words, dtype, base = (ctypes.c_int64 * 6)(*range(6)), np.dtype(np.int64), _Base()
    sizes = (ctypes.c_int64 * 2)(2, 3)
    object_, pointer, number = ctypes.py_object, ctypes.c_void_p, ctypes.c_int
    make = ctypes.PYFUNCTYPE(
        object_, object_, pointer, number, pointer, pointer, pointer, number, pointer
    )(new)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(dtype))  # the array takes it
    flags = C_CONTIGUOUS | ALIGNED | WRITEABLE
    array: Any = make(
        np.ndarray,
        id(dtype),
        2,
        ctypes.addressof(sizes),
        None,
        ctypes.addressof(words),
        flags,
        None,
    )
    before: object = array.base
    if type(array) is not np.ndarray or before is not None:
        return False
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(base))
    ctypes.c_void_p.from_address(id(array) + BASE).value = id(base)
    return (
        array.base is base
        and array.dtype == dtype
        and array.tolist() == [[0, 1, 2], [3, 4, 5]]
        and array.flags.writeable
        and array.flags.c_contiguous
        and not array.flags.owndata
    )


class _Base:
    """Stands behind an array."""


def _tuples_fit() -> bool:
    pair = (object(), object())
    words = [_word(id(pair) + HEAD + 8 * place) for place in range(3)]
    return words == [2, *map(id, pair)]


def _floats_fit() -> bool:
    return ctypes.c_double.from_address(id(float("1.5")) + VALUE).value == 1.5


@cache
def unknown_layout() -> str:
    """What of the objects of this process is not where it is said above; empty if everything is."""
    if sys.implementation.name != "cpython" or sys.byteorder != "little":
        return f"this is {sys.implementation.name} on a {sys.byteorder}-endian machine"
    if HEAD != 16:  # reference counts in two parts
        return f"the head of an object has {HEAD} bytes, as in free-threaded builds"
    arrays = (
        np.zeros((3, 5), np.float32)[:, ::2],
        np.zeros((2, 3, 4), np.int64),
        np.zeros((), np.bool_),
        np.zeros(4, ">f8")[::-1],
    )
    checks = {
        "arrays": lambda: all(map(_array_fits, arrays)),
        "weak references": _weak_references_fit,
        "reference counts": _counts_fit,
        "types": _types_fit,
        "tuples": _tuples_fit,
        "floats": _floats_fit,
    }
    wrong = [what for what, fits in checks.items() if not fits()]
    return (
        f"NumPy {np.__version__} or this Python lays out {', '.join(wrong)} otherwise"
        if wrong
        else ""
    )
