"""Programs in files, as tools take them: `.jbc` or text, whichever it is."""

from __future__ import annotations

from pathlib import Path

from jitdialects.bytecode.binary import MAGIC
from jitdialects.bytecode.program import Program
from jitdialects.errors import BytecodeError


def load(path: str) -> Program:
    """The program in a file. Raises `BytecodeError` where there is none, `OSError` where it cannot be read."""
    data = Path(path).read_bytes()
    if data.startswith(MAGIC[:4]):  # decode says what is wrong with the rest of the magic
        return Program.from_bytes(data)
    try:
        return Program.from_text(data.decode(), path)
    except UnicodeDecodeError as error:
        raise BytecodeError(
            f"byte {error.start}: neither a .jbc file (wrong magic) nor UTF-8 text"
        ) from None
