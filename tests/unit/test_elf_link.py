"""The linker on LLVM's objects: what it links runs, what it does not understand it refuses."""

from __future__ import annotations

import ctypes
import random
import struct

import pytest

from jitdialects.runtime.engines.codegen import emit_object
from jitdialects.runtime.engines.dlopen import DlopenEngine, DlopenLibrary, LoadError
from jitdialects.runtime.engines.elf_link import LinkError, link

LEVEL = "x86-64-v1"

CALLS = """
declare float @fmaf(float, float, float)
@table = internal constant [4 x i64] [i64 3, i64 1, i64 4, i64 1]
@counter = internal global i64 40
@pointers = internal constant [2 x ptr] [ptr @one, ptr @two]
define internal i64 @one() { ret i64 1 }
define internal i64 @two() { ret i64 2 }
define i64 @lookup(i64 %i) {
  %p = getelementptr i64, ptr @table, i64 %i
  %v = load i64, ptr %p
  ret i64 %v
}
define i64 @count() {
  %v = load i64, ptr @counter
  %w = add i64 %v, 1
  store i64 %w, ptr @counter
  ret i64 %w
}
define i64 @indirect(i64 %i) {
  %p = getelementptr ptr, ptr @pointers, i64 %i
  %f = load ptr, ptr %p
  %v = call i64 %f()
  ret i64 %v
}
define float @fused(float %a, float %b, float %c) {
  %v = call float @fmaf(float %a, float %b, float %c)
  ret float %v
}
"""


@pytest.fixture(scope="module")
def calls() -> bytes:
    return emit_object(CALLS, LEVEL)


def function(library: DlopenLibrary, name: str, result: type, *arguments: type):
    return ctypes.CFUNCTYPE(result, *arguments)(library.address(name))


def test_tables_globals_pointers_and_calls(calls: bytes) -> None:
    library = DlopenEngine().load(link([calls]), "calls")
    i64, f32 = ctypes.c_int64, ctypes.c_float
    assert [function(library, "lookup", i64, i64)(i) for i in range(4)] == [3, 1, 4, 1]
    assert [function(library, "count", i64)() for _ in range(2)] == [41, 42]
    assert [function(library, "indirect", i64, i64)(i) for i in range(2)] == [1, 2]
    assert function(library, "fused", f32, f32, f32, f32)(2.0, 3.0, 4.0) == 10.0
    library.close()


def test_objects_call_each_other() -> None:
    one = emit_object("define i64 @f() { ret i64 7 }", LEVEL)
    two = emit_object(
        "declare i64 @f()\ndefine i64 @g() {\n %v = call i64 @f()\n %w = add i64 %v, 1\n ret i64 %w }",
        LEVEL,
    )
    for order in ([one, two], [two, one]):
        library = DlopenEngine().load(link(order), "pair")
        assert function(library, "g", ctypes.c_int64)() == 8


def test_many_symbols_are_found() -> None:
    text = "\n".join(f"define i64 @kernel_{i}() {{ ret i64 {i} }}" for i in range(100))
    library = DlopenEngine().load(link([emit_object(text, LEVEL)]), "many")
    for i in range(100):
        assert function(library, f"kernel_{i}", ctypes.c_int64)() == i


def test_the_same_object_links_to_the_same_bytes(calls: bytes) -> None:
    assert link([calls]) == link([calls])


def test_refuses_a_symbol_defined_twice(calls: bytes) -> None:
    with pytest.raises(LinkError, match="'lookup' is defined twice"):
        link([calls, calls])


def test_refuses_a_truncated_object(calls: bytes) -> None:
    for length in range(0, len(calls), 61):
        with pytest.raises(LinkError):
            link([calls[:length]])


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (0, b"\x7fELG", "not a 64-bit little-endian ELF file"),
        (4, b"\x01", "not a 64-bit little-endian ELF file"),
        (16, struct.pack("<H", 3), "not a relocatable object"),
        (18, struct.pack("<H", 183), "not a relocatable object for x86-64"),
    ],
)
def test_refuses_other_files(calls: bytes, offset: int, value: bytes, message: str) -> None:
    changed = bytearray(calls)
    changed[offset : offset + len(value)] = value
    with pytest.raises(LinkError, match=message):
        link([bytes(changed)])


def relocations(data: bytes) -> list[int]:
    """File offsets of the relocation entries for code."""
    (start,), (count,) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<H", data, 60)
    found: list[int] = []
    for index in range(count):
        section = struct.unpack_from("<IIQQQQIIQQ", data, start + index * 64)
        if section[1] == 4:
            found += range(section[4], section[4] + section[5], 24)
    return found


def test_refuses_unknown_relocations(calls: bytes) -> None:
    for at in relocations(calls):
        changed = bytearray(calls)
        struct.pack_into("<I", changed, at + 8, 10)  # R_X86_64_32
        try:
            link([bytes(changed)])
        except LinkError as error:
            assert "relocation of kind 10 is not supported" in error.message
            return
    pytest.fail("the object has no relocation for code")


def test_refuses_a_relocation_outside_its_section(calls: bytes) -> None:
    changed = bytearray(calls)
    for at in relocations(calls):
        struct.pack_into("<Q", changed, at, 1 << 40)
    with pytest.raises(LinkError, match="past the end"):
        link([bytes(changed)])


def test_refuses_thread_local_storage() -> None:
    text = (
        "@t = thread_local global i64 1\ndefine i64 @f() {\n %v = load i64, ptr @t\n ret i64 %v }"
    )
    with pytest.raises(LinkError, match="thread-local"):
        link([emit_object(text, LEVEL)])


def test_damaged_objects_give_link_errors_only(calls: bytes) -> None:
    chance = random.Random(7)
    for _ in range(300):
        changed = bytearray(calls)
        for _ in range(3):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        try:
            link([bytes(changed)])
        except LinkError as error:
            assert error.message.startswith("linker: ")


def test_an_undefined_name_fails_when_it_is_loaded() -> None:
    text = "declare i64 @nobody_has_this()\ndefine i64 @f() {\n %v = call i64 @nobody_has_this()\n ret i64 %v }"
    with pytest.raises(LoadError, match="nobody_has_this"):
        DlopenEngine().load(link([emit_object(text, LEVEL)]), "undefined")


def test_prefixes_keep_equal_names_apart() -> None:
    objects = [emit_object(f"define i64 @f() {{ ret i64 {n} }}", LEVEL) for n in (1, 2)]
    with pytest.raises(LinkError, match="'f' is defined twice"):
        link(objects)
    library = DlopenEngine().load(link(objects, prefixes=["one_", "two_"]), "prefixes")
    results = [ctypes.CFUNCTYPE(ctypes.c_int64)(library.address(n))() for n in ("one_f", "two_f")]
    assert results == [1, 2]
