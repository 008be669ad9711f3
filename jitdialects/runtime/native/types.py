"""Types of Python objects that machine code lays out, made by `PyType_FromSpec`."""

from __future__ import annotations

import ctypes
from typing import TypeVar, cast

from jitdialects.runtime.native import objects

LEASE_BYTES = objects.HEAD + 16


def function_address(function: str) -> int:
    """Of a function of CPython's interface."""
    return ctypes.cast(getattr(ctypes.pythonapi, function), ctypes.c_void_p).value or 0


class Member(ctypes.Structure):
    """`PyMemberDef`."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class _TypeSlot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("value", ctypes.c_void_p)]


class _TypeSpec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basic_size", ctypes.c_int),
        ("item_size", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_TypeSlot)),
    ]


SSIZE, READ_ONLY = 19, 1
_DEFAULT_TYPE, BASE_TYPE, _NO_INSTANCES = 0, 1 << 10, 1 << 7
SLOT_NEW, SLOT_MEMBERS, SLOT_CALL, _SLOT_DEALLOCATE = 65, 72, 50, 52
"""Of members, of types, and of slots: numbers from CPython's headers."""

T = TypeVar("T")


def for_ever(value: T) -> T:
    """`value`, never freed: CPython or machine code has its address, and reads it until the last array is gone, which may
    be after the modules of a process that ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
    return value


def make_type(name: bytes, size: int, flags: int, slots: dict[int, int]) -> type:
    """A type whose instances have `size` bytes (`PyType_FromSpec`)."""
    pairs = [_TypeSlot(slot, value) for slot, value in slots.items()]
    table = for_ever((_TypeSlot * (len(slots) + 1))(*pairs))
    spec = for_ever(_TypeSpec(name, size, 0, _DEFAULT_TYPE | flags, table))
    make = ctypes.pythonapi.PyType_FromSpec
    make.restype, make.argtypes = ctypes.py_object, [ctypes.POINTER(_TypeSpec)]
    made = cast(type, make(ctypes.byref(spec)))
    return for_ever(made)


def lease_type(goes: int) -> type:
    """The base of arrays that machine code makes; `goes` is called for an instance that nobody holds."""
    name = b"jitdialects.runtime.callables.NativeLease"
    return make_type(name, LEASE_BYTES, _NO_INSTANCES, {_SLOT_DEALLOCATE: goes})
