"""Relocatable x86-64 ELF objects to one shared library, in memory, without a linker on the machine.

What LLVM emits for kernels (`reloc=pic`, small code model) needs little of ELF: sections of code, constants
and data, and six kinds of relocation. `link` lays them out as

    headers, dynamic symbols, hash table, relocations | constants | code | stubs     read + execute
    data | table of external addresses | dynamic section                             read + write

resolves what is inside, and leaves names of other libraries to the dynamic linker: a call goes through a
stub and the table, both filled at load time. Unwind tables are dropped (kernels do not throw), debug sections are
kept behind all that is loaded (`elf_debug`). Anything
else, such as thread-local storage, an unknown relocation or a truncated file, is a `LinkError`: a library
that loads is a library that was understood.

References: System V ABI, x86-64 supplement 1.0, chapters 4 and 5.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jitdialects.errors import Error
from jitdialects.runtime.engines.elf_debug import (
    DebugSection,
    Reference,
    is_debug,
    is_known,
    names_of,
)

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELA = struct.Struct("<QQq")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_DYNAMIC = struct.Struct("<QQ")

_IDENTITY = b"\x7fELF\x02\x01\x01" + bytes(9)  # 64 bits, little endian, version 1, System V
_RELOCATABLE, _SHARED, _X86_64 = 1, 3, 62
_PROGBITS, _SYMTAB, _STRTAB, _RELA_SECTION, _HASH, _NOBITS, _REL, _DYNSYM = 1, 2, 3, 4, 5, 8, 9, 11
_UNWIND = 0x70000001
_WRITE, _ALLOC, _EXECUTE, _TLS = 1, 2, 4, 0x400

_R_64, _R_PC32, _R_PLT32, _R_GLOB_DAT, _R_RELATIVE, _R_GOTPCREL = 1, 2, 4, 6, 8, 9
_R_GOTPCRELX, _R_REX_GOTPCRELX = 41, 42
_GOT_RELATIVE = frozenset({_R_GOTPCREL, _R_GOTPCRELX, _R_REX_GOTPCRELX})
_KNOWN_RELOCATIONS = frozenset({_R_64, _R_PC32, _R_PLT32}) | _GOT_RELATIVE
_MOV, _LEA = 0x8B, 0x8D

_PAGE = 4096
_LARGEST_ZEROS = 1 << 24
_STUB_SIZE, _SLOT_SIZE = 16, 8
_CONSTANTS, _CODE, _DATA = range(3)
_FUNCTION = 2
_SECTION_NAMES = 4
"""The section that has the names of sections."""


class LinkError(Error):
    """An object that this linker does not understand, or that does not fit the others."""


@dataclass(frozen=True)
class Place:
    """An offset in one of the three output areas: constants, code, data."""

    area: int
    offset: int


@dataclass(frozen=True)
class Symbol:
    """A symbol of an input object. `place` is None where another file must define it."""

    name: str
    place: Place | None
    size: int = 0


@dataclass(frozen=True)
class Relocation:
    """At `place`, write the address of `symbol`, in the way that `kind` says."""

    place: Place
    kind: int
    symbol: Symbol
    addend: int


@dataclass
class Area:
    """One of the output areas while it grows. `base` is its address, known after layout."""

    data: bytearray = field(default_factory=bytearray)
    alignment: int = 64
    base: int = 0

    def append(self, data: bytes, alignment: int) -> int:
        """Add `data` at the next multiple of `alignment`; returns the offset."""
        self.alignment = max(self.alignment, alignment)
        self.data += bytes(-len(self.data) % alignment)
        offset = len(self.data)
        self.data += data
        return offset


def link(
    objects: Sequence[bytes],
    needed: Sequence[str] = ("libm.so.6",),
    prefixes: Sequence[str] | None = None,
    title: Callable[[str], str] | None = None,
) -> bytes:
    """One shared library from `objects`; `needed` are loaded with it if a name is left undefined. What an
    object defines gets its prefix, if there are `prefixes`; other objects then refer to that name. Functions that
    only their object knows get the name that `title` gives them, for debuggers and profilers; "" for none.

    Raises `LinkError` for anything unknown in an object and for a symbol defined twice.
    """
    linker = _Linker(title or (lambda name: ""))
    try:
        for data, prefix in zip(objects, prefixes or [""] * len(objects), strict=True):
            linker.add(data, prefix)
        return linker.shared_library(needed)
    except (struct.error, LookupError, ValueError) as error:
        raise LinkError(f"linker: truncated or damaged object ({error})") from error


def code_sections(data: bytes) -> list[bytes]:
    """The machine code in an object."""
    reader = _Reader(data)
    return [reader.content(s) for s in reader.sections if _area_of(s) == _CODE]


# ---- reading objects


@dataclass(frozen=True)
class _Section:
    name: str
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


class _Reader:
    """Bounds-checked reading of one object."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        header: tuple[Any, ...] = _HEADER.unpack_from(data, 0)
        identity, kind, machine = header[0], header[1], header[2]
        if identity[:7] != _IDENTITY[:7]:
            raise LinkError("linker: not a 64-bit little-endian ELF file")
        if kind != _RELOCATABLE or machine != _X86_64:
            raise LinkError(
                "linker: not a relocatable object for x86-64; other CPUs are unknown here"
            )
        start, count, names = header[6], header[12], header[13]
        raw: list[tuple[int, ...]] = [
            _SECTION.unpack_from(data, start + i * _SECTION.size) for i in range(count)
        ]
        names_table = raw[int(names)]
        self.sections = [
            _Section(
                self.string(names_table[4], names_table[5], s[0]),
                s[1],
                s[2],
                s[4],
                s[5],
                s[6],
                s[7],
                s[8],
            )
            for s in raw
        ]

    def string(self, start: int, size: int, index: int) -> str:
        """The zero-terminated string at `index` of the table at `start`."""
        end = self.data.index(b"\0", start + index, start + size)
        return self.data[start + index : end].decode()

    def content(self, section: _Section) -> bytes:
        """The bytes of `section`; zeros for one that takes no space in the file."""
        if section.alignment > _PAGE or section.alignment & (section.alignment - 1):
            raise LinkError(f"linker: section {section.name} has alignment {section.alignment}")
        if section.type == _NOBITS:
            if section.size > _LARGEST_ZEROS:
                raise LinkError(f"linker: section {section.name} has {section.size} bytes of zeros")
            return bytes(section.size)
        data = self.data[section.offset : section.offset + section.size]
        if len(data) != section.size:
            raise LinkError(f"linker: section {section.name} reaches past the end of the object")
        return data


def _area_of(section: _Section) -> int | None:
    """Where `section` goes; None for what a running library does not need."""
    if not section.flags & _ALLOC or not section.size or section.type == _UNWIND:
        return None
    if section.flags & _TLS:
        raise LinkError(f"linker: thread-local section {section.name} is not supported")
    if section.type not in (_PROGBITS, _NOBITS):
        raise LinkError(f"linker: section {section.name} has unknown type {section.type:#x}")
    if section.name == ".eh_frame":
        return None
    if section.flags & _EXECUTE:
        return _CODE
    return _DATA if section.flags & _WRITE else _CONSTANTS


def _elf_hash(name: str) -> int:
    """The hash function of DT_HASH (System V ABI, chapter 5)."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high & 0xFFFFFFFF
    return value


def _aligned(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


# ---- linking


class _Linker:
    def __init__(self, title: Callable[[str], str]) -> None:
        self.title = title
        self.areas = (Area(), Area(), Area())
        self.defined: dict[str, Symbol] = {}
        self.shown: dict[str, Symbol] = {}
        """Functions with names for people."""
        self.debug: list[DebugSection] = []
        self.relocations: list[Relocation] = []

    def add(self, data: bytes, prefix: str = "") -> None:
        """Read one object: its sections, symbols and relocations."""
        reader = _Reader(data)
        starts: dict[int, Place] = {}
        for index, section in enumerate(reader.sections):
            area = _area_of(section)
            if area is not None:
                offset = self.areas[area].append(reader.content(section), max(1, section.alignment))
                starts[index] = Place(area, offset)
        symbols: dict[int, list[Symbol | None]] = {}
        for index, section in enumerate(reader.sections):
            if section.type == _SYMTAB:
                symbols[index] = self._symbols(reader, section, starts, prefix)
        if not self.debug:
            self._keep_debug_sections(reader, symbols)
        for section in reader.sections:
            if section.info not in starts:
                continue
            if section.type == _REL:
                raise LinkError("linker: relocations without addends are not supported")
            if section.type == _RELA_SECTION:
                target = reader.sections[section.info]
                self._relocate(reader, section, target, starts[section.info], symbols[section.link])

    def _symbols(
        self, reader: _Reader, table: _Section, starts: dict[int, Place], prefix: str
    ) -> list[Symbol | None]:
        strings = reader.sections[table.link]
        symbols: list[Symbol | None] = []
        for index in range(table.size // _SYMBOL.size):
            at = table.offset + index * _SYMBOL.size
            entry: tuple[int, ...] = _SYMBOL.unpack_from(reader.data, at)
            at_name, info, _, section, value, size = entry
            name = reader.string(strings.offset, strings.size, at_name)
            if section == 0:
                symbols.append(Symbol(name, None))
            elif (start := starts.get(section)) is None:
                symbols.append(None)
            else:
                if value + size > reader.sections[section].size:
                    raise LinkError(f"linker: symbol {name!r} reaches past its section")
                symbol = Symbol(name, Place(start.area, start.offset + value), size)
                symbols.append(symbol)
                if info >> 4:  # global or weak
                    name = prefix + name
                    if name in self.defined:
                        raise LinkError(f"linker: {name!r} is defined twice")
                    self.defined[name] = symbol
                elif info & 15 == _FUNCTION and (shown := self.title(name)):
                    self.shown[shown] = symbol
        return symbols

    def _keep_debug_sections(
        self, reader: _Reader, symbols: Mapping[int, Sequence[Symbol | None]]
    ) -> None:
        found = {i: s for i, s in enumerate(reader.sections) if is_debug(s.name)}
        kept = {i: DebugSection(s.name, reader.content(s)) for i, s in found.items()}
        for table in reader.sections:
            if table.type != _RELA_SECTION or table.info not in kept:
                continue
            section = kept[table.info]
            for index in range(table.size // _RELA.size):
                entry: tuple[int, ...]
                entry = _RELA.unpack_from(reader.data, table.offset + index * _RELA.size)
                offset, info, addend = entry
                kind = info & 0xFFFFFFFF
                if not is_known(kind):
                    raise LinkError(f"linker: relocation of kind {kind} in {section.name}")
                # what has no place is a section that is not loaded: a debug section
                code = symbols[table.link][info >> 32]
                section.references.append(Reference(offset, kind, code, addend))
        self.debug = list(kept.values())

    def _relocate(
        self,
        reader: _Reader,
        table: _Section,
        target: _Section,
        start: Place,
        symbols: Sequence[Symbol | None],
    ) -> None:
        for index in range(table.size // _RELA.size):
            at = table.offset + index * _RELA.size
            entry: tuple[int, ...] = _RELA.unpack_from(reader.data, at)
            offset, info, addend = entry
            kind, symbol = info & 0xFFFFFFFF, symbols[info >> 32]
            if kind not in _KNOWN_RELOCATIONS:
                raise LinkError(f"linker: relocation of kind {kind} is not supported")
            if symbol is None:
                raise LinkError("linker: relocation against a section that is not kept")
            if offset + (8 if kind == _R_64 else 4) > target.size:
                raise LinkError(f"linker: relocation past the end of {target.name}")
            place = Place(start.area, start.offset + offset)
            self.relocations.append(Relocation(place, kind, symbol, addend))

    def shared_library(self, needed: Sequence[str]) -> bytes:
        """Lay out, resolve and write."""
        external = [r.symbol.name for r in self.relocations if not self._is_inside(r.symbol)]
        externals = list(dict.fromkeys(external))
        return _Library(self, externals, needed if externals else ()).write()

    def _is_inside(self, symbol: Symbol) -> bool:
        return symbol.place is not None or symbol.name in self.defined


class _Library:
    """Addresses and bytes of the output. File offsets equal addresses, so that one `mmap` shows all."""

    def __init__(self, linker: _Linker, externals: list[str], needed: Sequence[str]) -> None:
        self.linker = linker
        self.externals = {name: index for index, name in enumerate(externals)}
        self.shown = {n: s for n, s in linker.shown.items() if n not in linker.defined}
        self.names = [*externals, *sorted(linker.defined), *sorted(self.shown)]
        self.strings, self.string_at = self._string_table([*self.names, *needed])
        self.needed = needed
        absolute = sum(1 for r in linker.relocations if r.kind == _R_64)
        self.relocation_count = len(externals) + absolute
        self._lay_out()
        self.image = bytearray(self.end)
        self.dynamic_relocations: list[tuple[int, int, int]] = []

    def _string_table(self, names: Iterable[str]) -> tuple[bytes, dict[str, int]]:
        table, at = bytearray(b"\0"), dict[str, int]()
        for name in names:
            at[name] = len(table)
            table += name.encode() + b"\0"
        return bytes(table), at

    def _lay_out(self) -> None:
        constants, code, data = self.linker.areas
        self.buckets = max(1, len(self.names) // 2)
        self.symbols_at = _HEADER.size + 4 * _SEGMENT.size
        self.hash_at = self.symbols_at + (len(self.names) + 1) * _SYMBOL.size
        self.strings_at = self.hash_at + 4 * (3 + self.buckets + len(self.names))
        self.relocations_at = _aligned(self.strings_at + len(self.strings), 8)
        relocations_end = self.relocations_at + self.relocation_count * _RELA.size
        constants.base = _aligned(relocations_end, constants.alignment)
        code.base = _aligned(constants.base + len(constants.data), code.alignment)
        self.stubs_at = _aligned(code.base + len(code.data), 16)
        self.executable_end = self.stubs_at + _STUB_SIZE * len(self.externals)
        data.base = _aligned(self.executable_end, _PAGE)
        self.slots_at = _aligned(data.base + len(data.data), 16)
        self.dynamic_at = self.slots_at + _SLOT_SIZE * len(self.externals)
        entries = 7 + len(self.needed) + (3 if self.relocation_count else 0)
        self.dynamic_size = entries * _DYNAMIC.size
        self.end = self.dynamic_at + self.dynamic_size

    def write(self) -> bytes:
        for area in self.linker.areas:
            self.image[area.base : area.base + len(area.data)] = area.data
        for index in self.externals.values():
            self._stub(index)
        for relocation in self.linker.relocations:
            self._resolve(relocation)
        self._symbol_table()
        self._write_dynamic()
        self._headers()
        return bytes(self.image)

    def address(self, place: Place) -> int:
        return self.linker.areas[place.area].base + place.offset

    def _slot(self, name: str) -> int:
        return self.slots_at + _SLOT_SIZE * self.externals[name]

    def _stub(self, index: int) -> None:
        """`jmp *slot(%rip)`, and a relocation that fills the slot at load time."""
        stub, slot = self.stubs_at + _STUB_SIZE * index, self.slots_at + _SLOT_SIZE * index
        struct.pack_into("<BBi", self.image, stub, 0xFF, 0x25, slot - (stub + 6))
        self.dynamic_relocations.append((slot, (index + 1) << 32 | _R_GLOB_DAT, 0))

    def _resolve(self, relocation: Relocation) -> None:
        at = self.address(relocation.place)
        symbol = self.linker.defined.get(relocation.symbol.name, relocation.symbol)
        if relocation.symbol.place is not None:
            symbol = relocation.symbol
        target = None if symbol.place is None else self.address(symbol.place)
        if relocation.kind == _R_64:
            self._absolute(at, symbol.name, target, relocation.addend)
        elif relocation.kind in _GOT_RELATIVE:
            self._through_table(at, symbol.name, target, relocation.addend)
        else:
            if target is None:
                if relocation.kind == _R_PC32:
                    raise LinkError(
                        f"linker: {symbol.name!r} is data of another library; not supported"
                    )
                target = self.stubs_at + _STUB_SIZE * self.externals[symbol.name]
            self._relative(at, target + relocation.addend)

    def _relative(self, at: int, target: int) -> None:
        """The signed 32-bit distance that an instruction adds to its own address."""
        struct.pack_into("<i", self.image, at, target - at)

    def _absolute(self, at: int, name: str, target: int | None, addend: int) -> None:
        if target is None:
            self.dynamic_relocations.append((at, (self.externals[name] + 1) << 32 | _R_64, addend))
        else:
            self.dynamic_relocations.append((at, _R_RELATIVE, target + addend))

    def _through_table(self, at: int, name: str, target: int | None, addend: int) -> None:
        """An instruction that reads an address from the table; `lea` where the address is known."""
        if target is None:
            self._relative(at, self._slot(name) + addend)
            return
        if self.image[at - 2] != _MOV:
            raise LinkError("linker: an indirect reference to an own symbol that is not a mov")
        self.image[at - 2] = _LEA
        self._relative(at, target + addend)

    def _symbol_table(self) -> None:
        chains, buckets = [0] * (len(self.names) + 1), [0] * self.buckets
        for index, name in enumerate(self.names, 1):
            symbol = self.linker.defined.get(name) or self.shown.get(name)
            if symbol is None or symbol.place is None:
                entry = (self.string_at[name], 0x12, 0, 0, 0, 0)  # global function, undefined
            else:
                kind = 0x12 if symbol.place.area == _CODE else 0x11  # global function, global data
                address = self.address(symbol.place)
                entry = (self.string_at[name], kind, 0, 1, address, symbol.size)
            _SYMBOL.pack_into(self.image, self.symbols_at + index * _SYMBOL.size, *entry)
            bucket = _elf_hash(name) % self.buckets
            chains[index], buckets[bucket] = buckets[bucket], index
        table = [self.buckets, len(chains), *buckets, *chains]
        struct.pack_into(f"<{len(table)}I", self.image, self.hash_at, *table)
        self.image[self.strings_at : self.strings_at + len(self.strings)] = self.strings

    def _write_dynamic(self) -> None:
        for index, entry in enumerate(self.dynamic_relocations):
            _RELA.pack_into(self.image, self.relocations_at + index * _RELA.size, *entry)
        entries = [(1, self.string_at[name]) for name in self.needed]  # DT_NEEDED
        entries += [
            (4, self.hash_at),
            (5, self.strings_at),
            (6, self.symbols_at),
            (10, len(self.strings)),  # DT_STRSZ
            (11, _SYMBOL.size),  # DT_SYMENT
        ]
        if self.relocation_count:  # DT_RELA, DT_RELASZ, DT_RELAENT
            size = self.relocation_count * _RELA.size
            entries += [(7, self.relocations_at), (8, size), (9, _RELA.size)]
        entries += [(24, 0), (0, 0)]  # DT_BIND_NOW, DT_NULL
        for index, entry in enumerate(entries):
            _DYNAMIC.pack_into(self.image, self.dynamic_at + index * _DYNAMIC.size, *entry)

    def _headers(self) -> None:
        """File and program headers; section headers only for what debuggers and profilers read."""
        data_at = self.linker.areas[_DATA].base
        segments = (
            (1, 5, 0, self.executable_end, _PAGE),  # PT_LOAD, read + execute
            (1, 6, data_at, self.end - data_at, _PAGE),  # PT_LOAD, read + write
            (2, 6, self.dynamic_at, self.dynamic_size, 8),  # PT_DYNAMIC
            (0x6474E551, 6, 0, 0, 16),  # PT_GNU_STACK: not executable
        )
        for index, (kind, flags, at, size, alignment) in enumerate(segments):
            place = _HEADER.size + index * _SEGMENT.size
            _SEGMENT.pack_into(self.image, place, kind, flags, at, at, at, size, size, alignment)
        names = b"\0.text\0.dynsym\0.dynstr\0.shstrtab\0"
        debug = self._debug_sections(len(names))
        names += names_of(self.linker.debug)
        names_at = len(self.image)
        self.image += names + bytes(-len(names) % 8)
        table_at = len(self.image)
        code_at, symbols = self.linker.areas[_CODE].base, self.hash_at - self.symbols_at
        strings = len(self.strings)
        sections = (
            (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
            (1, _PROGBITS, 6, code_at, code_at, self.executable_end - code_at, 0, 0, 16, 0),
            (7, _DYNSYM, 2, self.symbols_at, self.symbols_at, symbols, 3, 1, 8, _SYMBOL.size),
            (15, _STRTAB, 2, self.strings_at, self.strings_at, strings, 0, 0, 1, 0),
            (23, _STRTAB, 0, 0, names_at, len(names), 0, 0, 1, 0),
            *debug,
        )
        self.image += b"".join(_SECTION.pack(*section) for section in sections)
        header = (_IDENTITY, _SHARED, _X86_64, 1, 0, _HEADER.size, table_at, 0, _HEADER.size)
        counts = (_SEGMENT.size, len(segments), _SECTION.size, len(sections), _SECTION_NAMES)
        _HEADER.pack_into(self.image, 0, *header, *counts)

    def _debug_sections(self, name_at: int) -> list[tuple[int, ...]]:
        """Append the debug sections to the image; their headers."""
        headers: list[tuple[int, ...]] = []
        for section in self.linker.debug:
            data = section.resolved(self._address_of)
            headers.append((name_at, _PROGBITS, 0, 0, len(self.image), len(data), 0, 0, 1, 0))
            self.image += data
            name_at += len(section.name) + 1
        return headers

    def _address_of(self, symbol: object) -> int:
        assert isinstance(symbol, Symbol)
        if symbol.place is None:
            raise LinkError(
                f"linker: debug information speaks of {symbol.name!r}, which is elsewhere"
            )
        return self.address(symbol.place)
