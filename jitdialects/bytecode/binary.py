"""The `.jbc` file, format 1. Little endian; equal programs with equal locations give equal bytes.

    magic      8 bytes  89 4a 42 43 0d 0a 1a 0a  ("JBC", and what text-mode transfer would damage)
    version    u32      1
    table      4 entries of  name (4 bytes), offset u64, length u64, CRC-32 of the section u32
    checksum   u32      CRC-32 of everything before it
    sections   in the order of the table, without gaps, to the end of the file:

    STRS   count, then per string: length, UTF-8 bytes. What `string` means below is a number in here.
    CNST   count, then per constant: code of the dtype, rank, sizes, elements
    FUNC   count, then per function: string name, parameters, results, registers, number of blocks; per
           block: string name, number of instructions; per instruction: string opcode, results, operands,
           targets (each a list: count, items), number of attributes, per attribute string name, value
    LOCS   per instruction, in order: 0, or 1 + string file, line, column. Empty: there are none.

Numbers are unsigned LEB128 varints of at most 64 bits, signed ones zigzag-coded. An attribute value is a
tag byte and its payload (`_TAGS`). Operators and attributes are stored by name, so adding an operator
changes no file. A later version must read all of this; corpus files in the tests see to it.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TypeVar

from jitdialects.bytecode.attributes import (
    At,
    Attribute,
    Bound,
    Ellipsis,
    IndexEntry,
    IndexSpec,
    Ints,
    NewAxis,
    OperandRef,
    ShapeSpec,
    Slice,
)
from jitdialects.bytecode.dtypes import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    WEAK_BOOL,
    WEAK_FLOAT,
    WEAK_INT,
)
from jitdialects.bytecode.program import (
    NO_ATTRIBUTES,
    Block,
    Constant,
    Function,
    Instruction,
    Location,
    Program,
)
from jitdialects.bytecode.verifier import MAX_RANK, check_sizes, verify
from jitdialects.errors import BytecodeError

T = TypeVar("T")
MAGIC = b"\x89JBC\r\n\x1a\n"
VERSION = 1
SECTIONS = (b"STRS", b"CNST", b"FUNC", b"LOCS")
_ENTRY = struct.Struct("<4sQQI")
_HEADER_BYTES = len(MAGIC) + 4 + len(SECTIONS) * _ENTRY.size + 4
# position = code; what comes later is appended, so that files stay what they are
_DTYPES = (BOOL, INT64, FLOAT32, WEAK_BOOL, WEAK_INT, WEAK_FLOAT, INT32, FLOAT64)
# position = tag: of attribute values, of bounds in them, of the entries of an index
_TAGS = ("none", "false", "true", "int", "string", "shape", "index", "ints")
_BOUNDS = ("none", "number", "reference")
_ENTRIES = ("slice", "at", "ellipsis", "newaxis")


def encode(program: Program, *, locations: bool = True) -> bytes:
    """The bytes of a valid program. Without `locations` they depend on what the program does only."""
    writer = _Writer()
    located = [i.location for i in _instructions(program)] if locations else []
    sections = {
        b"CNST": writer.constants(program.constants),
        b"FUNC": writer.functions(program.functions),
        b"LOCS": writer.locations(located) if any(located) else b"",
    }
    sections[b"STRS"] = writer.string_table()  # last: the others fill it
    offset = _HEADER_BYTES
    head = MAGIC + struct.pack("<I", VERSION)
    for name in SECTIONS:
        data = sections[name]
        head += _ENTRY.pack(name, offset, len(data), zlib.crc32(data))
        offset += len(data)
    head += struct.pack("<I", zlib.crc32(head))
    return head + b"".join(sections[name] for name in SECTIONS)


def decode(data: bytes) -> Program:
    """The verified program in `data`; anything else raises `BytecodeError` with the byte offset.

    Linear in the length of `data`, and allocates nothing that the data does not pay for.
    """
    sections = _read_header(data)
    strings = _strings(sections[b"STRS"])
    constants = sections[b"CNST"].list(lambda: _constant(sections[b"CNST"]))
    where = sections[b"FUNC"].at
    functions = _Functions(sections[b"FUNC"], sections[b"LOCS"], strings).read()
    for reader in sections.values():
        reader.finish()
    program = Program(tuple(constants), tuple(functions))
    try:
        verify(program)
    except BytecodeError as error:
        raise BytecodeError(
            f"{error.message} (functions start at byte {where})", error.location
        ) from None
    return program


def _instructions(program: Program) -> Iterator[Instruction]:
    for function in program.functions:
        for block in function.blocks:
            yield from block.instructions


# ---- writing -----------------------------------------------------------------------------------


class _Writer:
    """Makes sections; strings are numbered in the order of their first use."""

    def __init__(self) -> None:
        self._strings: dict[str, int] = {}
        self._out = bytearray()

    def _take(self) -> bytes:
        out, self._out = bytes(self._out), bytearray()
        return out

    def _number(self, value: int) -> None:
        while value > 0x7F:
            self._out.append(value & 0x7F | 0x80)
            value >>= 7
        self._out.append(value)

    def _signed(self, value: int) -> None:
        self._number(value << 1 if value >= 0 else (-value << 1) - 1)

    def _string(self, text: str) -> None:
        self._number(self._strings.setdefault(text, len(self._strings)))

    def _numbers(self, values: tuple[int, ...]) -> None:
        self._number(len(values))
        for value in values:
            self._number(value)

    def string_table(self) -> bytes:
        self._number(len(self._strings))
        for text in self._strings:
            raw = text.encode("utf-8", "surrogatepass")
            self._number(len(raw))
            self._out += raw
        return self._take()

    def constants(self, constants: tuple[Constant, ...]) -> bytes:
        self._number(len(constants))
        for constant in constants:
            self._number(_DTYPES.index(constant.dtype))
            self._numbers(constant.value.shape)
            self._out += constant.to_bytes()
        return self._take()

    def functions(self, functions: tuple[Function, ...]) -> bytes:
        self._number(len(functions))
        for function in functions:
            self._string(function.name)
            for count in (function.parameters, function.results, function.registers):
                self._number(count)
            self._number(len(function.blocks))
            for block in function.blocks:
                self._string(block.name)
                self._number(len(block.instructions))
                for instruction in block.instructions:
                    self._instruction(instruction)
        return self._take()

    def _instruction(self, instruction: Instruction) -> None:
        self._string(instruction.opcode)
        self._numbers(instruction.results)
        self._numbers(instruction.operands)
        self._numbers(instruction.targets)
        self._number(len(instruction.attributes))
        for name in sorted(instruction.attributes):
            self._string(name)
            self._value(instruction.attributes[name])

    def _tag(self, tags: tuple[str, ...], tag: str) -> None:
        self._out.append(tags.index(tag))

    def _value(self, value: Attribute) -> None:
        match value:
            case None:
                self._tag(_TAGS, "none")
            case bool():
                self._tag(_TAGS, "true" if value else "false")
            case int():
                self._tag(_TAGS, "int")
                self._signed(value)
            case str():
                self._tag(_TAGS, "string")
                self._string(value)
            case ShapeSpec(sizes):
                self._tag(_TAGS, "shape")
                self._number(len(sizes))
                for size in sizes:
                    self._bound(size)
            case IndexSpec(entries):
                self._tag(_TAGS, "index")
                self._number(len(entries))
                for entry in entries:
                    self._entry(entry)
            case Ints(values):
                self._tag(_TAGS, "ints")
                self._number(len(values))
                for number in values:
                    self._signed(number)

    def _bound(self, bound: Bound) -> None:
        match bound:
            case None:
                self._tag(_BOUNDS, "none")
            case OperandRef(position):
                self._tag(_BOUNDS, "reference")
                self._number(position)
            case _:
                self._tag(_BOUNDS, "number")
                self._signed(bound)

    def _entry(self, entry: IndexEntry) -> None:
        match entry:
            case Slice(start, stop, step):
                self._tag(_ENTRIES, "slice")
                self._bound(start)
                self._bound(stop)
                self._signed(step)
            case At(index):
                self._tag(_ENTRIES, "at")
                self._bound(index)
            case Ellipsis():
                self._tag(_ENTRIES, "ellipsis")
            case NewAxis():
                self._tag(_ENTRIES, "newaxis")

    def locations(self, located: list[Location | None]) -> bytes:
        for location in located:
            if location is None:
                self._number(0)
                continue
            self._number(1 + self._strings.setdefault(location.file, len(self._strings)))
            self._number(location.line)
            self._number(location.column)
        return self._take()


# ---- reading -----------------------------------------------------------------------------------


class _Reader:
    """One section: `data[at:end]`, with every read checked against the end."""

    def __init__(self, data: bytes, at: int, end: int, what: str) -> None:
        self._data, self.at, self._end, self._what = data, at, end, what

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return self._end - self.at

    def error(self, sentence: str, at: int | None = None) -> BytecodeError:
        where = self.at if at is None else at
        return BytecodeError(
            f"byte {where}, section {self._what}: {sentence}; the file is damaged, write it again"
        )

    @contextmanager
    def blaming(self, at: int) -> Generator[None, None, None]:
        """Give errors of the other modules this offset."""
        try:
            yield
        except BytecodeError as error:
            raise self.error(error.message, at) from None

    def byte(self) -> int:
        if not self.left:
            raise self.error("ends too early")
        self.at += 1
        return self._data[self.at - 1]

    def number(self) -> int:
        start, value = self.at, 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> 64:
                    break
                return value
        raise self.error("a number of more than 64 bits", start)

    def signed(self) -> int:
        value = self.number()
        return value >> 1 if not value & 1 else -(value >> 1) - 1

    def count(self) -> int:
        """How many items follow; each has at least one byte."""
        start, count = self.at, self.number()
        if count > self.left:
            raise self.error(f"{count} items in the {self.left} bytes that are left", start)
        return count

    def list(self, item: Callable[[], T]) -> list[T]:
        return [item() for _ in range(self.count())]

    def take(self, length: int) -> memoryview:
        if length > self.left:
            raise self.error(f"{length} bytes wanted, {self.left} are left")
        self.at += length
        return memoryview(self._data)[self.at - length : self.at]

    def choice(self, names: tuple[T, ...], what: str) -> T:
        start, code = self.at, self.byte()
        if code >= len(names):
            raise self.error(f"{code} is no {what}", start)
        return names[code]

    def finish(self) -> None:
        if self.left:
            raise self.error(f"{self.left} bytes too many")


def _read_header(data: bytes) -> dict[bytes, _Reader]:
    """The sections, their checksums checked."""
    if data[: len(MAGIC)] != MAGIC:
        raise BytecodeError(
            "byte 0: this is no .jbc file (wrong magic); if it is program text, assemble it first"
        )
    reader = _Reader(data, len(MAGIC), len(data), "header")
    version = int.from_bytes(reader.take(4), "little")
    if version != VERSION:
        raise BytecodeError(
            f"byte {len(MAGIC)}: format {version} is not known, only format {VERSION}; "
            "a newer jitdialects wrote this file, update to read it"
        )
    table = [_ENTRY.unpack(reader.take(_ENTRY.size)) for _ in SECTIONS]
    end = reader.at
    if zlib.crc32(data[:end]) != int.from_bytes(reader.take(4), "little"):
        raise reader.error("wrong checksum", end)
    out: dict[bytes, _Reader] = {}
    for expected, (name, offset, length, checksum) in zip(SECTIONS, table, strict=True):
        start = reader.at
        if name != expected or offset != start:
            raise reader.error(f"the table puts {name!r} at byte {offset}, not {expected!r} here")
        if zlib.crc32(reader.take(length)) != checksum:
            raise reader.error(f"wrong checksum of {name!r}", start)
        out[expected] = _Reader(data, start, reader.at, name.decode())
    reader.finish()
    return out


def _strings(reader: _Reader) -> list[str]:
    def string() -> str:
        start = reader.at
        try:
            return str(reader.take(reader.number()), "utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise reader.error("a string that is not UTF-8", start) from None

    return reader.list(string)


def _constant(reader: _Reader) -> Constant:
    start = reader.at
    dtype = reader.choice(_DTYPES, "dtype")
    rank = reader.count()
    if rank > MAX_RANK:
        raise reader.error(f"a constant of rank {rank}, the limit is {MAX_RANK}", start)
    sizes = tuple(reader.number() for _ in range(rank))
    with reader.blaming(start):
        check_sizes("a constant", sizes, dtype.numpy.itemsize)
    elements = reader.take(math.prod(sizes) * dtype.numpy.itemsize)
    with reader.blaming(start):
        constant = Constant.from_bytes(dtype, sizes, elements)
    return constant


class _Functions:
    """Reads the functions, and beside them the locations of their instructions."""

    def __init__(self, functions: _Reader, locations: _Reader, strings: list[str]) -> None:
        self._reader, self._strings = functions, strings
        self._locations = locations if locations.left else None

    def read(self) -> list[Function]:
        return self._reader.list(self._function)

    def _name(self) -> str:
        start = self._reader.at
        return self._string(self._reader, self._reader.number(), start)

    def _string(self, reader: _Reader, number: int, start: int) -> str:
        if number >= len(self._strings):
            raise reader.error(f"string {number} of {len(self._strings)}", start)
        return self._strings[number]

    def _function(self) -> Function:
        reader = self._reader
        name = self._name()
        parameters, results, registers = reader.number(), reader.number(), reader.number()
        return Function(name, parameters, results, registers, tuple(reader.list(self._block)))

    def _block(self) -> Block:
        name = self._name()
        return Block(name, tuple(self._reader.list(self._instruction)))

    def _instruction(self) -> Instruction:
        reader = self._reader
        opcode = self._name()
        results, operands, targets = (tuple(reader.list(reader.number)) for _ in range(3))
        start = reader.at
        pairs = reader.list(self._attribute)
        attributes = dict(pairs)
        if len(attributes) != len(pairs):
            raise reader.error("an attribute comes twice", start)
        return Instruction(
            opcode, results, operands, attributes or NO_ATTRIBUTES, targets, self._location()
        )

    def _location(self) -> Location | None:
        reader = self._locations
        if reader is None:
            return None
        start, number = reader.at, reader.number()
        if number == 0:
            return None
        file = self._string(reader, number - 1, start)
        return Location(file, reader.number(), reader.number())

    def _attribute(self) -> tuple[str, Attribute]:
        return self._name(), self._value()

    def _value(self) -> Attribute:
        reader = self._reader
        match reader.choice(_TAGS, "kind of attribute value"):
            case "int":
                return reader.signed()
            case "string":
                return self._name()
            case "shape":
                return ShapeSpec(tuple(reader.list(self._size)))
            case "index":
                return IndexSpec(tuple(reader.list(self._entry)))
            case "ints":
                return Ints(tuple(reader.list(reader.signed)))
            case tag:
                return {"none": None, "false": False, "true": True}[tag]

    def _bound(self) -> Bound:
        match self._reader.choice(_BOUNDS, "kind of bound"):
            case "number":
                return self._reader.signed()
            case "reference":
                return OperandRef(self._reader.number())
            case _:
                return None

    def _size(self) -> int | OperandRef:
        start, bound = self._reader.at, self._bound()
        if bound is None:
            raise self._reader.error("a size or index that is missing", start)
        return bound

    def _entry(self) -> IndexEntry:
        match self._reader.choice(_ENTRIES, "kind of index entry"):
            case "slice":
                return Slice(self._bound(), self._bound(), self._reader.signed())
            case "at":
                return At(self._size())
            case "ellipsis":
                return Ellipsis()
            case _:
                return NewAxis()
