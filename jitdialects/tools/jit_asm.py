"""`jit-asm`: program text to a `.jbc` file and back."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from jitdialects.bytecode.assembler import assemble, disassemble
from jitdialects.bytecode.binary import MAGIC, decode, encode
from jitdialects.errors import BytecodeError

_DESCRIPTION = (
    "Assemble program text into a .jbc file, or disassemble a .jbc file into text; the content of the "
    "input says which. The program is verified either way."
)
_EXAMPLE = """\
example:
  jit-asm model.jasm -o model.jbc     assemble
  jit-asm model.jbc                   print as text
  jit-asm - --check < model.jasm      verify only

exit code: 0 done, 1 the program is wrong, 2 wrong usage or a file that cannot be read or written
"""


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool with `args` (the command line's by default); the exit code."""
    parser = argparse.ArgumentParser(
        prog="jit-asm",
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("input", help="program text or a .jbc file; - is standard input")
    parser.add_argument(
        "-o", "--output", default="-", help="output file; - (default): standard output"
    )
    parser.add_argument("--check", action="store_true", help="verify only, write nothing")
    parser.add_argument(
        "--strip-locations", action="store_true", help="leave source locations out of the output"
    )
    try:
        options = parser.parse_args(args)
    except SystemExit as stop:  # argparse has said what is wrong, or printed the help
        return int(stop.code or 0)
    name = "<stdin>" if options.input == "-" else options.input
    try:
        output = _convert(_read(options.input), name, not options.strip_locations)
        if not options.check and not _write(options.output, output):
            print(
                f"{name}: error: bytes would spoil the terminal; name a file with -o",
                file=sys.stderr,
            )
            return 2
    except BytecodeError as error:
        where = f"{error.location}: " if error.location is not None else f"{name}: "
        print(f"{where}error: {error.message}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename or name}: error: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def _convert(data: bytes, name: str, locations: bool) -> bytes:
    if data.startswith(
        MAGIC[:4]
    ):  # all of the magic is checked by decode, which says what is wrong
        return disassemble(decode(data), locations=locations).encode()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BytecodeError(
            f"byte {error.start}: neither a .jbc file (wrong magic) nor UTF-8 text"
        ) from None
    return encode(assemble(text, name), locations=locations)


def _read(path: str) -> bytes:
    if path == "-":
        return sys.stdin.buffer.read()
    with open(path, "rb") as file:
        return file.read()


def _write(path: str, data: bytes) -> bool:
    """Whether the output was written: a terminal takes text only."""
    if path != "-":
        with open(path, "wb") as file:
            file.write(data)
    elif data.startswith(MAGIC) and sys.stdout.isatty():
        return False
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    return True


if __name__ == "__main__":
    sys.exit(main())
