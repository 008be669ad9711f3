"""Programs in memory: constants, functions, basic blocks, instructions over mutable registers.

Everything here is immutable data; building, text, binary and checking live in the modules beside this
one. Registers are numbered from 0 in each function, parameters first. Blocks are numbered in order, the
first one is the entry.

Opcodes are the operators of `operators.OPERATORS` plus the core ones below:

    const      result <- constants[attributes["constant"]]
    move       result <- operand
    destroy    the operand register becomes undefined, its value may be released
    call       results <- functions[attributes["callee"]](operands)
    br         to targets[0]
    cond_br    operand (rank 0, non-zero is true) ? targets[0] : targets[1]
    switch     operand (rank-0 integer) equals attributes["cases"][i] -> targets[i], else targets[-1]
    return     operands are the results
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jitdialects.bytecode.attributes import Attribute
from jitdialects.bytecode.dtypes import DType
from jitdialects.errors import BytecodeError

CORE_OPCODES = ("const", "move", "destroy", "call", "br", "cond_br", "switch", "return")
TERMINATORS = ("br", "cond_br", "switch", "return")
NO_ATTRIBUTES: Mapping[str, Attribute] = MappingProxyType({})
LINE = 64
"""Bytes of a line of the cache, and of the widest vector."""


@dataclass(frozen=True)
class Location:
    """Where an instruction comes from; lines and columns count from 1."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


HASHED = 16
"""Elements of a constant, about, that its hash depends on."""


def copy_at_line(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """A C-contiguous copy that begins at a line, if it is as long as one: vectors that lie in two take twice as long."""
    if array.nbytes < LINE:
        return np.array(array, order="C")
    memory = np.empty(array.nbytes + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@dataclass(frozen=True, eq=False)
class Constant:
    """An entry of the constant pool. `value` is read-only and C-contiguous, and begins where a line of the cache does
    if it is as long as one; weak ones have rank 0."""

    dtype: DType
    value: NDArray[np.generic]

    @staticmethod
    def of(value: ArrayLike, dtype: DType | None = None) -> Constant:
        """A constant with a copy of `value`. Without a `dtype` it is the value's own; Python scalars
        are weak."""
        if dtype is None:
            weak = type(value) in (bool, int, float)
            dtype = DType(np.asarray(value).dtype.name, weak)
        array = copy_at_line(np.asarray(value, dtype.numpy))
        array.setflags(write=False)
        return Constant(dtype, array)

    @staticmethod
    def from_bytes(dtype: DType, sizes: tuple[int, ...], data: bytes | memoryview) -> Constant:
        """The inverse of `to_bytes`; `BytecodeError` where `data` is not such an array."""
        little = dtype.numpy.newbyteorder("<")
        if len(data) != math.prod(sizes) * little.itemsize:
            raise BytecodeError(
                f"a constant of dtype {dtype} and shape {list(sizes)} has "
                f"{math.prod(sizes) * little.itemsize} bytes, got {len(data)}"
            )
        array = copy_at_line(np.frombuffer(data, little).astype(dtype.numpy, copy=False))
        array = array.reshape(sizes)
        if dtype.name == "bool" and not np.isin(np.frombuffer(data, np.uint8), (0, 1)).all():
            raise BytecodeError("the elements of a bool constant are bytes 0 or 1")
        array.setflags(write=False)
        return Constant(dtype, array)

    def to_bytes(self) -> bytes:
        """The elements in C order, little endian."""
        return self.value.astype(self.value.dtype.newbyteorder("<"), copy=False).tobytes()

    def __eq__(self, other: object) -> bool:
        """Bitwise, so that NaN equals itself and -0.0 differs from 0.0."""
        if self is other or not isinstance(other, Constant):
            return self is other
        of_one_kind = (self.dtype, self.value.shape) == (other.dtype, other.value.shape)
        return of_one_kind and self.value.tobytes() == other.value.tobytes()

    def __hash__(self) -> int:
        # of weights, a few elements tell one from the other
        sample = self.value.reshape(-1)[:: max(1, self.value.size // HASHED)]
        return hash((self.dtype, self.value.shape, sample.tobytes()))


@dataclass(frozen=True)
class Instruction:
    """One instruction. `targets` are block numbers. `location` never takes part in comparisons."""

    opcode: str
    results: tuple[int, ...] = ()
    operands: tuple[int, ...] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=lambda: NO_ATTRIBUTES)
    targets: tuple[int, ...] = ()
    location: Location | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Block:
    """A named basic block; the last instruction, and only it, is a terminator."""

    name: str
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True)
class Function:
    """`parameters` registers hold the arguments; `registers` is the size of the register file."""

    name: str
    parameters: int
    results: int
    registers: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Program:
    """A constant pool and functions with distinct names. Verified before anything runs it."""

    constants: tuple[Constant, ...]
    functions: tuple[Function, ...]

    def function(self, name: str) -> Function | None:
        """The function called `name`."""
        return next((f for f in self.functions if f.name == name), None)

    @staticmethod
    def from_text(text: str, file: str = "<text>") -> Program:
        """Assemble and verify; `BytecodeError` with `file:line:col` otherwise."""
        from jitdialects.bytecode.assembler import assemble

        return assemble(text, file)

    def to_text(self) -> str:
        """Text that assembles to an equal program."""
        from jitdialects.bytecode.assembler import disassemble

        return disassemble(self)

    @staticmethod
    def from_bytes(data: bytes) -> Program:
        """Decode and verify a `.jbc` file; `BytecodeError` with the byte offset otherwise."""
        from jitdialects.bytecode.binary import decode

        return decode(data)

    def to_bytes(self) -> bytes:
        """The `.jbc` form; equal programs give equal bytes."""
        from jitdialects.bytecode.binary import encode

        return encode(self)

    @staticmethod
    def load(path: str | Path) -> Program:
        """Read a `.jbc` file."""
        return Program.from_bytes(Path(path).read_bytes())

    def save(self, path: str | Path) -> None:
        """Write a `.jbc` file."""
        Path(path).write_bytes(self.to_bytes())
