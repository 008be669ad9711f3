"""Objects whose calls enter machine code: the base of what `jd.jit` returns, and the stubs behind it.

`StubCallable` gives its instances a place for a vectorcall function; while that is empty, Python calls `__call__`
of the class. Once a function has compiled code, `serve` puts `jd_vectorcall` there (`native/vectorcall.ll`)
and the code's stubs (`native/call_stub.py`) into the object's table (`call_tables`). What no stub takes goes
to `__call__`.

Builds whose object layouts are not the known ones have no stubs: `StubCallable` is a plain class there, of which a
warning and `jd.stats()["calls"]` tell.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from jitdialects.errors import PoolError
from jitdialects.runtime import threads
from jitdialects.runtime.cache import CacheEntry, KernelCache
from jitdialects.runtime.call_tables import CallShape, CallTable
from jitdialects.runtime.dispatch import Kernel
from jitdialects.runtime.engines import LoadedLibrary
from jitdialects.runtime.engines.choice import shared_engine
from jitdialects.runtime.indicators import indicators
from jitdialects.runtime.messages import CompileReply
from jitdialects.runtime.native import objects
from jitdialects.runtime.native.call_stub import RING, SAMPLE, StateLayout
from jitdialects.runtime.native.stub_text import ENVIRONMENT
from jitdialects.runtime.native.types import (
    BASE_TYPE,
    READ_ONLY,
    SLOT_CALL,
    SLOT_MEMBERS,
    SLOT_NEW,
    SSIZE,
    Member,
    for_ever,
    function_address,
    lease_type,
    make_type,
)
from jitdialects.runtime.notices import notice
from jitdialects.runtime.pool import MemoryPool, default_pool
from jitdialects.runtime.pool.shelf import Functions
from jitdialects.runtime.totals import Totals
from jitdialects.runtime.values import Array
from jitdialects.runtime.weak import listed

_VECTORCALL_AT, _TABLE_AT, _BASIC_SIZE = objects.HEAD, objects.HEAD + 8, objects.HEAD + 16
LEAST_PERIOD, MOST_PERIOD = 16, 4096
"""Calls of general code between two that Python sees."""
SAMPLE_SECONDS, SAMPLE_SHARE = 12e-6, 0.01
"""What a sample costs, and what samples may cost."""
RARER = 16
"""Code for one shape is sampled so many times less often: only its time is to be seen."""
LARGEST_ARENA = 1 << 28
"""Bytes of temporaries that are kept between calls; who needs more goes through Python."""
_HAVE_VECTORCALL, _METHOD_DESCRIPTOR = 1 << 11, 1 << 17
"""Flags of a type."""
_WORD = ctypes.c_int64
_WANTED, _BYTES = ENVIRONMENT.index("arena_wanted"), ENVIRONMENT.index("arena_bytes")


# ---- the environment ---------------------------------------------------------------------------


class _Environment:
    """The words that all stubs read, and the memory for temporaries that they share."""

    def __init__(self) -> None:
        self.words = for_ever((_WORD * len(ENVIRONMENT))())
        self.address = ctypes.addressof(self.words)
        self._arena = 0
        self._lock = threading.Lock()
        values = {
            "array": id(np.ndarray),
            "float": id(float),
            "int": id(int),
            "true": id(True),
            "false": id(False),
            "as_integer": function_address("PyLong_AsLongLongAndOverflow"),
            "from_integer": function_address("PyLong_FromLongLong"),
            "call": function_address("PyObject_Vectorcall"),
            "decref": function_address("Py_DecRef"),
            "tuple": function_address("PyTuple_New"),
            "set_item": function_address("PyTuple_SetItem"),
            "clear": function_address("PyErr_Clear"),
            "release_gil": function_address("PyEval_SaveThread"),
            "take_gil": function_address("PyEval_RestoreThread"),
            "allocate": function_address("PyObject_Malloc"),
            "free": function_address("PyObject_Free"),
            "incref": function_address("Py_IncRef"),
            "no_memory": function_address("PyErr_NoMemory"),
        }
        for name, value in values.items():
            self.set(name, value)

    def set(self, name: str, value: int) -> None:
        """Change a word."""
        self.words[ENVIRONMENT.index(name)] = value

    def get(self, name: str) -> int:
        """Read a word."""
        return int(self.words[ENVIRONMENT.index(name)])

    def grow_arena(self) -> None:
        """Have the memory for temporaries that a call asked for in vain, if nobody computes in it now."""
        if not self.words[_BYTES] < self.words[_WANTED] <= LARGEST_ARENA:
            return
        if not self._lock.acquire(blocking=False):
            return  # somebody is about to
        try:
            self._replace_arena(self.words[_WANTED])
        except (PoolError, MemoryError):
            pass  # calls that need it go through Python, which says what is wrong
        finally:
            self._lock.release()

    def _replace_arena(self, bytes: int) -> None:
        before, self.words[_BYTES] = self.words[_BYTES], 0  # so that no call begins to use it
        try:
            if self.get("arena_busy"):
                return
            block = default_pool.allocate(bytes)
            self.set("arena", default_pool.address(block))
            before, old, self._arena = bytes, self._arena, block
            if old:
                default_pool.release(old)
        finally:
            self.words[_BYTES] = before

    def after_fork(self) -> None:
        """Threads that held this, or computed in the arena, stayed in the parent."""
        self._lock = threading.Lock()
        self.set("arena_busy", 0)


@cache
def environment() -> _Environment:
    """The environment of the process."""
    return _Environment()


def hold_calls(change: int) -> None:
    """+1 while functions are captured: calls must then be recorded, not served; -1 afterwards."""
    if not objects.unknown_layout():
        environment().words[0] += change


# ---- what one function has for one piece of code -------------------------------------------------


@dataclass(eq=False)
class Stub:
    """The stub of compiled code as used by one function: its state, and what that names."""

    entry: CacheEntry
    kernel: Kernel | None
    """The code; None once this is closed, never to be called again."""
    served: Callable[[int, float], None]
    """Called with a number of calls that the stub has served, and the seconds that they took."""
    as_tuple: bool
    pool: MemoryPool = default_pool
    address: int = 0
    words: ctypes.Array[ctypes.c_int64] = field(init=False)
    reply: CompileReply = field(init=False)
    rarer: int = field(init=False)
    dropped: bool = False
    """Whether it was in use and is not any more: closed, or to be closed when no call runs in it."""
    _keep: list[object] = field(default_factory=list[object])
    _counted: tuple[int, int] = (0, 0)
    _seen: tuple[int, int] = (0, 0)
    _least: float = float("inf")

    def __post_init__(self) -> None:
        kernel = self.kernel
        assert kernel is not None
        self.reply = reply = kernel.reply
        slots = [word for constant in kernel.constants for word in constant.slots]
        self.layout = layout = StateLayout(len(slots), len(reply.results))
        self.address = kernel.stub
        self.words = words = (_WORD * layout.words)()
        words[layout.ENV] = environment().address
        words[layout.CONTEXT] = threads.context() if reply.parallel else 0
        words[layout.TUPLE] = int(self.as_tuple)
        words[layout.SHELF] = self.pool.shelf.address
        self.rarer = RARER if kernel.signature.is_exact else 1
        words[layout.TICK] = words[layout.PERIOD] = self.rarer * LEAST_PERIOD
        words[layout.FIXED : layout.FIXED + len(slots)] = slots
        for number, result in enumerate(reply.results):
            allocate = _allocator(self.pool, result.dtype.numpy)
            self._keep += [allocate, result.dtype.numpy]
            words[layout.result(number)] = id(allocate)
            words[layout.result(number) + 1] = id(result.dtype.numpy)

    @property
    def is_running(self) -> bool:
        """Whether a thread is in the code, though the GIL is elsewhere."""
        return self.words[self.layout.IN_FLIGHT] != 0

    def drain(self) -> tuple[int, float]:
        """Calls served since the last time, and the seconds that they took by the samples."""
        calls, cycles = self.words[self.layout.CALLS], self.words[self.layout.CYCLES]
        new, spent = calls - self._counted[0], cycles - self._counted[1]
        self._counted = calls, cycles
        seconds = _natives.seconds(spent * SAMPLE)
        if new:
            self.entry.hits += new
            self.served(new, seconds)
        return new, seconds

    @property
    def calls(self) -> int:
        """Calls served so far."""
        return self.words[self.layout.CALLS]

    def never_let_through(self) -> None:
        """For as long as nobody looks at samples."""
        self.words[self.layout.TICK] = (1 << 63) - 1

    def let_through(self) -> None:
        """Make the next call a sample."""
        self.words[self.layout.TICK] = 0

    def set_period(self) -> None:
        """Let samples go through Python as often as costs about `SAMPLE_SHARE` of the time in this code."""
        calls, cycles = self.words[self.layout.CALLS], self.words[self.layout.CYCLES]
        new, spent = calls - self._seen[0], cycles - self._seen[1]
        if new >= LEAST_PERIOD:
            self._seen = calls, cycles
            # the least of several means: a call that lost its core says nothing
            self._least = min(self._least, _natives.seconds(spent * SAMPLE) / new)
            wanted = SAMPLE_SECONDS / SAMPLE_SHARE / max(self._least, 1e-9)
            period = self.rarer * int(min(max(wanted, LEAST_PERIOD), MOST_PERIOD))
            self.words[self.layout.PERIOD] = period

    def close(self) -> None:
        """Give back the results that are kept for reuse, and the code. No call may come afterwards."""
        self.kernel = None
        forget = ctypes.pythonapi.Py_DecRef
        for number in range(self.layout.results):
            first = self.layout.result(number) + 3
            for place in range(first, first + 2 * RING, 2):
                kept, self.words[place] = self.words[place], 0
                if kept:
                    forget(ctypes.c_void_p(kept))


def stub_of(
    entry: CacheEntry,
    served: Callable[[int, float], None],
    as_tuple: bool,
    pool: MemoryPool,
    known: Stub | None = None,
) -> Stub | None:
    """The stub of an entry: `known`, if that may still be called, or a new one; None for code that has none,
    or was evicted."""
    kernel = entry.kernel
    if kernel is None or not kernel.stub:
        return None
    if known is not None and not known.dropped:
        return known
    return Stub(entry, kernel, served, as_tuple, pool)


_interrupted: dict[int, BaseException] = {}
"""By thread, what was raised while a stub had a result made."""


def _allocator(pool: MemoryPool, dtype: np.dtype[Any]) -> Callable[..., Array]:
    """Makes a result of given sizes. `PoolError` and `MemoryError` send the call to the interpreter; so does what a
    signal raises here, which `settle` raises again, since a stub forgets errors."""
    item = dtype.itemsize

    def allocate(*sizes: int) -> Array:
        try:
            pool.safe_point()
            total = item
            for size in sizes:
                total *= size
            array = pool.array(sizes, dtype, total)
            pool.stock(total)
            return array
        except (PoolError, MemoryError):
            raise
        except BaseException as error:
            _interrupted[threading.get_ident()] = error
            raise

    return allocate


class _Clock:
    """Seconds per cycle of the counter that stubs read, measured while the process runs."""

    def __init__(self, library: LoadedLibrary) -> None:
        self._read = ctypes.PYFUNCTYPE(ctypes.c_int64)(library.address("jd_cycles"))
        self._start = self._read(), time.perf_counter()

    def seconds_per_cycle(self) -> float:
        """Over the time since the first stub."""
        cycles, now = self._read(), time.perf_counter()
        passed = cycles - self._start[0]
        return (now - self._start[1]) / passed if passed > 0 else 0.0


class _Natives:
    """The library with `jd_vectorcall`, once a reply has brought it; never unloaded."""

    def __init__(self) -> None:
        self.library: LoadedLibrary | None = None
        self._lock = threading.Lock()
        self.clock: _Clock | None = None
        self.functions: Functions | None = None
        """How arrays are made in machine code; None where NumPy's table is not the known one."""

    def load(self, data: bytes) -> LoadedLibrary:
        """The library in `data`, or the one that is there."""
        with self._lock:
            if self.library is None:
                self.library = shared_engine().load(data, "vectorcall")
                self.clock = _Clock(self.library)
                self.functions = _array_functions(self.library)
            return self.library

    def connect(self, pool: MemoryPool) -> None:
        """Let machine code make arrays in blocks of `pool`."""
        if self.functions is not None:
            pool.shelf.connect(self.functions)

    def seconds(self, cycles: int) -> float:
        """What `cycles` of a stub's clock are."""
        return 0.0 if self.clock is None else cycles * self.clock.seconds_per_cycle()

    def after_fork(self) -> None:
        """Another thread of the parent may have held the lock."""
        self._lock = threading.Lock()


def _array_functions(library: LoadedLibrary) -> Functions | None:
    here = environment()
    here.set("new_array", library.address("jd_new_array"))
    maker = objects.array_maker()
    if not maker:
        return None
    here.set("new_from_descriptor", maker)
    lease = lease_type(library.address("jd_lease_goes"))
    here.set("lease", id(lease))
    names = "jd_shelve", "jd_unshelve", "jd_clear_shelf"
    return Functions(here.address, *map(library.address, names))


_natives = _Natives()


# ---- objects -----------------------------------------------------------------------------------

Stubs: TypeAlias = Mapping[tuple[str, ...], Sequence[Stub]]
"""Stubs by the names of the arguments that they expect by keyword, sorted, behind the positional ones."""


Methods: TypeAlias = "Sequence[tuple[weakref.ref[object], PlainCallable]]"
"""Objects, and what is bound to them."""


class PlainCallable:
    """The base where there are no stubs: every call goes through Python."""

    def serve(self, stubs: Stubs, shapes: Sequence[CallShape], cache: KernelCache) -> None:
        """Nothing to do."""

    def serve_methods(self, bound: Methods) -> None:
        """Nothing to do."""


def _native_type() -> type:
    """A type with room for a vectorcall function and a table."""
    members = (Member * 2)(Member(b"__vectorcalloffset__", SSIZE, _VECTORCALL_AT, READ_ONLY))
    for_ever(members)
    slots = {
        SLOT_CALL: function_address("PyVectorcall_Call"),
        SLOT_MEMBERS: ctypes.addressof(members),
        SLOT_NEW: function_address("PyType_GenericNew"),
    }
    flags = BASE_TYPE | _HAVE_VECTORCALL
    return make_type(b"jitdialects.runtime.callables.Native", _BASIC_SIZE, flags, slots)


def _native_callable() -> type:
    native: Any = _native_type()

    class NativeCallable(native):
        """The base where calls can enter machine code."""

        def __init_subclass__(cls, **options: object) -> None:
            """Python takes the vectorcall function from a class with a `__call__` of its own; an instance
            without one is called by `__call__`, so give it back. An instance in a class may be called with
            an object of that in front, as functions are, without a bound method in between."""
            super().__init_subclass__(**options)  # pyright: ignore[reportUnknownMemberType]
            flags = ctypes.c_uint64.from_address(id(cls) + objects.TYPE_FLAGS)
            flags.value |= _HAVE_VECTORCALL | (_METHOD_DESCRIPTOR if hasattr(cls, "__get__") else 0)

        def serve(self, stubs: Stubs, shapes: Sequence[CallShape], cache: KernelCache) -> None:
            """Let these stubs of code in `cache` take calls, in this order, instead of those before. `shapes`:
            the calls with keywords that may reach them."""
            _serve(self, stubs, shapes, cache)

        def serve_methods(self, bound: Methods) -> None:
            """Where the first argument is one of these objects, let the stubs of what it is bound to take the call."""
            _serve_methods(self, bound)

    return NativeCallable


@dataclass(eq=False)
class _Table:
    """The table of one object: alive as long as the object, which is as long as any call of it runs."""

    native: CallTable
    stubs: list[Stub] = field(default_factory=list[Stub])
    retired: list[Stub] = field(default_factory=list[Stub])
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Calls and the thread that compiles change it."""
    _written: tuple[Stubs, Sequence[CallShape]] = ({}, ())

    def replace(self, stubs: Stubs, shapes: Sequence[CallShape] = ()) -> None:
        """Write the stubs. Those that are not used any more are closed once no call runs in them."""
        with self.lock:
            usable = {n: [s for s in group if not s.dropped] for n, group in stubs.items()}
            self._replace(usable, shapes)

    def _replace(self, stubs: Stubs, shapes: Sequence[CallShape]) -> None:
        before, self.stubs = self.stubs, [stub for group in stubs.values() for stub in group]
        self._written = stubs, shapes
        self.native.set_groups(stubs, shapes)
        present = set(map(id, self.stubs))
        waiting = [*self.retired, *(s for s in before if id(s) not in present)]
        self.retired = []
        for stub in waiting:
            stub.dropped = True
            _count(stub, indicators.now)
            if stub.is_running:
                self.retired.append(stub)
            else:
                stub.close()

    def forget_code(self, gone: Collection[CacheEntry]) -> None:
        """The cache has let these go: their code must be unloaded."""
        with self.lock:
            if self.retired or any(stub.entry in gone for stub in self.stubs):
                stubs, shapes = self._written
                kept = {n: [s for s in group if s.entry not in gone] for n, group in stubs.items()}
                self._replace(kept, shapes)


_tables: weakref.WeakKeyDictionary[Any, _Table] = weakref.WeakKeyDictionary()


def _table_of(target: Any, library: LoadedLibrary) -> _Table:
    """The table of `target`, which gets one if need be."""
    table = _tables.get(target)
    if table is None:
        native = CallTable(environment().address, type(target).__call__)
        table = _tables[target] = _Table(native)
        weakref.finalize(target, table.replace, {}).atexit = False
        _WORD.from_address(id(target) + _TABLE_AT).value = native.address
        address = library.address("jd_vectorcall")
        _WORD.from_address(id(target) + _VECTORCALL_AT).value = address
    return table


def _serve(target: Any, stubs: Stubs, shapes: Sequence[CallShape], cache: KernelCache) -> None:
    table = _tables.get(target)
    if table is None:
        first = next((stub for group in stubs.values() for stub in group), None)
        if first is None:
            return
        library = _natives.load(first.reply.natives["vectorcall"])
        table = _table_of(target, library)
    for pool in {stub.pool for group in stubs.values() for stub in group}:
        _natives.connect(pool)
    cache.users.add(table)
    table.replace(stubs, shapes)


def _serve_methods(target: Any, bound: Methods) -> None:
    library = _natives.library
    if library is not None:
        tables = [(reference, _tables.get(each)) for reference, each in bound]
        words = [(k, table.native.words) for k, table in tables if table is not None]
        if words or target in _tables:
            _table_of(target, library).native.set_instances(words)


def let_through(entry: CacheEntry) -> None:
    """Have the next call of this code seen in Python."""
    for table in listed(_tables.values):
        for stub in table.stubs:
            if stub.entry is entry:
                stub.let_through()


def settle() -> None:
    """To be called by `__call__`: raise what interrupted a stub in this thread, have what it lacked for this call."""
    if _interrupted:
        error = _interrupted.pop(threading.get_ident(), None)
        if error is not None:
            raise error
    if _tables:
        environment().grow_arena()


def _count(stub: Stub, into: Totals) -> None:
    calls, seconds = stub.drain()
    if calls:
        reply = stub.reply
        into.hits += calls
        into.operators += calls * reply.operators
        into.operators_fused += calls * reply.operators_fused
        into.run_seconds += seconds


def _count_all(into: Totals) -> None:
    for table in listed(_tables.values):
        for stub in table.stubs:
            _count(stub, into)


indicators.sources.append(_count_all)


def _after_fork_in_child() -> None:
    _natives.after_fork()
    _interrupted.clear()
    if not objects.unknown_layout():
        environment().after_fork()
    for table in listed(_tables.values):
        table.lock = threading.RLock()
        for stub in (*table.stubs, *table.retired):
            stub.words[stub.layout.IN_FLIGHT] = 0


os.register_at_fork(after_in_child=_after_fork_in_child)


def _base() -> type[PlainCallable]:
    reason = objects.unknown_layout()
    if not reason:
        return _native_callable()
    notice(
        f"calls of compiled functions go through Python here, some 10 us each: {reason}; results are the same",
    )
    return PlainCallable


StubCallable: type[PlainCallable] = _base()
"""The base of objects whose calls stubs may take."""


def way_of_calls() -> str:
    """How calls of compiled functions run here, for people."""
    reason = objects.unknown_layout()
    return f"through Python: {reason}" if reason else "in machine code"
