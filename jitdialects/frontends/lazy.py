"""Lazy arrays: each operator call records one instruction, the block runs at the next synchronisation.

Recording costs the same whatever the sizes are. Dtypes and shapes are checked at once by the operator
table, so an error is raised by the line that causes it. What asks for elements (`np.asarray`, `print`,
`bool`, `float`, `.item()`, `sync`) runs the block; its results are the values that Python still
holds, everything else lives and dies inside the block.

A block is keyed by its structure: opcodes, operands, attributes and live results. The same structure
is the same program and the same VM, so that a block in a Python loop gets hot and is compiled. To keep
structures equal, nothing that may change from iteration to iteration is baked in: Python scalars are
run-time arguments, and so is an integer in an index or a shape once it was seen with a second value.
Each thread has a recorder of its own; a value may be used on any thread.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from jitdialects.bytecode.attributes import (
    Attribute,
    Attributes,
)
from jitdialects.bytecode.dims import Dim, Shape
from jitdialects.bytecode.dtypes import DType
from jitdialects.bytecode.operators import OPERATORS, Operator
from jitdialects.bytecode.shape_rules import ConcreteFacts
from jitdialects.errors import Error, TraceError
from jitdialects.frontends.blocks import (
    Block,
    Collect,
    Kind,
    Point,
    build_program,
    map_integers,
    spec_of,
)
from jitdialects.frontends.recorder import (
    NumPyValue,
    Recorder,
    Scalar,
    Value,
    check_array,
    infer,
    lazy_recorder,
    plain_scalar,
    refuse,
    user_frame,
    weak_dtype,
)
from jitdialects.runtime.values import STRONG
from jitdialects.runtime.vm import VM
from jitdialects.runtime.weak import listed

BLOCK_LENGTH = 512
"""Instructions after which a block runs even if nobody asked for its results."""
KEPT_BLOCKS = 256
"""Programs kept per thread, least recently used dropped first."""
MOST_POINTS = 1 << 14
"""Instructions of different structures kept per thread; with more the thread forgets its blocks."""

_FACTS = ConcreteFacts()
_NO_SLOTS, _NO_INTEGERS = range(0), list[int]()


@functools.lru_cache(maxsize=4096)
def _infer_once(
    opcode: str, kinds: tuple[Kind, ...], attributes: tuple[tuple[str, Attribute], ...]
) -> tuple[DType, Shape, Kind]:
    """Dtype, shape and kind of a result that depends on nothing else; a loop asks the same every time."""
    operator, named = OPERATORS[opcode], dict(attributes)
    result = operator.infer_dtypes([DType(name, weak) for name, weak, _ in kinds], named).result
    unknown = (None,) * len(kinds)
    sizes = operator.infer_shape([sizes for *_, sizes in kinds], named, unknown, _FACTS)
    return result, sizes, (result.name, result.weak, sizes)


class LazyValue(Value):
    """A value that has its `data`, or is the result `index` of a `block` that has not run yet."""

    __slots__ = ("block", "data", "error", "index", "kind")

    def __init__(
        self,
        dtype: DType,
        sizes: Shape,
        data: NDArray[np.generic] | Scalar | None,
        block: Block | None = None,
        index: int = -1,
        kind: Kind | None = None,
    ) -> None:
        self.dtype = dtype
        self.sizes = sizes
        self.data = data
        self.block = block
        self.index = index
        self.kind = (dtype.name, dtype.weak, sizes) if kind is None else kind
        self.error: Error | None = None

    def run(self) -> None:
        """Have `data`, or raise the error with which the block failed."""
        block = self.block  # read once: another thread may run it meanwhile
        if block is not None:
            block.recorder.flush()
        if self.error is not None:
            raise self.error

    def argument(self) -> NDArray[np.generic] | Scalar:
        """What the VM takes: an array, or a Python scalar where the value is weak."""
        if self.block is not None or self.error is not None:
            self.run()
        data = self.data
        assert data is not None
        return data.item() if self.dtype.weak and isinstance(data, np.ndarray) else data

    def shape(self) -> tuple[int | Value, ...]:
        return tuple(s for s in self.sizes if isinstance(s, int))

    def fetch(self, wanted: str) -> NDArray[np.generic]:
        if self.block is not None or self.error is not None:
            self.run()
        data = self.data
        if not isinstance(data, np.ndarray):
            data = np.asarray(data, self.dtype.numpy)
        data.flags.writeable = False
        return data

    def text(self, separator: str, prefix: str) -> str:
        return np.array2string(self.fetch("print()"), separator=separator, prefix=prefix)

    def known_integer(self) -> Dim | None:
        return int(self.fetch("an index").item())


# ---- the recorder ------------------------------------------------------------------------------


@dataclass
class _Compiled:
    """The program for one structure. `dynamic[i]` tells that slot i is a run-time argument."""

    baked: list[int]
    dynamic: list[bool]
    vm: VM

    def fits(self, integers: list[int]) -> bool:
        """Whether the integers differ only where they are arguments."""
        return all(d or b == i for d, b, i in zip(self.dynamic, self.baked, integers, strict=True))


def _key_of(
    opcode: str, numbers: tuple[int, ...], attributes: Attributes
) -> tuple[object, list[int]]:
    """What tells instructions with attributes apart, and the integers, which do not."""
    spec = spec_of(attributes)
    if spec is None:
        return (opcode, numbers, *attributes.items()), _NO_INTEGERS
    collect = Collect()
    return (opcode, numbers, map_integers(spec, collect)), collect.found


class LazyRecorder(Recorder):
    """Records the operator calls of one thread; other threads may ask it to run."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._forget()
        self._block = Block(self, self._start)
        self._running: Block | None = None
        _recorders.add(self)

    def after_fork(self) -> None:
        """In a child: another thread of the parent may have held the lock; what it ran is to be run again."""
        self._lock = threading.RLock()
        if self._running is not None:
            self._block, self._running = self._running, None

    def _forget(self) -> None:
        self._kept: OrderedDict[tuple[Point, tuple[int, ...]], _Compiled] = OrderedDict()
        self._start = Point(None)
        self._points = 0

    def lift(self, value: object, who: str) -> LazyValue:
        if isinstance(value, LazyValue):
            return value
        if isinstance(value, np.ndarray | np.generic):
            return constant(cast(NumPyValue, value), who)
        if isinstance(value, bool | int | float):
            return LazyValue(weak_dtype(value, who), (), plain_scalar(value))
        if isinstance(value, Value):
            raise TraceError(
                f"{who}: an array of a finished or outer capture is used outside of it; return it "
                "from the captured function instead"
            )
        raise refuse(value, who)

    def record(
        self, operator: Operator, operands: Sequence[Value], attributes: Attributes
    ) -> LazyValue:
        values = cast("Sequence[LazyValue]", operands)
        if len(values) > operator.arity:  # sizes that are known when they are asked for only
            dtype, sizes = infer(operator, values, attributes, _FACTS)
            inferred = dtype, sizes, (dtype.name, dtype.weak, sizes)
        else:
            inferred = None
        block = self._block
        for value in values:
            if value.block is not block and (value.block is not None or value.error is not None):
                value.run()  # a block of another thread: not with the lock of this one
        frame = user_frame()
        with self._lock:
            block = self._block
            if len(block.values) >= BLOCK_LENGTH:
                self.flush()
                block = self._block
            known = len(block.parameters)
            numbers = tuple([v.index if v.block is block else block.outside(v) for v in values])
            integers = _NO_INTEGERS
            key: object = (operator.name, numbers)
            if attributes:
                key, integers = _key_of(operator.name, numbers, attributes)
            point = block.point.children.get(key)
            seen: object = None
            if inferred is None:
                kinds = tuple([v.kind for v in values])
                seen = (kinds, integers) if integers else kinds
                if point is not None and point.seen == seen:
                    inferred = point.result
                else:
                    try:
                        inferred = _infer_once(operator.name, kinds, tuple(attributes.items()))
                    except BaseException:
                        block.forget_parameters(known)
                        raise
            if point is None:
                point = self._grow(block, key, operator.name, numbers, len(integers))
            if point.seen is not seen:
                point.seen, point.result = seen, inferred
            block.point = point
            block.attributes.append(attributes)
            block.places.append(None if frame is None else (frame.f_code, frame.f_lasti))
            if integers:
                block.integers += integers
            assert inferred is not None
            dtype, sizes, kind = inferred
            value = LazyValue(dtype, sizes, None, block, len(block.values), kind)
            block.values.append(weakref.ref(value))
            return value

    def _grow(
        self, block: Block, key: object, opcode: str, numbers: tuple[int, ...], integers: int
    ) -> Point:
        """A point for what was not recorded here before."""
        first = len(block.integers)
        slots = range(first, first + integers) if integers else _NO_SLOTS
        point = block.point.children[key] = Point(block.point, opcode, numbers, slots)
        self._points += 1
        return point

    def forget(self) -> None:
        """Drop the programs of all blocks; they are built again when needed."""
        with self._lock:
            self._forget()
            if not self._block.values:
                self._block = Block(self, self._start)

    def flush(self) -> None:
        """Run what was recorded. An error belongs to the values that need the failing instruction;
        the others get their data all the same."""
        with self._lock:
            block = self._block
            alive = block.alive()
            if self._points > MOST_POINTS:
                self._forget()
            self._block, self._running = Block(self, self._start), block
            try:
                self._run(block, alive)
            except Error as error:
                self._run_one_by_one(block, alive)
                raise next((v.error for v in alive if v.error is not None), error) from None
            except BaseException:
                self._block = block  # interrupted: the next synchronisation tries again
                raise
            finally:
                self._running = None

    def _run(self, block: Block, alive: list[LazyValue]) -> None:
        if not alive:
            return
        results = tuple([v.index for v in alive])
        compiled = self._compiled(block, results)
        arguments: list[object] = [p.argument() for p in block.parameters]
        if block.integers:
            arguments += [i for i, d in zip(block.integers, compiled.dynamic, strict=True) if d]
        for value, data in zip(alive, compiled.vm.run("main", *arguments), strict=True):
            value.data = data
            value.block = None

    def _run_one_by_one(self, block: Block, alive: list[LazyValue]) -> None:
        for value in alive:
            try:
                self._run(block, [value])
            except Error as error:
                value.error = error
                value.block = None

    def _compiled(self, block: Block, results: tuple[int, ...]) -> _Compiled:
        key = block.point, results
        known = self._kept.get(key)
        if known is not None and (not block.integers or known.fits(block.integers)):
            self._kept.move_to_end(key)
            return known
        dynamic = [False] * len(block.integers)
        if known is not None:
            slots = zip(known.dynamic, known.baked, block.integers, strict=True)
            dynamic = [d or b != i for d, b, i in slots]
        program = build_program(block.entries(), len(block.parameters), results, dynamic)
        vm = VM(program)
        vm.name = "lazy block"
        self._kept[key] = _Compiled(list(block.integers), dynamic, vm)
        self._kept.move_to_end(key)
        if len(self._kept) > KEPT_BLOCKS:
            self._kept.popitem(last=False)
        return self._kept[key]


_recorders: weakref.WeakSet[LazyRecorder] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for recorder in listed(lambda: _recorders):
        recorder.after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)


def constant(value: NumPyValue, who: str) -> LazyValue:
    """A copy of `value`, so that what the caller writes later is never seen."""
    array = np.array(check_array(value, who), order="K")
    array.flags.writeable = False
    return LazyValue(STRONG[array.dtype], array.shape, array)


_KNOWN = {(d.numpy, weak): DType(d.name, weak) for d in STRONG.values() for weak in (False, True)}


def known(array: NDArray[np.generic], weak: bool) -> LazyValue:
    """A value for an array that nobody else will write; `weak`: it stands for a Python scalar."""
    return LazyValue(_KNOWN[array.dtype, weak], array.shape, array)


def sync() -> None:
    """Run everything that this thread has recorded."""
    recorder = lazy_recorder()
    assert isinstance(recorder, LazyRecorder)
    recorder.flush()


def clear_blocks() -> None:
    """Forget the programs of this thread's blocks."""
    recorder = lazy_recorder()
    assert isinstance(recorder, LazyRecorder)
    recorder.forget()
