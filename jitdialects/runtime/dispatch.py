"""Compiled code as something to call: bind the arguments, check the guards, run, return the results.

For each compiled signature a short Python function is generated that does just this (its text is
`Kernel.source`): one local per symbol, one comparison per static size and guard, results and arena from
the pool, one packed slot per word of the kernel ABI (docs/architecture.md, "Kernel ABI"), one call.
Constants are laid out when the code is loaded; their slots are numbers.
It returns None where the code does not fit the call; the interpreter takes over. Results are what
`values.export` would make of them: fresh arrays, of rank 0 for weak results.
"""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import InitVar, dataclass
from functools import lru_cache, reduce
from types import CodeType, FunctionType
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from jitdialects.bytecode import dims
from jitdialects.bytecode.dims import Dim, Shape
from jitdialects.bytecode.program import Constant
from jitdialects.bytecode.signature import ArgumentType, Signature
from jitdialects.runtime import pointers, threads
from jitdialects.runtime.constants import LaidOut, laid_out
from jitdialects.runtime.engines import LoadedLibrary
from jitdialects.runtime.messages import CompileReply, TensorFact
from jitdialects.runtime.pool import MemoryPool
from jitdialects.runtime.values import INT64_MAX, INT64_MIN, STRONG, WEAK, Array, Value

ClassKey: TypeAlias = tuple[object, ...]
"""What tells calls apart but for sizes: dtype, rank and contiguity per argument."""
_Entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p)
"""The entry of the kernel ABI; calling it releases the GIL."""
Invoke: TypeAlias = Callable[[Sequence[object], MemoryPool], "tuple[Array, ...] | None"]


def class_of(arguments: Sequence[object]) -> ClassKey | None:
    """The class of a call, or None if an argument is neither an array nor a Python scalar."""
    key: list[object] = []
    for argument in arguments:
        kind = type(argument)
        if kind is np.ndarray:
            array = cast(Array, argument)
            key += (array.dtype, array.ndim, array.flags.c_contiguous)
        elif kind in WEAK:
            key.append(kind)
        else:
            return None
    return tuple(key)


def type_of(argument: Value, shape: Shape | None = None) -> ArgumentType:
    """The signature of one argument; `shape` instead of its own sizes if given."""
    if not isinstance(argument, np.ndarray):
        return ArgumentType(WEAK[type(argument)], ())
    sizes = argument.shape if shape is None else shape
    return ArgumentType(STRONG[argument.dtype], sizes, not argument.flags.c_contiguous)


@dataclass(eq=False)
class Kernel:
    """Compiled code for one signature, with the constants it reads out of the `pool` of the program. The
    library is unloaded when the kernel is collected, which a call in flight prevents."""

    signature: Signature
    reply: CompileReply
    library: InitVar[LoadedLibrary]
    pool: InitVar[Sequence[Constant]] = ()

    def __post_init__(self, library: LoadedLibrary, pool: Sequence[Constant]) -> None:
        weakref.finalize(self, library.close).atexit = False
        if "thread_pool" in self.reply.natives:
            threads.default_threads.load(self.reply.natives["thread_pool"])
        self.constants = [laid_out(pool[c.index].value, c.tile) for c in self.reply.constants]
        self.source, namespace = _generate(self.signature, self.reply, self.constants)
        namespace["entry"] = _Entry(library.address(self.reply.entry))
        self.stub = library.address("jd_stub") if self.reply.stub else 0
        """Address of the call stub, or 0."""
        module = compile(self.source, f"<{self.signature}>", "exec")
        code = next(c for c in module.co_consts if isinstance(c, CodeType))
        self.invoke: Invoke = FunctionType(code, namespace)


# ---- the generated function --------------------------------------------------------------------


@lru_cache(1024)
def _safe(expression: Dim) -> str:
    """`expression` as Python source; symbols get a prefix that no other name has."""
    names = dims.symbols_of(expression)
    return str(dims.substitute(expression, {n: dims.symbol(f"d_{n}") for n in names}))


_PYTHON = {"bool": "bool", "int64": "int", "float64": "float"}
"""The Python type of a weak dtype."""


def _is_static(shape: Shape) -> bool:
    return all(isinstance(size, int) for size in shape)


class _Source:
    """Collects the statements and slots of one `invoke`."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.formats: list[str] = ["<"]
        self.slots: list[str] = []
        self.bound: set[str] = set()
        self.pointers: dict[int, list[str]] = {}
        """Locals with addresses of arguments, by the alignment that they need."""

    def line(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def refuse_if(self, condition: str) -> None:
        self.line(f"if {condition}: return None")

    def slot(self, value: str, code: str = "q") -> None:
        self.formats.append(code)
        self.slots.append(value)

    def argument(self, position: int, argument: ArgumentType) -> None:
        """Bind the sizes of one argument and fill its slots."""
        name = f"a{position}"
        self._check(name, argument)
        if argument.is_integer_scalar:
            value = name if argument.dtype.weak else f"int({name})"
            self.line(f"d_s{position} = {value}")
        if argument.dtype.weak:
            if argument.dtype.name == "int64":
                self.refuse_if(f"not {INT64_MIN} <= {name} <= {INT64_MAX}")
            self.slot(name, "d" if argument.dtype.name == "float64" else "q")
            return
        self.line(f"p{position} = {pointers.text_of(name)}")
        self.slot(f"p{position}")
        self.pointers.setdefault(argument.dtype.numpy.itemsize, []).append(f"p{position}")
        if not _is_static(argument.shape):
            self.line(
                f"{''.join(f'{name}_{x}, ' for x in range(len(argument.shape)))}= {name}.shape"
            )
            for axis, size in enumerate(argument.shape):
                self._bind(f"{name}_{axis}", size)
        for size in argument.shape:
            self.slot(_safe(size))
        if not argument.strided:
            for stride in dims.strides(argument.shape):
                self.slot(_safe(stride))
            return
        item = argument.dtype.numpy.itemsize
        for axis in range(len(argument.shape)):
            if item > 1:
                self.refuse_if(f"{name}.strides[{axis}] % {item}")
            self.slot(f"{name}.strides[{axis}] // {item}")

    def _check(self, name: str, argument: ArgumentType) -> None:
        """Refuse what is of another class, or of another shape where that is known."""
        if argument.dtype.weak:
            self.refuse_if(f"type({name}) is not {_PYTHON[argument.dtype.name]}")
            return
        rank_or_shape = (
            f"shape != {argument.shape}"
            if _is_static(argument.shape)
            else f"ndim != {len(argument.shape)}"
        )
        self.refuse_if(
            f"type({name}) is not ndarray or {name}.dtype != dtype_{argument.dtype.name} or "
            f"{name}.{rank_or_shape} or {name}.flags.c_contiguous is {argument.strided}"
        )

    def check_alignment(self) -> None:
        """Refuse pointers that are no multiple of an element: compiled code relies on that."""
        for itemsize, names in self.pointers.items():
            if itemsize > 1:
                self.refuse_if(f"({' | '.join(names)}) & {itemsize - 1}")

    def _bind(self, local: str, size: Dim) -> None:
        text = _safe(size)
        if isinstance(size, int) or text in self.bound:
            self.refuse_if(f"{local} != {text}")
        else:
            self.line(f"{text} = {local}")
            self.bound.add(text)

    def constant(self, constant: LaidOut) -> None:
        """Fill the slots of what never changes and is kept alive by the kernel."""
        for number in constant.slots:
            self.slot(str(number))

    def result(self, position: int, result: TensorFact) -> None:
        """Allocate one result and fill its slots."""
        sizes = "".join(f"{_safe(s)}, " for s in result.shape)
        size = reduce(dims.mul, result.shape, result.dtype.numpy.itemsize)
        self.line(f"r{position} = array(({sizes}), dtype_{result.dtype.name}, {_safe(size)})")
        self.slot(pointers.text_of(f"r{position}"))
        for size in (*result.shape, *dims.strides(result.shape)):
            self.slot(_safe(size))


def _generate(
    signature: Signature, reply: CompileReply, constants: Sequence[LaidOut]
) -> tuple[str, dict[str, Any]]:
    source = _Source()
    names = [f"a{p}" for p in range(len(signature.arguments))]
    if names:
        source.line(f"{', '.join(names)}, = arguments")
    for position, argument in enumerate(signature.arguments):
        source.argument(position, argument)
    source.check_alignment()
    for relation, left, right in reply.guards:
        source.refuse_if(f"not {_safe(left)} {relation} {_safe(right)}")
    for constant in constants:
        source.constant(constant)
    if reply.results:
        source.line("array = pool.array")
    for position, result in enumerate(reply.results):
        source.result(position, result)
    _emit_call(source, reply.arena, reply.parallel)
    source.refuse_if("status")
    source.line(f"return ({''.join(f'r{p}, ' for p in range(len(reply.results)))})")
    text = "\n".join(("def invoke(arguments, pool):", *source.lines, ""))
    namespace: dict[str, Any] = {
        **dims.FUNCTIONS,
        **pointers.NAMES,
        "ndarray": np.ndarray,
        "context": threads.context,
        "pack": struct.Struct("".join(source.formats)).pack,
        **{f"dtype_{x.dtype.name}": x.dtype.numpy for x in (*signature.arguments, *reply.results)},
    }
    return text, namespace


def _emit_call(source: _Source, arena: Dim, parallel: bool) -> None:
    context = "context()" if parallel else "0"
    if arena == 0:
        source.slot("0")
        source.slot(context)
        source.line(f"status = entry(pack({', '.join(source.slots)}))")
        return
    source.line(f"arena = pool.allocate({_safe(arena)})")
    source.slot("pool.address(arena)")
    source.slot(context)
    source.line(f"status = entry(pack({', '.join(source.slots)}))")
    source.line("pool.recycle(arena)")


# ---- why a call did not fit --------------------------------------------------------------------


class Compiled(Protocol):
    """Code, loaded or not."""

    @property
    def signature(self) -> Signature:
        """What it was compiled for."""
        ...

    @property
    def reply(self) -> CompileReply:
        """What the compiler said of it."""
        ...


def differences(
    kernel: Compiled,
    signature: Signature,
    values: Sequence[int | None] = (),
    names: Sequence[str] = (),
    class_of: Callable[[int], range | None] = lambda size: None,
) -> Iterator[str]:
    """What keeps a call of the exact `signature` from using `kernel`; nothing if it fits.

    `values` are the integer scalars among the arguments, which guards may speak of; `names` is what people
    call the arguments; `class_of` gives the sizes that are padded to the same.
    """
    entry = kernel.signature.arguments
    if len(entry) != len(signature.arguments):
        yield f"{len(signature.arguments)} argument(s), entry has {len(entry)}"
        return
    bound = {f"s{p}": v for p, v in enumerate(values) if v is not None}
    places: dict[str, str] = {}
    for position, (have, want) in enumerate(zip(signature.arguments, entry, strict=True)):
        where = names[position] if position < len(names) else f"argument {position}"
        if have.dtype != want.dtype:
            yield f"dtype of {where}: {have.dtype}, entry has {want.dtype}"
        elif len(have.shape) != len(want.shape):
            yield f"rank of {where}: {len(have.shape)}, entry has {len(want.shape)}"
        elif have.strided != want.strided:
            yield f"layout of {where}: {_layout(have)}, entry has {_layout(want)}"
        else:
            yield from _size_differences(where, have.shape, want.shape, bound, places, class_of)
    yield from _guard_differences(kernel.reply.guards, bound, places)


def _layout(argument: ArgumentType) -> str:
    return "strided" if argument.strided else "contiguous"


def _size_differences(
    where: str,
    have: Shape,
    want: Shape,
    bound: dict[str, int],
    places: dict[str, str],
    class_of: Callable[[int], range | None],
) -> Iterator[str]:
    for axis, (size, entry) in enumerate(zip(have, want, strict=True)):
        assert isinstance(size, int)
        if not isinstance(entry, int):
            places.setdefault(str(entry), f"dim {axis} of {where}")
            known = bound.setdefault(str(entry), size)
            if known != size:
                yield f"dim {axis} of {where}: {size}, entry has {entry} = {known}"
        elif size != entry:
            padded = class_of(entry)
            if padded is not None and padded[-1] == entry and size not in padded:
                outside = f"{padded[0]}-{entry}" if len(padded) > 1 else entry
                yield f"dim {axis} of {where}: {size} is outside class {outside}"
            else:
                yield f"dim {axis} of {where}: {size}, entry has {entry}"


def _guard_differences(
    guards: Sequence[tuple[str, Dim, Dim]], bound: dict[str, int], places: dict[str, str]
) -> Iterator[str]:
    """Guards that do not hold; those that bound one size by numbers are told as its class."""
    classes: dict[str, tuple[int | None, int | None]] = {}
    for relation, left, right in guards:
        name = str(right if isinstance(left, int) else left)
        low, high = classes.get(name, (None, None))
        if relation == "<=" and name in places and isinstance(left, int):
            classes[name] = (left if low is None else max(low, left)), high
        elif relation == "<=" and name in places and isinstance(right, int):
            classes[name] = low, (right if high is None else min(high, right))
        elif dims.symbols_of(left) | dims.symbols_of(right) <= set(bound):
            x, y = dims.evaluate(left, bound), dims.evaluate(right, bound)
            if not (x == y if relation == "==" else x <= y):
                yield f"guard {left} {relation} {right} does not hold: {x}, {y}"
    for name, (low, high) in classes.items():
        size = bound[name]
        if (low is not None and size < low) or (high is not None and size > high):
            outside = f"{low} and up" if high is None else f"{low or 0}-{high}"
            yield f"{places[name]}: {size} is outside class {outside}"
