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
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from jitdialects.bytecode.attributes import (
    At,
    Attribute,
    Attributes,
    IndexSpec,
    OperandRef,
    ShapeSpec,
    Slice,
)
from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.bytecode.dims import Dim, Shape
from jitdialects.bytecode.dtypes import DType
from jitdialects.bytecode.operators import OPERATORS, Operator
from jitdialects.bytecode.program import Location, Program
from jitdialects.bytecode.shape_rules import ConcreteFacts
from jitdialects.errors import Error, TraceError
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

BLOCK_LENGTH = 512
"""Instructions after which a block runs even if nobody asked for its results."""
KEPT_BLOCKS = 256
"""Programs kept per thread, least recently used dropped first."""

_FACTS = ConcreteFacts()
_NO_SLOTS = range(0)
_Kind: TypeAlias = tuple[str, bool, Shape]
"""Name and weakness of a dtype, and a shape: what inference asks of an operand, cheap to hash."""


@functools.lru_cache(maxsize=4096)
def _infer_once(
    opcode: str, kinds: tuple[_Kind, ...], attributes: tuple[tuple[str, Attribute], ...]
) -> tuple[DType, Shape]:
    """Dtype and shape of a result that depends on nothing else; a loop asks the same every time."""
    operator, named = OPERATORS[opcode], dict(attributes)
    result = operator.infer_dtypes([DType(name, weak) for name, weak, _ in kinds], named).result
    unknown = (None,) * len(kinds)
    return result, operator.infer_shape([sizes for *_, sizes in kinds], named, unknown, _FACTS)


class LazyValue(Value):
    """A value that has its `data`, or is the result `index` of a `block` that has not run yet."""

    __slots__ = ("block", "data", "error", "index")

    def __init__(
        self,
        dtype: DType,
        sizes: Shape,
        data: NDArray[np.generic] | Scalar | None,
        block: _Recording | None = None,
        index: int = -1,
    ) -> None:
        self.dtype = dtype
        self.sizes = sizes
        self.data = data
        self.block = block
        self.index = index
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
        self.run()
        assert self.data is not None
        if self.dtype.weak and isinstance(self.data, np.ndarray):
            return self.data.item()
        return self.data

    def shape(self) -> tuple[int | Value, ...]:
        return tuple(s for s in self.sizes if isinstance(s, int))

    def fetch(self, wanted: str) -> NDArray[np.generic]:
        self.run()
        data = np.asarray(self.data, self.dtype.numpy)
        data.flags.writeable = False
        return data

    def text(self, separator: str, prefix: str) -> str:
        return np.array2string(self.fetch("print()"), separator=separator, prefix=prefix)

    def known_integer(self) -> Dim | None:
        return int(self.fetch("an index").item())


# ---- recorded blocks ---------------------------------------------------------------------------


_Change: TypeAlias = Callable[[int | OperandRef], int | OperandRef]


@dataclass(slots=True)
class _Entry:
    """One recorded instruction. An operand k >= 0 is the result of entry k, k < 0 parameter -1-k.
    `slots` numbers the integers of its index or shape, which may become run-time arguments."""

    opcode: str
    operands: tuple[int, ...]
    attributes: Attributes
    slots: range
    where: tuple[str, int]


@dataclass
class _Recording:
    """A block that is being recorded. `structure` is its key so far, `integers` what the slots hold,
    `values` the results as weak references: a dead one is nobody's result."""

    recorder: LazyRecorder
    entries: list[_Entry] = field(default_factory=list["_Entry"])
    structure: list[object] = field(default_factory=list[object])
    values: list[weakref.ref[LazyValue]] = field(default_factory=list["weakref.ref[LazyValue]"])
    parameters: list[LazyValue] = field(default_factory=list["LazyValue"])
    numbers: dict[int, int] = field(default_factory=dict[int, int])
    integers: list[int] = field(default_factory=list[int])

    def operand(self, value: LazyValue) -> int:
        """The number of `value` in this block; a value from outside becomes a parameter."""
        if value.block is self:
            return value.index
        number = self.numbers.get(id(value))  # parameters keeps it alive, so the id stays its own
        if number is None:
            self.parameters.append(value)
            number = self.numbers[id(value)] = -len(self.parameters)
        return number

    def alive(self) -> list[LazyValue]:
        """The values that Python still holds, in order."""
        return [v for v in (r() for r in self.values) if v is not None]


@dataclass
class _Compiled:
    """The program for one structure. `dynamic[i]` tells that slot i is a run-time argument."""

    baked: list[int]
    dynamic: list[bool]
    vm: VM

    def fits(self, integers: list[int]) -> bool:
        """Whether the integers differ only where they are arguments."""
        return all(d or b == i for d, b, i in zip(self.dynamic, self.baked, integers, strict=True))


def _spec(attributes: Attributes) -> ShapeSpec | IndexSpec | None:
    found = attributes.get("shape", attributes.get("index"))
    return found if isinstance(found, ShapeSpec | IndexSpec) else None


def _map_integers(spec: ShapeSpec | IndexSpec, change: _Change) -> ShapeSpec | IndexSpec:
    """`spec` with each integer replaced in order, except steps and the -1 of a reshape."""
    if isinstance(spec, ShapeSpec):
        return ShapeSpec(tuple(change(s) if s != -1 else s for s in spec.sizes))
    entries = tuple(
        At(change(e.index))
        if isinstance(e, At)
        else Slice(
            None if e.start is None else change(e.start),
            None if e.stop is None else change(e.stop),
            e.step,
        )
        if isinstance(e, Slice)
        else e
        for e in spec.entries
    )
    return IndexSpec(entries)


class _Collect:
    """Replaces each integer by 0 and remembers it."""

    def __init__(self) -> None:
        self.found: list[int] = []

    def __call__(self, bound: int | OperandRef) -> int | OperandRef:
        if isinstance(bound, OperandRef):
            return bound
        self.found.append(bound)
        return 0


class _Bind:
    """Replaces each integer whose slot is a run-time argument by a reference to a new operand."""

    def __init__(self, entry: _Entry, registers: dict[int, int]) -> None:
        self.slots = iter(entry.slots)
        self.first = len(entry.operands)
        self.registers = registers
        self.operands: list[int] = []

    def __call__(self, bound: int | OperandRef) -> int | OperandRef:
        if isinstance(bound, OperandRef):
            return bound
        register = self.registers.get(next(self.slots))
        if register is None:
            return bound
        self.operands.append(register)
        return OperandRef(self.first + len(self.operands) - 1)


def _needed(entries: list[_Entry], results: Sequence[int]) -> list[int]:
    """The entries that the results depend on, in order."""
    marked = set(results)
    for index in range(len(entries) - 1, -1, -1):
        if index in marked:
            marked.update(k for k in entries[index].operands if k >= 0)
    return sorted(marked)


def build_program(
    entries: list[_Entry], parameters: int, results: Sequence[int], dynamic: list[bool]
) -> Program:
    """One function `main` of one block; arguments are the parameters, then the dynamic slots."""
    slots = [s for s, d in enumerate(dynamic) if d]
    slot_registers = {s: parameters + i for i, s in enumerate(slots)}
    registers = {-1 - p: p for p in range(parameters)}
    program = ProgramBuilder()
    main = program.function("main", parameters + len(slots))
    for index in _needed(entries, results):
        entry = entries[index]
        operands = [registers[k] for k in entry.operands]
        attributes = dict(entry.attributes)
        spec = _spec(attributes)
        if spec is not None:
            bind = _Bind(entry, slot_registers)
            name = "shape" if isinstance(spec, ShapeSpec) else "index"
            attributes[name] = _map_integers(spec, bind)
            operands += bind.operands
        main.location = Location(*entry.where)
        registers[index] = main.apply(entry.opcode, *operands, into=None, **attributes)
    main.returns(*(registers[r] for r in results))
    return program.finish()


# ---- the recorder ------------------------------------------------------------------------------


class LazyRecorder(Recorder):
    """Records the operator calls of one thread; other threads may ask it to run."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._block = _Recording(self)
        self._kept: OrderedDict[tuple[object, ...], _Compiled] = OrderedDict()

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
        if len(operands) > operator.arity:
            dtype, sizes = infer(operator, operands, attributes, _FACTS)
        else:
            kinds = tuple([(v.dtype.name, v.dtype.weak, v.sizes) for v in operands])
            dtype, sizes = _infer_once(operator.name, kinds, tuple(attributes.items()))
        values = [v for v in operands if isinstance(v, LazyValue)]
        for value in values:
            block = value.block  # read once: another thread may run it meanwhile
            if value.error is not None or (block is not None and block.recorder is not self):
                value.run()
        frame = user_frame()
        where = ("<unknown>", 1) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
        with self._lock:
            if len(self._block.entries) >= BLOCK_LENGTH:
                self.flush()
            return self._append(operator.name, values, attributes, where, dtype, sizes)

    def _append(
        self,
        opcode: str,
        values: list[LazyValue],
        attributes: Attributes,
        where: tuple[str, int],
        dtype: DType,
        sizes: Shape,
    ) -> LazyValue:
        block = self._block
        numbers = tuple(map(block.operand, values))
        slots = _NO_SLOTS
        key: object = tuple(attributes.items())
        spec = _spec(attributes) if attributes else None
        if spec is not None:
            collect = _Collect()
            key = _map_integers(spec, collect)
            slots = range(len(block.integers), len(block.integers) + len(collect.found))
            block.integers += collect.found
        block.entries.append(_Entry(opcode, numbers, attributes, slots, where))
        block.structure.append((opcode, numbers, key))
        value = LazyValue(dtype, sizes, None, block, len(block.entries) - 1)
        block.values.append(weakref.ref(value))
        return value

    def forget(self) -> None:
        """Drop the programs of all blocks; they are built again when needed."""
        with self._lock:
            self._kept.clear()

    def flush(self) -> None:
        """Run what was recorded. An error belongs to the values that need the failing instruction;
        the others get their data all the same."""
        with self._lock:
            block = self._block
            alive = block.alive()
            self._block = _Recording(self)
            try:
                self._run(block, alive)
            except Error as error:
                self._run_one_by_one(block, alive)
                raise next((v.error for v in alive if v.error is not None), error) from None
            except BaseException:
                self._block = block  # interrupted: the next synchronisation tries again
                raise

    def _run(self, block: _Recording, alive: list[LazyValue]) -> None:
        if not alive:
            return
        results = tuple(v.index for v in alive)
        compiled = self._compiled(block, results)
        arguments = [p.argument() for p in block.parameters]
        arguments += [i for i, d in zip(block.integers, compiled.dynamic, strict=True) if d]
        for value, data in zip(alive, compiled.vm.run("main", *arguments), strict=True):
            value.data = data
            value.block = None

    def _run_one_by_one(self, block: _Recording, alive: list[LazyValue]) -> None:
        for value in alive:
            try:
                self._run(block, [value])
            except Error as error:
                value.error = error
                value.block = None

    def _compiled(self, block: _Recording, results: tuple[int, ...]) -> _Compiled:
        key = (tuple(block.structure), results)
        known = self._kept.get(key)
        if known is not None and known.fits(block.integers):
            self._kept.move_to_end(key)
            return known
        dynamic = [False] * len(block.integers)
        if known is not None:
            slots = zip(known.dynamic, known.baked, block.integers, strict=True)
            dynamic = [d or b != i for d, b, i in slots]
        program = build_program(block.entries, len(block.parameters), results, dynamic)
        vm = VM(program)
        vm.name = "lazy block"
        self._kept[key] = _Compiled(list(block.integers), dynamic, vm)
        self._kept.move_to_end(key)
        if len(self._kept) > KEPT_BLOCKS:
            self._kept.popitem(last=False)
        return self._kept[key]


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
