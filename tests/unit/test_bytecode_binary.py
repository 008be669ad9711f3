"""The `.jbc` file: the corpus of format 1, exact round trips, and hostile bytes."""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import programs

from jitdialects.bytecode import binary
from jitdialects.bytecode.assembler import assemble
from jitdialects.bytecode.binary import MAGIC, SECTIONS, VERSION, encode
from jitdialects.bytecode.program import Block, Function, Instruction, Location, Program
from jitdialects.errors import BytecodeError

DATA = Path(__file__).parents[1] / "data"
FORMAT1 = (DATA / "format1.jbc").read_bytes()


def locations(program: Program) -> list[Location | None]:
    return [i.location for f in program.functions for b in f.blocks for i in b.instructions]


@pytest.mark.parametrize("name", ["format1", "format1_dtypes"])
def test_the_committed_files_of_format_1_load_and_equal_their_text(name: str) -> None:
    text = assemble((DATA / f"{name}.jasm").read_text(encoding="utf-8"), f"{name}.jasm")
    program = Program.load(DATA / f"{name}.jbc")
    assert program == text
    assert locations(program) == locations(text)


def test_format_1_is_still_what_is_written() -> None:
    assert Program.from_bytes(FORMAT1).to_bytes() == FORMAT1
    dtypes = (DATA / "format1_dtypes.jbc").read_bytes()
    assert Program.from_bytes(dtypes).to_bytes() == dtypes


def test_save_and_load(tmp_path: Path) -> None:
    program = Program.from_bytes(FORMAT1)
    program.save(tmp_path / "p.jbc")
    assert Program.load(tmp_path / "p.jbc") == program


@settings(max_examples=25, deadline=None)
@given(programs())
def test_round_trip(program: Program) -> None:
    data = program.to_bytes()
    again = Program.from_bytes(data)
    assert again == program
    assert locations(again) == locations(program)
    assert again.to_bytes() == data


@settings(max_examples=20, deadline=None)
@given(programs())
def test_equal_programs_give_equal_bytes(program: Program) -> None:
    stripped = encode(program, locations=False)
    again = Program.from_text(program.to_text(), "elsewhere.jasm")
    assert encode(again, locations=False) == stripped
    assert Program.from_bytes(stripped) == program
    assert set(locations(Program.from_bytes(stripped))) <= {None}


def test_the_order_of_attributes_does_not_matter() -> None:
    def program(attributes: dict) -> Program:
        body = (Instruction("sum", (0,), (0,), attributes), Instruction("return"))
        return Program((), (Function("f", 1, 0, 1, (Block("b", body),)),))

    one, other = {"axis": 0, "keepdims": True}, {"keepdims": True, "axis": 0}
    assert program(one).to_bytes() == program(other).to_bytes()


# ---- hostile bytes -----------------------------------------------------------------------------


def survives(data: bytes) -> None:
    """Exactly `BytecodeError`, with an offset, or a program that is what its bytes say."""
    try:
        program = Program.from_bytes(data)
    except BytecodeError as error:
        assert "byte " in str(error)
        return
    assert Program.from_bytes(program.to_bytes()) == program


def test_every_truncation_is_refused() -> None:
    for length in range(len(FORMAT1)):
        with pytest.raises(BytecodeError, match="byte "):
            Program.from_bytes(FORMAT1[:length])


def test_every_flipped_byte_is_refused() -> None:
    for position in range(len(FORMAT1)):
        data = bytearray(FORMAT1)
        data[position] ^= 1 << position % 8
        with pytest.raises(BytecodeError, match="byte "):
            Program.from_bytes(bytes(data))


def sections(data: bytes) -> dict[bytes, bytes]:
    out: dict[bytes, bytes] = {}
    for number in range(len(SECTIONS)):
        name, offset, length, _ = struct.unpack_from("<4sQQI", data, 12 + 24 * number)
        out[name] = data[offset : offset + length]
    return out


def sealed(contents: dict[bytes, bytes], version: int = VERSION) -> bytes:
    """A file with right checksums, so that nothing but the reader of the sections can object."""
    head, offset = MAGIC + struct.pack("<I", version), 12 + 24 * len(contents) + 4
    for name, content in contents.items():
        head += struct.pack("<4sQQI", name, offset, len(content), zlib.crc32(content))
        offset += len(content)
    return head + struct.pack("<I", zlib.crc32(head)) + b"".join(contents.values())


def test_sealing_is_right() -> None:
    assert sealed(sections(FORMAT1)) == FORMAT1


def mutations(data: bytes) -> st.SearchStrategy[bytes]:
    """Replace, insert or delete a few bytes."""
    edit = st.tuples(
        st.integers(0, len(data)), st.integers(0, 4), st.binary(max_size=4) | st.just(b"\xff" * 9)
    )

    def apply(edits: list[tuple[int, int, bytes]]) -> bytes:
        out = data
        for position, dropped, inserted in edits:
            out = out[:position] + inserted + out[position + dropped :]
        return out

    return st.lists(edit, min_size=1, max_size=3).map(apply)


@settings(max_examples=150, deadline=None)
@given(mutations(FORMAT1))
def test_mutated_files(data: bytes) -> None:
    survives(data)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_mutated_sections_with_right_checksums(data: st.DataObject) -> None:
    contents = sections(FORMAT1)
    name = data.draw(st.sampled_from(SECTIONS))
    contents[name] = data.draw(mutations(contents[name]))
    survives(sealed(contents))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes(data: bytes) -> None:
    survives(data)
    survives(MAGIC + data)


EMPTY = {b"STRS": b"\0", b"CNST": b"\0", b"FUNC": b"\0", b"LOCS": b""}


def number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def test_the_empty_program() -> None:
    assert Program.from_bytes(sealed(EMPTY)) == Program((), ())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: b"", "wrong magic"),
        (lambda d: b"func @f() -> 0 {", "assemble it first"),
        (lambda d: d.replace(b"\r\n", b"\n"), "wrong magic"),
        (lambda d: sealed(sections(d), 2), "format 2 is not known"),
        (lambda d: sealed(sections(d), 0), "format 0 is not known"),
        (lambda d: d + b"\0", "1 bytes too many"),
        (lambda d: sealed(dict(reversed(sections(d).items()))), "the table puts b'LOCS'"),
        (lambda d: sealed({b"ABCD": b"", **sections(d)}), "checksum"),
        (lambda d: d[:-1] + b"\xaa", "wrong checksum of b'LOCS'"),
    ],
)
def test_refused_files(change: Callable[[bytes], bytes], words: str) -> None:
    with pytest.raises(BytecodeError, match=r"byte \d+") as error:
        Program.from_bytes(change(FORMAT1))
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("section", "content", "words"),
    [
        (b"STRS", b"", "ends too early"),
        (b"STRS", b"\x05\x01a", "5 items in the 2 bytes"),
        (b"STRS", number(2**63), "items in the 0 bytes"),
        (b"STRS", b"\xff" * 10, "more than 64 bits"),
        (b"STRS", number(2**64), "more than 64 bits"),
        (b"STRS", b"\x01\x09a", "9 bytes wanted, 1 are left"),
        (b"STRS", b"\x01\x01\xff", "not UTF-8"),
        (b"STRS", b"\x00\x00", "1 bytes too many"),
        (b"CNST", b"\x01\x09\x00", "9 is no dtype"),
        (b"CNST", b"\x01\x02\x21" + b"\0" * 40, "rank 33"),
        (b"CNST", b"\x01\x02\x02" + number(2**40) * 2, "limit of a constant"),
        (b"CNST", b"\x01\x02\x02\x00" + number(2**63), "limit of a constant"),
        (b"CNST", b"\x01\x02\x01" + number(2**28), "bytes wanted"),
        (b"CNST", b"\x01\x00\x00\x02", "bytes 0 or 1"),
        (b"CNST", b"\x01\x05\x01\x01" + b"\0" * 8, "its rank must be 0"),
        (b"FUNC", b"\x01\x00\x00\x00\x00\x00", "string 0 of 0"),
        (b"LOCS", b"\x00", "1 bytes too many"),
    ],
)
def test_refused_sections(section: bytes, content: bytes, words: str) -> None:
    with pytest.raises(BytecodeError, match=r"byte \d+") as error:
        Program.from_bytes(sealed({**EMPTY, section: content}))
    assert words in str(error.value)


def function_file(instruction: bytes, strings: bytes = b"\x03\x01f\x04size\x04axis") -> bytes:
    """A function `f` (string 0) with a block `f` of one instruction; strings 1: size, 2: axis."""
    return sealed(
        {**EMPTY, b"STRS": strings, b"FUNC": b"\x01\x00\x01\x00\x02\x01\x00\x01" + instruction}
    )


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        (b"\x09", "string 9 of 3"),
        (b"\x01\x01\x01\x01\x00\x00\x01\x02\x08", "8 is no kind of attribute value"),
        (b"\x01\x01\x01\x01\x00\x00\x02\x02\x01\x02\x01", "an attribute comes twice"),
        (b"\x01\x01\x01\x01\x00\x00\x01\x02\x05\x01\x00", "size or index that is missing"),
        (b"\x01\x01\x01\x01\x00\x00\x01\x02\x05\x01\x07", "7 is no kind of bound"),
        (b"\x01\x01\x01\x01\x00\x00\x01\x02\x06\x01\x07", "7 is no kind of index entry"),
        (b"\x01\x01\x01\x01\x00\x00\x01\x02\x03\x00", "does not end in a terminator"),
        (b"\x01" + number(2**62), "items in the"),
    ],
)
def test_refused_instructions(instruction: bytes, words: str) -> None:
    with pytest.raises(BytecodeError, match=r"byte \d+") as error:
        Program.from_bytes(function_file(instruction))
    assert words in str(error.value)


def test_every_byte_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that reading is linear whatever the bytes say; elements of constants are copied whole."""
    reads: list[int] = []
    original = binary._Reader.byte

    def counted(reader: binary._Reader) -> int:
        reads.append(reader.at)
        return original(reader)

    monkeypatch.setattr(binary._Reader, "byte", counted)
    Program.from_bytes(FORMAT1)
    assert len(reads) == len(set(reads))
